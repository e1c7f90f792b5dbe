/// Turns 32-bit RTP timestamps into ones that never wrap.
///
/// A timestamp is assumed to be within 2³¹ ticks (12 hours at 48 kHz) of the one before it, in both directions.
public struct TimestampUnwrapper: Equatable, Sendable {
    private var last: Int64?

    /// Makes an unwrapper that has seen nothing.
    @_noAllocation @_noLocks
    public init() { last = nil }

    /// The extended timestamp, in ticks. Below zero for one from before the first and across a wrap.
    @_noAllocation @_noLocks
    public mutating func unwrap(_ timestamp: UInt32) -> Int64 {
        let value = peek(timestamp)
        last = value
        return value
    }

    /// The result that ``unwrap(_:)`` would have, without recording the timestamp.
    @_noAllocation @_noLocks
    public func peek(_ timestamp: UInt32) -> Int64 {
        guard let last else { return Int64(timestamp) }
        let step = Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: last))
        return last &+ Int64(step)
    }
}
