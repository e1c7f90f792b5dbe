public import Core

/// One invite as its inviter lives it, until every invitee is done (contract INV-1, 3, 6 to 9).
public struct OutgoingInviteMachine: ProtocolCore, Hashable, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// Send it.
        case send
        /// The service took it.
        case sent(InviteID, invitees: [UserID])
        /// The service did not take it.
        case sendFailed(SignalingError)
        case accepted(InviteAnswer)
        case rejected(InviteAnswer)
        /// The exchange's timer fired for these.
        case timedOut([UserID])
        /// Take it back.
        case cancel(InviteWithdrawal)
        case cancelConfirmed
        case cancelFailed(SignalingError)
        /// The exchange says that every invitee is done.
        case endedByService
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        case sendInvite(InviteOptions)
        case sendCancel(InviteID, InviteWithdrawal)
        case accepted(InviteAnswer)
        case rejected(InviteAnswer)
        /// None of these answered in time.
        case timedOut([UserID])
        /// Every invitee is done, or none can answer any more; emitted once.
        case ended(End)
        /// The request came too late (INV-6).
        case refused(SignalingError)
    }

    /// How an invite ends for its inviter.
    public enum End: Hashable, Sendable {
        /// Every invitee accepted, rejected or timed out.
        case done
        case cancelled
        case failed(SignalingError)
    }

    enum State: Hashable, Sendable {
        case unsent
        case sending(deadline: Instant)
        /// Cancelled before the service had given it an id.
        case sendingToCancel(InviteWithdrawal, deadline: Instant)
        case pending(InviteID, waitingFor: [UserID], deadline: Instant?)
        /// `waitingFor` and `limit` are for when the service does not take the cancel.
        case cancelling(InviteID, waitingFor: [UserID], limit: Instant?, deadline: Instant)
        case ended(End)
    }

    var current = State.unsent
    private let options: InviteOptions
    private let timings: InviteTimings

    /// Makes an invite that has not been sent.
    public init(_ options: InviteOptions, timings: InviteTimings = InviteTimings()) {
        self.options = options
        self.timings = timings
    }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch current {
        case .unsent, .ended: nil
        case .sending(let deadline), .sendingToCancel(_, let deadline), .cancelling(_, _, _, let deadline): deadline
        case .pending(_, _, let deadline): deadline
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (current, input) {
        case (.unsent, .send):
            current = .sending(deadline: now.advanced(by: timings.requestTimeout))
            outbox.append(.sendInvite(options))
        case (.unsent, .cancel):
            end(.cancelled, into: &outbox)

        case (.sending, .sent(let invite, let invitees)):
            let deadline = options.timeToLive.map { now.advanced(by: $0).advanced(by: timings.grace) }
            current = .pending(invite, waitingFor: invitees, deadline: deadline)
        case (.sendingToCancel(let withdrawal, _), .sent(let invite, let invitees)):
            let limit = options.timeToLive.map { now.advanced(by: $0).advanced(by: timings.grace) }
            cancel(invite, invitees, limit, withdrawal, at: now, into: &outbox)
        case (.sending, .sendFailed(let error)):
            end(.failed(error), into: &outbox)
        case (.sending(let deadline), .timerFired) where now >= deadline:
            end(.failed(Self.unsent(timings.requestTimeout)), into: &outbox)
        case (.sending(let deadline), .cancel(let withdrawal)):
            current = .sendingToCancel(withdrawal, deadline: deadline)
        case (.sendingToCancel, .sendFailed), (.cancelling, .cancelConfirmed):
            end(.cancelled, into: &outbox)
        case (.cancelling(_, let waiting, _, _), .endedByService):
            // Its end may come before the answer to our cancel.
            end(waiting.isEmpty ? .done : .cancelled, into: &outbox)
        case (.sendingToCancel(_, let deadline), .timerFired) where now >= deadline,
            (.cancelling(_, _, _, let deadline), .timerFired) where now >= deadline:
            end(.cancelled, into: &outbox)

        case (.pending(let invite, let waiting, let deadline), _):
            whilePending(input, invite, waiting, deadline, at: now, into: &outbox)

        // Cancel and an answer crossed on the way; what the exchange saw first counts.
        case (.cancelling, .accepted(let answer)):
            outbox.append(.accepted(answer))
            settle([answer.invitee])
        case (.cancelling, .rejected(let answer)):
            outbox.append(.rejected(answer))
            settle([answer.invitee])
        case (.cancelling, .timedOut(let invitees)):
            outbox.append(.timedOut(invitees))
            settle(invitees)
        case (.cancelling(let invite, let waiting, let limit, _), .cancelFailed(let error)):
            outbox.append(.refused(error))
            if error.code == .inviteEnded || error.code == .unknownInvite || waiting.isEmpty {
                end(.done, into: &outbox)
            } else {
                current = .pending(invite, waitingFor: waiting, deadline: limit)
            }

        case (.ended, .cancel), (.cancelling, .cancel), (.sendingToCancel, .cancel):
            outbox.append(.refused(Self.endedAlready))
        case (.unsent, _), (.sending, _), (.sendingToCancel, _), (.cancelling, _), (.ended, _):
            break  // Out of turn, said twice, or woken early.
        }
    }

    private mutating func whilePending(
        _ input: Input, _ invite: InviteID, _ waiting: [UserID], _ deadline: Instant?, at now: Instant,
        into outbox: inout [Output]
    ) {
        switch input {
        case .accepted(let answer):
            outbox.append(.accepted(answer))
            settle([answer.invitee], invite, waiting, deadline, into: &outbox)
        case .rejected(let answer):
            outbox.append(.rejected(answer))
            settle([answer.invitee], invite, waiting, deadline, into: &outbox)
        case .timedOut(let invitees):
            outbox.append(.timedOut(invitees))
            settle(invitees, invite, waiting, deadline, into: &outbox)
        case .timerFired:
            guard let deadline, now >= deadline else { return }
            outbox.append(.timedOut(waiting))
            end(.done, into: &outbox)
        case .endedByService:
            end(.done, into: &outbox)
        case .cancel(let withdrawal):
            cancel(invite, waiting, deadline, withdrawal, at: now, into: &outbox)
        case .send, .sent, .sendFailed, .cancelConfirmed, .cancelFailed:
            break  // Out of turn, or said twice.
        }
    }

    private mutating func cancel(
        _ invite: InviteID, _ waiting: [UserID], _ limit: Instant?, _ withdrawal: InviteWithdrawal,
        at now: Instant, into outbox: inout [Output]
    ) {
        current = .cancelling(
            invite, waitingFor: waiting, limit: limit, deadline: now.advanced(by: timings.requestTimeout))
        outbox.append(.sendCancel(invite, withdrawal))
    }

    private mutating func settle(
        _ done: [UserID], _ invite: InviteID, _ waiting: [UserID], _ deadline: Instant?, into outbox: inout [Output]
    ) {
        let remaining = Self.remaining(of: waiting, without: done)
        current = .pending(invite, waitingFor: remaining, deadline: deadline)
        if remaining.isEmpty { end(.done, into: &outbox) }
    }

    /// Notes who has answered while the invite is being taken back.
    private mutating func settle(_ done: [UserID]) {
        guard case .cancelling(let invite, let waiting, let limit, let deadline) = current else { return }
        let remaining = Self.remaining(of: waiting, without: done)
        current = .cancelling(invite, waitingFor: remaining, limit: limit, deadline: deadline)
    }

    /// A single invitee may answer under another of its names, so its answer settles the invite under any name.
    private static func remaining(of waiting: [UserID], without done: [UserID]) -> [UserID] {
        waiting.count == 1 && !done.isEmpty ? [] : waiting.filter { !done.contains($0) }
    }

    private mutating func end(_ end: End, into outbox: inout [Output]) {
        current = .ended(end)
        outbox.append(.ended(end))
    }

    private static func unsent(_ timeout: Duration) -> SignalingError {
        SignalingError(
            .timedOut, activity: "send the invite", cause: "the service did not take it within \(timeout.text)")
    }

    private static var endedAlready: SignalingError {
        SignalingError(.inviteEnded, activity: "cancel the invite", cause: "it has ended, or is being cancelled")
    }
}

/// How long invite machines wait for the service.
public struct InviteTimings: Hashable, Sendable {
    /// For the answer to a request. Default 10 s.
    public var requestTimeout: Duration = .seconds(10)
    /// How long after the ttl the device's own timer fires, so that the exchange can report the timeout first (contract
    /// INV-8). Default 500 ms.
    public var grace: Duration = .milliseconds(500)

    /// How long an incoming invite rings at most, even if its ttl is longer: then this device rejects it, so that the inviter
    /// is notified (contract INV-9). Default a day, the longest ttl.
    public var answerLimit: Duration = .seconds(86_400)

    /// Makes the defaults.
    public init() {}
}
