internal import COpenSSL
internal import TLS

/// A certificate, a fingerprint or a handshake cannot be used.
///
/// Match on `code`; print the error itself.
public struct DTLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong.
    public struct Code: Equatable, Sendable {
        private let number: UInt8
        /// A fingerprint's hash function is one that we do not trust or do not know.
        public static let unsupportedHash = Code(number: 0)
        /// A fingerprint is not written as RFC 8122 says.
        public static let malformedFingerprint = Code(number: 1)
        /// The peer's certificate is not the one that its description promised.
        public static let fingerprintMismatch = Code(number: 2)
        /// The peer offers no SRTP profile that we have.
        public static let noCommonProfile = Code(number: 3)
        /// The peer did not answer in time, or its description did not come.
        public static let timedOut = Code(number: 4)
        /// The peer sent an alert.
        public static let refusedByPeer = Code(number: 5)
        /// The two sides have nothing in common, or the peer breaks the protocol.
        public static let handshakeFailed = Code(number: 6)
        /// OpenSSL cannot do what it was asked to.
        public static let library = Code(number: 7)
        /// The certificate, or the curve of its key, is of a kind that one side does not take.
        public static let certificateUnsupported = Code(number: 8)
    }

    /// What is wrong.
    public let code: Code
    /// What was being done, what failed and what to try.
    public let description: String

    /// Makes an error that prints as `description`.
    public init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}

extension DTLSError {
    /// OpenSSL refused to do `action`; takes its reasons from the thread's error queue.
    static func library(_ action: String) -> DTLSError {
        DTLSError(.library, "\(action) failed: OpenSSL says \(OpenSSLFailure.takeFirst().message).")
    }
}

extension OpenSSLFailure {
    /// Whether it is about the kind of a certificate: the local one, if an alert of the peer's says so.
    var isAboutKindOfCertificate: Bool {
        let reasons = [
            SSL_R_WRONG_CURVE, SSL_R_WRONG_CERTIFICATE_TYPE, SSL_R_UNKNOWN_CERTIFICATE_TYPE, SSL_R_EE_KEY_TOO_SMALL,
            SSL_R_BAD_ECPOINT, SSL_AD_REASON_OFFSET + SSL_AD_UNSUPPORTED_CERTIFICATE,
        ]
        return reasons.contains(reason)
    }
}
