internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import TLS

/// Data could not be exchanged with a server.
///
/// Match on ``kind``. The description says what happened, and what to try.
package struct TransportFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of thing went wrong.
    package enum Kind: Hashable, Sendable {
        /// No server had anything to do with the attempt: the name is unknown, nothing listens, or there is no route.
        case noServer
        /// There may be a server, and it does not answer, or the network has failed.
        case unreachable
        /// The server closed the connection without a word.
        case closed
        /// The certificate has expired, or no authority that this machine trusts has signed it.
        case untrusted
        /// The certificate names another host.
        case wrongName
        /// The server does not speak TLS.
        case plainText
        /// The TLS handshake failed for another reason.
        case handshake
        /// The server does not speak HTTP.
        case notHTTP
        /// The server answered the request for a WebSocket with this HTTP status.
        case notUpgraded(status: Int?)
        /// The server, or this end, has broken a rule of WebSockets or a bound.
        case fault
    }

    package let kind: Kind
    /// What happened; without an address where ``kind`` says enough.
    package let cause: String
    /// What to try; empty if there is nothing to say.
    package let advice: String

    /// Whether the server's certificate is not trusted, or names another host.
    package var isUntrusted: Bool { kind == .untrusted || kind == .wrongName }

    package var description: String { advice.isEmpty ? "\(cause)." : "\(cause). \(advice)" }

    private init(_ kind: Kind, _ cause: String, _ advice: String = "Check the address, and that the server runs there.")
    {
        self.kind = kind
        self.cause = cause
        self.advice = advice
    }

    /// Explains an error of ``WebSocket/connect(_:to:on:)``, of ``WebSocket/Event/failed(_:)``, or of any other connection.
    package init(_ error: any Error, to endpoint: HTTPEndpoint) {
        let place = endpoint.authority
        switch error {
        case let failure as TransportFailure: self = failure
        case let error as NIOConnectionError:
            let isNoServer = error.connectionErrors.allSatisfy { ($0.error as? IOError).map(Self.isNoServer) ?? false }
            self.init(isNoServer ? .noServer : .unreachable, Self.cause(of: error, at: place))
        case let error as TLSError: self = Self.tls(error, at: endpoint)
        case is HTTPParserError: self.init(.notHTTP, "what \(place) sends is not HTTP")
        case ChannelError.connectTimeout: self.init(.unreachable, "\(place) does not answer")
        case ChannelError.inputClosed, ChannelError.inappropriateOperationForState, ChannelError.alreadyClosed,
            ChannelError.ioOnClosedChannel, ChannelError.eof:
            self = .closed(by: endpoint)
        case let error as IOError:
            self.init(Self.isNoServer(error) ? .noServer : .unreachable, Self.cause(of: error, at: place))
        case HTTPFetch.Failure.closed: self = .closed(by: endpoint)
        case HTTPFetch.Failure.tooLate: self = .silent(endpoint)
        case HTTPFetch.Failure.tooLong(let limit):
            self.init(.fault, "what \(place) answers has more than \(limit) bytes", "")
        case HTTPFetch.Failure.endless(let limit): self = .endless(limit, at: place)
        case let error as WebSocket.OpeningError: self = Self.opening(error, at: place)
        case let error as WebSocket.Fault:
            self.init(.fault, "the WebSocket of \(place) has failed: \(error)", "")
        default: self.init(.unreachable, "\(error)")
        }
    }

    /// The server closed the connection.
    package static func closed(by endpoint: HTTPEndpoint) -> TransportFailure {
        let advice =
            endpoint.isSecure
            ? "If it does not speak TLS, use http and ws." : "If it speaks TLS, use https and wss."
        return TransportFailure(.closed, "\(endpoint.authority) closed the connection", advice)
    }

    /// The server did not answer in time.
    package static func silent(_ endpoint: HTTPEndpoint) -> TransportFailure {
        TransportFailure(.unreachable, "\(endpoint.authority) does not answer")
    }

    private static func endless(_ limit: Int, at place: String) -> TransportFailure {
        TransportFailure(
            .fault,
            "\(place) sends more than \(limit) bytes that are no answer: provisional answers (1xx), a head or chunks without end",
            "")
    }

    private static func opening(_ error: WebSocket.OpeningError, at place: String) -> TransportFailure {
        switch error {
        case .notUpgraded(let status?, let location?) where (300..<400).contains(status):
            TransportFailure(
                .notUpgraded(status: status), "\(place) redirects to \(location)",
                "Use that address, if it is the right one.")
        case .notUpgraded(let status, _):
            TransportFailure(
                .notUpgraded(status: status),
                "\(place) opens no WebSocket there" + (status.map { ": it answered with status \($0)" } ?? ""),
                "Check the path of the address, and what the server wants to know of its clients.")
        case .notOffered(let choice):
            TransportFailure(.fault, "\(place) chose \(choice), which was not offered", "")
        case .endless(let limit): .endless(limit, at: place)
        case .tooLate: TransportFailure(.unreachable, "\(place) did not open a WebSocket in time")
        }
    }

    private static func tls(_ error: TLSError, at endpoint: HTTPEndpoint) -> TransportFailure {
        let place = endpoint.authority
        return switch error.code {
        case .untrusted:
            TransportFailure(
                .untrusted,
                "the certificate of \(place) is not signed by an authority that this machine trusts, or has expired",
                "If it is your own, name the file of the certificate that signed it as trust root.")
        case .wrongName:
            TransportFailure(
                .wrongName, "the certificate of \(place) is for another name",
                "Use the name that the certificate is for.")
        case .plainText:
            TransportFailure(
                .plainText, "\(place) does not speak TLS",
                "Check the port. On this machine http and ws may be used.")
        case .closedInHandshake:
            TransportFailure(
                .handshake, "\(place) closed the connection during the TLS handshake",
                "If it does not speak TLS, use http and ws.")
        case .truncated: .closed(by: endpoint)
        case .refusedByPeer, .broken, .unusable:
            TransportFailure(.handshake, "the TLS handshake with \(place) failed: \(error)", "")
        }
    }

    private static func isNoServer(_ error: IOError) -> Bool {
        [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENETDOWN].contains(error.errnoCode)
    }

    private static func cause(of error: NIOConnectionError, at place: String) -> String {
        if error.connectionErrors.isEmpty, error.dnsAError != nil || error.dnsAAAAError != nil {
            return "the name \"\(error.host)\" is not known"
        }
        for single in error.connectionErrors {
            if let failure = single.error as? IOError { return cause(of: failure, at: place) }
        }
        return "\(place) does not answer"
    }

    private static func cause(of error: IOError, at place: String) -> String {
        switch error.errnoCode {
        case ECONNREFUSED: "nothing listens at \(place)"
        case ENETUNREACH, EHOSTUNREACH: "no route leads from this machine to \(place)"
        case ENETDOWN: "this machine's network is down, so that \(place) is out of reach"
        default: "cannot reach \(place): \(error)"
        }
    }
}
