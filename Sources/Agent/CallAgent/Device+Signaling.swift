internal import AudioKit
internal import Call
internal import CallControl
internal import Logging
internal import CallMedia
internal import MediaEngine
internal import Realtime
internal import Core

// Events of the service, and the calls that they concern.
extension Device {
    func handle(_ event: SignalingEvent) {
        noteConnection(event)
        switch event {
        case .inviteReceived(let invite): receive(invite)
        case .inviteSent(let invite, let key):
            guard let id = calls.id(ofKey: key) else {
                return handle(.inviteSent(invite, invitees: []), forInvite: invite)
            }
            feed(.service(.event(.inviteSent(invite, invitees: []))), to: id)
        case .inviteHandled(let handling): feed(.handledElsewhere(handling.action), about: handling.invite)
        case .inviteCancelled(let invite, _): feed(.cancelled, about: invite)
        case .inviteAccepted(let answer): feed(.accepted(answer), about: answer.invite)
        case .inviteRejected(let answer): feed(.rejected(answer), about: answer.invite)
        case .inviteEnded(let invite): feed(.inviteEnded, about: invite)
        case .inviteTimedOut(let invite, let invitees):
            // Members of a group are notified of others whose time is up, too.
            let isIncoming = calls.id(of: invite).map { calls[$0]?.session.isOutgoing == false } ?? false
            guard !isIncoming || isUser(among: invitees) else { return }
            feed(.timedOut(invitees), about: invite)
        case .callEnded(let news): feed(.hungUp(news), about: news.invite)
        case .callSignal(let signal) where signal.kind == .probe: answerProbe(signal)
        case .callSignal(let signal):
            guard let kind = signal.kind, CallSession.takes(kind, by: traits), let id = calls.id(of: signal.invite)
            else {
                return publish(.signaling(event))
            }
            feed(.peer(signal), to: id)
        case .inviteModified(let invite, let data): publish(.invite(.modified(invite, data: data)))
        case .inviteMissed(let invite, let payload): publish(.invite(.missed(invite, payload: payload)))
        case .iceServersChanged:
            publish(.signaling(event))
            Task { await lookUpServers() }
        case .connected, .reconnecting, .reconnected, .disconnected, .error, .connectionCreated,
            .connectionDestroyed, .roomSignal, .streamDropped, .streamResumed, .groupChanged,
            .roomLost, .moveRequested, .notification, .unknown:
            publish(.signaling(event))
        }
    }

    private func receive(_ invite: ReceivedInvite) {
        guard isNew(invite.id) else { return }
        guard invite.offer != nil, asksUser(invite) else { return takeInvite(invite) }
        let audio = files.audio(from: invite, key: newKey())
        let id = nextCall()
        add(
            CallSession(
                id, receiving: invite, audio: audio, rules: rules(for: audio), traits: traits,
                replacing: replacedCall(by: invite), timings: callTimings))
        feed(.begin, to: id)
    }

    private func feed(_ event: CallMachine.ServiceEvent, about invite: InviteID) {
        guard let id = calls.id(of: invite) else { return handle(event, forInvite: invite) }
        feed(.service(.event(event)), to: id)
    }
}
