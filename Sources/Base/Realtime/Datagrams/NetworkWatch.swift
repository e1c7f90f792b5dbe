public import Core

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
