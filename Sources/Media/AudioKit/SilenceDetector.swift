/// Distinguishes sound from noise, at 8 kHz, and decides when to send a description of the noise (RFC 3389 §5): at the
/// beginning of a silence, when the noise changes, and twice a second in case a description is lost.
///
/// It errs towards sound: loud input, a rise above the noise by 6 dB, and tones count as sound, and so does the
/// following fifth of a second, in which words fade.
public struct SilenceDetector: Sendable {
    /// What to do with a frame.
    public enum Decision: Sendable {
        /// Send it.
        case sound
        /// Send this instead.
        case noise(ComfortNoise)
        /// Send nothing.
        case nothing
    }

    /// The noise, as mean square: what is quietest lately.
    private var floor: Double = 0.000_01 * 32_767 * 32_767
    /// Mean square of the latest frames of noise.
    private var level: Double = 0
    /// Milliseconds that still count as sound.
    private var hangover = SilenceDetector.longestHangover
    private var isSilent = false
    private var toldAttenuation = 127
    private var millisecondsSinceTold = 0

    private static var longestHangover: Int { @_noAllocation @_noLocks get { 200 } }
    /// 6 dB above the noise.
    private static var soundRatio: Double { @_noAllocation @_noLocks get { 4 } }
    /// Noise is never taken to be louder than 35 dB below overload, nor quieter than 66: G.711's last
    /// steps make as much.
    private static var loudestFloor: Double { @_noAllocation @_noLocks get { 0.000_316 * 32_767 * 32_767 } }
    private static var faintestFloor: Double { @_noAllocation @_noLocks get { 0.000_000_25 * 32_767 * 32_767 } }
    /// The noise is followed upwards by 3 dB a second.
    private static var risePerMillisecond: Double { @_noAllocation @_noLocks get { 0.000_69 } }
    /// Linear prediction removes 14 dB of it: a tone.
    private static var tonality: Float { @_noAllocation @_noLocks get { 0.04 } }
    private static var tellInterval: Int { @_noAllocation @_noLocks get { 500 } }
    /// The least time between two descriptions of changes.
    private static var changeInterval: Int { @_noAllocation @_noLocks get { 100 } }
    /// Decibels that make another noise.
    private static var change: Int { @_noAllocation @_noLocks get { 3 } }
    /// Coefficients in a description: enough for the noise spectrum of a room, in a packet of nine bytes.
    private static var order: Int { @_noAllocation @_noLocks get { 8 } }

    /// Makes a detector in its initial state.
    @_noAllocation @_noLocks
    public init() {}

    /// Takes the next frame: 10 to 60 ms at 8 kHz. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func take(_ samples: borrowing Span<Int16>) -> Decision {
        guard samples.count > 0 else { return .nothing }
        let milliseconds = samples.count / 8
        var sum = 0.0
        for index in 0..<samples.count { sum += Double(samples[index]) * Double(samples[index]) }
        let power = sum / Double(samples.count)
        var noise = ComfortNoise(measuring: samples, order: Self.order)
        let isSound = power > floor * Self.soundRatio || power > 4 * Self.faintestFloor && noise.residue < Self.tonality
        follow(power, milliseconds)
        if isSound {
            hangover = Self.longestHangover
            isSilent = false
            level = 0
            return .sound
        }
        // The time directly after a word is the word's fading end, not yet the noise.
        let isFading = hangover > Self.longestHangover / 2
        if !isFading { level = level == 0 ? power : level + (power - level) / 8 }
        if hangover > 0 {
            hangover -= milliseconds
            return .sound
        }
        noise.attenuation = ComfortNoise.attenuation(level)
        return tell(noise, milliseconds)
    }

    @_noAllocation @_noLocks
    private mutating func follow(_ power: Double, _ milliseconds: Int) {
        if power < floor {
            floor += (power - floor) / 4
        } else {
            floor *= 1 + Self.risePerMillisecond * Double(milliseconds)
        }
        floor = max(Self.faintestFloor, min(floor, Self.loudestFloor))
    }

    @_noAllocation @_noLocks
    private mutating func tell(_ noise: ComfortNoise, _ milliseconds: Int) -> Decision {
        millisecondsSinceTold += milliseconds
        let isOther =
            abs(Int(noise.attenuation) - toldAttenuation) >= Self.change
            && millisecondsSinceTold >= Self.changeInterval
        guard !isSilent || isOther || millisecondsSinceTold >= Self.tellInterval else { return .nothing }
        isSilent = true
        millisecondsSinceTold = 0
        toldAttenuation = Int(noise.attenuation)
        return .noise(noise)
    }
}
