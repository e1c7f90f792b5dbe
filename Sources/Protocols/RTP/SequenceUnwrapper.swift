/// Turns 16-bit sequence numbers into ones that never wrap.
///
/// A number is assumed to be within 2¹⁵ of the one before it, in both directions; the first one is kept unchanged.
public struct SequenceUnwrapper: Equatable, Sendable {
    private var last: Int64?

    /// Makes an unwrapper that has seen nothing.
    @_noAllocation @_noLocks
    public init() { last = nil }

    /// The extended number. Below zero for a packet that was sent before the first one seen and across a wrap.
    @_noAllocation @_noLocks
    public mutating func unwrap(_ sequenceNumber: UInt16) -> Int64 {
        let value = peek(sequenceNumber)
        last = value
        return value
    }

    /// The result that ``unwrap(_:)`` would have, without recording the number.
    @_noAllocation @_noLocks
    public func peek(_ sequenceNumber: UInt16) -> Int64 {
        guard let last else { return Int64(sequenceNumber) }
        let step = Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: last))
        return last &+ Int64(step)
    }
}
