internal import NIOCore
internal import NIOSSL

extension ChannelPipeline.SynchronousOperations {
    /// Adds TLS to a client's pipeline if the endpoint wants it. The name is the configured one, never an address that was
    /// looked up.
    func addClientTLS(_ endpoint: HTTPEndpoint, _ trust: TLSTrust) throws {
        guard endpoint.isSecure else { return }
        let name = endpoint.isAddress ? nil : endpoint.host
        try addHandler(NIOSSLClientHandler(context: try trust.context(), serverHostname: name))
    }
}

/// Errors of TLS that a client tells apart.
enum ClientTLS {
    /// Whether the server ended the connection without closing TLS.
    static func isCutShort(_ error: any Error) -> Bool {
        guard case .uncleanShutdown? = error as? NIOSSLError else { return false }
        return true
    }
}
