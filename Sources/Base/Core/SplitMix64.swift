/// The SplitMix64 generator: the same numbers for the same seed, on every machine. For waits, spreads and synthetic sound; not for
/// secrets.
@frozen
public struct SplitMix64: RandomNumberGenerator, BitwiseCopyable, Sendable {
    /// What is added from one number to the next: 2^64 divided by the golden ratio.
    @inlinable static var step: UInt64 {
        @_noAllocation @_noLocks get { 0x9E37_79B9_7F4A_7C15 }
    }

    @usableFromInline var state: UInt64

    /// Starts the sequence of `seed`.
    @_noAllocation @_noLocks
    @inlinable
    public init(seed: UInt64) { state = seed }

    /// The next number.
    @_noAllocation @_noLocks
    @inlinable
    public mutating func next() -> UInt64 {
        state &+= Self.step
        return Self.mixed(state)
    }

    /// The number at `index` of the sequence of `seed`; the first has the index 1.
    @_noAllocation @_noLocks
    @inlinable
    public static func number(_ index: UInt64, of seed: UInt64) -> UInt64 { mixed(seed &+ index &* step) }

    @_noAllocation @_noLocks
    @inlinable
    static func mixed(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
