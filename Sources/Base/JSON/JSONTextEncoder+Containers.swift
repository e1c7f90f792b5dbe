/// Members of one object.
struct ObjectEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: JSONTextEncoder
    let depth: Int
    var codingPath: [any CodingKey] { [] }

    private func begin(_ key: Key) throws { try encoder.begin(key.stringValue, at: depth) }

    private func put(_ value: some FixedWidthInteger, _ key: Key) throws {
        try begin(key)
        encoder.write(value)
    }

    func encodeNil(forKey key: Key) throws {
        try begin(key)
        encoder.writeNull()
    }

    func encode(_ value: Bool, forKey key: Key) throws {
        try begin(key)
        encoder.write(value)
    }

    func encode(_ value: String, forKey key: Key) throws {
        try begin(key)
        encoder.write(value)
    }

    func encode(_ value: Double, forKey key: Key) throws {
        try begin(key)
        try encoder.write(value)
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

/// Elements of one array.
struct ArrayEncoder: UnkeyedEncodingContainer {
    let encoder: JSONTextEncoder
    let depth: Int
    var codingPath: [any CodingKey] { [] }
    var count: Int { encoder.count(at: depth) }

    private func begin() throws { try encoder.beginElement(at: depth) }

    private func put(_ value: some FixedWidthInteger) throws {
        try begin()
        encoder.write(value)
    }

    func encodeNil() throws {
        try begin()
        encoder.writeNull()
    }

    func encode(_ value: Bool) throws {
        try begin()
        encoder.write(value)
    }

    func encode(_ value: String) throws {
        try begin()
        encoder.write(value)
    }

    func encode(_ value: Double) throws {
        try begin()
        try encoder.write(value)
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

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        encoder.refuse().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.refuse().unkeyedContainer() }
    func superEncoder() -> any Encoder { encoder.refuse() }
}

/// One value that is no object and no array, or encodes itself.
struct SingleValueEncoder: SingleValueEncodingContainer {
    let encoder: JSONTextEncoder
    let depth: Int
    var codingPath: [any CodingKey] { [] }

    private func begin() throws { try encoder.beginSingle(at: depth) }

    private func put(_ value: some FixedWidthInteger) throws {
        try begin()
        encoder.write(value)
    }

    func encodeNil() throws {
        try begin()
        encoder.writeNull()
    }

    func encode(_ value: Bool) throws {
        try begin()
        encoder.write(value)
    }

    func encode(_ value: String) throws {
        try begin()
        encoder.write(value)
    }

    func encode(_ value: Double) throws {
        try begin()
        try encoder.write(value)
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
