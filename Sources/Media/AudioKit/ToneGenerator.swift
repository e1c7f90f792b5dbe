internal import Glibc

/// Makes one or two sine tones, without drift however long it runs.
///
/// Each tone is a vector turned by a fixed angle for each sample and brought back to its length for each block, in
/// double precision: the frequency is exact to 1 in 10¹⁵.
public struct ToneGenerator: Equatable, Sendable {
    private var first: Oscillator
    private var second: Oscillator

    /// Makes a generator of one tone.
    ///
    /// - Parameters:
    ///   - frequencyHz: 0…24 000.
    ///   - levelDBFS: Level of the tone; 0 is the loudest sine that fits. Above that it is limited to 0.
    public init(frequencyHz: Double, levelDBFS: Double = -12) {
        first = Oscillator(frequencyHz, levelDBFS)
        second = Oscillator(0, -.infinity)
    }

    /// Makes a generator of two tones at once, such as DTMF's; each has the level `levelDBFS`.
    public init(frequenciesHz: (Double, Double), levelDBFS: Double = -12) {
        first = Oscillator(frequenciesHz.0, levelDBFS)
        second = Oscillator(frequenciesHz.1, levelDBFS)
    }

    /// Fills `samples` with the next piece of the tone. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func fill(_ samples: inout MutableSpan<Int16>) {
        for index in 0..<samples.count {
            let value = first.next() + second.next()
            // Two tones of 0 dBFS do not fit together; adding one half and cutting rounds to nearest.
            let limited = max(-32_767, min(32_767, value))
            samples[index] = Int16(limited < 0 ? limited - 0.5 : limited + 0.5)
        }
        first.normalise()
        second.normalise()
    }

    private struct Oscillator: Equatable {
        private var x = 1.0
        private var y = 0.0
        private let stepX: Double
        private let stepY: Double
        private let amplitude: Double

        init(_ frequencyHz: Double, _ levelDBFS: Double) {
            let angle = 2 * Double.pi * frequencyHz / Double(AudioFormat.sampleRate)
            stepX = cos(angle)
            stepY = sin(angle)
            amplitude = 32_767 * min(1, pow(10, levelDBFS / 20))
        }

        @_noAllocation @_noLocks
        mutating func next() -> Double {
            let value = y * amplitude
            (x, y) = (x * stepX - y * stepY, x * stepY + y * stepX)
            return value
        }

        /// One step of Newton's method towards length 1.
        @_noAllocation @_noLocks
        mutating func normalise() {
            let correction = (3 - (x * x + y * y)) / 2
            x *= correction
            y *= correction
        }
    }
}

/// Silence, for where there is nothing to play.
public enum Silence {
    /// Fills `samples` with zeros. Real-time safe.
    @_noAllocation @_noLocks
    public static func fill(_ samples: inout MutableSpan<Int16>) {
        for index in 0..<samples.count { samples[index] = 0 }
    }
}
