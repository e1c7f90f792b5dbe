internal import Core

/// Whether packets are lost on the way and sent again (RFC 4585 §6.2.1), so that datagrams are handled as they come, and when the
/// missing ones are asked for.
struct RepairWatch: BitwiseCopyable, Sendable {
    /// Frames for which datagrams are still handled as they come.
    private var framesLeft = 0
    /// When packets that are missing are to be asked for, if that is before the next frame.
    private(set) var requestsDueAt: Instant?

    /// How long datagrams are handled as they come after a packet was lost, either way: 2 s. A request that waits for the
    /// next frame, and the packet that answers it, take up to 40 ms longer. A worker that waits for its socket wakes for
    /// each packet, which is why this ends with the losses.
    private static var nanoseconds: Int64 { @_noAllocation @_noLocks get { 2_000_000_000 } }

    @_noAllocation @_noLocks
    init() {}

    /// Whether datagrams are handled as they come.
    var isActive: Bool {
        @_noAllocation @_noLocks get { framesLeft > 0 }
    }

    /// A packet was lost: begins, or begins again.
    @_noAllocation @_noLocks
    mutating func begin(framePeriodNanoseconds: Int64) { framesLeft = Int(Self.nanoseconds / framePeriodNanoseconds) }

    /// A frame was run.
    @_noAllocation @_noLocks
    mutating func noteFrame() { framesLeft = max(framesLeft &- 1, 0) }

    /// Sets when packets are to be asked for next.
    @_noAllocation @_noLocks
    mutating func schedule(_ due: Instant?) { requestsDueAt = due }

    /// Whether missing packets are to be asked for before the next frame.
    @_noAllocation @_noLocks
    func areRequestsDue(at now: Instant) -> Bool {
        guard let due = requestsDueAt else { return false }
        return due.nanoseconds <= now.nanoseconds
    }
}
