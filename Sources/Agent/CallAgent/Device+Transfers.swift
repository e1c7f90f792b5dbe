public import CallControl
internal import JSON
internal import Logging
internal import MediaEngine
internal import SignalingClient

// Transfers, as either party of a call and as their target (contract CALL-8).
extension Device {
    /// Asks the peer of a call to call somebody in our place. Once the target has taken that call, this one is hung up.
    ///
    /// - Parameters:
    ///   - target: Whom to call.
    ///   - other: Our call with the target, which the new one takes the place of (attended); nil for a blind transfer.
    /// - Throws: ``SignalingError`` if one of the calls does not stand, or has a transfer under way.
    public func transfer(_ id: CallID, to target: UserID, replacing other: CallID? = nil) throws(SignalingError) {
        let activity = "transfer \(id)"
        guard let call = calls[id], call.machine.isEstablished, other != id else {
            throw SignalingError(.inviteEnded, activity: activity, cause: "media does not flow in it")
        }
        guard !call.transfer.isUnderWay else {
            throw SignalingError(.alreadyHandled, activity: activity, cause: "a transfer of it is under way")
        }
        var wish = CallTransfer.Wish(target: target)
        if let other {
            guard let consulted = calls[other], consulted.machine.isEstablished, let invite = consulted.invite.id else {
                throw SignalingError(.inviteEnded, activity: activity, cause: "media does not flow in \(other)")
            }
            wish.replaces = invite
        }
        calls[id]?.transfer = .asked(target)
        signal(CallTransfer.signal, wish.data, of: id)
    }

    /// The peer of a call says something of a transfer.
    func take(transfer signal: CallSignal, in id: CallID) {
        if signal.type == CallTransfer.signal {
            if let wish = CallTransfer.Wish(data: signal.data) { carryOut(wish, in: id) }
        } else if let progress = CallTransfer.Progress(data: signal.data), case .asked(let target) = calls[id]?.transfer
        {
            publish(.transferProgress(id, to: target, progress))
            guard progress.isFinal else { return }
            calls[id]?.transfer = .none
            guard progress == .accepted else { return }
            calls[id]?.transferredTo = target
            hangUp(id)
        }
    }

    /// The peer wants us to call somebody.
    private func carryOut(_ wish: CallTransfer.Wish, in id: CallID) {
        guard let call = calls[id], let invite = call.invite.id else { return }
        let isAdmitted =
            call.machine.isEstablished && !call.transfer.isUnderWay && !isDraining
            && admits(wish) && reserveRoom(for: call.audio.source)
        publish(.transferRequested(id, to: wish.target, isAccepted: isAdmitted))
        logger.info(
            "A peer asks for a transfer",
            metadata: about(id, ["to": "\(wish.target)", "accepted": "\(isAdmitted)"]))
        guard isAdmitted else { return signal(CallTransfer.progressSignal, CallTransfer.Progress.refused.data, of: id) }
        signal(CallTransfer.progressSignal, CallTransfer.Progress.trying.data, of: id)
        let origin = CallTransfer.Origin(invite: invite, replaces: wish.replaces)
        var audio = configuration.behaviour.audio(named: recordingName(to: wish.target))
        audio.source = call.audio.source
        let new = self.call([wish.target], audio: audio, in: origin)
        guard calls[new] != nil else { return }
        calls[id]?.transfer = .placing(new, wish.target)
        calls[new]?.transfer = .inPlaceOf(id)
        calls[new]?.transferredBy = call.machine.peer
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
        hangUp(old)
    }

    /// Our call that an invite replaces, so that it is answered without asking anybody. One invite at most replaces a call.
    func replacedCall(by invite: ReceivedInvite) -> CallID? {
        guard let replaces = CallTransfer.Origin(inviteData: invite.data)?.replaces, let id = calls.id(of: replaces),
            calls[id]?.machine.isEstablished == true, !calls.isReplaced(id)
        else { return nil }
        return id
    }
}
