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
        let audio = configuration.behaviour.audio(named: recordingName(from: invite))
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

extension BehaviourConfiguration {
    /// The file of the call with this number, from 1.
    func capture(number: Int) -> String? {
        guard let capture, number > 1 else { return capture }
        let name = capture.lastIndex(of: "/").map { capture.index(after: $0) } ?? capture.startIndex
        guard let dot = capture[name...].lastIndex(of: "."), dot > name else { return "\(capture)-\(number)" }
        return "\(capture[..<dot])-\(number)\(capture[dot...])"
    }

    /// The behaviour of a call whose recording is to have this name.
    func audio(named name: String) -> AudioBehaviour {
        var audio = AudioBehaviour(
            source: source.sound, recording: recordingFolder.map { "\($0)/\(name).\(recordingFormat.fileExtension)" },
            recordingFormat: recordingFormat)
        audio.keepsEarlierRecording = true
        return audio
    }
}

extension Device {
    /// The name of the recording of a call that comes in.
    private func recordingName(from invite: ReceivedInvite) -> String {
        // A trunk's account is not who calls.
        recordingName(invite.trunk?.caller ?? invite.inviter.text, isOutgoing: false)
    }

    /// The name of the recording of a call to a user.
    func recordingName(to callee: UserID) -> String { recordingName(callee.text, isOutgoing: true) }

    private func recordingName(_ peer: String, isOutgoing: Bool) -> String {
        "\(RecordingName(peer: peer, isOutgoing: isOutgoing, at: MonotonicClock.wallTime, key: newKey()))"
    }
}
