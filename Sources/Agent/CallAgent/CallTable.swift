internal import Call
internal import CallControl
internal import CallMedia
internal import CallParticipation
internal import Core
internal import JSON
internal import Logging
internal import MediaEngine

/// The calls of a device whose end has not been reported, by their numbers, which are never used again.
struct CallTable {
    private var calls: [CallID: ActiveCall] = [:]
    private var transfers = TransferBudget()

    subscript(id: CallID) -> ActiveCall? {
        get { calls[id] }
        set { calls[id] = newValue }
    }

    mutating func add(_ call: ActiveCall) { calls[call.session.id] = call }

    /// Removes a call whose end was reported. If a disk has not taken its recording yet, the end of that is still to come.
    mutating func remove(_ id: CallID) {
        if let call = calls[id], call.session.awaitsRecording, let media = call.session.stream,
            recorded.count < Self.mostRecorded
        {
            recorded[media] = call.session
        }
        calls[id] = nil
    }

    /// Ends that are still reported of recordings whose calls have ended: as many as a disk that hangs may hold up.
    private static let mostRecorded = 1_024
    /// Calls that were removed before their recordings ended, by the media engine's names for them.
    private var recorded: [MediaCallID: CallSession] = [:]

    /// Notes the end of a recording.
    ///
    /// - Parameter path: The file that was asked for.
    /// - Returns: Whose recording it was, and why it has ended; nil if the call is not known.
    mutating func recordingEnded(
        in media: MediaCallID, _ path: String, isWhole: Bool
    ) -> (call: CallID, reason: RecordingEndReason)? {
        if let call = id(of: media) {
            guard let reason = calls[call]?.session.recordingEnded(path, isWhole: isWhole) else { return nil }
            return (call, reason)
        }
        guard var session = recorded[media] else { return nil }
        let reason = session.recordingEnded(path, isWhole: isWhole)
        recorded[media] = session.awaitsRecording ? session : nil
        return (session.id, reason)
    }

    /// Whether a call has come that is to take this one's place.
    private func isReplaced(_ id: CallID) -> Bool { calls.values.contains { $0.session.replaces == id } }

    /// Notes for the record of a call which file a recording has become, unless the call has ended.
    mutating func noteRecordingEnd(in media: MediaCallID, _ path: String, as file: String) {
        guard let call = id(of: media) else { return }
        calls[call]?.observation.recordingEnded(path, as: file)
    }

    /// The call that an invite replaces, so that it is answered without a decision of the user. One invite at most replaces a call.
    func replacedCall(by invite: ReceivedInvite) -> CallID? {
        guard let replaces = invite.transfer?.replaces, let id = id(of: replaces), self[id]?.session.isAccepted == true,
            !isReplaced(id)
        else { return nil }
        return id
    }

    /// A call that takes part in a transfer of `first`.
    func call(_ id: CallID, toTransfer first: CallID) throws(SignalingError) -> CallSession {
        if let call = self[id]?.session { return call }
        let cause = id == first ? "it is not answered, or has ended" : "\(id) is not answered, or has ended"
        throw SignalingError(.inviteEnded, activity: "transfer \(first)", cause: cause)
    }

    /// Takes one of the transfers that the peers of calls may ask for.
    ///
    /// - Returns: Whether there was one for this peer.
    mutating func takeTransfer(of peer: UserID, at now: Instant) -> Bool { transfers.take(peer, at: now) }

    /// A signal of an application to the peer of a call.
    func signal(_ type: String, _ data: JSONValue, on id: CallID) throws(SignalingError) -> CallSignal {
        guard let call = self[id]?.session, let invite = call.inviteID else {
            throw SignalingError(.unknownCall, activity: "send a signal to the peer", cause: "there is no \(id)")
        }
        return CallSignal(invite: invite, type: type, data: data, peer: call.namedPeer)
    }

    var isEmpty: Bool { calls.isEmpty }

    /// Calls that continue, without this one.
    func ongoingCount(besides id: CallID? = nil) -> Int {
        calls.count { $0.key != id && $0.value.session.isOngoing }
    }

    var ids: [CallID] { Array(calls.keys) }

    /// The oldest first.
    var inOrder: [ActiveCall] { calls.values.sorted { $0.session.id.number < $1.session.id.number } }

    /// What a line of the log says of the call that it is about: its number here, and what the other end and the service know it by.
    func about(_ id: CallID) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["call": "\(id)"]
        if let invite = calls[id]?.session.inviteID { metadata["invite"] = "\(invite)" }
        return metadata
    }

    // MARK: Searches. A few calls at most begin or end at once: a scan is as good as an index.

    func id(of invite: InviteID) -> CallID? { calls.first { $0.value.session.inviteID == invite }?.key }

    /// The call that this device made with an idempotency key.
    func id(ofKey key: IdempotencyKey) -> CallID? { calls.first { $0.value.session.idempotencyKey == key }?.key }

    /// The call whose media, or the connection of its media, the media engine knows by this name.
    func id(of media: MediaCallID) -> CallID? { calls.first { $0.value.session.goes(by: media) }?.key }

    /// Streams of continuing calls that no media worker runs yet, without this call's.
    ///
    /// - Parameter legs: Those of bots, and the behaviour whose calls have them; nil if bots have none.
    func unplacedCount(besides id: CallID?, legs: (all: BotLegs, behaviour: String)? = nil) -> Int {
        calls.reduce(0) { sum, call in
            let session = call.value.session
            guard call.key != id, session.isOngoing else { return sum }
            let isUnplaced = session.stream == nil
            let leg = legs.map { legs in
                legs.all.isUnplaced(of: session, isExpected: isUnplaced && session.behaviour == legs.behaviour)
            }
            return sum + (isUnplaced ? 1 : 0) + (leg == true ? 1 : 0)
        }
    }

    /// Whether another call than these uses the sound card.
    func isCardTaken(besides ids: [CallID?]) -> Bool {
        calls.contains { !ids.contains($0.key) && $0.value.session.usesCard && $0.value.session.isOngoing }
    }

    /// The media of a call that uses the sound card and runs; nil if there is none.
    var mediaOnCard: MediaCallID? {
        calls.values.lazy.filter(\.session.usesCard).compactMap(\.session.runningStream).first
    }
}
