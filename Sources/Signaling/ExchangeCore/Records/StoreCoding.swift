import FoundationEssentials
package import JSON

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
