public import Core

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
