internal import AudioDevices
internal import Call
internal import CallControl
internal import CallParticipation

/// The sound card among a device's calls, as it is configured now: which call has it, and what it sounds of their progress.
struct CallCard {
    private let shared: SharedMedia
    private let audio: AudioConfiguration

    init(_ shared: SharedMedia, _ audio: AudioConfiguration) {
        self.shared = shared
        self.audio = audio
    }

    /// Whether another call has the card, of calls that refuse each other. A call whose place this one takes gives the card up to it.
    func isTaken(for call: CallSession, among calls: CallTable) -> Bool {
        guard audio.severalCalls == .refuse else { return false }
        let former = call.predecessor
        return calls.isCardTaken(besides: [call.id, former]) || !shared.claimCard(for: call.id, inPlaceOf: former)
    }

    /// Why a call that needs the card would be silent; nil if the card can be opened.
    var absence: MediaFailure? {
        shared.cardFailure.map { failure in
            MediaFailure(.deviceFault, "the call would be silent: \(audio.error(failure)) \(CardDirectory().summary)")
        }
    }

    /// Why a call that needs the card cannot have it; nil if it can, or needs none.
    func obstacle(to call: CallSession, among calls: CallTable) -> MediaFailure? {
        guard call.usesCard else { return nil }
        if isTaken(for: call, among: calls) {
            return MediaFailure(
                .deviceFull, "another call has the sound card: hang up, or set audio.several_calls to hold or mix")
        }
        return absence
    }

    /// A call has ended. The call that it would have replaced has the card again.
    func release(_ call: CallSession, among calls: CallTable) {
        if audio.severalCalls == .refuse, let id = call.predecessor, let former = calls[id]?.session, former.usesCard,
            former.record == nil
        {
            _ = shared.claimCard(for: id, inPlaceOf: call.id)
        }
        shared.releaseCard(of: call.id)
    }

    /// A call that rang with the card is answered without it.
    func giveUp(by call: CallSession) {
        shared.withCard { $0.leave(call.id) }
        shared.releaseCard(of: call.id)
    }

    /// A call has reached another phase: updates the loudspeaker's tone.
    func note(_ phase: CallTonePolicy.Phase, of call: CallSession) {
        // Nothing would take back the phase of a call that has ended.
        guard call.usesCard, call.record == nil else { return }
        shared.withCard { $0.note(phase, of: call.id) }
    }

    /// A call has ended; a failed outgoing call is announced by a tone.
    func noteEnd(of call: CallSession, _ record: CallRecord) {
        guard call.usesCard else { return }
        shared.withCard { [shared] card in
            card.noteEnd(of: call.id, isOutgoing: call.isOutgoing, reason: record.reason) {
                Task {
                    try? await Task.sleep(for: CallTonePolicy.failureToneDuration)
                    if !Task.isCancelled { shared.withCard { $0.endFailureTone() } }
                }
            }
        }
    }
}
