public import SecureTransport

/// A call cannot be connected, or its connection has ended by itself.
///
/// Match on `code`; print the error itself.
public struct ConnectionFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// What went wrong.
    public struct Code: Equatable, Sendable {
        private let number: UInt8
        /// ICE has found no path, or lost all that it had.
        public static let noPath = Code(number: 0)
        /// There is no socket for the peer's address.
        public static let unusableAddress = Code(number: 1)
        /// The handshake failed: see ``ConnectionFailure/handshake``.
        public static let handshake = Code(number: 2)
        /// A library or the machine refused something.
        public static let fault = Code(number: 3)
    }

    /// What went wrong.
    public let code: Code
    /// The handshake's error, if it failed.
    public let handshake: DTLSError?
    /// The details as text, for this device's own log.
    public private(set) var description: String

    /// Makes a failure that prints as `description`.
    public init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
        handshake = nil
    }

    /// Makes one of a handshake's error.
    public init(_ error: DTLSError) {
        code = .handshake
        handshake = error
        description = "\(error)"
    }

    /// The same with more of the story.
    public func adding(_ more: String?) -> ConnectionFailure {
        guard let more else { return self }
        var failure = self
        failure.description += ": \(more)"
        return failure
    }
}
