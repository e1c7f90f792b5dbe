/// A value that must not reach a log, an error or a screen: printing, interpolating or dumping it shows a mask.
public struct Secret: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The value itself; every use of this property is a place to review.
    public let revealed: String

    /// Wraps `value`.
    public init(_ value: String) { revealed = value }

    /// A mask.
    public var description: String { "(secret)" }
    /// A mask.
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
