internal import COpenSSL

/// An X.509 certificate (RFC 5280).
public struct TLSCertificate: Hashable, Sendable {
    /// One of the names of the certificate (RFC 5280 §4.2.1.6).
    public enum Name: Hashable, Sendable {
        case dns(String)
        /// 4 or 16 bytes.
        case address([UInt8])
        case uri(String)
    }

    /// The certificate's own encoding.
    public let der: [UInt8]
    /// Its alternative names of the kinds that ``Name`` has, in its order.
    public let names: [Name]
    /// When it begins and ends to be valid: seconds since 1970.
    public let (notBefore, notAfter): (Int, Int)
    /// The serial number in hexadecimal digits, two for each byte.
    public let serial: String

    /// Reads a certificate.
    ///
    /// - Returns: `nil` if `der` is none.
    public init?(der: [UInt8]) {
        guard let certificate = X509Handle(der: der) else { return nil }
        self.init(certificate)
    }

    init?(_ certificate: borrowing X509Handle) {
        guard let der = certificate.der, let begin = certificate.notBefore, let end = certificate.notAfter,
            let serial = certificate.serial
        else {
            ERR_clear_error()
            return nil
        }
        self.der = der
        (notBefore, notAfter) = (begin, end)
        names = certificate.names
        self.serial = serial
        ERR_clear_error()
    }

    /// Reads the certificates of a text in PEM form, which may have other contents, too.
    ///
    /// - Returns: `nil` if there is none, or one cannot be read.
    public static func list(pem: [UInt8]) -> [TLSCertificate]? {
        ERR_clear_error()
        defer { ERR_clear_error() }
        // Reads `pem.count` bytes.
        guard let bio = unsafe BIO_new_mem_buf(pem, Int32(clamping: pem.count)) else { return nil }
        defer { unsafe BIO_free_all(bio) }
        var list: [TLSCertificate] = []
        while let certificate = unsafe PEM_read_bio_X509(bio, nil, nil, nil) {
            guard let value = TLSCertificate(unsafe X509Handle(owning: certificate)) else { return nil }
            list.append(value)
        }
        guard OpenSSLFailure.takeFirst().reason == PEM_R_NO_START_LINE else { return nil }
        return list.isEmpty ? nil : list
    }

    /// In PEM form.
    public var pem: [UInt8]? {
        guard let certificate = X509Handle(der: der) else { return nil }
        return certificate.pem
    }

    /// Who signed it, such as `/C=DE/O=Example/CN=Example Root`; control characters are escaped.
    public var issuer: String? {
        guard let certificate = X509Handle(der: der) else { return nil }
        return certificate.issuer
    }

    /// Whether it is valid for a host as HTTPS defines it (RFC 6125): a name, which is compared with the certificate's
    /// names, or an address, which is compared with its addresses alone.
    public func isFor(_ host: String) -> Bool {
        guard let certificate = X509Handle(der: der) else { return false }
        defer { ERR_clear_error() }
        return certificate.isFor(host)
    }

    /// Whether both have the same encoding.
    public static func == (one: TLSCertificate, other: TLSCertificate) -> Bool { one.der == other.der }
    /// Feeds the encoding to the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

/// The flags of OpenSSL's comparison of names: a wildcard replaces a whole label.
let nameFlags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)

/// A host's name as certificates have it, without the dot at the end.
func certificateName(_ host: String) -> String {
    host.count > 1 && host.hasSuffix(".") ? String(host.dropLast()) : host
}

/// The owner of an `X509`.
@safe
struct X509Handle: ~Copyable {
    let certificate: OpaquePointer

    init(owning certificate: OpaquePointer) { unsafe self.certificate = certificate }

    init?(der: [UInt8]) {
        let certificate: OpaquePointer? = unsafe der.withUnsafeBufferPointer { bytes in
            // Reads `bytes.count` bytes, and moves its own copy of the pointer.
            var start = bytes.baseAddress
            return unsafe d2i_X509(nil, &start, bytes.count)
        }
        ERR_clear_error()
        guard let certificate = unsafe certificate else { return nil }
        unsafe self.certificate = certificate
    }

    deinit { unsafe X509_free(certificate) }

    var der: [UInt8]? { unsafe encoding(of: certificate) }

    var pem: [UInt8]? {
        guard let bio = unsafe BIO_new(BIO_s_mem()) else { return nil }
        defer { unsafe BIO_free_all(bio) }
        guard unsafe PEM_write_bio_X509(bio, certificate) == 1 else { return nil }
        var bytes = [UInt8](repeating: 0, count: max(0, unsafe BIO_ctrl(bio, BIO_CTRL_PENDING, 0, nil)))
        guard unsafe BIO_read(bio, &bytes, Int32(clamping: bytes.count)) == Int32(clamping: bytes.count) else {
            return nil
        }
        return bytes
    }

    var notBefore: Int? { unsafe seconds(X509_get0_notBefore(certificate)) }
    var notAfter: Int? { unsafe seconds(X509_get0_notAfter(certificate)) }

    var serial: String? {
        guard let number = unsafe ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nil) else { return nil }
        defer { unsafe BN_free(number) }
        guard let text = unsafe BN_bn2hex(number) else { return nil }
        defer { unsafe CRYPTO_free(text, #file, Int32(#line)) }
        return unsafe String(cString: text).lowercased()
    }

    var issuer: String? {
        // Allocates the text, because no buffer is given.
        guard let text = unsafe X509_NAME_oneline(X509_get_issuer_name(certificate), nil, 0) else { return nil }
        defer { unsafe CRYPTO_free(text, #file, Int32(#line)) }
        return unsafe String(cString: text)
    }

    var names: [TLSCertificate.Name] {
        guard let raw = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return [] }
        let list = OpaquePointer(raw)
        defer { unsafe handset_free_names(list) }
        return unsafe (0..<handset_count_names(list)).compactMap { index in
            var kind: Int32 = 0
            var count: Int32 = 0
            guard let start = unsafe handset_name(list, index, &kind, &count) else { return nil }
            let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: Int(count)))
            switch kind {
            case GEN_DNS: return String(validating: bytes, as: UTF8.self).map { .dns($0) }
            case GEN_URI: return String(validating: bytes, as: UTF8.self).map { .uri($0) }
            case GEN_IPADD: return .address(bytes)
            default: return nil
            }
        }
    }

    func isFor(_ host: String) -> Bool {
        let host = certificateName(host)
        switch unsafe X509_check_ip_asc(certificate, host, 0) {
        case 1: return true
        case 0: return false
        // It is no address.
        default: return unsafe X509_check_host(certificate, host, host.utf8.count, nameFlags, nil) == 1
        }
    }

    private func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int? {
        var calendar = unsafe tm()
        guard unsafe ASN1_TIME_to_tm(time, &calendar) == 1 else { return nil }
        return unsafe timegm(&calendar)
    }
}

/// The encoding of an `X509`.
func encoding(of certificate: OpaquePointer) -> [UInt8]? {
    let count = unsafe i2d_X509(certificate, nil)
    guard count > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: Int(count))
    let written = unsafe bytes.withUnsafeMutableBufferPointer { bytes in
        // Writes `count` bytes, and moves its own copy of the pointer.
        var start = bytes.baseAddress
        return unsafe i2d_X509(certificate, &start)
    }
    return written == count ? bytes : nil
}
