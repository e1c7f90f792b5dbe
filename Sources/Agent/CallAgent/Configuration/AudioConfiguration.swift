public import AudioDevices
internal import ConfigReader
internal import MediaEngine
internal import AudioKit

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
    /// Where mute and volume are kept that were changed while the device ran; nil for beside
    /// ``AccountConfiguration/sessionFile``, if there is one.
    public var settingsFile: String?
    /// Sounds ring, ring-back and busy tones.
    public var soundsTones = true
    /// The country of the tones, as an ISO 3166 code; without one, those of ITU-T E.180.
    public var country = ""
    /// What becomes of a call while another has the card.
    public var severalCalls = SeveralCalls.hold

    /// What becomes of a call while another has the card.
    public enum SeveralCalls: String, CaseIterable, Sendable {
        /// The new one gets it, and the other waits in silence until that one ends.
        case hold
        /// All are heard together, and hear each other.
        case mix
        /// Incoming calls are rejected as busy, and outgoing calls fail.
        case refuse
    }

    /// The usual card, with all processing on.
    public init() {}

    /// The keys of the section `audio`.
    struct Keys: ConfigKeys {
        private static let usual = AudioConfiguration()

        let device = ConfigKey.string(
            "device", "the card for both directions: a name, `by-id/…`, `by-path/…`, or `none`"
        )
        .defaulting(to: "default")
        let playback = ConfigKey.string("playback", "the card to play on").unset("that of `device`")
        let capture = ConfigKey.string("capture", "the card to capture from").unset("that of `device`")
        let period = ConfigKey.integer(
            "period_ms", in: 1...100, unit: "ms", "time between a card's wake-ups to request; shorter is less delay"
        ).defaulting(to: usual.periodMilliseconds)
        let severalCalls = ConfigKey.choice(
            "several_calls", of: SeveralCalls.self,
            "a call while another has the card: it gets the card and the other waits, all are mixed, or it is refused"
        ).defaulting(to: usual.severalCalls)
        let echoCancellation = ConfigKey.bool(
            "echo_cancellation", "take the loudspeaker's sound out of the microphone's"
        ).defaulting(to: usual.cancelsEcho)
        let echoTail = ConfigKey.integer(
            "echo_tail_ms", in: 32...500, unit: "ms",
            "the longest echo that is taken out: the room, not the card's delay; with `profile: pi` 64"
        ).defaulting(to: usual.echoTailMilliseconds)
        let noiseSuppression = ConfigKey.bool("noise_suppression", "lower steady noise")
            .defaulting(to: usual.suppressesNoise)
        let gainControl = ConfigKey.bool("gain_control", "bring near and far talkers to one level")
            .defaulting(to: usual.controlsGain)
        let volume = ConfigKey.number("volume_db", in: -60...20, unit: "dB", "volume of the loudspeaker")
            .defaulting(to: usual.volumeDB)
        let microphone = ConfigKey.number(
            "microphone_db", in: -60...20, unit: "dB", "volume of the microphone after all processing"
        ).defaulting(to: usual.microphoneDB)
        let muted = ConfigKey.bool("muted", "the microphone is muted from the beginning").defaulting(to: usual.isMuted)
        let settingsFile = ConfigKey.outputFile(
            "settings_file", "keeps mute and volume as `handset control` has set them, for the next start"
        ).unset("`account.session_file` with `.sound` after it; without that nothing is kept")
        let tones = ConfigKey.bool("tones", "sound ring, ring-back and busy tones").defaulting(to: usual.soundsTones)
        let country = ConfigKey<String>.parsed("country", "text", "whose tones: an ISO 3166 code", show: \.self) {
            text throws(ConfigValueFault) in
            if CallToneSet.isCountry(text) { return text }
            throw ConfigValueFault("\"\(text.prefix(40))\" is not an ISO 3166 code of a country, such as DE, GB or US")
        }.unset("those of ITU-T E.180")
    }

    /// - Parameter section: The section; missing keys leave their values unchanged.
    mutating func read(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let device = section.value(\.device, &problems)
        playback = Self.name(section.value(\.playback, &problems) ?? device)
        capture = Self.name(section.value(\.capture, &problems) ?? device)
        section.read(\.period, into: &periodMilliseconds, &problems)
        section.read(\.echoCancellation, into: &cancelsEcho, &problems)
        section.read(\.echoTail, into: &echoTailMilliseconds, &problems)
        section.read(\.noiseSuppression, into: &suppressesNoise, &problems)
        section.read(\.gainControl, into: &controlsGain, &problems)
        section.read(\.volume, into: &volumeDB, &problems)
        section.read(\.microphone, into: &microphoneDB, &problems)
        section.read(\.muted, into: &isMuted, &problems)
        settingsFile = section.value(\.settingsFile, &problems)
        section.read(\.tones, into: &soundsTones, &problems)
        section.read(\.country, into: &country, &problems)
        section.read(\.severalCalls, into: &severalCalls, &problems)
    }

    /// A card's name as people write it: `none` for none.
    public static func name(_ text: String) -> String? { text == "none" ? nil : text }

    /// Describes why the configured card cannot be opened.
    public func error(_ failure: CardFailure) -> AudioDeviceError {
        let name = failure.direction == .playback ? playback ?? capture : capture ?? playback
        return AudioDeviceError(device: name ?? "none", direction: failure.direction, errno: failure.errno)
    }

    /// The settings for a media engine; nil without any card.
    ///
    /// - Parameter realtimePriority: The priority of the card's thread, above the media workers'; nil for none.
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

extension AccountsConfiguration {
    /// Warns of the sound card of calls if it cannot be opened now. Opens it for a moment.
    ///
    /// - Parameter root: What the accounts were read from.
    public func cardWarnings(in root: ConfigSection) -> [ConfigProblem] {
        guard let audio = accounts.first(where: { $0.configuration.sound != nil })?.configuration.audio else {
            return []
        }
        var ignored: [ConfigProblem] = []  // Reported where the sections are read.
        let root = KeyedSection<DeviceConfiguration.Keys>.part(of: root)
        let section = root.value(\.audio, &ignored)
        let names = [(audio.playback, SoundDirection.playback), (audio.capture, .capture)]
        let failures = names.compactMap { name, direction in
            name.flatMap { SoundCatalogue.failure(opening: $0, for: direction) }
        }
        // The device itself may have it, or another program for a while.
        guard let error = failures.first(where: { $0.code != .busy }) else { return [] }
        let message = "\(error) Calls fail until it can be opened. \(CardDirectory().summary)"
        guard let section else { return [root.warning(\.behaviour, message)] }
        let own = error.direction == .playback ? \AudioConfiguration.Keys.playback : \.capture
        return [section.has(own) ? section.warning(own, message) : section.warning(\.device, message)]
    }
}
