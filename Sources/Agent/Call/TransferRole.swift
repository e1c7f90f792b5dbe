internal import CallControl
internal import CallParticipation

/// A call's part in transfers (contract CALL-8): what is asked of it, and which calls it takes the place of, or give way to.
struct TransferRole {
    private enum State {
        case idle
        /// We have asked the peer to call another user in our place.
        case asked(UserID)
        /// The peer has asked us, and this call is to take the place of ours.
        case placing(CallID, UserID)
    }

    private var state = State.idle
    /// What the peer has asked for before the service confirmed to us that the call is answered. The last request counts.
    private var waitingRequest: CallTransfer.Request?
    /// The target of the participant's transfer, until the same.
    private var waitingTarget: UserID?
    /// The peer of the call that an invite replaces this one by, while that is about to be accepted.
    private var successor: UserID?
    /// Who has taken the place of one of the call's sides.
    private var replacement: UserID?

    /// Our call that this one replaces at its caller's request, once it is answered.
    let replaces: CallID?
    /// Our call whose peer asked for this one, and which ends when this one is answered.
    let origin: CallID?
    /// The user who asked for this call; nil if none did.
    let requester: UserID?

    init(replaces: CallID? = nil, origin: CallID? = nil, requester: UserID? = nil) {
        self.replaces = replaces
        self.origin = origin
        self.requester = requester
    }

    /// Whether another transfer has to wait.
    var isUnderWay: Bool {
        switch state {
        case .idle: false
        case .asked, .placing: true
        }
    }

    /// Who takes the call's place, as far as is known, for its record.
    var heir: UserID? { replacement ?? successor }

    // MARK: Before the call is answered

    mutating func wait(_ request: CallTransfer.Request) { waitingRequest = request }

    mutating func wait(_ target: UserID) { waitingTarget = target }

    mutating func takeWaitingRequest() -> CallTransfer.Request? {
        defer { waitingRequest = nil }
        return waitingRequest
    }

    mutating func takeWaitingTarget() -> UserID? {
        defer { waitingTarget = nil }
        return waitingTarget
    }

    // MARK: A transfer of this call

    /// The peer is asked to call a user.
    mutating func ask(_ target: UserID) { state = .asked(target) }

    /// The peer reports its progress.
    ///
    /// - Returns: The user that it was asked to call; nil if it was not asked.
    mutating func note(_ progress: CallTransfer.Progress) -> UserID? {
        guard case .asked(let target) = state else { return nil }
        end(progress, with: target)
        return target
    }

    /// The call to the user that the peer names was made.
    mutating func place(_ call: CallID, to target: UserID) { state = .placing(call, target) }

    /// That call proceeds.
    ///
    /// - Returns: The user; nil if this is another call.
    mutating func note(_ progress: CallTransfer.Progress, of call: CallID) -> UserID? {
        guard case .placing(call, let target) = state else { return nil }
        end(progress, with: target)
        return target
    }

    private mutating func end(_ progress: CallTransfer.Progress, with target: UserID) {
        guard progress.isFinal else { return }
        state = .idle
        if progress == .accepted { replacement = target }
    }

    // MARK: An invite that replaces this call

    mutating func noteSuccessor(_ peer: UserID?) { successor = peer }

    mutating func noteReplaced(by peer: UserID) { replacement = peer }
}
