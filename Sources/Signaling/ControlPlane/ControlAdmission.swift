internal import ConfigReader
internal import ControlWire
internal import HTTPTransport
internal import NIOHTTP1

/// Which requests are read at all: by host, origin and token.
package struct ControlAdmission {
    /// What a client must present; nil on a Unix socket, whose mode says who may connect.
    private let token: Secret?
    /// Names by which the server is called; nil on a Unix socket.
    private let hosts: HostRules?
    private let origins: [String]
    private let sharing: OriginSharing
    /// The section of the configuration that has them.
    private let section: String

    /// What becomes of a request.
    enum Verdict {
        /// It is carried out.
        case admitted
        /// It is a browser's question whether a page may send a request.
        case answered(HTTPAnswer)
        /// It is not read.
        case refused(ControlProblem)
    }

    /// Admits clients of a Unix socket.
    package init() { (token, hosts, origins, sharing, section) = (nil, nil, [], Self.sharing([]), "") }

    /// Admits clients on TCP.
    init(_ network: ControlNetwork) {
        section = network.section
        token = network.token
        let files = network.certificate.map { CertificateFiles(chainPath: $0.chainPath, keyPath: $0.keyPath) }
        hosts = HostRules(
            listen: network.listen.host, certificate: ServerTLS.names(of: files), allowed: network.allowedHosts)
        origins = network.allowedOrigins
        sharing = Self.sharing(network.allowedOrigins)
    }

    private static func sharing(_ origins: [String]) -> OriginSharing {
        OriginSharing(
            origins, methods: ["GET", "HEAD", "POST"],
            requestHeaders: [
                "Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Range", "If-Range",
            ],
            answerHeaders: ["Accept-Ranges", "Allow", "Content-Range", "ETag", "Location", "Retry-After"])
    }

    /// An answer that pages of the configured origins can read.
    func shared(_ answer: HTTPAnswer, with request: HTTPRequestHead) -> HTTPAnswer {
        var answer = answer
        sharing.share(&answer, with: request)
        return answer
    }

    /// Decides about a request.
    ///
    /// - Parameter reached: The local address of the connection.
    func judge(_ head: HTTPRequestHead, reached: String?) -> Verdict {
        if let problem = foreign(head, reached) { return .refused(problem) }
        if let answer = sharing.preflight(head) { return .answered(answer) }
        // Also beside the right token, and without one: it is in logs already.
        if let problem = ControlOperation.tokenProblem(inTarget: head.uri) { return .refused(problem) }
        guard isKnown(head.headers) else {
            return .refused(
                Self.problem(.unauthorized, "send Authorization: Bearer with the token of \(section).token_file"))
        }
        return .admitted
    }

    private func foreign(_ head: HTTPRequestHead, _ reached: String?) -> ControlProblem? {
        if let hosts, !hosts.admit(head.headers, head.version, reached: reached) {
            return Self.problem(
                .foreignHost, "this server is \(hosts.summary); \(section).allowed_hosts has more names")
        }
        guard WebOrigin.isAllowed(head.headers, allowed: origins) else {
            return Self.problem(
                .foreignOrigin, "pages of this origin may not use it; \(section).allowed_origins lists those that may")
        }
        return nil
    }

    /// Whether a browser may be shown files of a page, for which it needs no token: on TCP, at a name of the server.
    func showsPages(to head: HTTPRequestHead, reached: String?) -> Bool {
        hosts?.admit(head.headers, head.version, reached: reached) ?? false
    }

    private func isKnown(_ headers: HTTPHeaders) -> Bool {
        guard let token else { return true }
        let values = headers["Authorization"]
        // Compared in place: copies would stay behind in memory that was freed.
        guard values.count == 1, let given = values.first?.utf8,
            given.prefix(7).map({ $0 | 0x20 }) == Array("bearer ".utf8)
        else { return false }
        return token.isEqual(to: given.dropFirst(7))
    }

    private static func problem(_ code: ControlFault.Code, _ message: String) -> ControlProblem {
        ControlProblem(ControlFault(code, message))
    }
}
