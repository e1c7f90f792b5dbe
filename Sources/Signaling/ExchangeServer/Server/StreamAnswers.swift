import HTTPTransport
import NIOHTTP1
import SignalWire
import ExchangeCore

/// The body of an error (RFC 9457).
private struct Problem: Encodable {
    var type = "about:blank"
    var title: String
    var status: Int
    var detail: String
    /// A stable name, as in the errors of other paths.
    var code: String
}

extension HTTPAnswer {
    /// An error of a stream's.
    static func problem(_ failure: StreamFailure, trace: TraceID) -> HTTPAnswer {
        let status = HTTPResponseStatus(statusCode: failure.status)
        let problem = Problem(
            title: status.reasonPhrase, status: failure.status, detail: "\(failure.detail) (Trace-Id \(trace))",
            code: failure.code)
        var answer = HTTPAnswer(
            status: status, contentType: "application/problem+json",
            body: (try? SignalCoding.encode(problem)) ?? [])
        if let seconds = failure.retryAfterSeconds { answer.headers.add(name: "Retry-After", value: "\(seconds)") }
        if failure.status == 401 { answer.headers.add(name: "WWW-Authenticate", value: "Bearer realm=\"handset\"") }
        return answer
    }

    /// Lets the page that asked read the answer (CORS); its origin must have been found good.
    mutating func share(with request: RESTRequest) {
        guard let origin = request.headers.first(name: "Origin") else { return }
        headers.add(name: "Access-Control-Allow-Origin", value: origin)
        headers.add(name: "Access-Control-Expose-Headers", value: "Location, ETag, Link, Retry-After, Trace-Id")
        headers.add(name: "Vary", value: "Origin")
    }
}

extension ICEServer {
    /// The server as `Link` headers (RFC 9725 §4.6), one for each URL; none for what no header can hold.
    var links: [String] {
        let own = [("username", username), ("credential", credential?.secret)].compactMap { name, value in
            value.map { "; \(name)=\"\(Self.escaped($0))\"" }
        }
        let parameters = own.joined() + (credential == nil ? "" : "; credential-type=\"password\"")
        return urls.map { "<\($0)>; rel=\"ice-server\"" + ($0.hasPrefix("turn") ? parameters : "") }
            .filter { link in link.utf8.allSatisfy { (0x20...0x7E).contains($0) } }
    }

    private static func escaped(_ text: String) -> String {
        String(text.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] })
    }
}
