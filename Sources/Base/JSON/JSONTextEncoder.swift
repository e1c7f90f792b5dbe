/// Writes what encodes itself as JSON text, straight into one buffer.
///
/// A value is done when its `encode(to:)` returns: containers must not be used after that, nor one while another of a
/// value within it is. Every other use makes the whole text not writable, so that it is never wrong.
final class JSONTextEncoder: Encoder {
    /// The text so far, which containers write to. It is one structure, so that each step makes only one exclusivity check.
    fileprivate var draft = JSONDraft()

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
}

/// Members of one object.
private struct ObjectEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: JSONTextEncoder
    let depth: Int
    var codingPath: [any CodingKey] { [] }

    private func begin(_ key: Key) throws { try encoder.draft.begin(key.stringValue, at: depth) }

    private func put(_ value: some FixedWidthInteger, _ key: Key) throws {
        try begin(key)
        encoder.draft.text.write(value)
    }

    func encodeNil(forKey key: Key) throws {
        try begin(key)
        encoder.draft.text.writeNull()
    }

    func encode(_ value: Bool, forKey key: Key) throws {
        try begin(key)
        encoder.draft.text.write(value)
    }

    func encode(_ value: String, forKey key: Key) throws {
        try begin(key)
        encoder.draft.text.write(value)
    }

    func encode(_ value: Double, forKey key: Key) throws {
        try begin(key)
        try encoder.draft.text.write(value)
    }

    func encode(_ value: Float, forKey key: Key) throws { throw JSONText.NotWritable() }
    func encode(_ value: Int, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: Int8, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: Int16, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: Int32, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: Int64, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: UInt, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: UInt8, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: UInt16, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: UInt32, forKey key: Key) throws { try put(value, key) }
    func encode(_ value: UInt64, forKey key: Key) throws { try put(value, key) }

    func encode(_ value: some Encodable, forKey key: Key) throws {
        try begin(key)
        try encoder.write(value)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        encoder.refuse().container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { encoder.refuse().unkeyedContainer() }
    func superEncoder() -> any Encoder { encoder.refuse() }
    func superEncoder(forKey key: Key) -> any Encoder { encoder.refuse() }
}

/// A container whose values have no keys.
private protocol ValueEncoder {
    var encoder: JSONTextEncoder { get }

    /// Makes room for the next value.
    func begin() throws
}

extension ValueEncoder {
    private func put(_ value: some FixedWidthInteger) throws {
        try begin()
        encoder.draft.text.write(value)
    }

    func encodeNil() throws {
        try begin()
        encoder.draft.text.writeNull()
    }

    func encode(_ value: Bool) throws {
        try begin()
        encoder.draft.text.write(value)
    }

    func encode(_ value: String) throws {
        try begin()
        encoder.draft.text.write(value)
    }

    func encode(_ value: Double) throws {
        try begin()
        try encoder.draft.text.write(value)
    }

    func encode(_ value: Float) throws { throw JSONText.NotWritable() }
    func encode(_ value: Int) throws { try put(value) }
    func encode(_ value: Int8) throws { try put(value) }
    func encode(_ value: Int16) throws { try put(value) }
    func encode(_ value: Int32) throws { try put(value) }
    func encode(_ value: Int64) throws { try put(value) }
    func encode(_ value: UInt) throws { try put(value) }
    func encode(_ value: UInt8) throws { try put(value) }
    func encode(_ value: UInt16) throws { try put(value) }
    func encode(_ value: UInt32) throws { try put(value) }
    func encode(_ value: UInt64) throws { try put(value) }

    func encode(_ value: some Encodable) throws {
        try begin()
        try encoder.write(value)
    }
}

/// Elements of one array.
private struct ArrayEncoder: ValueEncoder, UnkeyedEncodingContainer {
    let encoder: JSONTextEncoder
    let depth: Int
    var codingPath: [any CodingKey] { [] }
    var count: Int { encoder.draft.count(at: depth) }

    func begin() throws { try encoder.draft.beginElement(at: depth) }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        encoder.refuse().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.refuse().unkeyedContainer() }
    func superEncoder() -> any Encoder { encoder.refuse() }
}

/// One value that is no object and no array, or encodes itself.
private struct SingleValueEncoder: ValueEncoder, SingleValueEncodingContainer {
    let encoder: JSONTextEncoder
    let depth: Int
    var codingPath: [any CodingKey] { [] }

    func begin() throws { try encoder.draft.beginSingle(at: depth) }
}
