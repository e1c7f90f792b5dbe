internal import COpenSSL
internal import RegularFiles

/// The trusted certificate authorities.
public enum TLSTrust: Hashable, Sendable {
    /// The authorities that the system trusts. (OpenSSL's environment variables SSL_CERT_FILE and SSL_CERT_DIR name
    /// others.)
    case system
    /// Those in a file of PEM, and no others.
    case file(String)
}

/// A connection under TLS could not be made, or is broken; print it.
public struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was being done, what failed and what to try.
    public let description: String
}

/// The client's side of one TLS 1.2 or 1.3 connection (RFC 8446), as bytes in and bytes out: it owns no socket.
///
/// The server's certificate must lead to a trusted authority and be valid for the requested host (RFC 6125); this check
/// cannot be disabled. For an ordinary thread; it allocates.
@safe
public struct TLSClient: ~Copyable, @unchecked Sendable {
    // May move to another thread as a whole: nothing else refers to what lies behind these, and OpenSSL ties an `SSL`
    // to no thread.
    private let ssl: OpaquePointer
    /// Bytes from the server, and bytes for it. Both belong to `ssl`.
    private let (incoming, outgoing): (OpaquePointer, OpaquePointer)
    private let hostName: String

    /// The handshake is over: ``send(_:)`` may be used.
    public private(set) var isOpen = false
    /// The server has sent close_notify.
    public private(set) var hasEnded = false

    /// Makes a connection that has its first bytes ready in ``takeOutgoing(into:)``.
    ///
    /// - Parameter hostName: The server's name, or its address written out.
    public init(to hostName: String, trusting trust: TLSTrust) throws(TLSError) {
        ERR_clear_error()
        let context = unsafe try Self.makeContext(trust)
        defer { unsafe SSL_CTX_free(context) }
        guard let ssl = unsafe SSL_new(context) else { throw .library("making a TLS connection") }
        guard unsafe Self.name(hostName, ssl), let incoming = unsafe BIO_new(BIO_s_mem()) else {
            unsafe SSL_free(ssl)
            throw .library("preparing a TLS connection to \"\(hostName)\"")
        }
        guard let outgoing = unsafe BIO_new(BIO_s_mem()) else {
            unsafe BIO_free(incoming)
            unsafe SSL_free(ssl)
            throw .library("preparing a TLS connection to \"\(hostName)\"")
        }
        unsafe SSL_set_bio(ssl, incoming, outgoing)
        unsafe SSL_set_connect_state(ssl)
        unsafe self.ssl = ssl
        unsafe (self.incoming, self.outgoing) = (incoming, outgoing)
        self.hostName = hostName
        // Writes the first message; an answer is not there yet.
        _ = unsafe SSL_do_handshake(ssl)
    }

    deinit { unsafe SSL_free(ssl) }

    /// Takes bytes that came from the server, and appends what they say to `plain`.
    public mutating func receive(_ bytes: ArraySlice<UInt8>, into plain: inout [UInt8]) throws(TLSError) {
        ERR_clear_error()
        let taken = unsafe bytes.withUnsafeBytes {
            // Writing nothing to a BIO is a failure.
            unsafe $0.isEmpty ? 0 : BIO_write(incoming, $0.baseAddress, Int32(clamping: $0.count))
        }
        guard taken == bytes.count else { throw .library("reading from \"\(hostName)\"") }
        if !isOpen {
            let result = unsafe SSL_do_handshake(ssl)
            guard result == 1 else { return try conclude(result) }
            isOpen = true
        }
        try read(into: &plain)
    }

    /// Sends bytes to the server; the connection is open.
    public mutating func send(_ plain: [UInt8]) throws(TLSError) {
        guard isOpen, !plain.isEmpty else { return }
        ERR_clear_error()
        let count = unsafe plain.withUnsafeBytes { unsafe SSL_write(ssl, $0.baseAddress, Int32(clamping: $0.count)) }
        guard count == plain.count else { throw failure() }
    }

    /// Appends what is to go to the server.
    public mutating func takeOutgoing(into bytes: inout [UInt8]) {
        let count = unsafe BIO_ctrl(outgoing, BIO_CTRL_PENDING, 0, nil)
        guard count > 0 else { return }
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: count))
        let taken = unsafe bytes.withUnsafeMutableBytes {
            unsafe BIO_read(outgoing, $0.baseAddress.map { unsafe $0 + start }, Int32(clamping: count))
        }
        bytes.removeLast(count - max(0, Int(taken)))
    }

    /// Says goodbye, if there was a greeting.
    public mutating func close() {
        ERR_clear_error()
        if isOpen { _ = unsafe SSL_shutdown(ssl) }
        ERR_clear_error()
        isOpen = false
    }

    private mutating func read(into plain: inout [UInt8]) throws(TLSError) {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe SSL_read(ssl, $0.baseAddress, Int32($0.count)) }
            guard count > 0 else { return try conclude(count) }
            plain.append(contentsOf: buffer[..<Int(count)])
        }
    }

    private mutating func conclude(_ result: Int32) throws(TLSError) {
        switch unsafe SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
        case SSL_ERROR_ZERO_RETURN: hasEnded = true
        default: throw failure()
        }
    }

    private func failure() -> TLSError {
        let verdict = unsafe SSL_get_verify_result(ssl)
        guard verdict == X509_V_OK else {
            ERR_clear_error()
            let reason = unsafe String(cString: X509_verify_cert_error_string(verdict))
            return TLSError(
                description: "the certificate of \"\(hostName)\" is not believed: \(reason). Is the name the one in the"
                    + " certificate, and its authority trusted here?")
        }
        return .library("TLS with \"\(hostName)\"")
    }
}

extension TLSTrust {
    /// Reads what a connection would read.
    ///
    /// - Throws: ``TLSError`` if there is no authority in it, or it cannot be read.
    public func check() throws(TLSError) {
        ERR_clear_error()
        unsafe SSL_CTX_free(try TLSClient.makeContext(self))
    }
}

// How a connection is set up.
extension TLSClient {
    fileprivate static func makeContext(_ trust: TLSTrust) throws(TLSError) -> OpaquePointer {
        if case .file(let path) = trust {
            // OpenSSL would wait for a named pipe, and this may be the thread of all connections.
            do throws(RegularFileError) {
                try RegularFile.check(path)
            } catch {
                throw TLSError(
                    description: "reading trusted certificates from \"\(path)\" failed: \(error.message). It must be a "
                        + "file of PEM that this user may read.")
            }
        }
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { throw .library("making a TLS context") }
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        let isTrusting =
            switch trust {
            case .system: unsafe SSL_CTX_set_default_verify_paths(context) == 1
            case .file(let path): unsafe SSL_CTX_load_verify_file(context, path) == 1
            }
        guard isTrusting else {
            unsafe SSL_CTX_free(context)
            switch trust {
            case .system: throw .library("reading the system's trusted certificates")
            case .file(let path): throw .library("reading trusted certificates from \"\(path)\"")
            }
        }
        return unsafe context
    }

    /// Says whom we want to speak with, in the handshake and for the check of the certificate.
    private static func name(_ hostName: String, _ ssl: OpaquePointer) -> Bool {
        // A literal address is searched among the certificate's addresses, and not sent in SNI (RFC 6066 §3).
        if unsafe X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), hostName) == 1 { return true }
        ERR_clear_error()
        unsafe SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        guard unsafe SSL_set1_host(ssl, hostName) == 1 else { return false }
        return unsafe hostName.withCString { name in
            unsafe SSL_ctrl(
                ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                UnsafeMutableRawPointer(mutating: name))
                == 1
        }
    }
}

extension TLSError {
    /// OpenSSL refused to do `action`; takes its reasons from the thread's error queue.
    static func library(_ action: String) -> TLSError {
        TLSError(description: "\(action) failed: OpenSSL says \(LibraryFailure.takeFirst().message).")
    }
}
