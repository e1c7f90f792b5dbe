internal import Core

/// A value that must not reach a log, an error or a screen: printing, interpolating or dumping it shows a mask.
public struct Secret: Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let bytes: WipedBytes

    /// Wraps `value`.
    public init(_ value: String) { bytes = WipedBytes(value.utf8) }

    /// Wraps a text's bytes.
    init(_ bytes: some Collection<UInt8>) { self.bytes = WipedBytes(bytes) }

    /// The value itself; review every use of this property. It makes a text that is not overwritten when it is freed.
    public var revealed: String { bytes.text }

    /// A mask.
    public var description: String { "(secret)" }
    /// A mask.
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
