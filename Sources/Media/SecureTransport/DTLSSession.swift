internal import COpenSSL
internal import TLS
internal import Core

/// OpenSSL's half of one association: everything that touches its `SSL`.
///
/// May move to another thread as a whole: nothing else refers to `ssl` or `pipe`, and OpenSSL ties an `SSL` to no thread.
@safe
struct DTLSSession: ~Copyable, @unchecked Sendable {
    /// The state of the association after a step.
    enum Progress {
        /// The handshake continues.
        case handshaking
        /// The handshake is complete.
        case complete
        /// The peer sent close_notify.
        case closedByPeer
        case failed(DTLSError)
    }

    private let ssl: OpaquePointer
    private let pipe: DatagramPipe

    init(_ role: DTLSRole, _ identity: DTLSIdentity, _ configuration: DTLSConfiguration) throws(DTLSError) {
        let microseconds = configuration.firstRetransmission.nanoseconds / 1000
        pipe = DatagramPipe(
            maximumDatagramBytes: configuration.maximumDatagramBytes,
            firstRetransmissionMicroseconds: UInt32(clamping: microseconds))
        ERR_clear_error()
        guard let ssl = unsafe SSL_new(identity.context) else { throw .library("making a DTLS association") }
        let profiles = configuration.suites.compactMap(\.profileName).joined(separator: ":")
        // Returns 0 for success, unlike its neighbours.
        guard unsafe SSL_set_tlsext_use_srtp(ssl, profiles) == 0, let bio = unsafe pipe.makeBIO() else {
            unsafe SSL_free(ssl)
            throw .library("offering SRTP profiles")
        }
        unsafe SSL_set_bio(ssl, bio, bio)
        _ = unsafe SSL_ctrl(ssl, SSL_CTRL_SET_MTU, configuration.maximumDatagramBytes, nil)
        unsafe DTLS_set_timer_cb(ssl, { ssl, previous in unsafe DTLSSession.nextTimeout(ssl, after: previous) })
        switch role {
        case .active: unsafe SSL_set_connect_state(ssl)
        case .passive: unsafe SSL_set_accept_state(ssl)
        }
        unsafe self.ssl = ssl
    }

    deinit { unsafe SSL_free(ssl) }

    /// The fingerprints that one of must be the peer's.
    func expect(_ fingerprints: [DTLSFingerprint]) { pipe.expected = fingerprints }

    /// Goes as far as it can with `datagram`, or without.
    mutating func advance(with datagram: [UInt8]? = nil) -> Progress {
        ERR_clear_error()
        if let datagram {
            let isEstablished = unsafe SSL_is_init_finished(ssl) == 1
            let records = DTLSRecords.plausible(
                in: datagram, isEstablished: isEstablished, leastEncryptedBytes: leastEncryptedBytes)
            guard !records.isEmpty else { return isEstablished ? .complete : .handshaking }
            pipe.inbound = records
        }
        takeBuffers()
        defer {
            pipe.inbound = nil
            giveBackBuffers()
        }
        var junk = 0
        while unsafe SSL_is_init_finished(ssl) == 0 {
            let result = unsafe SSL_do_handshake(ssl)
            guard result != 1, !isJunk(result, &junk) else { continue }
            return progress(after: result, whenWaiting: .handshaking)
        }
        return readRest()
    }

    /// Sends the last flight again if OpenSSL, too, finds that it is time.
    mutating func timerFired() -> Progress {
        ERR_clear_error()
        takeBuffers()
        defer { giveBackBuffers() }
        let result = unsafe SSL_ctrl(ssl, DTLS_CTRL_HANDLE_TIMEOUT, 0, nil)
        return result >= 0 ? .handshaking : .failed(failure())
    }

    /// Says goodbye, if there was a greeting.
    mutating func close() {
        ERR_clear_error()
        takeBuffers()
        if unsafe SSL_is_init_finished(ssl) == 1 { _ = unsafe SSL_shutdown(ssl) }
        ERR_clear_error()
    }

    /// The datagrams to send, in order.
    mutating func takeOutbound() -> [[UInt8]] { pipe.takeOutbound() }

    /// How long until the last flight is to be sent again; nil if no answer is waited for.
    var timeToRetransmission: Duration? {
        var left = timeval()
        guard unsafe SSL_ctrl(ssl, DTLS_CTRL_GET_TIMEOUT, 0, &left) == 1 else { return nil }
        return .seconds(left.tv_sec) + .microseconds(left.tv_usec)
    }

    /// Whether the certificate that the peer has proved to own is an expected one; nil while that is not known.
    var isPeerExpected: Bool? {
        guard pipe.expected != nil else { return nil }
        guard let certificate = unsafe SSL_get1_peer_certificate(ssl) else { return false }
        defer { unsafe X509_free(certificate) }
        return unsafe pipe.accepts(certificate)
    }

    /// The minimum length of an encrypted record: a tag of 128 bits, and with GCM the explicit part of the nonce before
    /// it (RFC 5288 §3). Nil while no cipher is agreed, so that there is no such record.
    private var leastEncryptedBytes: Int? {
        guard let cipher = unsafe SSL_get_pending_cipher(ssl) else { return nil }
        return unsafe [NID_aes_128_gcm, NID_aes_256_gcm].contains(SSL_CIPHER_get_cipher_nid(cipher)) ? 24 : 16
    }

    /// The suite that both sides have, if any.
    var suite: SRTPSuite? {
        guard let profile = unsafe SSL_get_selected_srtp_profile(ssl) else { return nil }
        let number = unsafe profile.pointee.id
        return SRTPSuite.allCases.first { $0.profileNumber == number }
    }

    /// The media keys of the active and of the passive side (RFC 5764 §4.2).
    func makeKeys(_ suite: SRTPSuite) throws(DTLSError) -> (active: SRTPKey, passive: SRTPKey) {
        ERR_clear_error()
        let label = "EXTRACTOR-dtls_srtp"
        var material = [UInt8](repeating: 0, count: 2 * (suite.keyBytes + suite.saltBytes))
        let isDone = unsafe material.withUnsafeMutableBufferPointer { material in
            unsafe SSL_export_keying_material(
                ssl, material.baseAddress, material.count, label, label.utf8.count, nil, 0, 0) == 1
        }
        // Both keys come first, then both salts.
        let (key, salt) = (suite.keyBytes, suite.saltBytes)
        let activeKey = material[..<key] + material[2 * key..<2 * key + salt]
        let passiveKey = material[key..<2 * key] + material[(2 * key + salt)...]
        guard isDone, let active = SRTPKey(suite: suite, keyAndSalt: Array(activeKey)),
            let passive = SRTPKey(suite: suite, keyAndSalt: Array(passiveKey))
        else { throw .library("exporting the media keys") }
        return (active, passive)
    }
}

// Memory: OpenSSL holds 33 kB for records to be read and written, and an association is silent from its handshake to its end.
extension DTLSSession {
    /// Has the buffers for records there, before anything that may read or write one.
    private func takeBuffers() { _ = unsafe SSL_alloc_buffers(ssl) }

    /// Frees them once the handshake is complete, unless something is still in them.
    private func giveBackBuffers() {
        if unsafe SSL_is_init_finished(ssl) == 1 { _ = unsafe SSL_free_buffers(ssl) }
    }
}

// Results of OpenSSL.
extension DTLSSession {
    /// After the handshake there is nothing to read but alerts and flights sent again; data is thrown away.
    private mutating func readRest() -> Progress {
        var scratch = [UInt8](repeating: 0, count: 2048)
        var junk = 0
        while true {
            let result = unsafe scratch.withUnsafeMutableBytes { unsafe SSL_read(ssl, $0.baseAddress, Int32($0.count)) }
            // A datagram ends, and so does this.
            if result <= 0, !isJunk(result, &junk) { return progress(after: result, whenWaiting: .complete) }
        }
    }

    /// Whether OpenSSL has just thrown away a record that is not the peer's, and there may be more to read.
    ///
    /// OpenSSL 3.0.19 ends a call at such a record, with no error in its queue; other versions continue by themselves. A
    /// datagram has few records, so more than 64 mean something else.
    private func isJunk(_ result: Int32, _ count: inout Int) -> Bool {
        count += 1
        return unsafe SSL_get_error(ssl, result) == SSL_ERROR_SYSCALL && ERR_peek_error() == 0 && count <= 64
    }

    private func progress(after result: Int32, whenWaiting: Progress) -> Progress {
        switch unsafe SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: whenWaiting
        case SSL_ERROR_ZERO_RETURN: .closedByPeer
        case SSL_ERROR_SYSCALL where ERR_peek_error() == 0: whenWaiting
        default: .failed(failure())
        }
    }

    /// The reason for the last call's failure.
    private func failure() -> DTLSError {
        let failure = OpenSSLFailure.takeFirst()
        if pipe.hasRefusedCertificate { return .fingerprintMismatch }
        if failure.isAlertOfPeer {
            return DTLSError(
                failure.isAboutKindOfCertificate ? .certificateUnsupported : .refusedByPeer,
                "the DTLS handshake failed: the peer sent \"\(failure.message)\".")
        }
        if failure.reason == SSL_R_READ_TIMEOUT_EXPIRED {
            return DTLSError(.timedOut, "the DTLS handshake failed: the peer did not answer 13 transmissions.")
        }
        if failure.isAboutKindOfCertificate {
            return DTLSError(
                .certificateUnsupported,
                "the peer's certificate cannot be used: OpenSSL says \(failure.message). Let the peer use ECDSA on "
                    + "P-256, P-384 or P-521, or RSA with 2048 bits or more.")
        }
        return DTLSError(.handshakeFailed, "the DTLS handshake failed: OpenSSL says \(failure.message).")
    }
}

// Callbacks of OpenSSL.
extension DTLSSession {
    /// Whether the handshake may continue with the certificate that the peer sent: 1 if so.
    ///
    /// Certificates are self-signed, so there is no chain to check.
    static func verify(_ store: OpaquePointer?) -> Int32 {
        guard let certificate = unsafe X509_STORE_CTX_get0_cert(store),
            let data = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let pipe = unsafe DatagramPipe.behind(SSL_get_rbio(OpaquePointer(data))),
            unsafe pipe.accepts(certificate)
        else {
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            return 0
        }
        return 1
    }

    /// Microseconds to wait for an answer when `previous` were not enough; 0 were none yet.
    private static func nextTimeout(_ ssl: OpaquePointer?, after previous: UInt32) -> UInt32 {
        let first = unsafe DatagramPipe.behind(SSL_get_rbio(ssl))?.firstRetransmissionMicroseconds ?? 50_000
        let longest = UInt32(clamping: DTLSConfiguration.longestRetransmission.nanoseconds / 1000)
        return previous == 0 ? first : min(previous.addingReportingOverflow(previous).partialValue, longest)
    }
}

extension SRTPSuite {
    /// The profile's name in OpenSSL; nil of the short tag, which is for telephones that have no DTLS.
    fileprivate var profileName: String? {
        switch self {
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aesCM128HMACSHA1: "SRTP_AES128_CM_SHA1_80"
        case .aesCM128HMACSHA1Short: nil
        }
    }

    /// The profile's number (RFC 5764 §4.1.2, RFC 7714 §14.2).
    fileprivate var profileNumber: UInt? {
        switch self {
        case .aeadAES128GCM: 7
        case .aesCM128HMACSHA1: 1
        case .aesCM128HMACSHA1Short: nil
        }
    }
}

/// A datagram as a sequence of DTLS 1.2 records (RFC 6347 §4.1).
private enum DTLSRecords {
    private static let headerBytes = 13

    /// The records of a datagram that can be the peer's, unchanged.
    ///
    /// Other records are kept from OpenSSL: version 3.0.19 treats a record of the current epoch that is too short to be
    /// decrypted as an internal error that ends the association, also from a stranger. An incomplete record at the end is
    /// dropped too.
    ///
    /// - Parameters:
    ///   - isEstablished: The handshake is complete, after which no unencrypted record of the peer is needed: there is no
    ///     renegotiation, and a retransmitted last flight is recognised by its encrypted end.
    ///   - leastEncryptedBytes: The minimum length of an encrypted record, without its header; nil if there can be
    ///     none.
    static func plausible(in datagram: [UInt8], isEstablished: Bool, leastEncryptedBytes: Int?) -> [UInt8] {
        var kept: [UInt8] = []
        var start = 0
        while datagram.count - start >= headerBytes {
            let epoch = UInt16(datagram[start + 3]) << 8 | UInt16(datagram[start + 4])
            let length = Int(datagram[start + 11]) << 8 | Int(datagram[start + 12])
            let end = start + headerBytes + length
            guard end <= datagram.count else { break }
            let isPlausible =
                switch epoch {
                case 0: !isEstablished
                case 1: leastEncryptedBytes.map { length >= $0 } ?? false
                default: false
                }
            if isPlausible { kept += datagram[start..<end] }
            start = end
        }
        return kept
    }
}
