/// How many datagrams a worker reads in one turn, divided among the readable sockets, so that a flood hardly delays
/// frames and no socket starves another.
///
/// Sockets are read in rounds. A socket that gave as many datagrams as a round allows may have more, and is in the next
/// round. Datagrams that a turn leaves wait in the kernel for the next turn.
struct ReceiveBudget {
    /// Datagrams of one turn: what can be read in a quarter of the shortest time between two turns with frames, and above the
    /// 300 in 20 ms of a worker with 256 calls.
    static var perTurn: Int {
        @_noAllocation @_noLocks get { Int(shortestTurnNanoseconds / 4 / datagramNanoseconds) }
    }
    /// Interval of a sound card's microphone ticks.
    static var shortestTurnNanoseconds: Int64 { @_noAllocation @_noLocks get { 10_000_000 } }
    /// The highest cost of a datagram that is read, checked and refused, on a slow machine.
    static var datagramNanoseconds: Int64 { @_noAllocation @_noLocks get { 5_000 } }

    /// A call's own socket has one datagram or two, and each that a read allows costs something, whether it is there or not.
    private static var firstShare: Int { @_noAllocation @_noLocks get { 8 } }

    private(set) var left: Int
    private var isFirstRound = true
    private var share = 0

    @_noAllocation @_noLocks
    init() { left = Self.perTurn }

    /// Begins a round in which `sockets` sockets are read.
    @_noAllocation @_noLocks
    mutating func beginRound(sockets: Int) {
        share = max(1, left / max(1, sockets))
        if isFirstRound { share = min(share, Self.firstShare) }
        isFirstRound = false
    }

    /// How many datagrams may be read from the next socket of the round; 0 when the turn's budget is used up.
    @_noAllocation @_noLocks
    func limit(ofBatch capacity: Int) -> Int { min(min(share, left), capacity) }

    /// Notes datagrams that a socket has returned.
    @_noAllocation @_noLocks
    mutating func spend(_ count: Int) { left -= count }
}
