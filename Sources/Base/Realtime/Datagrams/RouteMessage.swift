/// A message of the kernel about the network, as far as it matters to connections (rtnetlink(7)).
enum RouteMessage: Hashable, Sendable {
    /// An interface other than the loopback; whether packets can leave by it.
    case link(index: Int32, isUsable: Bool)
    /// An address with which others can be reached, and its interface.
    case addressAdded(index: UInt32, address: [UInt8])
    case addressRemoved(index: UInt32, address: [UInt8])
    /// There is a route out of the local network.
    case defaultRouteAdded
}

extension RouteMessage {
    // linux/rtnetlink.h, linux/if_addr.h, net/if.h.
    private static let (newLink, removedLink, newAddress, removedAddress, newRoute):
        (UInt16, UInt16, UInt16, UInt16, UInt16) =
            (16, 17, 20, 21, 24)
    private static let (isUp, isLoopback, isRunning): (UInt32, UInt32, UInt32) = (0x1, 0x8, 0x40)
    private static let headerBytes = 16

    /// Reads the messages in what was read from the socket. What is cut off, unknown or of no interest is passed over; no bytes
    /// can trap.
    static func read(_ bytes: [UInt8]) -> [RouteMessage] {
        var messages: [RouteMessage] = []
        var rest = bytes[...]
        while let length = rest.integer(at: 0, UInt32.self), let kind = rest.integer(at: 4, UInt16.self),
            length >= UInt32(headerBytes), length <= rest.count
        {
            if let message = Self(kind, rest.prefix(Int(length)).dropFirst(headerBytes)) { messages.append(message) }
            // Each begins on a multiple of four.
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
        return messages
    }

    private init?(_ kind: UInt16, _ body: ArraySlice<UInt8>) {
        switch kind {
        case Self.newLink, Self.removedLink:
            guard let index = body.integer(at: 4, Int32.self), let flags = body.integer(at: 8, UInt32.self),
                flags & Self.isLoopback == 0
            else { return nil }
            let isUsable = kind == Self.newLink && flags & Self.isUp != 0 && flags & Self.isRunning != 0
            self = .link(index: index, isUsable: isUsable)
        case Self.newAddress, Self.removedAddress:
            // Addresses of the whole network or the site (scopes 0 to 200), not of the link or this machine; no
            // tentative ones (0x40).
            guard let flags = body.integer(at: 2, UInt8.self), let scope = body.integer(at: 3, UInt8.self),
                scope <= 200,
                flags & 0x40 == 0, let index = body.integer(at: 4, UInt32.self),
                let address = Self.attribute(1, of: body.dropFirst(8))
            else { return nil }
            self =
                kind == Self.newAddress
                ? .addressAdded(index: index, address: address) : .addressRemoved(index: index, address: address)
        case Self.newRoute:
            // To everywhere, in the main table (254), to another machine (1), and no copy of the cache (0x200).
            guard body.integer(at: 1, UInt8.self) == 0, body.integer(at: 4, UInt8.self) == 254,
                body.integer(at: 7, UInt8.self) == 1, let flags = body.integer(at: 8, UInt32.self), flags & 0x200 == 0
            else { return nil }
            self = .defaultRouteAdded
        default: return nil
        }
    }

    /// The bytes of the first attribute of this kind.
    private static func attribute(_ kind: UInt16, of attributes: ArraySlice<UInt8>) -> [UInt8]? {
        var rest = attributes
        while let length = rest.integer(at: 0, UInt16.self), let found = rest.integer(at: 2, UInt16.self), length >= 4,
            length <= rest.count
        {
            if found == kind { return Array(rest.prefix(Int(length)).dropFirst(4)) }
            rest = rest.dropFirst((Int(length) + 3) & ~3)
        }
        return nil
    }
}

extension ArraySlice<UInt8> {
    /// A number at `offset` bytes, in the machine's order, which is little-endian on all platforms of Handset; nil if
    /// it is not complete.
    fileprivate func integer<Number: FixedWidthInteger>(at offset: Int, _: Number.Type) -> Number? {
        let size = Number.bitWidth / 8
        guard count >= offset + size else { return nil }
        let start = startIndex + offset
        return self[start..<start + size].reversed().reduce(Number.zero) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }
}
