public import AudioDevices
public import CallMedia
public import AudioKit
internal import Synchronization

// The sound card of an engine's calls. Without one, all of this does nothing.
extension MediaEngine {
    /// The worker whose calls may use the card.
    static var cardWorker: Int { 0 }

    /// Mutes the microphone, or lets it be heard again.
    public func setMuted(_ isMuted: Bool) { order(.mute(isMuted)) }

    /// Sets the volume of the loudspeaker, in dB: −60…20.
    public func setVolume(decibels: Double) { order(.volume(dB: decibels)) }

    /// Sets the volume of the microphone after all processing, in dB: −60…20.
    public func setMicrophoneVolume(decibels: Double) { order(.microphone(dB: decibels)) }

    /// Switches parts of the speakerphone on and off; the length of the echo stays as it was.
    public func setProcessing(_ settings: SpeakerphoneSettings) { order(.process(settings)) }

    /// Sounds a tone on the loudspeaker until another one, or nil, is asked for. During a call it sounds low beneath it.
    public func sound(_ tone: CallTone?) { order(.tone(tone)) }

    /// Gives the card to a call that uses it, where only one may have it; the others wait in silence.
    ///
    /// - Returns: False if the call does not use the card, or has ended.
    @discardableResult
    public func giveCard(to id: MediaCallID) -> Bool {
        let isThere = state.withLock { state in
            guard let index = state.onCard.firstIndex(of: id) else { return false }
            state.onCard.append(state.onCard.remove(at: index))
            return true
        }
        if isThere { order(.focus(id)) }
        return isThere
    }

    /// The call that has the card, where only one may: the latest that took it, or was given it.
    public var cardHolder: MediaCallID? { state.withLock { $0.onCard.last } }

    /// The card's statistics, at most a second old; nil without a card.
    public var cardStatistics: CardStatistics? { card?.device.statistics }

    /// A new call uses the card, and has it from now on.
    func takeCard(_ id: MediaCallID) {
        state.withLock { $0.onCard.append(id) }
        order(.focus(id))
    }

    /// Releases the card after a call: the call that had it before gets it back.
    func leaveCard(_ id: MediaCallID) {
        let (wasThere, next) = state.withLock { state in
            let count = state.onCard.count
            state.onCard.removeAll { $0 == id }
            return (state.onCard.count < count, state.onCard.last)
        }
        if wasThere, !state.withLock({ $0.isStopped }) { order(.focus(next)) }
    }

    private func order(_ order: CardCommand) {
        guard card != nil else { return }
        workers[Self.cardWorker].enqueue(.sound(order))
    }
}
