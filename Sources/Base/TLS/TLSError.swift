internal import COpenSSL

/// A TLS connection, a certificate or a key cannot be used.
///
/// Match on ``code``; print the error itself.
public struct TLSError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: Hashable, Sendable {
        /// The peer's certificate has expired, or leads to no trusted authority.
        case untrusted
        /// The server's certificate has another name.
        case wrongName
        /// The peer does not speak TLS.
        case plainText
        /// The peer closed the connection during the handshake.
        case closedInHandshake
        /// The peer closed the connection without close_notify, so what it sent may be cut off (RFC 8446 §6.1).
        case truncated
        /// The peer sent an alert.
        case refusedByPeer
        /// The two sides have nothing in common, or the peer breaks the protocol.
        case broken
        /// A certificate, a key or a file of them cannot be used, or OpenSSL cannot do what it was asked to.
        case unusable
    }

    /// The kind of error.
    public let code: Code
    /// What was being done, what failed and what to try.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    /// OpenSSL refused to do `action`; takes its reasons from the thread's error queue.
    static func unusable(_ action: String) -> TLSError {
        TLSError(.unusable, "\(action) failed: OpenSSL says \(OpenSSLFailure.takeFirst().message).")
    }
}

/// The first entry of OpenSSL's error queue after a failed call, which is the cause.
package struct OpenSSLFailure: Sendable {
    /// `ERR_GET_REASON`.
    package let reason: Int32
    package let message: String

    package init(reason: Int32, message: String) {
        self.reason = reason
        self.message = message
    }

    /// Takes the first entry of the thread's error queue, and forgets the others.
    package static func takeFirst() -> OpenSSLFailure {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return OpenSSLFailure(reason: 0, message: "nothing") }
        let text = unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) }
        return OpenSSLFailure(reason: ERR_GET_REASON(code), message: text ?? "error \(code)")
    }

    /// Whether it is an alert of the peer's, which OpenSSL counts from 1000.
    package var isAlertOfPeer: Bool { (SSL_AD_REASON_OFFSET..<SSL_AD_REASON_OFFSET + 256).contains(reason) }

    /// Whether the peer sent something that is no TLS record.
    var isPlainText: Bool {
        [SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST].contains(reason)
    }
}
