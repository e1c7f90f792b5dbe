import HTTPTransport
import NIOCore

/// Where to listen, and whether that is allowed.
extension ExchangeConfiguration {
    var listenAddress: ListenAddress { ListenAddress(host: host, port: port) }

    /// Whether connections are over TLS.
    var isEncrypted: Bool { certificate != nil || ownAuthority != nil }

    /// The certificate's files, for the listener.
    var serverCertificate: CertificateFiles? { certificate?.files }

    /// Resolves the configured host, and holds plain text to loopback unless more was allowed by name.
    ///
    /// - Parameter isEncrypted: Whether there is a certificate; nil for what the configuration has.
    func resolveListenAddress(isEncrypted: Bool? = nil) throws(ExchangeError) -> SocketAddress {
        let address: SocketAddress
        do throws(ListenError) { address = try listenAddress.resolve() } catch { throw ExchangeError(error) }
        try refusePlainText(at: address, isEncrypted: isEncrypted ?? self.isEncrypted)
        return address
    }

    /// Holds plain text to loopback unless more was allowed by name.
    func refusePlainText(at address: SocketAddress, isEncrypted: Bool) throws(ExchangeError) {
        guard isEncrypted || plainText == .allowed || ListenAddress.isLoopback(address) else {
            throw ExchangeError(
                .plainTextRefused,
                "will not listen on \(listenAddress) without TLS: passwords and keys "
                    + "would cross the network in the clear. Give a certificate and its key, listen on 127.0.0.1, "
                    + "or set plain_text: allowed if something else protects the network.")
        }
    }
}

extension ExchangeConfiguration.Certificate {
    /// The files, for the listener.
    var files: CertificateFiles { CertificateFiles(chainPath: chainPath, keyPath: keyPath) }
}

extension ExchangeError {
    /// The exchange cannot listen.
    init(_ error: ListenError) {
        switch error.code {
        case .portInUse: self.init(.portInUse, error.description)
        case .addressNotUsable: self.init(.addressNotUsable, error.description)
        }
    }
}
