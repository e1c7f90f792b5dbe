import Core

/// A small random generator that gives the same numbers for the same seed, on every machine.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var numbers: SplitMix64

    /// Starts the sequence that belongs to `seed`.
    public init(seed: UInt64) {
        numbers = SplitMix64(seed: seed)
        // The first number of small seeds is left out; the expectations of tests are made with those that follow.
        _ = numbers.next()
    }

    /// The next number of the sequence.
    public mutating func next() -> UInt64 { numbers.next() }
}
