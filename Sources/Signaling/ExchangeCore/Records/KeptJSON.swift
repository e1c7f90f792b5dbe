public import JSON

/// A JSON value that is kept as text, which takes no more memory than what came in: read, it takes up to twenty times
/// that.
public struct KeptJSON: Hashable, Sendable {
    /// JSON text.
    public let text: String

    /// Writes a value; `nil` for none, and for a number that JSON does not have, which does not come in as JSON.
    public init?(_ value: JSONValue?) {
        guard let text = try? StoreCoding.payload(value) else { return nil }
        self.text = text
    }

    /// Takes a text from disk, which must be JSON.
    ///
    /// The text is encoded again, because it becomes a part of other JSON text later. A parser accepts some texts only as a
    /// whole, such as one with a byte order mark.
    package init(text: String) throws {
        self.text = try StoreCoding.text(try StoreCoding.value(JSONValue.self, text))
    }

    /// The value.
    public var value: JSONValue? { try? StoreCoding.value(JSONValue.self, text) }
    /// Bytes of the text.
    public var bytes: Int { text.utf8.count }
}
