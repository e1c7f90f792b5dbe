public import Core

/// A packet that later ones have overtaken.
public struct MissingPacket: Equatable, Sendable, BitwiseCopyable {
    /// Its sequence number, extended.
    public var number: Int64
    /// The number in its header.
    public var sequenceNumber: UInt16 {
        @_noAllocation @_noLocks get { UInt16(truncatingIfNeeded: number) }
    }
    /// The pull that needs it.
    public var dueAt: Instant

    /// Names a packet.
    @_noAllocation @_noLocks
    public init(number: Int64, dueAt: Instant) {
        self.number = number
        self.dueAt = dueAt
    }
}

/// Distinguishes lost packets from overtaken ones, so that the lost ones can be requested again.
struct LossDetector {
    /// A packet that comes within this time of the one that overtook it was never lost: 2 ms. Paths with several queues
    /// or links swap neighbours by less.
    static var overtakingNanoseconds: Int64 { @_noAllocation @_noLocks get { 2_000_000 } }
    /// Packets before the newest that are looked at.
    private static var mostMissing: Int64 { @_noAllocation @_noLocks get { 64 } }

    /// When the newest packet came that overtook one that is not missing yet.
    private var overtakenAt: Int64?

    @_noAllocation @_noLocks
    init() {}

    /// When a packet that has just been overtaken counts as missing; nil if there is none. As of the last time that all
    /// missing packets were asked about.
    var nextMissingAt: Instant? {
        @_noAllocation @_noLocks get {
            guard let overtakenAt else { return nil }
            return Instant(nanoseconds: overtakenAt &+ Self.overtakingNanoseconds)
        }
    }

    /// The next packet that has not come though a later one has, and that later one.
    ///
    /// - Parameters:
    ///   - number: The first that is asked about; `.min` for all.
    ///   - start: The packet that is to be played next, and `end` one past the newest.
    @_noAllocation @_noLocks
    mutating func nextMissing(
        from number: Int64, in queue: borrowing PacketQueue, from start: Int64, to end: Int64, at now: Instant
    ) -> (sequence: Int64, after: PacketStore.Entry)? {
        if number == .min { overtakenAt = nil }
        var candidate = max(number, max(start, end &- Self.mostMissing))
        while candidate < end {
            if !queue.isSoundless(candidate), !queue.contains(candidate) {
                guard let after = queue.first(from: candidate) else { return nil }
                if now.nanoseconds &- after.arrivalNanoseconds >= Self.overtakingNanoseconds {
                    return (candidate, after)
                }
                overtakenAt = after.arrivalNanoseconds
            }
            candidate &+= 1
        }
        return nil
    }
}
