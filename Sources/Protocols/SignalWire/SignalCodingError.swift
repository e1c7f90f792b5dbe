/// Bytes that are no message, or a message that has no bytes.
///
/// It names the position in the message and what is expected there, and never a value: values may be secret.
public struct SignalCodingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: Hashable, Sendable {
        /// The text is not JSON (RFC 8259).
        case notJSON
        /// The text is JSON, but not the message that was expected.
        case wrongShape
        /// The text is longer than ``SignalLimits/messageBytes``.
        case tooLarge
        /// The text is nested deeper than ``SignalLimits/nesting``.
        case tooDeep
        /// The message cannot be written as JSON.
        case notRepresentable
    }

    /// The kind of error.
    public let code: Code
    /// What is wrong, as a sentence without its full stop.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    init(_ error: DecodingError) {
        switch error {
        case .keyNotFound(let key, let context):
            self.init(.wrongShape, "\(Self.place(context.codingPath + [key])) is missing")
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            self.init(.wrongShape, "\(Self.place(context.codingPath)) must be \(Self.name(of: type))")
        case .dataCorrupted(let context):
            if let fault = context.underlyingError as? IdentifierFault {
                self.init(.wrongShape, "\(Self.place(context.codingPath)) \(fault)")
            } else if context.codingPath.isEmpty {
                self.init(.notJSON, "the text is not JSON")
            } else {
                self.init(.wrongShape, "\(Self.place(context.codingPath)) has a value that is not allowed there")
            }
        @unknown default:
            self.init(.wrongShape, "the message has an unexpected form")
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        guard !path.isEmpty else { return "the message" }
        return path.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }.joined(separator: ".")
    }

    private static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is Int.Type, is Int64.Type, is UInt64.Type: "a whole number"
        case is Double.Type: "a number"
        case is OneOrMany.Type: "a string or an array of strings"
        case is [Any].Type: "an array"
        default: "an object"
        }
    }
}
