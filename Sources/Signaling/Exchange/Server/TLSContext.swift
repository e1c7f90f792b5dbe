import NIOSSL

/// TLS for connections that come in.
enum TLSContext {
    /// Reads certificate and key; without a certificate there is no TLS.
    static func load(_ certificate: ExchangeConfiguration.Certificate?) throws(ExchangeError) -> NIOSSLContext? {
        guard let certificate else { return nil }
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(certificate.chainPath)
            guard !chain.isEmpty else {
                throw refusal(certificate.chainPath, "there is no certificate in it")
            }
            let key = try NIOSSLPrivateKey(file: certificate.keyPath, format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
            configuration.minimumTLSVersion = .tlsv12
            // Forward secrecy and authenticated encryption only (RFC 9325 §4.2); TLS 1.3 has nothing else.
            configuration.cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"
            configuration.applicationProtocols = ["http/1.1"]
            return try NIOSSLContext(configuration: configuration)
        } catch let error as ExchangeError {
            throw error
        } catch {
            throw refusal("\(certificate.chainPath) with key \(certificate.keyPath)", "\(error)")
        }
    }

    /// The names and addresses that a certificate is for; none if it cannot be read.
    static func names(of certificate: ExchangeConfiguration.Certificate?) -> [String] {
        guard let certificate, let own = try? NIOSSLCertificate.fromPEMFile(certificate.chainPath).first else {
            return []
        }
        return own._subjectAlternativeNames().compactMap { name in
            switch name.nameType {
            case .dnsName: String(validating: name.contents, as: UTF8.self)
            case .ipAddress: HostName(address: Array(name.contents))?.text
            default: nil
            }
        }
    }

    private static func refusal(_ what: String, _ why: String) -> ExchangeError {
        ExchangeError(
            .certificateNotUsable,
            "cannot use the certificate \(what): \(why). Both files must be PEM, readable, and belong together.")
    }
}
