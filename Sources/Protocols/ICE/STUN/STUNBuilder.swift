internal import Cryptography
public import Core

/// Writes one STUN message, attribute by attribute.
public struct STUNBuilder: Sendable {
    private var bytes: [UInt8]
    /// An attribute did not fit into the 65 535 bytes that a message can have; it was left out.
    public private(set) var overflowed = false

    /// Starts a message.
    public init(_ messageClass: STUNClass, _ method: STUNMethod, _ transactionID: TransactionID) {
        bytes = []
        bytes.reserveCapacity(160)
        bytes.append(contentsOf: method.typeField(messageClass).networkBytes)
        bytes.append(contentsOf: [0, 0])
        bytes.append(contentsOf: STUNMessage.magicCookie.networkBytes)
        bytes.append(contentsOf: transactionID.bytes)
    }

    /// Starts the answer to `request`.
    public init(_ messageClass: STUNClass, answering request: STUNMessage) {
        self.init(messageClass, request.method, request.transactionID)
    }

    /// Starts a refusal of `request`, with the error's code and, for 420, the attributes that were not understood.
    public init(refusing request: STUNMessage, _ code: STUNErrorCode) {
        self.init(.failure, answering: request)
        let head: [UInt8] = [0, 0, UInt8(clamping: code.rawValue / 100), UInt8(clamping: code.rawValue % 100)]
        append(.errorCode, head + Array(code.reason.utf8))
        if code == .unknownAttribute {
            let types = request.unknownRequiredAttributes.map(\.rawValue)
            append(
                .unknownAttributes,
                types.flatMap(\.networkBytes))
        }
    }

    /// Appends an attribute with any value; padding is added.
    public mutating func append(_ type: STUNAttributeType, _ value: some Collection<UInt8>) {
        // 36 + 8 bytes are kept for what `finish` adds.
        guard bytes.count + 4 + value.count + 3 <= 65_535 - 60 else {
            overflowed = true
            return
        }
        bytes.append(contentsOf: type.rawValue.networkBytes)
        bytes.append(contentsOf: UInt16(truncatingIfNeeded: value.count).networkBytes)
        bytes.append(contentsOf: value)
        while bytes.count % 4 != 0 { bytes.append(0) }
    }

    /// Appends a text attribute.
    public mutating func append(_ type: STUNAttributeType, _ text: String) { append(type, Array(text.utf8)) }

    /// Appends an attribute of four bytes.
    public mutating func append(_ type: STUNAttributeType, _ value: UInt32) {
        append(type, value.networkBytes)
    }

    /// Appends an attribute of eight bytes.
    public mutating func append(_ type: STUNAttributeType, _ value: UInt64) {
        append(type, value.networkBytes)
    }

    /// Appends an address, masked if the type is one of the XOR kind.
    public mutating func append(_ type: STUNAttributeType, _ address: SocketAddress) {
        var port = address.port
        var host = address.addressBytes
        if type.isXORAddress {
            port ^= UInt16(truncatingIfNeeded: STUNMessage.magicCookie >> 16)
            for index in host.indices { host[index] ^= bytes[4 + index] }
        }
        let family: [UInt8] = [0, address.isIPv6 ? 2 : 1]
        append(type, family + port.networkBytes + host)
    }

    /// Appends integrity and fingerprint, and returns the message.
    ///
    /// - Parameters:
    ///   - key: `nil` for a message without integrity.
    ///   - fingerprint: Whether to add the checksum that distinguishes STUN from other protocols.
    public consuming func finish(
        key: STUNKey? = nil, integrity: STUNIntegrity = .sha1, fingerprint: Bool = false
    ) -> [UInt8] {
        if let key {
            switch integrity {
            case .sha1:
                setLength(adding: 24)
                append(.messageIntegrity, Digest.hmacSHA1(key.bytes, bytes))
            case .sha256:
                setLength(adding: 36)
                append(.messageIntegritySHA256, Digest.hmacSHA256(key.bytes, bytes))
            }
        }
        if fingerprint {
            setLength(adding: 8)
            append(.fingerprint, CRC32.checksum(bytes) ^ CRC32.stunMask)
        }
        setLength(adding: 0)
        return bytes
    }

    private mutating func setLength(adding more: Int) {
        let length = UInt16(truncatingIfNeeded: bytes.count - STUNMessage.headerSize + more)
        bytes[2] = UInt8(truncatingIfNeeded: length >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: length)
    }

}

extension FixedWidthInteger where Self: UnsignedInteger {
    /// The value's bytes in network order.
    var networkBytes: [UInt8] {
        var rest = UInt64(truncatingIfNeeded: self)
        var bytes = [UInt8](repeating: 0, count: Self.bitWidth / 8)
        var index = bytes.count
        while index > 0 {
            index -= 1
            bytes[index] = UInt8(truncatingIfNeeded: rest)
            rest >>= 8
        }
        return bytes
    }
}
