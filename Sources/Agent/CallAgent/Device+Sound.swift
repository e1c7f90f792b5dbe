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

    /// Whether another call has the card, of calls that refuse each other. A call whose place this one takes gives the card up to it.
    func isCardTaken(besides id: CallID) -> Bool {
        guard configuration.audio.severalCalls == .refuse else { return false }
        let former = calls[id]?.session.predecessor
        return calls.isCardTaken(besides: [id, former]) || !shared.claimCard(for: id, inPlaceOf: former)
    }

    /// A call has ended. The call that it would have replaced has the card again.
    func releaseCard(of id: CallID) {
        if configuration.audio.severalCalls == .refuse, let former = calls[id]?.session.predecessor,
            let call = calls[former]?.session, call.usesCard, call.record == nil
        {
            _ = shared.claimCard(for: former, inPlaceOf: id)
        }
        shared.releaseCard(of: id)
    }

    /// A call has reached another phase: updates the loudspeaker's tone.
    func note(_ phase: CallTonePolicy.Phase, of id: CallID) {
        // Nothing would take back the phase of a call that has ended.
        guard let call = calls[id]?.session, call.usesCard, call.record == nil else { return }
        shared.withCard { $0.note(phase, of: id) }
    }

    /// A call has ended; a failed outgoing call is announced by a tone.
    func noteEnd(of id: CallID, _ record: CallRecord) {
        guard let call = calls[id]?.session, call.usesCard else { return }
        shared.withCard { [shared] card in
            card.noteEnd(of: id, isOutgoing: call.isOutgoing, reason: record.reason) {
                Task {
                    try? await Task.sleep(for: CallTonePolicy.failureToneDuration)
                    if !Task.isCancelled { shared.withCard { $0.endFailureTone() } }
                }
            }
        }
    }
}

/// A call needs the card, which cannot be opened.
struct CardAbsent: Error, CustomStringConvertible {
    let description: String

    init(_ failure: CardFailure, _ audio: AudioConfiguration) {
        description = "the call would be silent: \(audio.error(failure)) \(CardDirectory().summary)"
    }
}

/// An outgoing call needs the card, and another call has it.
struct CardTaken: Error, CustomStringConvertible {
    var description: String {
        "another call has the sound card: hang up, or set audio.several_calls to hold or mix"
    }
}
