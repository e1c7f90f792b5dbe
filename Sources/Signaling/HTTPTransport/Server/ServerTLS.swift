package import Glibc
package import NIOSSL

/// TLS for connections that come in.
package enum ServerTLS {
    /// Reads certificate and key; without a certificate there is no TLS.
    ///
    /// - Parameter now: Seconds since 1970.
    package static func load(
        _ files: CertificateFiles?, now: time_t = time(nil)
    ) throws(CertificateFault) -> NIOSSLContext? {
        guard let files else { return nil }
        return try identity(files, now: now).context
    }

    /// Reads certificate and key.
    ///
    /// - Parameter now: Seconds since 1970.
    package static func identity(
        _ files: CertificateFiles, now: time_t = time(nil)
    ) throws(CertificateFault) -> ServerIdentity {
        let pair = try files.read(now: now)
        do {
            return ServerIdentity(
                try NIOSSLContext(configuration: configuration(pair.chain, pair.key)), pair.chain, pair.own)
        } catch {
            throw files.mismatch
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
    package static func names(of files: CertificateFiles?) -> [String] {
        guard let files, let own = try? NIOSSLCertificate.fromPEMFile(files.chainPath).first else {
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
