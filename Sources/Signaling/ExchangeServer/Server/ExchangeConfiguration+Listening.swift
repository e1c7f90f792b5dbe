import ConfigReader
import HTTPTransport
import NIOCore

/// Where to listen, and whether that is allowed.
extension ExchangeConfiguration {
    var listenAddress: ListenAddress { ListenAddress(host: host, port: port) }

    /// Whether connections use TLS.
    var isEncrypted: Bool { certificate != nil || ownAuthority != nil }

    /// The certificate's files, for the listener.
    var serverCertificate: CertificateFiles? { certificate?.files }

    /// The exchange's address under this host name or address.
    func url(host: String, port: Int) -> String {
        "\(isEncrypted ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }

    /// The page at which a browser finds the web phone, as far as the exchange can know it; `nil` if it serves none.
    ///
    /// A proxy's address comes from `websocket_url`. With TLS the host is a name of the certificate, because a browser refuses others.
    ///
    /// - Parameter port: The port that it listens on.
    func webPhoneURL(port: Int, certificateNames: [String]) -> String? {
        guard showsWebPhone else { return nil }
        if let webSocketURL, webSocketURL.hasPrefix("ws"), webSocketURL.hasSuffix(ExchangeServer.webSocketPath) {
            return "http\(webSocketURL.dropFirst(2).dropLast(ExchangeServer.webSocketPath.utf8.count))/"
        }
        let named = certificateNames.first { !$0.contains("*") }
        let listens = ["0.0.0.0", "::"].contains(host) ? "localhost" : host
        return url(host: certificateNames.contains(host) ? host : named ?? listens, port: port) + "/"
    }

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

/// Judging where to listen when a configuration is read, as the server does when it begins to.
extension ExchangeConfiguration {
    func judgeListening(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        // An unreadable certificate is reported elsewhere; the intent to use TLS is clear.
        let isEncrypted = self.isEncrypted || section.has(\.certificate)
        do throws(ExchangeError) {
            switch section.fileChecks {
            case .inputs: break  // A caller that reads a part of the configuration does not listen.
            case .none:
                // Another machine has other names; an address is the same everywhere.
                guard let address = listenAddress.literal else { return }
                try refusePlainText(at: address, isEncrypted: isEncrypted)
            case .all:
                let address = try resolveListenAddress(isEncrypted: isEncrypted)
                do throws(ListenError) { try listenAddress.tryToBind(address) } catch { throw ExchangeError(error) }
            }
        } catch {
            problems.append(section.problem(\.listen, "\(error)"))
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
