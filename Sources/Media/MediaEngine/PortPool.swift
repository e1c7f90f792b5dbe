public import Core
internal import CallMedia
internal import Realtime
internal import Synchronization

/// The UDP ports of calls without ICE: each call has one of its own, which rests for a minute afterwards.
///
/// Without protection a port is all that says which call a packet belongs to, and the peer of a call that has ended may send
/// for a while yet: to a port that rests, or to one that no socket has. A port is chosen at random, so that the next one
/// cannot be guessed. Only if all ports of a range are in use or rest, the one that has rested longest is taken earlier: otherwise
/// short calls, one after the other, would keep out all others.
struct PortPool: Sendable {
    /// How long a port rests.
    static let rest = Duration.seconds(60)

    /// Nil leaves the choice to the system.
    let range: ClosedRange<UInt16>?
    private var free: [UInt16]
    /// Those that rest, the one that has rested longest first.
    private var resting: [(port: UInt16, until: Instant)] = []

    init(_ range: ClosedRange<UInt16>?) {
        self.range = range
        free = range.map(Array.init) ?? []
    }

    /// Takes a port of the range.
    ///
    /// - Returns: Nil if calls have all of them.
    mutating func take(at now: Instant, using generator: inout some RandomNumberGenerator) -> UInt16? {
        endRests(at: now)
        if free.isEmpty { return resting.isEmpty ? nil : resting.removeFirst().port }
        let index = Int.random(in: free.indices, using: &generator)
        free.swapAt(index, free.count - 1)
        return free.removeLast()
    }

    /// A call has no use for its port any more.
    mutating func giveBack(_ port: UInt16, at now: Instant) {
        endRests(at: now)
        resting.append((port, now.advanced(by: Self.rest)))
    }

    /// Whether a port that the system has chosen rests.
    mutating func isResting(_ port: UInt16, at now: Instant) -> Bool {
        endRests(at: now)
        return resting.contains { $0.port == port }
    }

    private mutating func endRests(at now: Instant) {
        let ended = resting.prefix { $0.until <= now }
        guard !ended.isEmpty else { return }
        if range != nil { free += ended.map(\.port) }
        resting.removeFirst(ended.count)
    }
}

/// The ports of an engine's calls, for all its threads but the media threads.
final class PortBook: Sendable {
    private let ports: Mutex<PortPool>
    let range: ClosedRange<UInt16>?

    init(_ range: ClosedRange<UInt16>?) {
        self.range = range
        ports = Mutex(PortPool(range))
    }

    /// Takes a port of the range; nil if calls have all of them.
    func take() -> PortLease? {
        var generator = SystemRandomNumberGenerator()
        return ports.withLock { $0.take(at: MonotonicClock.now, using: &generator) }.map { PortLease($0, of: self) }
    }

    /// Notes that a call has a port that the system has chosen; nil if it rests.
    func adopt(_ port: UInt16) -> PortLease? {
        ports.withLock { $0.isResting(port, at: MonotonicClock.now) } ? nil : PortLease(port, of: self)
    }

    /// The same of a port that rests, because the system has given no other.
    func adoptEarly(_ port: UInt16) -> PortLease { PortLease(port, of: self) }

    fileprivate func giveBack(_ port: UInt16) { ports.withLock { $0.giveBack(port, at: MonotonicClock.now) } }
}

/// A port that a call has, until its sockets are closed; then it rests.
final class PortLease: Sendable {
    let port: UInt16
    private let book: PortBook

    fileprivate init(_ port: UInt16, of book: PortBook) {
        self.port = port
        self.book = book
    }

    deinit { book.giveBack(port) }
}

/// A call's own port, with its sockets on a worker, from before the call's description names it.
public struct MediaPort: Sendable {
    let worker: Int
    let sockets: CallSockets
    /// What the sockets are bound to, one for each family of addresses; the hosts may be the wildcard addresses.
    public let addresses: [SocketAddress]
}
