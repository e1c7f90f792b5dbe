extension JSONValue {
    /// Reads a message from the value, as a decoder of JSON text with its default settings would.
    ///
    /// It does not support types that such decoders treat specially (`Data`, `Date`, `URL`, `Decimal`).
    ///
    /// - Throws: An error without details, or `init(from:)`'s own. To get details, read the text with another decoder.
    package func decoded<Message: Decodable>(as type: Message.Type = Message.self) throws -> Message {
        try JSONValueDecoder(self).read(type)
    }

    fileprivate var isNull: Bool {
        if case .null = self { true } else { false }
    }
}

/// The value does not fit the type that is read, or is read in a form that this decoder does not support.
private struct UnfitValue: Error {}

private struct JSONValueDecoder: Decoder, SingleValueDecodingContainer {
    let value: JSONValue
    // Only errors would name positions, and the errors of this decoder do not.
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ value: JSONValue) { self.value = value }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let members) = value else { throw UnfitValue() }
        return KeyedDecodingContainer(ObjectDecoder(members: members))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let values) = value else { throw UnfitValue() }
        return ArrayDecoder(values: values)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    /// Reads any type.
    func read<Message: Decodable>(_ type: Message.Type) throws -> Message {
        // Any value is one already.
        if type == JSONValue.self, let value = value as? Message { return value }
        return try Message(from: self)
    }

    func whole<Number: FixedWidthInteger>() throws -> Number {
        guard case .integer(let whole) = value, let number = Number(exactly: whole) else { throw UnfitValue() }
        return number
    }

    func decodeNil() -> Bool { value.isNull }

    func decode(_ type: Bool.Type) throws -> Bool {
        guard case .bool(let value) = value else { throw UnfitValue() }
        return value
    }

    func decode(_ type: String.Type) throws -> String {
        guard case .string(let value) = value else { throw UnfitValue() }
        return value
    }

    func decode(_ type: Double.Type) throws -> Double {
        switch value {
        case .number(let value): return value
        case .integer(let value): return Double(value)
        case .null, .bool, .unsigned, .string, .array, .object: throw UnfitValue()
        }
    }

    func decode(_ type: Float.Type) throws -> Float { throw UnfitValue() }
    func decode(_ type: Int.Type) throws -> Int { try whole() }
    func decode(_ type: Int8.Type) throws -> Int8 { try whole() }
    func decode(_ type: Int16.Type) throws -> Int16 { try whole() }
    func decode(_ type: Int32.Type) throws -> Int32 { try whole() }
    func decode(_ type: Int64.Type) throws -> Int64 { try whole() }
    func decode(_ type: UInt.Type) throws -> UInt { try whole() }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try whole() }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try whole() }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try whole() }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try whole() }
    func decode<Message: Decodable>(_ type: Message.Type) throws -> Message { try read(type) }
}

private struct ObjectDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let members: [String: JSONValue]
    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { members.keys.compactMap { Key(stringValue: $0) } }

    private func member(_ key: Key) throws -> JSONValueDecoder {
        guard let value = members[key.stringValue] else { throw UnfitValue() }
        return JSONValueDecoder(value)
    }

    func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try member(key).decodeNil() }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try member(key).decode(type) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try member(key).decode(type) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try member(key).decode(type) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try member(key).decode(type) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try member(key).whole() }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try member(key).whole() }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try member(key).whole() }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try member(key).whole() }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try member(key).whole() }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try member(key).whole() }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try member(key).whole() }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try member(key).whole() }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try member(key).whole() }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try member(key).whole() }
    func decode<Message: Decodable>(_ type: Message.Type, forKey key: Key) throws -> Message {
        try member(key).read(type)
    }

    /// Looks the member up once.
    func decodeIfPresent<Message: Decodable>(_ type: Message.Type, forKey key: Key) throws -> Message? {
        guard let value = members[key.stringValue], !value.isNull else { return nil }
        return try JSONValueDecoder(value).read(type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try member(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try member(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { throw UnfitValue() }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw UnfitValue() }
}

private struct ArrayDecoder: UnkeyedDecodingContainer {
    let values: [JSONValue]
    private(set) var currentIndex = 0
    var codingPath: [any CodingKey] { [] }
    var count: Int? { values.count }
    var isAtEnd: Bool { currentIndex == values.count }

    init(values: [JSONValue]) { self.values = values }

    /// Reads the next value, and moves past it only if that succeeds.
    private mutating func next<Message>(_ read: (JSONValueDecoder) throws -> Message) throws -> Message {
        guard !isAtEnd else { throw UnfitValue() }
        let message = try read(JSONValueDecoder(values[currentIndex]))
        currentIndex += 1
        return message
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd else { throw UnfitValue() }
        let isNull = values[currentIndex].isNull
        if isNull { currentIndex += 1 }
        return isNull
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try next { try $0.decode(type) } }
    mutating func decode(_ type: String.Type) throws -> String { try next { try $0.decode(type) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try next { try $0.decode(type) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try next { try $0.decode(type) } }
    mutating func decode(_ type: Int.Type) throws -> Int { try next { try $0.whole() } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try next { try $0.whole() } }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try next { try $0.whole() } }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try next { try $0.whole() } }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try next { try $0.whole() } }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try next { try $0.whole() } }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try next { try $0.whole() } }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try next { try $0.whole() } }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try next { try $0.whole() } }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try next { try $0.whole() } }
    mutating func decode<Message: Decodable>(_ type: Message.Type) throws -> Message { try next { try $0.read(type) } }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try next { try $0.container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next { try $0.unkeyedContainer() }
    }
    mutating func superDecoder() throws -> any Decoder { throw UnfitValue() }
}
