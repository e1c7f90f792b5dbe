internal import SIP
internal import TLS

/// Whether a trusted certificate is a SIP server's (RFC 5922 §7.2). If it names domains of SIP, the server must be one of them;
/// otherwise it must be for the server's host as for HTTPS.
struct ServerIdentity {
    /// Whether the certificate is that server's.
    let isServer: Bool

    /// - Parameter server: The configured name, or address written out.
    init(_ certificate: TLSCertificate, of server: String) {
        let uris = certificate.names.compactMap { name in
            if case .uri(let text) = name { text } else { nil }
        }
        self.init(uris: uris, isForHost: certificate.isFor(server), server: server)
    }

    /// - Parameters:
    ///   - uris: All that the certificate has as alternative names of its subject.
    ///   - isForHost: Whether its other names have the server's host.
    init(uris: [String], isForHost: Bool, server: String) {
        guard let server = SIPHost(server) else {
            isServer = false
            return
        }
        // The hosts of URIs with the scheme `sip` and without a user.
        let domains = uris.compactMap { text -> SIPHost? in
            guard let uri = AnyURI(text)?.sip, !uri.isSecure, uri.user == nil else { return nil }
            return uri.host
        }
        isServer = domains.isEmpty ? isForHost : domains.contains { $0.isSame(as: server) }
    }
}
