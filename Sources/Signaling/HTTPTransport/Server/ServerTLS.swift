package import Glibc
package import NIOSSL

/// The files of a server's certificate, both in PEM form.
package struct ServerCertificate: Hashable, Sendable {
    let chainPath: String
    let keyPath: String

    /// - Parameters:
    ///   - chainPath: The chain, the server's own certificate first.
    ///   - keyPath: The private key, without a passphrase.
    package init(chainPath: String, keyPath: String) {
        self.chainPath = chainPath
        self.keyPath = keyPath
    }
}

/// Why a certificate, or its key, cannot be used.
package struct CertificateFault: Error, Hashable, Sendable {
    /// One of the two files.
    package enum Part: Sendable {
        case chain, key
    }

    /// The file at fault.
    package let part: Part
    package let path: String
    /// What is wrong with the file and what to try; to be read after its name.
    package let message: String
}

/// TLS for connections that come in.
package enum ServerTLS {
    /// Reads certificate and key; without a certificate there is no TLS.
    ///
    /// - Parameter now: Seconds since 1970.
    package static func load(
        _ certificate: ServerCertificate?, now: time_t = time(nil)
    ) throws(CertificateFault) -> NIOSSLContext? {
        guard let certificate else { return nil }
        func fault(_ part: CertificateFault.Part, _ message: String) -> CertificateFault {
            let path = part == .chain ? certificate.chainPath : certificate.keyPath
            return CertificateFault(part: part, path: path, message: message)
        }
        guard let chain = try? NIOSSLCertificate.fromPEMFile(certificate.chainPath), let own = chain.first else {
            throw fault(.chain, "holds no certificate in PEM form, the server's own first, that can be read")
        }
        guard own.notValidAfter > now else {
            throw fault(
                .chain,
                "expired \(days(now - own.notValidAfter)) ago, so that clients refuse it; get a new certificate, or set "
                    + "this machine's clock right")
        }
        guard let key = try? NIOSSLPrivateKey(file: certificate.keyPath, format: .pem) else {
            throw fault(.key, "holds no private key in PEM form, without a passphrase, that can be read")
        }
        do {
            return try NIOSSLContext(configuration: configuration(chain, key))
        } catch {
            throw fault(.key, "is not the private key of the certificate in \"\(certificate.chainPath)\"")
        }
    }

    /// A time in whole days, in words.
    static func days(_ seconds: time_t) -> String {
        switch seconds / 86_400 {
        case 0: "less than a day"
        case 1: "a day"
        case let days: "\(days) days"
        }
    }

    private static func configuration(_ chain: [NIOSSLCertificate], _ key: NIOSSLPrivateKey) -> TLSConfiguration {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        // Forward secrecy and authenticated encryption only (RFC 9325 §4.2); TLS 1.3 has nothing else.
        configuration.cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"
        configuration.applicationProtocols = ["http/1.1"]
        return configuration
    }

    /// The names and addresses that a certificate is for; none if it cannot be read.
    package static func names(of certificate: ServerCertificate?) -> [String] {
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
}
