public import AudioDevices
internal import CallControl
public import CallMedia
internal import MediaEngine
public import AudioKit

// The device's sound card: its call, its tones, and its volume.
extension Device {
    /// How the card is doing; nil without one.
    public var cardStatistics: CardStatistics? { engine.cardStatistics }

    /// Mutes the microphone, or lets it be heard again.
    public func setMuted(_ isMuted: Bool) { shared.setMuted(isMuted) }

    /// Sets the volume of the loudspeaker, in dB: −60…20.
    public func setVolume(decibels: Double) { shared.setVolume(decibels: decibels) }

    /// Sets the volume of the microphone after all processing, in dB: −60…20.
    public func setMicrophoneVolume(decibels: Double) { shared.setMicrophoneVolume(decibels: decibels) }

    /// Switches parts of the speakerphone on and off; the length of the echo stays as it was.
    public func setProcessing(_ settings: SpeakerphoneSettings) { engine.setProcessing(settings) }

    /// Gives the card to a call that waits for it; the one that had it waits in silence.
    ///
    /// - Returns: False if the call does not use the card, or its media does not run.
    @discardableResult
    public func giveCard(to id: CallID) -> Bool {
        calls[id]?.media.negotiated.id.map { engine.giveCard(to: $0) } ?? false
    }

    /// The card's present levels, from the media worker; nil while no call is on the card.
    public func soundReport() async -> SoundReport? {
        guard let media = calls.mediaOnCard else { return nil }
        return await engine.report(on: media)?.sound
    }

    /// Waits for the end of the tone for a failed outgoing call.
    public func finishTones() async { await shared.withCard { $0.failureToneEnd }?.value }
}
