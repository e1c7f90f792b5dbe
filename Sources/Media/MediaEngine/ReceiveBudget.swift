/// How many datagrams a worker reads in one turn, divided among the sockets that have some, so that a flood delays no frame by
/// much and no socket keeps another from being read.
///
/// Sockets are read in rounds; a socket from which a round took all that it might have may have more, and is in the next
/// round. What a turn leaves waits in the kernel for the next one.
struct ReceiveBudget {
    /// Datagrams of one turn: what can be read in a quarter of the shortest time between two turns with frames, and above the
    /// 300 in 20 ms of a worker with 256 calls.
    static var perTurn: Int {
        @_noAllocation @_noLocks get { Int(shortestTurnNanoseconds / 4 / datagramNanoseconds) }
    }
    /// A turn of a sound card's microphone.
    private static var shortestTurnNanoseconds: Int64 { @_noAllocation @_noLocks get { 10_000_000 } }
    /// What a datagram costs at most that is read, checked and refused; on a slow machine.
    private static var datagramNanoseconds: Int64 { @_noAllocation @_noLocks get { 5_000 } }

    /// A call's own socket has one datagram or two, and each that a read allows costs something, whether it is there or not.
    private static var firstShare: Int { @_noAllocation @_noLocks get { 8 } }

    private(set) var left: Int
    private var isFirstRound = true
    private var share = 0

    @_noAllocation @_noLocks
    init() { left = Self.perTurn }

    /// Begins a round in which so many sockets are read.
    @_noAllocation @_noLocks
    mutating func beginRound(sockets: Int) {
        share = max(1, left / max(1, sockets))
        if isFirstRound { share = min(share, Self.firstShare) }
        isFirstRound = false
    }

    /// How many datagrams the next socket of the round may give, for one read; 0 when the turn has had all of its.
    @_noAllocation @_noLocks
    func limit(ofBatch capacity: Int) -> Int { min(min(share, left), capacity) }

    /// A socket has given so many.
    @_noAllocation @_noLocks
    mutating func spend(_ count: Int) { left -= count }
}
