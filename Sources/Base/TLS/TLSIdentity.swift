internal import COpenSSL

/// A private key. Its text forms hide it.
public struct TLSPrivateKey: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    private let pem: [UInt8]

    /// Reads the first private key of a text in PEM form, without a passphrase.
    ///
    /// - Returns: `nil` if there is none.
    public init?(pem: [UInt8]) {
        guard let key = unsafe Self.read(pem) else { return nil }
        unsafe EVP_PKEY_free(key)
        self.pem = pem
    }

    /// Says nothing of the key itself.
    public var description: String { "a private key" }
    /// Shows nothing of the key itself.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// - Returns: An `EVP_PKEY` of the caller's.
    func makeHandle() -> OpaquePointer? { unsafe Self.read(pem) }

    private static func read(_ pem: [UInt8]) -> OpaquePointer? {
        ERR_clear_error()
        defer { ERR_clear_error() }
        // Reads `pem.count` bytes, and never prompts for a passphrase.
        guard let bio = unsafe BIO_new_mem_buf(pem, Int32(clamping: pem.count)) else { return nil }
        defer { unsafe BIO_free_all(bio) }
        return unsafe PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in 0 }, nil)
    }
}

/// The identity that one end of a connection presents: a certificate with the authorities that lead to a root, and its
/// key.
public struct TLSIdentity: Hashable, Sendable {
    /// The own certificate.
    public let own: TLSCertificate
    /// The certificates that follow it, from the one that signed it towards the root.
    public let issuers: [TLSCertificate]
    let key: TLSPrivateKey

    /// - Parameter chain: The own certificate first.
    /// - Returns: `nil` without a certificate, or if the key is another certificate's.
    public init?(chain: [TLSCertificate], key: TLSPrivateKey) {
        guard let own = chain.first, let certificate = X509Handle(der: own.der), let handle = unsafe key.makeHandle()
        else { return nil }
        defer {
            unsafe EVP_PKEY_free(handle)
            ERR_clear_error()
        }
        guard unsafe X509_check_private_key(certificate.certificate, handle) == 1 else { return nil }
        self.own = own
        issuers = Array(chain.dropFirst())
        self.key = key
    }

    /// Gives an `SSL_CTX` references to all of it.
    func install(in context: OpaquePointer) -> Bool {
        guard let certificate = X509Handle(der: own.der), let handle = unsafe key.makeHandle() else { return false }
        defer { unsafe EVP_PKEY_free(handle) }
        guard unsafe SSL_CTX_use_certificate(context, certificate.certificate) == 1,
            unsafe SSL_CTX_use_PrivateKey(context, handle) == 1
        else { return false }
        return issuers.allSatisfy { issuer in
            guard let issuer = X509Handle(der: issuer.der) else { return false }
            return unsafe SSL_CTX_ctrl(
                context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(issuer.certificate)) == 1
        }
    }
}
