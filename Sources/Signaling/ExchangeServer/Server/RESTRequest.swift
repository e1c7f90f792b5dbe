import ExchangeCore
import HTTPTransport
import NIOHTTP1
import Core
import SignalWire

/// One request to the exchange over HTTP, complete.
struct RESTRequest: Sendable {
    var method: HTTPMethod
    /// Without the query.
    var path: String
    var headers: HTTPHeaders
    var body: [UInt8]
    /// Where it comes from.
    var client = ClientAddress.none
    /// Whether its `Host` header names this exchange.
    var isForUs = true
    /// Whether its client may have another connection, which for a proxy's is known only now.
    var hasRoom = true
    /// Appears in the response's `Trace-Id` and in the log.
    var trace: TraceID
}

extension HTTPAnswer {
    /// A success with a JSON body.
    static func success(_ value: some Encodable, trace: TraceID) -> HTTPAnswer {
        do {
            return HTTPAnswer(status: .ok, body: try SignalCoding.encode(value))
        } catch {
            return failure(.internalError, "The answer cannot be written.", trace: trace)
        }
    }

    /// An error with a JSON body that names the trace, so that it is found in a report of the client's, too.
    static func failure(
        _ code: RESTErrorCode, _ message: String, trace: TraceID, retryAfterSeconds: Int? = nil,
        owner: String? = nil
    ) -> HTTPAnswer {
        let failure = RESTFailure(code, "\(message) (Trace-Id \(trace))", owner: owner)
        var answer = HTTPAnswer(
            status: HTTPResponseStatus(statusCode: code.status), body: (try? SignalCoding.encode(failure)) ?? [])
        if let seconds = retryAfterSeconds { answer.headers.add(name: "Retry-After", value: "\(seconds)") }
        switch code {
        case .unknownAppKey, .wrongPassword, .wrongMediaToken, .wrongAccessToken, .wrongKey, .challengeExpired,
            .enrollmentUnknown, .enrollmentExpired, .enrollmentUsed:
            answer.headers.add(name: "WWW-Authenticate", value: "Basic realm=\"handset\"")
        case .tokenRejected, .tokenExpired, .tokenWrongSignature, .tokenForAnotherSession, .tokenRevoked:
            answer.headers.add(name: "WWW-Authenticate", value: "Bearer realm=\"handset\"")
        case .badRequest, .notAllowed, .notFound, .methodNotAllowed, .tooLarge, .misdirected, .tooManyRequests,
            .internalError, .unavailable, .standby:
            break
        }
        return answer
    }
}
