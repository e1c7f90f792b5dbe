internal import CallAgent
internal import ConfigReader
internal import NetworkAddress

/// The callee of `handset call`, as somebody types it: `user`, `user@host` or `user@host:port`.
struct CalleeAddress {
    /// Base URL of the server that the address names; nil if it names none.
    ///
    /// A host on this machine is spoken to on the embedded exchange's port without TLS, any other by https.
    let server: String?

    init(_ text: String) {
        guard let at = text.lastIndex(of: "@"), text.index(after: at) < text.endIndex else {
            server = nil
            return
        }
        let authority = String(text[text.index(after: at)...])
        let host = authority.prefix { $0 != ":" }
        let hasPort = host.endIndex < authority.endIndex
        let isLocal = host == "localhost" || SocketAddress(host: String(host), port: 0)?.isLoopback == true
        let scheme = isLocal ? "http" : "https"
        server = "\(scheme)://\(authority)" + (hasPort || !isLocal ? "" : ":8555")
    }
}

extension AccountConfiguration {
    /// The account of the caller in the exchange's own demonstration configuration. No secret: it works on one's own
    /// machine only.
    static var demoCaller: AccountConfiguration {
        AccountConfiguration(server: defaultServer, credential: .mediaToken(Secret("caller-demo-token")))
    }
}
