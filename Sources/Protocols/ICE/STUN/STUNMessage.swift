// STUN: messages of RFC 8489 with the attributes of TURN (RFC 8656) and ICE (RFC 8445), as values.

public import Core

/// A STUN message as it arrived: its attributes are found, its integrity is not yet checked.
public struct STUNMessage: Equatable, Sendable {
    /// One attribute and where its value lies.
    struct Attribute: Equatable, Sendable {
        let type: STUNAttributeType
        let value: Range<Int>
        /// Where its type and length begin.
        var start: Int { value.lowerBound - 4 }
    }

    /// The size of the header, in bytes.
    public static let headerSize = 20
    /// The constant in the second 32-bit word of the header.
    public static let magicCookie: UInt32 = 0x2112_A442
    /// Attributes beyond this many are refused.
    public static let maximumAttributes = 64

    /// Request, indication, success or failure.
    public let messageClass: STUNClass
    /// The method.
    public let method: STUNMethod
    /// By which answers find their requests.
    public let transactionID: TransactionID
    /// The whole message.
    public let bytes: [UInt8]
    /// In order. Attributes after an integrity attribute are left out, except the stronger one and the fingerprint (RFC
    /// 8489 §14.5).
    let attributes: [Attribute]

    /// Parses one message.
    ///
    /// - Parameter bytes: One datagram, or one frame of a stream. Any length, any bytes.
    /// - Throws: ``STUNParseError``. Nothing a peer sends can trap.
    public init(parsing bytes: [UInt8]) throws(STUNParseError) {
        let header = try Self.header(of: bytes)
        (messageClass, method) = STUNMethod.split(header.type)
        transactionID = header.transactionID
        attributes = try Self.attributes(of: bytes)
        self.bytes = bytes
    }

    private static func header(
        of bytes: [UInt8]
    ) throws(STUNParseError) -> (type: UInt16, transactionID: TransactionID) {
        guard let type = bytes.uint16(at: 0), let length = bytes.uint16(at: 2), let cookie = bytes.uint32(at: 4),
            let high = bytes.uint64(at: 8), let low = bytes.uint32(at: 16)
        else { throw STUNParseError(.tooShort, at: bytes.count) }
        guard type & 0xC000 == 0, cookie == magicCookie else { throw STUNParseError(.notSTUN, at: 0) }
        guard length % 4 == 0, Int(length) + headerSize == bytes.count else {
            throw STUNParseError(.wrongLength, at: 2)
        }
        return (type, TransactionID(high: high, low: low))
    }

    private static func attributes(of bytes: [UInt8]) throws(STUNParseError) -> [Attribute] {
        var found: [Attribute] = []
        var offset = headerSize
        var seen = 0
        var strongest = 0
        while offset < bytes.count {
            seen += 1
            guard seen <= maximumAttributes else { throw STUNParseError(.tooManyAttributes, at: offset) }
            guard let type = bytes.uint16(at: offset), let length = bytes.uint16(at: offset + 2) else {
                throw STUNParseError(.truncatedAttribute, at: offset)
            }
            let start = offset + 4
            guard start + Int(length) <= bytes.count else { throw STUNParseError(.truncatedAttribute, at: offset) }
            let attribute = Attribute(type: STUNAttributeType(rawValue: type), value: start..<(start + Int(length)))
            // A later protection may follow an earlier, weaker one; nothing else may.
            let rank = protectionRank(attribute.type)
            if rank > strongest || (rank == 0 && strongest == 0) { found.append(attribute) }
            strongest = max(strongest, rank)
            offset = start + (Int(length) + 3) & ~3
        }
        return found
    }

    private static func protectionRank(_ type: STUNAttributeType) -> Int {
        switch type {
        case .messageIntegrity: 1
        case .messageIntegritySHA256: 2
        case .fingerprint: 3
        default: 0
        }
    }
}

/// The 96 bits that match a STUN response to its request (RFC 8489 §5).
public struct TransactionID: Hashable, Sendable {
    /// The first 64 bits.
    let high: UInt64
    /// The last 32 bits.
    let low: UInt32

    /// Draws a new one. The generator must be unpredictable to others, because the ID prevents forged answers to
    /// unprotected requests.
    public init(using generator: inout some RandomNumberGenerator) {
        high = generator.next()
        low = UInt32(truncatingIfNeeded: generator.next())
    }

    /// Makes one from its two parts.
    @_noAllocation @_noLocks
    public init(high: UInt64, low: UInt32) {
        self.high = high
        self.low = low
    }

    /// The twelve bytes in network order.
    public var bytes: [UInt8] { high.networkBytes + low.networkBytes }
}

/// Bytes that are no STUN message.
public struct STUNParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong.
    public enum Code: Sendable {
        /// Shorter than the header's 20 bytes.
        case tooShort
        /// The first two bits are not zero, or the magic cookie differs.
        case notSTUN
        /// The length field does not match the datagram, or is not a multiple of four.
        case wrongLength
        /// An attribute reaches past the end.
        case truncatedAttribute
        /// More attributes than any valid message needs.
        case tooManyAttributes
    }

    /// What is wrong.
    public let code: Code
    /// Where, in bytes from the front.
    public let offset: Int

    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// The problem and its position.
    public var description: String { "no STUN message: \(code) at byte \(offset)" }
}

/// The attributes' values. Each is `nil` if the attribute is missing or malformed.
extension STUNMessage {
    /// Whether the message has the attribute.
    public func contains(_ type: STUNAttributeType) -> Bool { attributes.contains { $0.type == type } }

    /// The value of the first attribute of that type.
    public func value(_ type: STUNAttributeType) -> ArraySlice<UInt8>? {
        attributes.first { $0.type == type }.map { bytes[$0.value] }
    }

    /// A text attribute; ill-formed UTF-8 is repaired.
    public func text(_ type: STUNAttributeType) -> String? { value(type).map { String(decoding: $0, as: UTF8.self) } }

    /// An attribute of four bytes, or the first four of a longer one.
    public func uint32(_ type: STUNAttributeType) -> UInt32? {
        guard let range = attributes.first(where: { $0.type == type })?.value, range.count >= 4 else { return nil }
        return bytes.uint32(at: range.lowerBound)
    }

    /// An attribute of eight bytes.
    public func uint64(_ type: STUNAttributeType) -> UInt64? {
        guard let range = attributes.first(where: { $0.type == type })?.value, range.count == 8 else { return nil }
        return bytes.uint64(at: range.lowerBound)
    }

    /// An address, unmasked if the type is one of the XOR kind (RFC 8489 §14.2).
    public func address(_ type: STUNAttributeType) -> SocketAddress? {
        attributes.first { $0.type == type }.flatMap(address(of:))
    }

    /// All addresses of that type.
    public func addresses(_ type: STUNAttributeType) -> [SocketAddress] {
        attributes.filter { $0.type == type }.compactMap(address(of:))
    }

    private func address(of attribute: Attribute) -> SocketAddress? {
        let value = bytes[attribute.value]
        guard value.count >= 8, var port = bytes.uint16(at: value.startIndex + 2) else { return nil }
        let size: Int
        switch value[value.startIndex + 1] {
        case 1: size = 4
        case 2: size = 16
        default: return nil
        }
        guard value.count == 4 + size else { return nil }
        var address = Array(value.dropFirst(4))
        if attribute.type.isXORAddress {
            port ^= UInt16(truncatingIfNeeded: Self.magicCookie >> 16)
            // The mask is the cookie and the transaction ID: bytes 4 to 20 of the header.
            for index in address.indices { address[index] ^= bytes[4 + index] }
        }
        return SocketAddress(addressBytes: address, port: port)
    }

    /// The code and the text of a refusal.
    public var failure: (code: STUNErrorCode, reason: String)? {
        guard let value = value(.errorCode), value.count >= 4 else { return nil }
        let hundreds = Int(value[value.startIndex + 2] & 7)
        let units = Int(value[value.startIndex + 3])
        guard (3...6).contains(hundreds), units < 100 else { return nil }
        let reason = String(decoding: value.dropFirst(4).prefix(256), as: UTF8.self)
        return (STUNErrorCode(rawValue: hundreds * 100 + units), reason)
    }

    /// Types that must be understood and are not; a request with any is answered with 420 (RFC 8489 §6.3.1).
    public var unknownRequiredAttributes: [STUNAttributeType] {
        attributes.map(\.type).filter {
            $0.isComprehensionRequired && !STUNAttributeType.understood.contains($0.rawValue)
        }
    }

    /// The algorithms a server offers or a client has chosen, in the order given (RFC 8489 §14.11).
    ///
    /// - Returns: nil if the list is missing or malformed.
    public func passwordAlgorithms(_ type: STUNAttributeType = .passwordAlgorithms) -> [UInt16]? {
        guard let value = value(type) else { return nil }
        var rest = value
        var found: [UInt16] = []
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let head = Array(rest.prefix(4))
            let parameters = Int(head[2]) << 8 | Int(head[3])
            guard rest.count >= 4 + parameters else { return nil }
            found.append(UInt16(head[0]) << 8 | UInt16(head[1]))
            rest = rest.dropFirst(4 + (parameters + 3) & ~3)
        }
        return found
    }
}

extension STUNAttributeType {
    /// Whether the value is an address masked with the cookie and the transaction ID.
    var isXORAddress: Bool {
        switch self {
        case .xorMappedAddress, .xorPeerAddress, .xorRelayedAddress: true
        default: false
        }
    }
}
