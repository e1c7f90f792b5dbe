public import CallControl
internal import JSON
internal import Logging
internal import MediaEngine
internal import SignalingClient

// Transfers, as either party of a call and as their target (contract CALL-8).
extension Device {
    /// Asks the peer of a call to call another user in our place. Once the target has answered that call, this one is hung up.
    ///
    /// - Parameters:
    ///   - target: The user to call.
    ///   - other: Our call with the target, which the new one takes the place of (attended); nil for a blind transfer.
    /// - Throws: ``SignalingError`` if one of the calls is not established, or has a transfer under way.
    public func transfer(_ id: CallID, to target: UserID, replacing other: CallID? = nil) throws(SignalingError) {
        let activity = "transfer \(id)"
        guard let call = calls[id], call.machine.isAnswered, other != id else {
            throw SignalingError(.inviteEnded, activity: activity, cause: "it is not answered, or has ended")
        }
        guard !call.transfer.isUnderWay else {
            throw SignalingError(.alreadyHandled, activity: activity, cause: "a transfer of it is under way")
        }
        var wish = CallTransfer.Wish(target: target)
        if let other {
            guard let consulted = calls[other], consulted.machine.isAnswered, let invite = consulted.invite.id else {
                throw SignalingError(
                    .inviteEnded, activity: activity, cause: "\(other) is not answered, or has ended")
            }
            wish.replaces = invite
        }
        calls[id]?.transfer = .asked(target)
        signal(CallTransfer.signal, wish.data, of: id)
    }

    /// A call's program or bot transfers its peer to another user.
    ///
    /// - Returns: Why that is not done; nil if the peer is asked, or will be once the service has confirmed our accept.
    func transferForProgram(_ id: CallID, to target: String) -> String? {
        guard let user = configuration.account.mayTransferForBot(target) else {
            return "account.callees does not have the target of the transfer"
        }
        guard let call = calls[id], call.record == nil else { return "the call has ended" }
        if call.machine.progress == .connecting, !call.machine.isAnswered {
            calls[id]?.programTransfer = user
            return nil
        }
        return askForTransfer(of: id, to: user)
    }

    private func askForTransfer(of id: CallID, to user: UserID) -> String? {
        do throws(SignalingError) {
            try transfer(id, to: user)
        } catch {
            return "\(error)"
        }
        logger.info("A program transfers a call", metadata: about(id, ["to": "\(user)"]))
        return nil
    }

    /// The peer of a call says something of a transfer.
    func take(transfer signal: CallSignal, in id: CallID) {
        if signal.type == CallTransfer.signal {
            if let wish = CallTransfer.Wish(data: signal.data) { consider(wish, in: id) }
        } else if let progress = CallTransfer.Progress(data: signal.data), case .asked(let target) = calls[id]?.transfer
        {
            publish(.transferProgress(id, to: target, progress))
            if let call = calls[id], !call.hasLeft { call.participant?.noteTransfer(to: target, progress, of: id) }
            guard progress.isFinal else { return }
            calls[id]?.transfer = .none
            guard progress == .accepted else { return }
            calls[id]?.transferredTo = target
            handOver(id)
        }
    }

    /// The peer asks us to call another user. It may know of our accept before the service has confirmed it to us; then its request
    /// waits for that. The last one counts.
    private func consider(_ wish: CallTransfer.Wish, in id: CallID) {
        guard let call = calls[id] else { return }
        if call.machine.progress == .connecting, !call.machine.isAnswered {
            calls[id]?.waitingTransfer = wish
        } else {
            carryOut(wish, in: id)
        }
    }

    /// A call was answered: does what its peer, its program or its bot has asked for meanwhile.
    func carryOutWaitingTransfer(of id: CallID) {
        if let user = calls[id]?.programTransfer {
            calls[id]?.programTransfer = nil
            if let why = askForTransfer(of: id, to: user) { refuseTransfer(of: id, why) }
        }
        guard let wish = calls[id]?.waitingTransfer else { return }
        calls[id]?.waitingTransfer = nil
        carryOut(wish, in: id)
    }

    /// Reports to a call's participant that the peer is not asked for a transfer.
    func refuseTransfer(of id: CallID, _ why: String) { calls[id]?.participant?.refuse(.transfer, of: id, why) }

    private func carryOut(_ wish: CallTransfer.Wish, in id: CallID) {
        guard let call = calls[id], let invite = call.invite.id else { return }
        // The last question reserves room, so that the call must begin at once. Until the target answers there are two calls.
        let isAdmitted =
            call.machine.isAnswered && !call.transfer.isUnderWay && admits(wish)
            && obstacle(toCallPlaying: call.audio.source) == nil
        publish(.transferRequested(id, to: wish.target, isAccepted: isAdmitted))
        logger.info(
            "A peer asks for a transfer",
            metadata: about(id, ["to": "\(wish.target)", "accepted": "\(isAdmitted)"]))
        guard isAdmitted else { return signal(CallTransfer.progressSignal, CallTransfer.Progress.refused.data, of: id) }
        signal(CallTransfer.progressSignal, CallTransfer.Progress.trying.data, of: id)
        let origin = CallTransfer.Origin(invite: invite, replaces: wish.replaces)
        var audio = configuration.behaviour.audio(named: recordingName(to: wish.target))
        audio.source = call.audio.source
        let new = makeCall(to: wish.target, audio: audio, in: origin)
        calls[id]?.transfer = .placing(new, wish.target)
        calls[new]?.transfer = .inPlaceOf(id)
        calls[new]?.transferredBy = call.machine.peer
        // It may fail at once, which is reported to the peer.
        feed(.begin, to: new)
    }

    /// A call that takes the place of another one was answered, or did not come about.
    func noteTransfer(of new: CallID, _ progress: CallTransfer.Progress) {
        guard case .inPlaceOf(let old)? = calls[new]?.transfer, case .placing(new, let target)? = calls[old]?.transfer
        else { return }
        publish(.transferProgress(old, to: target, progress))
        signal(CallTransfer.progressSignal, progress.data, of: old)
        guard progress.isFinal else { return }
        calls[old]?.transfer = .none
        guard progress == .accepted else { return }
        calls[old]?.transferredTo = target
        handOver(old)
    }

    /// Ends a call whose place another one has taken; it is complete even if media has not flowed yet.
    func handOver(_ id: CallID) {
        calls[id]?.noteHangUp(.request)
        feed(.user(.handOver), to: id)
    }

    /// Our call that an invite replaces, so that it is answered without a decision of the user. One invite at most replaces a call.
    func replacedCall(by invite: ReceivedInvite) -> CallID? {
        guard let replaces = CallTransfer.Origin(inviteData: invite.data)?.replaces, let id = calls.id(of: replaces),
            calls[id]?.machine.isAnswered == true, !calls.isReplaced(id)
        else { return nil }
        return id
    }
}
