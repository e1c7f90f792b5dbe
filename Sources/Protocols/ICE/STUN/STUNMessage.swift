// STUN: messages of RFC 8489 with the attributes of TURN (RFC 8656) and ICE (RFC 8445), as values.

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
