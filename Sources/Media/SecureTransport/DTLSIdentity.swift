internal import COpenSSL
public import Core

/// A certificate with its private key, for any number of handshakes at the same time.
///
/// It contains nothing about who we are: only its fingerprint in our description identifies us. Make a new one when
/// ``needsRotation(at:)`` says so; handshakes and calls of the old one keep using it.
///
/// Never changed after it is made, and OpenSSL counts the references to its context under a lock of its own.
@safe
public final class DTLSIdentity: @unchecked Sendable {
    /// Certificate, key and settings that all handshakes share.
    let context: OpaquePointer
    /// From when on peers may take the certificate: a day before it was made, for clocks that are slow.
    public let validFrom: WallClock
    /// Until when peers may take it.
    public let expires: WallClock
    private let fingerprints: [DTLSFingerprint]

    /// Makes a key on P-256 and a certificate with a random name, signed by itself. Takes about half a millisecond.
    ///
    /// - Parameters:
    ///   - now: Time of day.
    ///   - lifetime: For how long from now; more than nothing, and a year at most.
    /// - Throws: ``DTLSError`` with ``DTLSError/Code/library``.
    public init(at now: WallClock, lifetime: Duration = .seconds(30 * 86_400)) throws(DTLSError) {
        precondition(lifetime > .zero && lifetime <= .seconds(366 * 86_400), "an identity lives for up to a year")
        validFrom = WallClock(unixMilliseconds: now.unixMilliseconds - 86_400_000)
        expires = WallClock(unixMilliseconds: now.unixMilliseconds + lifetime.nanoseconds / 1_000_000)
        let certificate = try Certificate(from: validFrom, to: expires)
        fingerprints = DTLSFingerprint.HashFunction.allCases.compactMap { certificate.fingerprint($0) }
        guard fingerprints.count == DTLSFingerprint.HashFunction.allCases.count else {
            throw .library("hashing a certificate")
        }
        unsafe context = try makeContext(certificate)
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// The certificate's fingerprint, for our description.
    public func fingerprint(_ hash: DTLSFingerprint.HashFunction) -> DTLSFingerprint {
        switch hash {
        case .sha256: fingerprints[0]
        case .sha384: fingerprints[1]
        case .sha512: fingerprints[2]
        }
    }

    /// Whether it is time for a new one: when the last quarter of its life has begun, or the clock was set back to
    /// before it is valid.
    public func needsRotation(at now: WallClock) -> Bool {
        let quarter = (expires.unixMilliseconds - validFrom.unixMilliseconds - 86_400_000) / 4
        return now < validFrom || now.unixMilliseconds >= expires.unixMilliseconds - quarter
    }
}

/// Suites that every current peer supports: forward secrecy, authenticated encryption, and keys of both kinds.
private let cipherSuites =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
    + "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"
    + "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"

/// Bytes of a peer's certificates; the usual one has less than 1,000. OpenSSL bounds every message of a handshake by this and a
/// record's length, and keeps up to ten that come early, also from strangers.
private let longestCertificateList = 16_384

private func makeContext(_ certificate: borrowing Certificate) throws(DTLSError) -> OpaquePointer {
    ERR_clear_error()
    guard let context = unsafe SSL_CTX_new(DTLS_method()) else { throw .library("making a DTLS context") }
    unsafe SSL_CTX_set_options(context, handset_dtls_options())
    // Not 1.3, which newer libraries have: what is tested is what runs.
    let isReady =
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(DTLS1_2_VERSION), nil) == 1
        && SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(DTLS1_2_VERSION), nil) == 1
        && SSL_CTX_set_cipher_list(context, cipherSuites) == 1
        && setGroups(context) && certificate.install(in: context)
    guard isReady else {
        let error = DTLSError.library("setting up a DTLS context")
        unsafe SSL_CTX_free(context)
        throw error
    }
    _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_CERT_LIST, longestCertificateList, nil)
    unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    unsafe SSL_CTX_set_cert_verify_callback(context, { store, _ in unsafe DTLSSession.verify(store) }, nil)
    return unsafe context
}

/// The groups of the key exchange, the preferred one first.
///
/// In DTLS 1.2 they are also the curves that an ECDSA certificate may have (RFC 8422 §5.1.1), so all that peers' keys are
/// on must be here, though the key exchange needs the first two alone.
private func setGroups(_ context: OpaquePointer) -> Bool {
    var names = "X25519:P-256:P-384:P-521".utf8CString
    return unsafe names.withUnsafeMutableBufferPointer { names in
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, names.baseAddress) == 1
    }
}
