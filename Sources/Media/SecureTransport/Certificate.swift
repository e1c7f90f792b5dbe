internal import COpenSSL
internal import Core

/// A certificate signed by its own key.
@safe
struct Certificate: ~Copyable {
    private let certificate: OpaquePointer
    private let key: OpaquePointer

    /// Makes a key and a certificate for it.
    init(from start: WallClock, to end: WallClock) throws(DTLSError) {
        ERR_clear_error()
        guard let key = unsafe makeKey() else { throw .library("making a P-256 key") }
        guard let certificate = unsafe X509_new() else {
            unsafe EVP_PKEY_free(key)
            throw .library("making a certificate")
        }
        guard unsafe fill(certificate, key, start, end) else {
            let error = DTLSError.library("filling in and signing a certificate")
            unsafe EVP_PKEY_free(key)
            unsafe X509_free(certificate)
            throw error
        }
        unsafe self.key = key
        unsafe self.certificate = certificate
    }

    deinit {
        unsafe X509_free(certificate)
        unsafe EVP_PKEY_free(key)
    }

    func fingerprint(_ hash: DTLSFingerprint.HashFunction) -> DTLSFingerprint? {
        unsafe DTLSFingerprint(hash, of: certificate)
    }

    /// Gives `context` a reference to both.
    func install(in context: OpaquePointer) -> Bool {
        unsafe SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1
    }
}

extension DTLSFingerprint {
    /// Hashes an `X509`; nil if OpenSSL will not.
    init?(_ hash: HashFunction, of certificate: OpaquePointer) {
        let digest =
            switch hash {
            case .sha256: unsafe EVP_sha256()
            case .sha384: unsafe EVP_sha384()
            case .sha512: unsafe EVP_sha512()
            }
        var bytes = [UInt8](repeating: 0, count: hash.byteCount)
        var count: UInt32 = 0
        let isDone = unsafe bytes.withUnsafeMutableBufferPointer { bytes in
            unsafe X509_digest(certificate, digest, bytes.baseAddress, &count) == 1
        }
        guard isDone, Int(count) == hash.byteCount else { return nil }
        self.init(hash, bytes: bytes)
    }
}

private func makeKey() -> OpaquePointer? {
    guard let generator = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { return nil }
    defer { unsafe EVP_PKEY_CTX_free(generator) }
    var key: OpaquePointer?
    guard unsafe EVP_PKEY_keygen_init(generator) == 1,
        unsafe EVP_PKEY_CTX_set_ec_paramgen_curve_nid(generator, NID_X9_62_prime256v1) == 1,
        unsafe EVP_PKEY_keygen(generator, &key) == 1
    else { return nil }
    return unsafe key
}

private func fill(_ certificate: OpaquePointer, _ key: OpaquePointer, _ start: WallClock, _ end: WallClock) -> Bool {
    var random: (serial: UInt64, name: UInt64) = (0, 0)
    let hasRandom = unsafe withUnsafeMutableBytes(of: &random) { bytes in
        unsafe RAND_bytes(bytes.baseAddress, Int32(bytes.count)) == 1
    }
    guard hasRandom, let name = unsafe X509_get_subject_name(certificate) else { return false }
    let title = Array(String(random.name, radix: 16).utf8)
    return unsafe X509_set_version(certificate, Int(X509_VERSION_3)) == 1
        // A serial number is positive (RFC 5280 §4.1.2.2).
        && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), random.serial >> 1 | 1) == 1
        && X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC, title, Int32(title.count), -1, 0) == 1
        && X509_set_issuer_name(certificate, name) == 1
        && ASN1_TIME_set(X509_getm_notBefore(certificate), Int(start.unixMilliseconds / 1000)) != nil
        && ASN1_TIME_set(X509_getm_notAfter(certificate), Int(end.unixMilliseconds / 1000)) != nil
        && X509_set_pubkey(certificate, key) == 1
        && X509_sign(certificate, key, EVP_sha256()) > 0
}
