package import Glibc
package import NIOSSL

/// The files of a server's certificate, both in PEM form.
package struct ServerCertificate: Hashable, Sendable {
    package let chainPath: String
    package let keyPath: String

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
        return try identity(certificate, now: now).context
    }

    /// Reads certificate and key.
    ///
    /// - Parameter now: Seconds since 1970.
    package static func identity(
        _ certificate: ServerCertificate, now: time_t = time(nil)
    ) throws(CertificateFault) -> ServerIdentity {
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
            return ServerIdentity(try NIOSSLContext(configuration: configuration(chain, key)), chain, own)
        } catch {
            throw fault(.key, "is not the private key of the certificate in \"\(certificate.chainPath)\"")
        }
    }

    /// Takes a certificate that was just made, with the authority's behind it, and its key; all in PEM form.
    ///
    /// - Returns: `nil` if they are not that.
    package static func identity(chain: [UInt8], key: [UInt8]) -> ServerIdentity? {
        guard let chain = try? NIOSSLCertificate.fromPEMBytes(chain), let own = chain.first,
            let key = try? NIOSSLPrivateKey(bytes: key, format: .pem),
            let context = try? NIOSSLContext(configuration: configuration(chain, key))
        else { return nil }
        return ServerIdentity(context, chain, own)
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
        return own.names
    }

    /// The certificate of a chain that is nearest to the root, in DER form: whose fingerprint tells the authority.
    ///
    /// - Parameter chain: In PEM form.
    /// - Returns: `nil` if there is no certificate in it.
    package static func authority(ofChain chain: [UInt8]) -> [UInt8]? {
        (try? NIOSSLCertificate.fromPEMBytes(chain))?.last.flatMap { try? $0.toDERBytes() }
    }
}

/// A server's certificate, ready to be used.
package struct ServerIdentity: Sendable {
    /// For new connections.
    package let context: NIOSSLContext
    /// The names and addresses that it is for.
    package let names: [String]
    /// In hexadecimal digits.
    package let serial: String
    /// When it ends: seconds since 1970.
    package let end: time_t

    fileprivate init(_ context: NIOSSLContext, _ chain: [NIOSSLCertificate], _ own: NIOSSLCertificate) {
        self.context = context
        names = own.names
        serial = own.serialNumber.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        end = own.notValidAfter
    }
}

extension NIOSSLCertificate {
    fileprivate var names: [String] {
        _subjectAlternativeNames().compactMap { name in
            switch name.nameType {
            case .dnsName: String(validating: name.contents, as: UTF8.self)
            case .ipAddress: HostName(address: Array(name.contents))?.text
            default: nil
            }
        }
    }
}
