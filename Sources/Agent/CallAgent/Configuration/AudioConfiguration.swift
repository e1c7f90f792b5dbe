internal import AudioDevices
internal import ConfigReader
internal import MediaEngine
internal import Speakerphone

/// The sound card of a device whose behaviour is `card`, and what is done to sound on its way.
public struct AudioConfiguration: Sendable, Equatable {
    /// The card to play on, by name or identity; nil for none.
    public var playback: String? = "default"
    /// The card to capture from, by name or identity; nil for none.
    public var capture: String? = "default"
    /// The time between a card's wake-ups to ask for, in ms, 1…100.
    public var periodMilliseconds = 10
    /// Takes the loudspeaker's sound out of the microphone's.
    public var cancelsEcho = true
    /// The longest echo that is taken out, in ms, 32…500.
    public var echoTailMilliseconds = 128
    /// Lowers steady noise.
    public var suppressesNoise = true
    /// Brings near and far talkers to one level.
    public var controlsGain = true
    /// Volume of the loudspeaker, in dB, −60…20.
    public var volumeDB = 0.0
    /// Volume of the microphone after all processing, in dB, −60…20.
    public var microphoneDB = 0.0
    /// The microphone is muted from the beginning.
    public var isMuted = false
    /// Sounds ring, ring-back and busy tones.
    public var soundsTones = true
    /// Whose tones: an ISO 3166 code; without one, what ITU-T E.180 recommends.
    public var country = ""
    /// What becomes of a call while another has the card.
    public var severalCalls = SeveralCalls.hold

    /// What becomes of a call while another has the card.
    public enum SeveralCalls: String, CaseIterable, Sendable {
        /// The new one gets it, and the other waits in silence until it is over.
        case hold
        /// All are heard together, and hear each other.
        case mix
        /// Callers are told that we are busy, and calls of ours fail.
        case refuse
    }

    /// The usual card, with all processing on.
    public init() {}

    /// - Parameter section: Where it stands; what it leaves out stays as it is.
    mutating func read(_ section: ConfigSection, _ problems: inout [ConfigProblem]) {
        let device = section.string("device", &problems)
        playback = Self.name(section.string("playback", &problems) ?? device ?? "default")
        capture = Self.name(section.string("capture", &problems) ?? device ?? "default")
        periodMilliseconds = section.integer("period_ms", in: 1...100, &problems) ?? periodMilliseconds
        cancelsEcho = section.bool("echo_cancellation", &problems) ?? cancelsEcho
        echoTailMilliseconds = section.integer("echo_tail_ms", in: 32...500, &problems) ?? echoTailMilliseconds
        suppressesNoise = section.bool("noise_suppression", &problems) ?? suppressesNoise
        controlsGain = section.bool("gain_control", &problems) ?? controlsGain
        volumeDB = section.number("volume_db", in: -60...20, &problems) ?? volumeDB
        microphoneDB = section.number("microphone_db", in: -60...20, &problems) ?? microphoneDB
        isMuted = section.bool("muted", &problems) ?? isMuted
        soundsTones = section.bool("tones", &problems) ?? soundsTones
        country = section.string("country", &problems) ?? country
        severalCalls = section.enumeration("several_calls", of: SeveralCalls.self, &problems) ?? severalCalls
        section.rejectUnknownKeys(
            known: [
                "device", "playback", "capture", "period_ms", "echo_cancellation", "echo_tail_ms", "noise_suppression",
                "gain_control", "volume_db", "microphone_db", "muted", "tones", "country", "several_calls",
            ], &problems)
    }

    /// A card's name as people write it: `none` for none.
    public static func name(_ text: String) -> String? { text == "none" ? nil : text }

    /// What a media engine is to use; nil without any card.
    ///
    /// - Parameter realtimePriority: The card's thread's, above the media workers'; nil for none.
    func sound(realtimePriority: Int32?) -> CallSound? {
        guard playback != nil || capture != nil else { return nil }
        var device = AudioDeviceConfiguration(playback: playback, capture: capture)
        device.periodMilliseconds = periodMilliseconds
        device.realtimePriority = realtimePriority
        var sound = CallSound(device)
        sound.processing.echoCancellation = cancelsEcho
        sound.processing.echoTailMilliseconds = echoTailMilliseconds
        sound.processing.noiseSuppression = suppressesNoise
        sound.processing.gainControl = controlsGain
        sound.volumeDB = volumeDB
        sound.microphoneDB = microphoneDB
        sound.isMuted = isMuted
        sound.country = country
        sound.sharing = severalCalls == .mix ? .mix : .hold
        return sound
    }
}
