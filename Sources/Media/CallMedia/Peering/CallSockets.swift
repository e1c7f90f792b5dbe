internal import Realtime

/// The sockets of a call's own, on one port, by their slots: one for each family of addresses that the machine has.
public struct CallSockets: Equatable, BitwiseCopyable, Sendable {
    private let ipv4: Int
    private let ipv6: Int

    /// Says which slots they have; nil where there is none.
    public init(ipv4: Int?, ipv6: Int?) {
        self.ipv4 = ipv4 ?? -1
        self.ipv6 = ipv6 ?? -1
    }

    /// The slot of the socket for a family; nil if there is none.
    @_noAllocation @_noLocks
    public func slot(isIPv6: Bool) -> Int? {
        let slot = isIPv6 ? ipv6 : ipv4
        return slot >= 0 ? slot : nil
    }

    /// Whether a slot is one of theirs.
    @_noAllocation @_noLocks
    public func contains(_ slot: Int) -> Bool { slot >= 0 && (slot == ipv4 || slot == ipv6) }

    /// Their slots.
    public var slots: [Int] { [ipv4, ipv6].filter { $0 >= 0 } }
}
