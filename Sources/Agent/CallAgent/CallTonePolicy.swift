internal import CallControl
internal import AudioKit

/// Decides which tone a device's loudspeaker sounds; a pure function of what its calls do.
struct CallTonePolicy {
    /// The tone that a call requests.
    enum Phase: Hashable, Sendable {
        /// Nothing.
        case quiet
        /// It comes in, and waits for an answer.
        case ringing
        /// It goes out, and the far end rings.
        case calling
        /// Its sound is on the card.
        case talking
        /// It was outgoing and failed, for this reason.
        case refused(CallEndReason)
    }

    /// How long the last tone of a call that came to nothing is heard.
    static let failureToneDuration = Duration.milliseconds(2_400)

    /// The tone for these calls; nil for none. A ringing call has priority, and no other tone is played during a call.
    static func tone(for phases: some Sequence<Phase>) -> CallTone? {
        var wanted: CallTone?
        var isTalking = false
        for phase in phases {
            switch phase {
            case .ringing: return .ring
            case .talking: isTalking = true
            case .calling: wanted = .ringBack
            case .refused(let reason):
                if wanted != .ringBack { wanted = tone(of: reason) ?? wanted }
            case .quiet: break
            }
        }
        return isTalking ? nil : wanted
    }

    /// The tone of an outgoing call that failed.
    static func tone(of reason: CallEndReason) -> CallTone? {
        switch reason {
        case .busy, .declined: .busy
        case .noAnswer, .dialFailed, .disconnected, .connectionLost, .internalError, .acceptFailed: .congestion
        case .completed, .cancelled, .acceptedElsewhere, .declinedElsewhere: nil
        }
    }
}
