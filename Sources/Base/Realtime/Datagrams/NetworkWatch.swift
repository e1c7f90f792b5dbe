public import Core
internal import CRealtime

/// Detects in the kernel's messages when the network has changed so that a connection should be tried: a link has come
/// up, an address has come or gone, or there is a default route.
///
/// Such messages come in bursts, so a change is reported once they have settled, and no more often than ``interval``. A
/// message that repeats what is known, such as an address whose lifetime is renewed, is no change.
public struct NetworkWatch: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// The result of one read from the socket.
        case messages([UInt8])
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        case changed
    }

    /// From the first message of a burst to the output.
    public static let settling = Duration.milliseconds(50)
    /// From one output to the next, at least.
    public static let interval = Duration.milliseconds(250)
    /// Links, and addresses, that are remembered. What does not fit counts as a change each time.
    static let capacity = 256

    private struct Address: Hashable {
        let index: UInt32
        let bytes: [UInt8]
    }

    private var usableLinks: Set<Int32> = []
    private var addresses: Set<Address> = []
    private var lastTold: Instant?
    /// When the pending change is reported.
    public private(set) var nextDeadline: Instant?

    /// Makes one that knows nothing of the network yet.
    public init() {}

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .messages(let bytes):
            // Each of them is noted.
            let isChange = RouteMessage.read(bytes).map { note($0) }.contains(true)
            guard isChange, nextDeadline == nil else { return }
            let settled = now.advanced(by: Self.settling)
            nextDeadline = lastTold.map { max(settled, $0.advanced(by: Self.interval)) } ?? settled
        case .timerFired:
            guard let deadline = nextDeadline, now >= deadline else { return }
            nextDeadline = nil
            lastTold = now
            outbox.append(.changed)
        }
    }

    /// Whether the message is a reason to try.
    private mutating func note(_ message: RouteMessage) -> Bool {
        switch message {
        case .link(let index, isUsable: true):
            return usableLinks.count < Self.capacity ? usableLinks.insert(index).inserted : !usableLinks.contains(index)
        case .link(let index, isUsable: false):
            usableLinks.remove(index)
            return false
        case .addressAdded(let index, let bytes):
            let address = Address(index: index, bytes: bytes)
            return addresses.count < Self.capacity ? addresses.insert(address).inserted : !addresses.contains(address)
        case .addressRemoved(let index, let bytes):
            addresses.remove(Address(index: index, bytes: bytes))
            return true
        case .defaultRouteAdded: return true
        }
    }
}

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

/// A socket for the kernel's messages about changes of the network.
public enum RouteSocket {
    /// Opens a socket from which the messages for ``NetworkWatch`` are read, without blocking.
    ///
    /// - Returns: The descriptor, which the caller closes.
    public static func open() throws(RealtimeError) -> Int32 {
        let descriptor = handset_routes_open()
        guard descriptor >= 0 else {
            throw RealtimeError(doing: "listening to changes of the network (netlink)", errno: -descriptor)
        }
        return descriptor
    }
}
