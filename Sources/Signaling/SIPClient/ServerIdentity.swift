internal import NIOSSL
internal import SIP

/// Which domains a server's certificate names for SIP alone (RFC 5922 §7.1). Whether it is trusted, and is for a host's name as for
/// HTTPS, others find out.
struct ServerIdentity {
    /// In which way a certificate must be for the server that was asked for.
    enum Check {
        /// As for HTTPS; if it names domains of SIP, the server must be one of them, too.
        case host
        /// By a domain of SIP alone.
        case domain
    }

    /// The hosts of its URIs with the scheme `sip` and without a user.
    private let domains: [SIPHost]

    init(_ certificate: NIOSSLCertificate) {
        self.init(
            uris: certificate._subjectAlternativeNames().compactMap { name in
                name.nameType == .uri ? String(decoding: Array(name.contents), as: UTF8.self) : nil
            })
    }

    /// - Parameter uris: All that the certificate has as alternative names of its subject.
    init(uris: [String]) {
        domains = uris.compactMap { text in
            guard let uri = AnyURI(text)?.sip, !uri.isSecure, uri.user == nil else { return nil }
            return uri.host
        }
    }

    /// Whether that check lets the server pass.
    func passes(_ check: Check, as server: SIPHost) -> Bool {
        check == .host && domains.isEmpty || domains.contains { $0.isSame(as: server) }
    }
}
