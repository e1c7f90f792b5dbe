public import AudioDevices
internal import CallControl
public import MediaEngine
public import Speakerphone

// The device's sound card: its call, its tones, and its volume.
extension Device {
    /// How the card is doing; nil without one.
    public var cardStatistics: CardStatistics? { engine.cardStatistics }

    /// Mutes the microphone, or lets it be heard again.
    public func setMuted(_ isMuted: Bool) {
        soundSettings?.isMuted = isMuted
        engine.setMuted(isMuted)
    }

    /// Sets the volume of the loudspeaker, in dB: −60…20.
    public func setVolume(decibels: Double) {
        soundSettings?.volumeDB = SoundSettings.limited(decibels)
        engine.setVolume(decibels: decibels)
    }

    /// Sets the volume of the microphone after all processing, in dB: −60…20.
    public func setMicrophoneVolume(decibels: Double) {
        soundSettings?.microphoneDB = SoundSettings.limited(decibels)
        engine.setMicrophoneVolume(decibels: decibels)
    }

    /// Switches parts of the speakerphone on and off; the length of the echo stays as it was.
    public func setProcessing(_ settings: SpeakerphoneSettings) { engine.setProcessing(settings) }

    /// Gives the card to a call that waits for it; the one that had it waits in silence.
    ///
    /// - Returns: False if the call does not use the card, or its media does not run.
    @discardableResult
    public func giveCard(to id: CallID) -> Bool { calls[id]?.media.map { engine.giveCard(to: $0) } ?? false }

    /// The card's present levels, from the media worker; nil while no call is on the card.
    public func soundReport() async -> SoundReport? {
        guard let media = calls.values.first(where: { $0.usesCard && $0.media != nil && $0.report == nil })?.media
        else {
            return nil
        }
        return await engine.report(on: media)?.sound
    }

    /// Waits until the tone for a failed outgoing call is over.
    public func finishTones() async { await farewell?.value }

    /// Whether another call uses the card.
    func isCardTaken(besides id: CallID) -> Bool {
        calls.contains { $0.key != id && $0.value.usesCard && $0.value.record == nil }
    }

    /// A call has reached another phase: updates the loudspeaker's tone.
    func note(_ phase: CallTonePolicy.Phase, of id: CallID) {
        guard calls[id]?.usesCard == true, configuration.audio.soundsTones else { return }
        calls[id]?.phase = phase
        updateTone()
    }

    /// A call is over; a failed outgoing call is announced by a tone.
    func noteEnd(of id: CallID, _ record: CallRecord) {
        guard let call = calls[id], call.usesCard, configuration.audio.soundsTones else { return }
        calls[id]?.phase = .quiet
        if call.machine.isOutgoing, !call.wasAnswered, CallTonePolicy.tone(of: record.reason) != nil {
            lastRefusal = record.reason
            farewell?.cancel()
            farewell = Task {
                try? await Task.sleep(for: CallTonePolicy.farewell)
                if !Task.isCancelled { endFarewell() }
            }
        }
        updateTone()
    }

    private func endFarewell() {
        lastRefusal = nil
        updateTone()
    }

    private func updateTone() {
        var phases = calls.values.map(\.phase)
        if let lastRefusal { phases.append(.refused(lastRefusal)) }
        engine.sound(CallTonePolicy.tone(for: phases))
    }
}

/// An outgoing call needs the card, and another call has it.
struct CardTaken: Error, CustomStringConvertible {
    var description: String {
        "another call has the sound card: hang up, or set audio.several_calls to hold or mix"
    }
}
