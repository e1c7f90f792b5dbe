/// The 96 bits that match a STUN response to its request (RFC 8489 §5).
public struct TransactionID: Hashable, Sendable {
    /// The first 64 bits.
    let high: UInt64
    /// The last 32 bits.
    let low: UInt32

    /// Draws a new one. The generator must be unpredictable to others, because the ID prevents forged answers to
    /// unprotected requests.
    public init(using generator: inout some RandomNumberGenerator) {
        high = generator.next()
        low = UInt32(truncatingIfNeeded: generator.next())
    }

    /// Makes one from its two parts.
    @_noAllocation @_noLocks
    public init(high: UInt64, low: UInt32) {
        self.high = high
        self.low = low
    }

    /// The twelve bytes in network order.
    public var bytes: [UInt8] { high.networkBytes + low.networkBytes }
}
