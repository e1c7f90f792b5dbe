internal import CallAgent
internal import ConfigReader
internal import ControlWire
internal import Cryptography
internal import HTTPTransport
internal import NIOHTTP1

/// Which requests are read at all: by host, origin and token.
struct ControlAdmission {
    /// What a client must present; nil on a Unix socket, whose mode says who may connect.
    private let token: Secret?
    /// Names by which the server is called; nil on a Unix socket.
    private let hosts: HostRules?
    private let origins: [String]

    /// Admits clients of a Unix socket.
    init() { (token, hosts, origins) = (nil, nil, []) }

    /// Admits clients on TCP.
    init(_ network: ControlHTTPConfiguration.Network) {
        token = network.token
        let files = network.certificate.map { CertificateFiles(chainPath: $0.chainPath, keyPath: $0.keyPath) }
        hosts = HostRules(
            listen: network.listen.host, certificate: ServerTLS.names(of: files), allowed: network.allowedHosts)
        origins = network.allowedOrigins
    }

    /// Why a request is refused; nil if it is not.
    ///
    /// - Parameter reached: The local address of the connection.
    func problem(_ head: HTTPRequestHead, reached: String?) -> ControlProblem? {
        if let hosts, !hosts.admit(head.headers, head.version, reached: reached) {
            return Self.problem(
                .foreignHost, "this server is \(hosts.summary); control.http.allowed_hosts has more names")
        }
        guard WebOrigin.isAllowed(head.headers, allowed: origins) else {
            return Self.problem(
                .foreignOrigin, "pages of this origin may not use it; control.http.allowed_origins lists those that may"
            )
        }
        guard isKnown(head.headers) else {
            return Self.problem(.unauthorized, "send Authorization: Bearer with the token of control.http.token_file")
        }
        return nil
    }

    private func isKnown(_ headers: HTTPHeaders) -> Bool {
        guard let token else { return true }
        let values = headers["Authorization"]
        guard values.count == 1, let given = values.first, given.lowercased().hasPrefix("bearer ") else { return false }
        return Digest.areEqual(Array(given.dropFirst(7).utf8), Array(token.revealed.utf8))
    }

    private static func problem(_ code: ControlFault.Code, _ message: String) -> ControlProblem {
        ControlProblem(ControlFault(code, message))
    }
}
