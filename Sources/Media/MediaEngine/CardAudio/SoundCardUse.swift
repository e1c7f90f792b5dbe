package import AudioDevices
package import Realtime
internal import AudioKit

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
