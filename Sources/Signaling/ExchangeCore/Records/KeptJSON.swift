public import JSON
import FoundationEssentials

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

/// JSON in records, as it is kept. Not ``SignalCoding``, whose bounds are those of a message: an event is one with an envelope.
package enum StoreCoding {
    private static let encoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()
    private static let decoder = JSONDecoder()

    /// Levels of objects and arrays in text that is read the quick way.
    private static let plainNesting = 128

    package static func text(_ value: some Encodable) throws -> String {
        if let text = try? JSONText(value) { return String(decoding: text.bytes, as: UTF8.self) }
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    package static func payload(_ value: JSONValue?) throws -> String? {
        guard let value else { return nil }
        return try text(value)
    }

    package static func value<Value: Decodable>(_ type: Value.Type = Value.self, _ text: String) throws -> Value {
        let bytes = Array(text.utf8)
        if let plain = JSONValue(plain: bytes, nesting: plainNesting), let value = try? plain.decoded(as: type) {
            return value
        }
        return try decoder.decode(type, from: Data(bytes))
    }
}
