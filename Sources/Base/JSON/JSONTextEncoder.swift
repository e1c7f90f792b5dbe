/// Writes what encodes itself as JSON text, straight into one buffer.
///
/// A value is done when its `encode(to:)` returns: containers must not be used after that, nor one while another of a
/// value within it is. Every other use makes the whole text not writable, so that it is never wrong.
final class JSONTextEncoder: Encoder {
    /// The text so far. It is one structure, so that each step makes only one exclusivity check.
    private var draft = JSONDraft()

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The text, when all is written.
    func finished() throws(JSONText.NotWritable) -> [UInt8] { try draft.finished() }

    func write<Value: Encodable>(_ value: Value) throws {
        if Value.self == JSONValue.self, let value = value as? JSONValue { return try draft.write(value) }
        try draft.open()
        try value.encode(to: self)
        draft.close()
    }

    // MARK: - Containers

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(ObjectEncoder(encoder: self, depth: draft.become(.object)))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { ArrayEncoder(encoder: self, depth: draft.become(.array)) }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleValueEncoder(encoder: self, depth: draft.become(.single))
    }

    /// A container was requested that this encoder does not write; its contents are discarded.
    func refuse() -> JSONTextEncoder {
        draft.isBroken = true
        return JSONTextEncoder(discarding: ())
    }

    init() {}

    private init(discarding: Void) { draft.isBroken = true }

    // MARK: - Members, elements and primitive values

    func begin(_ name: String, at depth: Int) throws(JSONText.NotWritable) { try draft.begin(name, at: depth) }
    func beginElement(at depth: Int) throws(JSONText.NotWritable) { try draft.beginElement(at: depth) }
    func beginSingle(at depth: Int) throws(JSONText.NotWritable) { try draft.beginSingle(at: depth) }
    func count(at depth: Int) -> Int { draft.count(at: depth) }

    func writeNull() { draft.text.writeNull() }
    func write(_ value: Bool) { draft.text.write(value) }
    func write(_ value: String) { draft.text.write(value) }
    func write(_ value: Double) throws(JSONText.NotWritable) { try draft.text.write(value) }
    func write(_ value: some FixedWidthInteger) { draft.text.write(value) }
}
