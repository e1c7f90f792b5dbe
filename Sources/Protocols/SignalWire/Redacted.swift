/// A secret, or an address, that prints as `‹redacted›` wherever it is shown, logged or reflected (AUTH-12).
///
/// On the wire it is its plain value.
public struct Redacted<Value> {
    /// The secret itself: for the wire and for comparing, not for showing.
    public let secret: Value

    /// Wraps a secret.
    public init(_ secret: Value) { self.secret = secret }
}

extension Redacted: Sendable where Value: Sendable {}
extension Redacted: Equatable where Value: Equatable {}
extension Redacted: Hashable where Value: Hashable {}

extension Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `‹redacted›`.
    public var description: String { "‹redacted›" }
    /// Always `‹redacted›`.
    public var debugDescription: String { description }
    /// A mirror with nothing behind it.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection()) }
}

extension Redacted: Decodable where Value: Decodable {
    /// Reads the plain value.
    public init(from decoder: any Decoder) throws { secret = try decoder.singleValueContainer().decode(Value.self) }
}

extension Redacted: Encodable where Value: Encodable {
    /// Writes the plain value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(secret)
    }
}
