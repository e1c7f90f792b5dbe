// SDP: session descriptions (RFC 8866) and what two of them agree on for audio (RFC 3264), as pure values.

/// A text is not a session description.
public struct SDPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong with a description.
    public struct Code: Equatable, Sendable {
        private let number: UInt8
        /// Longer than ``SessionDescription/maximumSize``.
        public static let tooLong = Code(number: 0)
        /// A line is not a letter, an equals sign and a value.
        public static let malformedLine = Code(number: 1)
        /// A line of a kind that we must understand has a value that we do not.
        public static let malformedValue = Code(number: 2)
        /// A line that every description has is not there.
        public static let missingLine = Code(number: 3)
    }

    /// What is wrong.
    public let code: Code
    /// Line in the text, from 1.
    public let line: Int
    /// What was expected, as a sentence without a full stop.
    public let message: String

    /// A sentence with the line, for logs and for the peer's author.
    public var description: String { "session description, line \(line): \(message)" }
}
