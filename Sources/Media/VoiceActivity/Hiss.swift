/// Noise at −79 dBFS that is added to what the network hears: no line that it knows is silent to the bit, as one with
/// discontinuous transmission or a muted microphone is.
struct Hiss: BitwiseCopyable, Sendable {
    private var state: UInt32 = 1

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func next() -> Float {
        // Numerical Recipes' linear congruential generator.
        state = state &* 1_664_525 &+ 1_013_904_223
        return Float(Int32(bitPattern: state)) * (6.0 / 32_768 / 2_147_483_648)
    }
}
