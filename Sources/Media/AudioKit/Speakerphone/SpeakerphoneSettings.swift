// Speakerphone: what makes a loudspeaker and a microphone a telephone: echo, noise, levels, tones and several calls.

/// The processing of captured sound. Each part can be switched during a call.
public struct SpeakerphoneSettings: BitwiseCopyable, Equatable, Sendable {
    /// Takes out of the captured sound what the loudspeaker put there.
    public var echoCancellation = true
    /// Lowers steady noise.
    public var noiseSuppression = true
    /// Brings near and far talkers to one level.
    public var gainControl = true
    /// Longest echo that is cancelled, from the direct sound on, in milliseconds: 32…500. The room's reverberation, not
    /// the card's delay, which is found and taken out by itself. Longer costs more, and adapts slower.
    public var echoTailMilliseconds = 128
    /// Most that steady noise is lowered by, in dB: 0…40.
    public var noiseSuppressionDB = 18
    /// Most that the gain control amplifies, in dB: 0…30.
    public var maximumGainDB = 18

    /// The usual: all on.
    public init() {}

    var hasAny: Bool {
        @_noAllocation @_noLocks get { echoCancellation || noiseSuppression || gainControl }
    }
}

/// The library refused to work.
public struct SpeakerphoneError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was to be made.
    public let what: String

    /// The error, for a person.
    public var description: String {
        "cannot make the \(what) of speexdsp: it gave no reason, and lack of memory is the only one it has. "
            + "Free some, or switch that part of the speakerphone off."
    }
}

/// How well it goes.
public struct SpeakerphoneStatistics: BitwiseCopyable, Equatable, Sendable {
    /// Echo at the microphone against what was played, in dB, below 0 as a rule: the coupling. nil while nothing plays.
    public var echoCouplingDB: Double?
    /// Echo return loss enhancement in dB, over the last seconds in which the far end spoke, without the amplification
    /// of gain control. Speech of the near end lowers it.
    public var echoReturnLossEnhancementDB: Double?
    /// Delay from the reference to its echo, in samples, if it has been found. A card's reference is 2 ms early.
    public var echoDelaySamples: Int?
    /// How often the reference was moved because that delay had changed.
    public var realignments = 0
    /// How much faster the capturing clock is than the playing one, in ppm, estimated from the echo.
    public var driftPPM = 0.0
    /// Frames of 10 ms processed.
    public var frames = 0

    /// Of nothing yet.
    public init() {}
}
