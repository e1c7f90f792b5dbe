// CardAudio: calls on a sound card. The mixer sees of a call only what `CardCall` shows.

public import AudioDevices
package import CallMedia
public import AudioKit
package import Realtime

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
package enum CardCommand: BitwiseCopyable {
    case mute(Bool)
    case volume(dB: Double)
    case microphone(dB: Double)
    case process(SpeakerphoneSettings)
    case tone(CallTone?)
    /// The call that has the card, where only one may.
    case focus(MediaCallID?)
}

/// The sound card of an engine while it runs: the device's thread, and the mixer that a worker works at.
@safe
package final class SoundCardUse: @unchecked Sendable {
    // The mixer's memory is touched by its worker's thread alone, from before that starts until it has ended; it is freed
    // with this, which the engine keeps until then.
    package let device: AudioDevice
    package let mixer: UnsafeMutablePointer<CardMixer>

    /// Starts the card's thread, which opens the card. It need not be there.
    package init(_ sound: CallSound, onEvent: @escaping @Sendable (CardEvent) -> Void) throws(RealtimeError) {
        let device = try AudioDevice(sound.device, onEvent: onEvent)
        guard let line = device.takeLine() else { preconditionFailure("a new device has its line") }
        do throws(SpeakerphoneError) {
            let made = try CardMixer(sound, line: line)
            unsafe mixer = .allocate(capacity: 1)
            unsafe mixer.initialize(to: made)
        } catch {
            device.stop()
            throw RealtimeError(doing: "\(error)", errno: Self.noMemory)
        }
        self.device = device
    }

    deinit {
        unsafe mixer.deinitialize(count: 1)
        unsafe mixer.deallocate()
    }

    /// ENOMEM.
    private static var noMemory: Int32 { 12 }

    /// Plays what the card still has and closes it.
    package func stop() { device.stop() }
}
