internal import CallControl
internal import SignalingClient

extension SignalingEvent {
    /// The invite that the event is about, and what the call or the invite's machine takes of it; nil if nothing, or if that depends on
    /// more than the event.
    var aboutInvite: (InviteID, CallMachine.ServiceEvent)? {
        switch self {
        case .inviteHandled(let handling): (handling.invite, .handledElsewhere(handling.action))
        case .inviteCancelled(let invite, _): (invite, .cancelled)
        case .inviteAccepted(let answer): (answer.invite, .accepted(answer))
        case .inviteRejected(let answer): (answer.invite, .rejected(answer))
        case .inviteEnded(let invite): (invite, .inviteEnded)
        case .callEnded(let news): (news.invite, .hungUp(news))
        case .inviteReceived, .inviteSent, .inviteTimedOut, .callSignal, .inviteModified, .inviteMissed,
            .iceServersChanged, .connected, .reconnecting, .reconnected, .disconnected, .error, .connectionCreated,
            .connectionDestroyed, .roomSignal, .streamDropped, .streamResumed, .groupChanged, .roomLost,
            .moveRequested, .notification, .unknown:
            nil
        }
    }
}
