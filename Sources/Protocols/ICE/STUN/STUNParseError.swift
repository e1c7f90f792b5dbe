/// Bytes that are no STUN message.
public struct STUNParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong.
    public enum Code: Sendable {
        /// Shorter than the header's 20 bytes.
        case tooShort
        /// The first two bits are not zero, or the magic cookie differs.
        case notSTUN
        /// The length field does not match the datagram, or is not a multiple of four.
        case wrongLength
        /// An attribute reaches past the end.
        case truncatedAttribute
        /// More attributes than any valid message needs.
        case tooManyAttributes
    }

    /// What is wrong.
    public let code: Code
    /// Where, in bytes from the front.
    public let offset: Int

    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// The problem and its position.
    public var description: String { "no STUN message: \(code) at byte \(offset)" }
}
