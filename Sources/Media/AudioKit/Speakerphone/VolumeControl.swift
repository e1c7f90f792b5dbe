internal import Glibc

/// Volume and mute without clicks: changes take 20 ms.
public struct VolumeControl: Equatable, Sendable {
    /// The volume that was asked for, in dB: −60…20.
    public private(set) var gainDB = 0.0
    /// Nothing passes.
    public private(set) var isMuted = false
    private var target: Float = 1
    private var current: Float = 1
    private var step: Float = 0
    private static let rampSamples: Float = 960

    /// Full volume, not muted.
    public init() {}

    /// Sets the volume; beyond −60…20 dB it is limited. Not for a media thread's every frame, but safe there.
    @_noAllocation @_noLocks
    public mutating func set(gainDB: Double) {
        self.gainDB = min(20, max(-60, gainDB))
        aim()
    }

    /// Mutes or unmutes.
    @_noAllocation @_noLocks
    public mutating func set(isMuted: Bool) {
        self.isMuted = isMuted
        aim()
    }

    // pow computes, and does nothing else.
    @_semantics("no_performance_analysis") @inline(__always)
    private mutating func aim() {
        target = isMuted ? 0 : Float(pow(10, gainDB / 20))
        step = (target - current) / Self.rampSamples
    }

    /// Applies the volume in place. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func apply(_ samples: inout MutableSpan<Int16>) {
        if current == target, current == 1 { return }
        for index in 0..<samples.count {
            if current != target {
                current += step
                if (step > 0) == (current > target) || step == 0 { current = target }
            }
            let value = Float(samples[index]) * current
            samples[index] = Int16(max(-32_768, min(32_767, value)))
        }
    }
}
