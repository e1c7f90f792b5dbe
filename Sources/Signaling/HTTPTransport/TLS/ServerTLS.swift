package import Glibc
package import TLS

/// TLS for connections that come in.
package enum ServerTLS {
    /// Reads certificate and key; without a certificate there is no TLS.
    ///
    /// - Parameter now: Seconds since 1970.
    package static func load(
        _ files: CertificateFiles?, now: time_t = time(nil)
    ) throws(CertificateFault) -> TLSContext? {
        guard let files else { return nil }
        return try identity(files, now: now).context
    }

    /// Reads certificate and key.
    ///
    /// - Parameter now: Seconds since 1970.
    package static func identity(
        _ files: CertificateFiles, now: time_t = time(nil)
    ) throws(CertificateFault) -> ServerIdentity {
        let identity = try files.read(now: now)
        do throws(TLSError) { return try ServerIdentity(identity) } catch { throw files.mismatch }
    }

    /// Takes a certificate that was just made, with the authority's behind it, and its key; all in PEM form.
    ///
    /// - Returns: `nil` if they are not that.
    package static func identity(chain: [UInt8], key: [UInt8]) -> ServerIdentity? {
        guard let chain = TLSCertificate.list(pem: chain), let key = TLSPrivateKey(pem: key),
            let identity = TLSIdentity(chain: chain, key: key)
        else { return nil }
        return try? ServerIdentity(identity)
    }

    /// The names and addresses of a certificate; none if it cannot be read.
    package static func names(of files: CertificateFiles?) -> [String] {
        guard let files else { return [] }
        return CertificateFiles.certificates(in: files.chainPath)?.first?.hostNames ?? []
    }

    /// The certificate of a chain that is nearest to the root, in DER form: whose fingerprint identifies the authority.
    ///
    /// - Parameter chain: In PEM form.
    /// - Returns: `nil` if there is no certificate in it.
    package static func authority(ofChain chain: [UInt8]) -> [UInt8]? { TLSCertificate.list(pem: chain)?.last?.der }

    /// The same certificate in PEM form, without the rest of the chain.
    package static func authorityText(ofChain chain: [UInt8]) -> [UInt8]? { TLSCertificate.list(pem: chain)?.last?.pem }
}

/// A server's certificate, ready to be used.
package struct ServerIdentity: Sendable {
    /// For new connections.
    package let context: TLSContext
    /// The names and addresses of the certificate.
    package let names: [String]
    /// In hexadecimal digits.
    package let serial: String
    /// When it ends: seconds since 1970.
    package let end: time_t

    fileprivate init(_ identity: TLSIdentity) throws(TLSError) {
        context = try TLSContext.server(identity, protocols: ["http/1.1"])
        names = identity.own.hostNames
        serial = identity.own.serial
        end = identity.own.notAfter
    }
}

extension TLSCertificate {
    fileprivate var hostNames: [String] {
        names.compactMap { name in
            switch name {
            case .dns(let name): name
            case .address(let bytes): HostName(address: bytes)?.text
            case .uri: nil
            }
        }
    }
}
