// CertificateAuthority: an authority of one's own, and the certificates that it signs (RFC 5280). Keys are P-256.

internal import COpenSSL

/// Something about a certificate could not be done.
public struct CertificateError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The operation that failed.
    public let description: String

    init(_ activity: String) { description = "OpenSSL cannot \(activity)" }
}

/// A certificate with its private key, both in PEM form.
public struct CertifiedKey: Sendable {
    /// The certificate.
    public let certificate: [UInt8]
    /// The private key, PKCS#8 without a passphrase: secret.
    public let key: [UInt8]

    /// Reads both; each may be in a text with other contents, too.
    public init(certificate: [UInt8], key: [UInt8]) {
        self.certificate = certificate
        self.key = key
    }
}

/// Makes certificates. Times are in seconds since 1970.
public enum CertificateAuthority {
    /// Makes an authority: a certificate that its own key has signed, and that may sign others.
    public static func make(name: String, from start: Int, to end: Int) throws(CertificateError) -> CertifiedKey {
        let key = try PrivateKey()
        let draft = try Draft(name: name, from: start, to: end, key: key)
        guard draft.issue(by: nil),
            draft.add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0", by: nil),
            draft.add(NID_key_usage, "critical,keyCertSign,cRLSign", by: nil),
            draft.add(NID_subject_key_identifier, "hash", by: nil), draft.sign(key)
        else { throw CertificateError("make the authority's certificate") }
        return CertifiedKey(certificate: try draft.pem(), key: try key.pem())
    }

    /// Makes a server's certificate with a new key.
    ///
    /// - Parameter names: Host names and addresses, the first for people too; each without a comma or a line's end.
    public static func issue(
        for names: [String], from start: Int, to end: Int, by authority: CertifiedKey
    ) throws(CertificateError) -> CertifiedKey {
        let issuer = try Draft(pem: authority.certificate)
        let issuerKey = try PrivateKey(pem: authority.key)
        guard issuer.belongs(to: issuerKey) else { throw CertificateError("use the authority: its key is another's") }
        let key = try PrivateKey()
        let draft = try Draft(name: String((names.first ?? "exchange").prefix(64)), from: start, to: end, key: key)
        let list = names.map { isAddress($0) ? "IP:\($0)" : "DNS:\($0)" }.joined(separator: ",")
        guard draft.issue(by: issuer),
            draft.add(NID_basic_constraints, "critical,CA:FALSE", by: issuer),
            draft.add(NID_key_usage, "critical,digitalSignature", by: issuer),
            draft.add(NID_ext_key_usage, "serverAuth", by: issuer),
            draft.add(NID_subject_alt_name, list, by: issuer),
            draft.add(NID_subject_key_identifier, "hash", by: issuer),
            draft.add(NID_authority_key_identifier, "keyid", by: issuer), draft.sign(issuerKey)
        else { throw CertificateError("make a certificate for \(names.joined(separator: ", "))") }
        return CertifiedKey(certificate: try draft.pem(), key: try key.pem())
    }

    /// Whether a certificate may sign others, is valid at `now`, and belongs to the key.
    ///
    /// - Returns: What is wrong, to be read after the certificate's name; `nil` if nothing is.
    public static func fault(in authority: CertifiedKey, at now: Int) -> String? {
        guard let certificate = try? Draft(pem: authority.certificate) else {
            return "holds no certificate in PEM form"
        }
        guard let key = try? PrivateKey(pem: authority.key) else { return "has a key that is none in PEM form" }
        guard certificate.belongs(to: key) else { return "has another key than the one beside it" }
        guard certificate.isAuthority else { return "may not sign others" }
        // A start of validity in the future is ignored: a wrong clock gets corrected.
        return certificate.ends(after: now) ? nil : "has expired"
    }

    /// The first certificate of a text in PEM form, encoded again, so that the result holds nothing else of the text, such as a
    /// key.
    public static func certificate(in pem: [UInt8]) throws(CertificateError) -> [UInt8] { try Draft(pem: pem).pem() }

    /// Whether a certificate in PEM form names itself as who has signed it, as a root does.
    public static func isSelfIssued(_ pem: [UInt8]) -> Bool { (try? Draft(pem: pem))?.isSelfIssued ?? false }

    private static func isAddress(_ name: String) -> Bool {
        guard let address = unsafe a2i_IPADDRESS(name) else { return false }
        unsafe ASN1_OCTET_STRING_free(address)
        return true
    }
}

/// A P-256 key.
@safe
private struct PrivateKey: ~Copyable {
    let key: OpaquePointer

    init() throws(CertificateError) {
        guard let generator = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { throw CertificateError("make a key") }
        defer { unsafe EVP_PKEY_CTX_free(generator) }
        var key: OpaquePointer?
        guard unsafe EVP_PKEY_keygen_init(generator) == 1,
            unsafe EVP_PKEY_CTX_set_ec_paramgen_curve_nid(generator, NID_X9_62_prime256v1) == 1,
            unsafe EVP_PKEY_keygen(generator, &key) == 1, let key = unsafe key
        else { throw CertificateError("make a key") }
        unsafe self.key = key
    }

    init(pem: [UInt8]) throws(CertificateError) {
        // Reads `pem.count` bytes, and never prompts for a passphrase.
        let bio = unsafe BIO_new_mem_buf(pem, Int32(clamping: pem.count))
        defer { unsafe BIO_free_all(bio) }
        guard let key = unsafe PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in 0 }, nil) else {
            throw CertificateError("read a private key in PEM form")
        }
        unsafe self.key = key
    }

    deinit { unsafe EVP_PKEY_free(key) }

    func pem() throws(CertificateError) -> [UInt8] {
        let bio = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free_all(bio) }
        guard unsafe PEM_write_bio_PKCS8PrivateKey(bio, key, nil, nil, 0, nil, nil) == 1 else {
            throw CertificateError("write a key")
        }
        return unsafe contents(of: bio)
    }
}

/// A certificate, perhaps not signed yet.
@safe
private struct Draft: ~Copyable {
    private let certificate: OpaquePointer

    init(name: String, from start: Int, to end: Int, key: borrowing PrivateKey) throws(CertificateError) {
        guard let certificate = unsafe X509_new() else { throw CertificateError("make a certificate") }
        var serial: UInt64 = .random(in: 1...(.max >> 1))
        serial |= 1 << 62  // As many digits each time.
        let title = Array(name.utf8)
        guard let subject = unsafe X509_get_subject_name(certificate),
            unsafe X509_set_version(certificate, Int(X509_VERSION_3)) == 1,
            unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1,
            unsafe X509_NAME_add_entry_by_NID(
                subject, NID_commonName, handset_utf8_string(), title, Int32(title.count), -1, 0) == 1,
            unsafe ASN1_TIME_set(X509_getm_notBefore(certificate), start) != nil,
            unsafe ASN1_TIME_set(X509_getm_notAfter(certificate), end) != nil,
            unsafe X509_set_pubkey(certificate, key.key) == 1
        else {
            unsafe X509_free(certificate)
            throw CertificateError("fill in a certificate")
        }
        unsafe self.certificate = certificate
    }

    init(pem: [UInt8]) throws(CertificateError) {
        // Reads `pem.count` bytes.
        let bio = unsafe BIO_new_mem_buf(pem, Int32(clamping: pem.count))
        defer { unsafe BIO_free_all(bio) }
        guard let certificate = unsafe PEM_read_bio_X509(bio, nil, nil, nil) else {
            throw CertificateError("read a certificate in PEM form")
        }
        unsafe self.certificate = certificate
    }

    deinit { unsafe X509_free(certificate) }

    func belongs(to key: borrowing PrivateKey) -> Bool { unsafe X509_check_private_key(certificate, key.key) == 1 }

    var isSelfIssued: Bool {
        unsafe X509_NAME_cmp(X509_get_subject_name(certificate), X509_get_issuer_name(certificate)) == 0
    }

    var isAuthority: Bool { unsafe X509_check_ca(certificate) == 1 }

    func ends(after now: Int) -> Bool {
        var time = time_t(now)
        return unsafe X509_cmp_time(X509_get0_notAfter(certificate), &time) > 0
    }

    /// - Parameter issuer: Nil for the certificate itself.
    func issue(by issuer: borrowing Draft) -> Bool {
        unsafe X509_set_issuer_name(certificate, X509_get_subject_name(issuer.certificate)) == 1
    }

    func issue(by none: Never?) -> Bool {
        unsafe X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1
    }

    func add(_ kind: Int32, _ value: String, by issuer: borrowing Draft) -> Bool {
        unsafe add(kind, value, issuer.certificate)
    }

    func add(_ kind: Int32, _ value: String, by none: Never?) -> Bool { unsafe add(kind, value, certificate) }

    private func add(_ kind: Int32, _ value: String, _ issuer: OpaquePointer) -> Bool {
        unsafe handset_add_extension(certificate, issuer, kind, value) == 1
    }

    func sign(_ key: borrowing PrivateKey) -> Bool { unsafe X509_sign(certificate, key.key, EVP_sha256()) > 0 }

    func pem() throws(CertificateError) -> [UInt8] {
        let bio = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free_all(bio) }
        guard unsafe PEM_write_bio_X509(bio, certificate) == 1 else { throw CertificateError("write a certificate") }
        return unsafe contents(of: bio)
    }
}

/// The contents of a memory BIO.
private func contents(of bio: OpaquePointer?) -> [UInt8] {
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 4_096)
    while true {
        // Writes at most `block.count` bytes.
        let count = unsafe BIO_read(bio, &block, Int32(block.count))
        guard count > 0 else { return bytes }
        bytes += block.prefix(Int(count))
    }
}
