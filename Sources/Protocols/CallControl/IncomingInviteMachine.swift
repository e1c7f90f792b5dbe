public import Core

/// One invite as one device of the invitee lives it, from ringing to its one end (contract INV-2 to 11).
public struct IncomingInviteMachine: ProtocolCore, Hashable, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// The user or the policy says yes.
        case accept(InviteAcceptance)
        /// The user or the policy says no.
        case reject(RejectReason, cause: CallFailureCause? = nil)
        /// The service took our answer.
        case answerConfirmed
        /// The service did not take our answer.
        case answerFailed(SignalingError)
        case handledElsewhere(InviteHandling.Action)
        case cancelled
        case timedOut
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        case sendAccept(InviteID, InviteAcceptance)
        case sendReject(InviteID, InviteRejection)
        /// The service accepted our answer: there is a call.
        case accepted
        /// It ended without a call; emitted once.
        case ended(End)
        /// The request came too late (INV-10).
        case refused(SignalingError)
    }

    /// How an invite ends for a device that does not get the call.
    public enum End: Hashable, Sendable {
        case rejected(RejectReason)
        case handledElsewhere(InviteHandling.Action)
        case cancelled
        case timedOut
        /// Our answer could not be given.
        case failed(SignalingError)
    }

    enum State: Hashable, Sendable {
        /// At `limit` we reject it as unanswered; at `deadline`, if it has one, it has timed out.
        case ringing(deadline: Instant?, limit: Instant)
        /// The answer to our accept decides. An event of the invite may overtake it: a member of the invite's group is notified that the
        /// inviter has withdrawn it from the others. `event` is how the invite ended if that answer does not come, or does not say it.
        case accepting(deadline: Instant, event: End?)
        case rejecting(RejectReason, deadline: Instant)
        case accepted
        case ended(End)
    }

    /// The invite.
    public let invite: InviteID
    var current: State
    private let timings: InviteTimings

    /// Makes a ringing invite.
    ///
    /// - Parameters:
    ///   - remaining: The remaining ttl; `nil`: no timeout (INV-9).
    ///   - now: When it arrived.
    public init(
        _ invite: InviteID, remaining: Duration?, timings: InviteTimings = InviteTimings(), at now: Instant
    ) {
        self.invite = invite
        self.timings = timings
        current = .ringing(
            deadline: remaining.map { now.advanced(by: $0).advanced(by: timings.grace) },
            limit: now.advanced(by: timings.answerLimit))
    }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch current {
        case .ringing(let deadline, let limit): min(deadline ?? limit, limit)
        case .accepting(let deadline, _), .rejecting(_, let deadline): deadline
        case .accepted, .ended: nil
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (current, input) {
        case (.ringing, .accept(let acceptance)):
            current = .accepting(deadline: now.advanced(by: timings.requestTimeout), event: nil)
            outbox.append(.sendAccept(invite, acceptance))
        case (.ringing, .reject(let reason, let cause)):
            reject(reason, cause: cause, at: now, into: &outbox)

        case (.accepting, .answerConfirmed):
            current = .accepted
            outbox.append(.accepted)
        case (.rejecting(let reason, _), .answerConfirmed):
            end(.rejected(reason), into: &outbox)
        case (.accepting(_, let event), .answerFailed(let error)):
            switch (End(error), event) {
            case (.failed, let event?): end(event, into: &outbox)
            // The answer does not say what another device did with it.
            case (.handledElsewhere, .handledElsewhere(let action)?): end(.handledElsewhere(action), into: &outbox)
            case (let answer, _): end(answer, into: &outbox)
            }
        case (.rejecting(let reason, _), .answerFailed(let error)):
            let told = End(error)
            // It stopped ringing and no other device took it, so our rejection counts even if the service did not receive
            // it.
            if case .failed = told { end(.rejected(reason), into: &outbox) } else { end(told, into: &outbox) }

        case (.ringing, .handledElsewhere(let action)), (.rejecting, .handledElsewhere(let action)):
            end(.handledElsewhere(action), into: &outbox)
        case (.ringing, .cancelled), (.rejecting, .cancelled):
            end(.cancelled, into: &outbox)
        case (.ringing, .timedOut), (.rejecting, .timedOut):
            end(.timedOut, into: &outbox)
        case (.accepting(let deadline, let event), .handledElsewhere(let action)):
            current = .accepting(deadline: deadline, event: event ?? .handledElsewhere(action))
        case (.accepting(let deadline, let event), .cancelled):
            current = .accepting(deadline: deadline, event: event ?? .cancelled)
        case (.accepting(let deadline, let event), .timedOut):
            current = .accepting(deadline: deadline, event: event ?? .timedOut)

        case (.ringing(let deadline?, _), .timerFired) where now >= deadline:
            end(.timedOut, into: &outbox)
        case (.ringing(_, let limit), .timerFired) where now >= limit:
            reject(.noAnswer, cause: nil, at: now, into: &outbox)
        case (.accepting(let deadline, let event), .timerFired) where now >= deadline:
            end(event ?? .failed(Self.unanswered(timings.requestTimeout)), into: &outbox)
        case (.rejecting(let reason, let deadline), .timerFired) where now >= deadline:
            end(.rejected(reason), into: &outbox)

        case (.accepting, .accept), (.accepting, .reject), (.rejecting, .accept), (.rejecting, .reject),
            (.accepted, .accept), (.accepted, .reject):
            outbox.append(.refused(Self.answeredAlready))
        case (.ended(let end), .accept), (.ended(let end), .reject):
            outbox.append(.refused(end.lateAnswer))

        case (.ringing, .answerConfirmed), (.ringing, .answerFailed), (_, .timerFired):
            break  // Not asked for, or woken early.
        case (.accepted, _), (.ended, _):
            break  // Late words, such as the `handled` that our own answer caused (INV-17).
        }
    }

    /// Whether a rejection has been sent and not yet confirmed.
    var isRejecting: Bool {
        guard case .rejecting = current else { return false }
        return true
    }

    private mutating func reject(
        _ reason: RejectReason, cause: CallFailureCause?, at now: Instant, into outbox: inout [Output]
    ) {
        current = .rejecting(reason, deadline: now.advanced(by: timings.requestTimeout))
        outbox.append(.sendReject(invite, InviteRejection(reason, cause: cause)))
    }

    private mutating func end(_ end: End, into outbox: inout [Output]) {
        current = .ended(end)
        outbox.append(.ended(end))
    }
}

extension IncomingInviteMachine {
    private static var activity: String { "answer the invite" }

    private static var answeredAlready: SignalingError {
        SignalingError(.alreadyHandled, activity: activity, cause: "this device has answered it already")
    }

    private static func unanswered(_ timeout: Duration) -> SignalingError {
        SignalingError(.timedOut, activity: activity, cause: "the service did not confirm it within \(timeout.text)")
    }
}

extension IncomingInviteMachine.End {
    /// The state of the invite that an error of the service implies.
    init(_ error: SignalingError) {
        switch error.code {
        case .alreadyHandled: self = .handledElsewhere(.accepted)
        case .inviteCancelled, .inviteEnded: self = .cancelled
        case .inviteTimedOut: self = .timedOut
        default: self = .failed(error)  // `Code` is open: services may have codes of their own.
        }
    }

    /// The error for an answer after this end.
    var lateAnswer: SignalingError {
        let activity = "answer the invite"
        return switch self {
        case .rejected: SignalingError(.alreadyHandled, activity: activity, cause: "this device rejected it")
        case .handledElsewhere:
            SignalingError(.alreadyHandled, activity: activity, cause: "another device answered first")
        case .cancelled: SignalingError(.inviteCancelled, activity: activity, cause: "the inviter cancelled it")
        case .timedOut: SignalingError(.inviteTimedOut, activity: activity, cause: "it timed out")
        case .failed(let error): error
        }
    }
}
