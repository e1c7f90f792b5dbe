internal import Call
public import CallControl
internal import Realtime
internal import SignalingClient

// Transfers, as either party of a call and as their target (contract CALL-8): what more than one call is needed for.
extension Device {
    /// Asks the peer of a call to call another user in our place. Once the target has answered that call, this one is hung up.
    ///
    /// - Parameters:
    ///   - target: The user to call.
    ///   - other: Our call with the target, which the new one takes the place of (attended); nil for a blind transfer.
    /// - Throws: ``SignalingError`` if one of the calls is not answered, or the first has a transfer under way.
    public func transfer(_ id: CallID, to target: UserID, replacing other: CallID? = nil) throws(SignalingError) {
        guard var call = calls[id]?.session else {
            throw SignalingError(.inviteEnded, activity: "transfer \(id)", cause: "it is not answered, or has ended")
        }
        let consulted = other.flatMap { calls[$0]?.session }
        if let other, consulted == nil {
            throw SignalingError(
                .inviteEnded, activity: "transfer \(id)", cause: "\(other) is not answered, or has ended")
        }
        var outbox: [CallSession.Output] = []
        try call.transfer(to: target, replacing: consulted, at: MonotonicClock.now, into: &outbox)
        calls[id]?.session = call
        carryOut(outbox, of: id)
    }

    /// Whether a call's peer is transferred as it asks.
    func consider(_ wish: CallTransfer.Wish, of id: CallID) {
        guard let call = calls[id]?.session else { return }
        // The last question reserves room, so that the call must begin at once. Until the target answers there are two calls.
        let isAdmitted =
            call.canBeTransferred && admits(wish) && obstacle(toCallPlaying: call.audio.source) == nil
        feed(.device(.decided(wish, isAdmitted: isAdmitted)), to: id)
    }

    /// Whether a transfer that a peer asks for is carried out.
    func admits(_ wish: CallTransfer.Wish) -> Bool {
        guard answerPolicy.transfers.admits(wish) else { return false }
        // A service that judges targets has compared the address, of which the name is a part.
        guard !traits.judgesTargets, configuration.account.callees != nil else { return true }
        return configuration.account.lists(wish.target)
    }

    /// Calls the user that the peer of a call has named.
    func placeSuccessor(of id: CallID, to target: UserID, _ origin: CallTransfer.Origin) {
        guard let call = calls[id]?.session else { return }
        var audio = files.audio(to: target, key: newKey())
        audio.source = call.audio.source
        let new = makeCall(to: target, audio: audio, origin, inPlaceOf: call)
        feed(.device(.successorPlaced(new, to: target)), to: id)
        // It may fail at once, which is reported to the peer.
        feed(.begin, to: new)
    }

    /// Our call that an invite replaces, so that it is answered without a decision of the user. One invite at most replaces a call.
    func replacedCall(by invite: ReceivedInvite) -> CallID? {
        guard let replaces = invite.transfer?.replaces, let id = calls.id(of: replaces),
            calls[id]?.session.isAccepted == true, !calls.isReplaced(id)
        else { return nil }
        return id
    }
}
