public import AudioDevices
public import Speakerphone

/// The sound card of a media engine's calls, and what is done to sound on its way.
public struct CallSound: Equatable, Sendable {
    /// Which card, and how.
    public var device: AudioDeviceConfiguration
    /// What is done to captured sound.
    public var processing = SpeakerphoneSettings()
    /// How several calls share the card.
    public var sharing = Sharing.hold
    /// Volume of the loudspeaker, in dB: −60…20.
    public var volumeDB = 0.0
    /// Volume of the microphone after all processing, in dB: −60…20.
    public var microphoneDB = 0.0
    /// The microphone is muted from the beginning.
    public var isMuted = false
    /// The country whose tones are played, as an ISO 3166 code; unknown countries get the tones of ITU-T E.180.
    public var country = ""

    /// How several calls share one card.
    public enum Sharing: String, CaseIterable, Sendable {
        /// The latest has the card; the others wait in silence, and get it back one after the other.
        case hold
        /// All are heard together, and hear each other.
        case mix
    }

    /// Uses `device` with all processing on.
    public init(_ device: AudioDeviceConfiguration = AudioDeviceConfiguration()) { self.device = device }
}

/// Commands of the control side to the mixer.
enum SoundOrder: BitwiseCopyable {
    case mute(Bool)
    case volume(dB: Double)
    case microphone(dB: Double)
    case process(SpeakerphoneSettings)
    case tone(CallTone?)
    /// The call that has the card, where only one may.
    case focus(MediaCallID?)
}

/// How the card's sound is doing at the media worker's end. A plain value, copied on the media thread.
public struct SoundReport: BitwiseCopyable, Equatable, Sendable {
    /// Level of the microphone as a meter shows it, after all processing, in dBFS.
    public internal(set) var microphoneDBFS = -100.0
    /// Its held peak.
    public internal(set) var microphonePeakDBFS = -100.0
    /// Level of the loudspeaker as a meter shows it, in dBFS.
    public internal(set) var loudspeakerDBFS = -100.0
    /// Its held peak.
    public internal(set) var loudspeakerPeakDBFS = -100.0
    /// The microphone is muted.
    public internal(set) var isMuted = false
    /// Volume of the loudspeaker, in dB.
    public internal(set) var volumeDB = 0.0
    /// The speakerphone's echo and how much of it is taken out.
    public internal(set) var echo: SpeakerphoneStatistics
    /// Samples by which the speakerphone's parts delay the microphone.
    public internal(set) var processingSamples = 0
    /// Ticks of 10 ms.
    public internal(set) var ticks = 0
    /// Ticks skipped because the machine stalled.
    public internal(set) var ticksSkipped = 0
    /// Captured samples that were not there in time.
    public internal(set) var captureUnderrunSamples = 0
    /// Samples to be played that the card's thread did not take in time.
    public internal(set) var playOverrunSamples = 0
    /// The call is on hold at the card.
    public internal(set) var isHeld = false
    /// Samples between the call's frames and the card's ticks that were missing, or came too late.
    public internal(set) var callSamplesLost = 0

    @_noAllocation @_noLocks
    init(echo: SpeakerphoneStatistics) { self.echo = echo }
}
