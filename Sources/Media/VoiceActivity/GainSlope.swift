/// Applies a factor to sound, and goes from one to the next within 5 ms.
struct GainSlope: Equatable, Sendable {
    private let step: Float
    private(set) var gain: Float = 1

    /// - Parameter rateHz: Samples a second.
    @_noAllocation @_noLocks
    init(rateHz: Int) { step = 200 / Float(rateHz) }

    /// Begins with this factor at the next sample.
    @_noAllocation @_noLocks
    mutating func restart(at factor: Float) { gain = factor }

    @_noAllocation @_noLocks
    mutating func apply(_ target: Float, to frame: inout MutableSpan<Int16>) {
        // Sound at full level stays as it is, to the bit.
        guard gain != 1 || target != 1 else { return }
        for index in 0..<frame.count {
            gain = gain < target ? min(target, gain + step) : max(target, gain - step)
            // No factor is above 1.
            frame[index] = Int16(Float(frame[index]) * gain)
        }
    }
}
