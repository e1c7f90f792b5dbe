// TLS: TLS 1.2 and 1.3 (RFC 8446) by OpenSSL at both ends, as bytes in and bytes out; certificates and keys as values. It owns no
// socket, and reads no file but those of trusted authorities.

internal import COpenSSL

/// One end of one TLS connection, as bytes in and bytes out: it owns no socket.
///
/// Used on ordinary threads; it allocates.
@safe
public struct TLSSession: ~Copyable, @unchecked Sendable {
    /// What a client demands of the server's certificate. Except with ``shown``, it must lead to a trusted authority.
    public enum Check: Sendable {
        /// It names this host (RFC 6125): a name, or an address written out.
        case name
        /// The function takes the server's certificates, its own one first, for those of the server.
        case judged(@Sendable ([TLSCertificate]) -> Bool)
        /// Nothing is trusted: the handshake ends once the server has shown its certificates.
        case shown
    }

    // May move to another thread as a whole: nothing else refers to what lies behind these, and OpenSSL ties an `SSL`
    // to no thread.
    private let ssl: OpaquePointer
    private let pipe: BytePipe
    /// Outlives `ssl`, whose callbacks refer to it.
    private let context: TLSContext
    /// The peer in messages.
    private let peer: String

    /// Nil at a client.
    private var helloLimit: HelloLimit?
    /// The handshake is complete: ``send(_:)`` may be used.
    public private(set) var isOpen = false
    /// The peer has sent close_notify.
    public private(set) var hasEnded = false

    /// Begins a connection to a server, with its first bytes ready in ``takeOutgoing(into:)``.
    ///
    /// - Parameters:
    ///   - host: The server's name, which is sent to it (RFC 6066 §3), or its address written out, which is not.
    ///   - context: Of ``TLSContext/client(trusting:showing:)``.
    ///   - protocols: Names of the protocols that the client speaks, the best first (RFC 7301); none unless given.
    public init(
        to host: String, in context: TLSContext, check: Check = .name, protocols: [String] = []
    ) throws(TLSError) {
        let pipe = BytePipe(check)
        let ssl = unsafe try Self.make(in: context, pipe)
        guard unsafe Self.name(certificateName(host), check, ssl), unsafe Self.offer(protocols, ssl) else {
            let error = TLSError.unusable("preparing a TLS connection to \"\(host)\"")
            unsafe SSL_free(ssl)
            throw error
        }
        unsafe SSL_set_connect_state(ssl)
        // Writes the first message; an answer is not there yet.
        _ = unsafe SSL_do_handshake(ssl)
        ERR_clear_error()
        unsafe self.ssl = ssl
        self.pipe = pipe
        self.context = context
        peer = "\"\(host)\""
    }

    /// Begins a connection of a client.
    ///
    /// - Parameter context: Of ``TLSContext/server(_:protocols:demanding:)``.
    public init(of context: TLSContext) throws(TLSError) {
        let pipe = BytePipe(nil)
        let ssl = unsafe try Self.make(in: context, pipe)
        unsafe SSL_set_accept_state(ssl)
        unsafe self.ssl = ssl
        self.pipe = pipe
        self.context = context
        helloLimit = HelloLimit()
        peer = "the client"
    }

    private static func make(in context: TLSContext, _ pipe: BytePipe) throws(TLSError) -> OpaquePointer {
        ERR_clear_error()
        guard let ssl = unsafe SSL_new(context.handle) else { throw .unusable("making a TLS connection") }
        guard unsafe pipe.attach(to: ssl) else {
            let error = TLSError.unusable("making a TLS connection")
            unsafe SSL_free(ssl)
            throw error
        }
        return unsafe ssl
    }

    deinit { unsafe SSL_free(ssl) }

    // MARK: Bytes

    /// Takes bytes that came from the peer, and appends their plain text to `plain`, also if it throws.
    ///
    /// - Throws: ``TLSError``, after which the connection is of no more use; ``takeOutgoing(into:)`` may have an alert.
    public mutating func receive(_ bytes: borrowing Span<UInt8>, into plain: inout [UInt8]) throws(TLSError) {
        ERR_clear_error()
        // TLS 1.2 has one hello, and encrypts records of the same kind after it.
        if !isOpen, unsafe SSL_version(ssl) != TLS1_2_VERSION, helloLimit?.admits(bytes) == false {
            throw TLSError(
                .broken, "\(peer) began a TLS handshake with a message of more than \(HelloLimit.bytes) bytes")
        }
        var outcome = Outcome.waiting
        let wasOpen = isOpen
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe pipe.with(bytes) {
                unsafe Self.advance(ssl, isOpen: wasOpen, into: &plain, &outcome)
            }
        }
        switch outcome {
        case .waiting: break
        case .open: isOpen = true
        case .ended(let isOpen):
            self.isOpen = isOpen
            hasEnded = true
        case .failed(let isOpen):
            self.isOpen = isOpen
            throw failure()
        }
    }

    /// The peer sends nothing more.
    ///
    /// - Throws: ``TLSError`` unless the peer has sent close_notify.
    public mutating func receiveEnd() throws(TLSError) {
        if hasEnded { return }
        guard isOpen else {
            throw TLSError(.closedInHandshake, "\(peer) closed the connection during the TLS handshake")
        }
        throw TLSError(.truncated, "\(peer) closed the connection without TLS's close_notify")
    }

    /// Sends bytes to the peer; the connection is open.
    public mutating func send(_ plain: borrowing Span<UInt8>) throws(TLSError) {
        guard isOpen, !plain.isEmpty else { return }
        ERR_clear_error()
        var written = 0
        let isSent = unsafe plain.withUnsafeBytes { bytes in
            while written < bytes.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[written...])
                let count = unsafe SSL_write(ssl, rest.baseAddress, Int32(clamping: rest.count))
                guard count > 0 else { return false }
                written += Int(count)
            }
            return true
        }
        guard isSent else { throw failure() }
    }

    /// Appends what is to go to the peer.
    public mutating func takeOutgoing(into bytes: inout [UInt8]) { pipe.takeOutbound(into: &bytes) }

    /// Sends close_notify, if the handshake is complete. What the peer still sends can be received.
    public mutating func close() {
        ERR_clear_error()
        if isOpen { _ = unsafe SSL_shutdown(ssl) }
        ERR_clear_error()
        isOpen = false
    }

    // MARK: What the handshake has found

    /// The protocol that both sides agreed on (RFC 7301).
    public var negotiatedProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start = unsafe start, count > 0 else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// The server's certificates as it sent them, its own one first, with ``Check/judged(_:)`` and ``Check/shown``.
    public var presentedCertificates: [TLSCertificate] { pipe.presented }

    // MARK: -

    private enum Outcome {
        case waiting
        case open
        case ended(isOpen: Bool)
        case failed(isOpen: Bool)
    }

    private static func advance(
        _ ssl: OpaquePointer, isOpen wasOpen: Bool, into plain: inout [UInt8], _ outcome: inout Outcome
    ) {
        var isOpen = wasOpen
        if !isOpen, unsafe SSL_is_init_finished(ssl) == 0 {
            let result = unsafe SSL_do_handshake(ssl)
            guard result == 1 else {
                switch unsafe SSL_get_error(ssl, result) {
                case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
                default: return outcome = .failed(isOpen: false)
                }
            }
            isOpen = true
            outcome = .open
        }
        // The largest record (RFC 8446 §5.1).
        let capacity = 16_384
        while true {
            var count: Int32 = 0
            let part = unsafe [UInt8](unsafeUninitializedCapacity: capacity) { buffer, filled in
                count = unsafe SSL_read(ssl, buffer.baseAddress, Int32(capacity))
                filled = max(0, Int(count))
            }
            guard count > 0 else {
                switch unsafe SSL_get_error(ssl, count) {
                case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
                case SSL_ERROR_ZERO_RETURN: return outcome = .ended(isOpen: isOpen)
                default: return outcome = .failed(isOpen: isOpen)
                }
            }
            if plain.isEmpty { plain = part } else { plain += part }
        }
    }

    private func failure() -> TLSError {
        let verdict = unsafe SSL_get_verify_result(ssl)
        guard verdict == X509_V_OK else {
            ERR_clear_error()
            let reason = unsafe String(cString: X509_verify_cert_error_string(verdict))
            if [X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH].contains(Int32(verdict)) {
                return TLSError(.wrongName, "the certificate of \(peer) is for another name: \(reason). Use its name.")
            }
            let advice = "Is its authority trusted here, and this machine's clock right?"
            return TLSError(.untrusted, "the certificate of \(peer) is not trusted: \(reason). \(advice)")
        }
        let failure = OpenSSLFailure.takeFirst()
        if failure.isPlainText { return TLSError(.plainText, "\(peer) does not speak TLS") }
        let code = failure.isAlertOfPeer ? TLSError.Code.refusedByPeer : .broken
        return TLSError(code, "TLS with \(peer) failed: OpenSSL says \(failure.message).")
    }

    /// Names the server in the handshake and for the check of its certificate.
    private static func name(_ host: String, _ check: Check, _ ssl: OpaquePointer) -> Bool {
        let isChecked = if case .name = check { true } else { false }
        // A literal address is searched among the certificate's addresses, and not sent in SNI (RFC 6066 §3).
        if let address = unsafe a2i_IPADDRESS(host) {
            unsafe ASN1_OCTET_STRING_free(address)
            return unsafe !isChecked || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
        }
        ERR_clear_error()
        if isChecked {
            unsafe SSL_set_hostflags(ssl, nameFlags)
            guard unsafe SSL_set1_host(ssl, host) == 1 else { return false }
        }
        return unsafe host.withCString { name in
            unsafe SSL_ctrl(
                ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                UnsafeMutableRawPointer(mutating: name)) == 1
        }
    }

    private static func offer(_ protocols: [String], _ ssl: OpaquePointer) -> Bool {
        guard !protocols.isEmpty else { return true }
        let list = protocolList(protocols)
        // Success is 0.
        return unsafe SSL_set_alpn_protos(ssl, list, UInt32(list.count)) == 0
    }
}
