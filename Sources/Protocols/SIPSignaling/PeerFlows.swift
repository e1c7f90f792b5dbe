public import Core

/// The flows of peers that sent us datagrams and are not the server, by their addresses, with negative numbers.
///
/// Capacity: ``capacity``. The peer that was silent for longest is evicted, but never one that a call uses; if calls
/// use them all, a new peer is ignored. Only requests make a flow: a response belongs to a request of ours, which knows
/// its flow.
public struct PeerFlows: Sendable {
    /// The result for a datagram.
    public enum Admission: Equatable, Sendable {
        /// It belongs to that flow.
        case known(Int)
        /// It begins that flow, which may replace another one.
        case new(Int, evicting: Int?)
        /// It is ignored.
        case refused
    }

    /// How many there may be.
    public static let capacity = 256

    private let capacity: Int
    /// The longest silent first.
    private var peers: [(address: SocketAddress, number: Int)] = []
    private var count = 0

    /// Makes an empty one.
    public init(capacity: Int = Self.capacity) { self.capacity = capacity }

    /// Takes a request or response from that address.
    public mutating func admit(_ peer: SocketAddress, isRequest: Bool, isInUse: (Int) -> Bool) -> Admission {
        if let index = peers.firstIndex(where: { $0.address.isSame(as: peer) }) {
            let known = peers.remove(at: index)
            peers.append(known)
            return .known(known.number)
        }
        guard isRequest else { return .refused }
        var evicted: Int?
        if peers.count >= capacity {
            guard let index = peers.firstIndex(where: { !isInUse($0.number) }) else { return .refused }
            evicted = peers.remove(at: index).number
        }
        count += 1
        peers.append((peer, -count))
        return .new(-count, evicting: evicted)
    }

    /// The flows of those numbers are gone.
    public mutating func forget(where isGone: (Int) -> Bool) { peers.removeAll { isGone($0.number) } }

    /// All numbers.
    public var numbers: [Int] { peers.map(\.number) }
}
