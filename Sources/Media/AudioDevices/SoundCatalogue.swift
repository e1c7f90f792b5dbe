internal import CALSA
internal import Glibc

/// The PCMs for playback and capture, and their capabilities.
public enum SoundCatalogue {
    /// Something that libasound can open by name.
    public struct Entry: Equatable, Sendable {
        /// The name, as a configuration wants it.
        public var name: String
        /// libasound's description of it.
        public var description: String
        /// Its capabilities in each direction that it claims to have.
        public var abilities: [Ability]
    }

    /// A PCM's capabilities in one direction.
    public struct Ability: Equatable, Sendable {
        /// Which way.
        public var direction: SoundDirection
        /// Rates, in frames a second; nil if it could not be opened.
        public var rates: ClosedRange<Int>?
        /// Channels; nil if it could not be opened.
        public var channels: ClosedRange<Int>?
        /// Sample formats that Handset can use, by ALSA's names.
        public var formats: [String]
        /// The shortest period that it can do, in ms.
        public var shortestPeriodMilliseconds: Double?
        /// Why it could not be opened.
        public var failure: AudioDeviceError?
    }

    /// Names that only reshape others, or are one card's outputs once more.
    private static let variants: Set<String> = [
        "null", "samplerate", "speexrate", "lavrate", "speex", "upmix", "vdownmix", "jack", "oss", "usbstream", "dmix",
        "dsnoop", "front", "rear", "center_lfe", "side", "surround21", "surround40", "surround41", "surround50",
        "surround51", "surround71", "iec958", "spdif", "hdmi", "modem", "phoneline", "plughw", "sysdefault",
    ]

    /// Asks libasound for all names, opens each for a moment, and asks it what it can do.
    ///
    /// - Parameter includingVariants: Also those names that only reshape others, such as "surround51:…".
    public static func entries(includingVariants: Bool = false) -> [Entry] {
        handset_alsa_be_quiet()
        _ = snd_config_update_free_global()
        var hints: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
        guard unsafe snd_device_name_hint(-1, "pcm", &hints) >= 0, let list = unsafe hints else { return [] }
        defer { _ = unsafe snd_device_name_free_hint(list) }
        var entries: [Entry] = []
        var next = unsafe list
        while let hint = unsafe next.pointee {
            unsafe next += 1
            guard let name = unsafe text(hint, "NAME") else { continue }
            let kind = String(name.prefix { $0 != ":" })
            guard includingVariants || !variants.contains(kind) else { continue }
            let direction = unsafe text(hint, "IOID")
            let description = unsafe (text(hint, "DESC") ?? "").split(separator: "\n").joined(separator: ", ")
            var abilities: [Ability] = []
            if direction != "Input" { abilities.append(ability(of: name, .playback)) }
            if direction != "Output" { abilities.append(ability(of: name, .capture)) }
            entries.append(Entry(name: name, description: description, abilities: abilities))
        }
        return entries
    }

    /// Opens a PCM for a moment.
    ///
    /// - Parameter name: As a configuration has it: libasound's name, or "by-id/…" or "by-path/…".
    /// - Returns: Why it could not be opened; nil if it could.
    public static func failure(opening name: String, for direction: SoundDirection) -> AudioDeviceError? {
        handset_alsa_be_quiet()
        guard let found = CardDirectory().pcmName(for: name, lastSeen: nil) else {
            return AudioDeviceError(device: name, direction: direction, errno: ENOENT)
        }
        _ = snd_config_update_free_global()
        var opened: OpaquePointer?
        let result = unsafe open(found, direction, &opened)
        if let pcm = unsafe opened { _ = unsafe snd_pcm_close(pcm) }
        return result < 0 ? AudioDeviceError(device: name, direction: direction, errno: -result) : nil
    }

    private static func open(_ name: String, _ direction: SoundDirection, _ opened: inout OpaquePointer?) -> Int32 {
        let stream = direction == .playback ? SND_PCM_STREAM_PLAYBACK : SND_PCM_STREAM_CAPTURE
        return unsafe snd_pcm_open(&opened, name, stream, SND_PCM_NONBLOCK)
    }

    private static func text(_ hint: UnsafeMutableRawPointer, _ key: String) -> String? {
        guard let value = unsafe snd_device_name_get_hint(hint, key) else { return nil }
        defer { unsafe free(value) }
        return unsafe String(cString: value)
    }

    private static func ability(of name: String, _ direction: SoundDirection) -> Ability {
        var ability = Ability(direction: direction, formats: [])
        var opened: OpaquePointer?
        let result = unsafe open(name, direction, &opened)
        guard result >= 0, let pcm = unsafe opened else {
            ability.failure = AudioDeviceError(
                device: name, direction: direction, errno: result < 0 ? -result : ENODEV)
            return ability
        }
        defer { _ = unsafe snd_pcm_close(pcm) }
        do throws(ALSAFailure) {
            let parameters = try HardwareParameters()
            defer { parameters.free() }
            try unsafe ask(pcm, parameters, &ability)
        } catch {
            ability.failure = AudioDeviceError(
                device: name, direction: direction, errno: error.errno, step: error.step)
        }
        return ability
    }

    private static func ask(_ pcm: OpaquePointer, _ parameters: HardwareParameters, _ ability: inout Ability)
        throws(ALSAFailure)
    {
        let params = unsafe parameters.pointer
        let result = unsafe snd_pcm_hw_params_any(pcm, params)
        if result < 0 { throw ALSAFailure(step: "asking what it can do", errno: -result) }
        var (least, most) = (UInt32(0), UInt32(0))
        if unsafe snd_pcm_hw_params_get_rate_min(params, &least, nil) >= 0,
            unsafe snd_pcm_hw_params_get_rate_max(params, &most, nil) >= 0, least <= most
        {
            ability.rates = Int(least)...Int(most)
        }
        if unsafe snd_pcm_hw_params_get_channels_min(params, &least) >= 0,
            unsafe snd_pcm_hw_params_get_channels_max(params, &most) >= 0, least <= most
        {
            ability.channels = Int(least)...Int(most)
        }
        var microseconds: UInt32 = 0
        if unsafe snd_pcm_hw_params_get_period_time_min(params, &microseconds, nil) >= 0 {
            ability.shortestPeriodMilliseconds = Double(microseconds) / 1_000
        }
        for format in CardSampleFormat.allCases
        where unsafe snd_pcm_hw_params_test_format(pcm, params, format.alsa) == 0 {
            ability.formats.append(format.name)
        }
    }
}
