import Glibc
import NIOSSL

/// Why a certificate, or its key, cannot be used.
struct CertificateFault: Error {
    enum Part {
        case chain, key
    }

    /// Whose fault it is.
    let part: Part
    let path: String
    /// What is wrong with the file and what to try; to be read after its name.
    let message: String
}

/// TLS for connections that come in.
enum TLSContext {
    /// Reads certificate and key; without a certificate there is no TLS.
    ///
    /// - Parameter now: Seconds since 1970.
    static func load(
        _ certificate: ExchangeConfiguration.Certificate?, now: time_t = time(nil)
    ) throws(CertificateFault) -> NIOSSLContext? {
        guard let certificate else { return nil }
        func fault(_ part: CertificateFault.Part, _ message: String) -> CertificateFault {
            let path = part == .chain ? certificate.chainPath : certificate.keyPath
            return CertificateFault(part: part, path: path, message: message)
        }
        guard let chain = try? NIOSSLCertificate.fromPEMFile(certificate.chainPath), let own = chain.first else {
            throw fault(.chain, "holds no certificate in PEM form, the exchange's own first, that can be read")
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
}
