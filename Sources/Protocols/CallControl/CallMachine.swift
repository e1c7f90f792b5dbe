public import Core

/// One call from invite to end, incoming or outgoing (contract CALL-1 to 3, 5).
///
/// It contains the invite's machine while there is an invite to settle. After any sequence of inputs it ends exactly once,
/// with one reason and one record.
public struct CallMachine: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// The call begins: it was dialled, or its invite arrived.
        case begin
        case user(UserAction)
        case media(MediaReport)
        case service(ServiceEvent)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// Requests of the user, or of a policy on the user's behalf.
    public enum UserAction: Hashable, Sendable {
        case answer
        case reject(RejectReason, cause: CallFailureCause? = nil)
        case hangUp
        /// Another call has taken this one's place (contract CALL-8).
        case handOver
    }

    /// Events of the media side.
    public enum MediaReport: Hashable, Sendable {
        /// Media can be received from now on; `description` is the offer or answer for the peer.
        case ready(description: CallDescription)
        /// There is a path to the peer. The call can carry media once it has keys, too.
        case pathFound
        /// The call can carry media. With `isVerified` ICE or a handshake has reached the peer; without it the peer is
        /// where its description says, and only the answer's confirmation shows that it is there.
        case connected(isVerified: Bool)
        /// Media flows both ways.
        case flowing
        /// Media could not be set up, or broke.
        case failed(MediaFailure)
        /// The peer's media is gone and will not come back.
        case lost
    }

    /// Events of the service about the call's invite, or of the peer about the call.
    public enum ServiceEvent: Hashable, Sendable {
        // To the caller.
        case inviteSent(InviteID, invitees: [UserID])
        case inviteFailed(SignalingError)
        case accepted(InviteAnswer)
        case rejected(InviteAnswer)
        case cancelConfirmed
        case cancelFailed(SignalingError)
        case inviteEnded

        // To the one who is called.
        case answerConfirmed
        case answerFailed(SignalingError)
        case handledElsewhere(InviteHandling.Action)
        case cancelled
        /// The caller has received our answer. Only expected by a machine made with `awaitsAcknowledgement`.
        case acknowledged

        // To both.
        case timedOut([UserID])
        case hungUp(CallHangUp)
        /// This device disconnects from the service on purpose (CONN-9).
        case disconnected
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        /// Get ready to receive media and describe it.
        case prepareOffer
        /// Get ready to receive media that suits the offer, and describe it.
        case prepareAnswer(offer: CallDescription)
        /// The peer's description has come.
        case applyAnswer(CallDescription)
        case releaseMedia

        case sendInvite(InviteOptions)
        case sendCancel(InviteID, InviteWithdrawal)
        case sendAccept(InviteID, InviteAcceptance)
        case sendReject(InviteID, InviteRejection)
        case sendHangUp(CallHangUp)

        /// An invite waits for an answer.
        case ringing
        /// The invitee took the call, which may not be able to carry media yet.
        case answered
        /// The call can carry media, since that time after its invite (contract CALL-2).
        case established(after: Duration)
        /// Media flows both ways; at most once, after `established`. Both times count from the invite.
        case flowing(after: Duration, establishedAfter: Duration)
        case ended(CallRecord)
        /// The request came too late (INV-10).
        case refused(SignalingError)
    }

    enum State: Hashable, Sendable {
        case new
        case preparingOffer(deadline: Instant)
        case inviting(OutgoingInviteMachine, rejection: RejectReason?)
        /// Hung up before an answer; the service has not confirmed it yet.
        case withdrawing(OutgoingInviteMachine)

        case ringing(IncomingInviteMachine)
        case preparingAnswer(IncomingInviteMachine, deadline: Instant)
        case accepting(IncomingInviteMachine)
        case rejecting(IncomingInviteMachine)

        case settingUp(InviteID, answeredAt: Instant, deadline: Instant)
        case established(InviteID, answeredAt: Instant, since: Instant)
        case ended(CallRecord)
    }

    enum Origin: Hashable, Sendable {
        case dialled(InviteOptions)
        case received(ReceivedInvite)
    }

    var current = State.new
    let origin: Origin
    let timings: CallTimings
    /// The record as far as it is known.
    var draft: CallRecord
    /// When the invite was sent or received: set-up is measured from here.
    var invitedAt = Instant.zero
    /// What is known of the call's media before it is established.
    var setUp = CallSetUp()

    /// Makes a call to one user, or to several: the first to accept gets it, and the others are released. The
    /// machine adds the offer to the options.
    public init(dialling options: InviteOptions, timings: CallTimings = CallTimings()) {
        self.init(.dialled(options), .outgoing, invite: nil, peer: options.to, timings)
    }

    /// What the invite says of a call that came from, or through, a telephone network; nil for others and for outgoing calls.
    public var trunk: TrunkCall? {
        switch origin {
        case .received(let invite): invite.trunk
        case .dialled: nil
        }
    }

    /// Whether the call was rejected, which the service has not confirmed yet.
    public var isRejecting: Bool { if case .rejecting = current { true } else { false } }

    /// Makes an incoming call.
    ///
    /// - Parameter awaitsAcknowledgement: Whether the service confirms an accept before the caller has received the answer,
    ///   and reports that as ``ServiceEvent/acknowledged``: over SIP, by the ACK.
    public init(
        receiving invite: ReceivedInvite, timings: CallTimings = CallTimings(), awaitsAcknowledgement: Bool = false
    ) {
        self.init(.received(invite), .incoming, invite: invite.id, peer: invite.inviter, timings)
        setUp.isAcknowledged = !awaitsAcknowledgement
    }

    private init(
        _ origin: Origin, _ direction: CallRecord.Direction, invite: InviteID?, peer: UserID, _ timings: CallTimings
    ) {
        self.origin = origin
        self.timings = timings
        draft = CallRecord(
            invite: invite, direction: direction, peer: peer, began: .zero, duration: .zero, reason: .internalError,
            endedBy: .neither)
    }

    /// The other side.
    public var peer: UserID { draft.peer }

    /// The one of several invitees that the call is with, to be named to the service; nil if that is not in doubt.
    public var namedPeer: UserID? {
        guard case .dialled(let options) = origin, options.invitees.count > 1, draft.answeredAfter != nil else {
            return nil
        }
        return draft.peer
    }

    /// Whether what `user` says about the invite is about this call.
    public func isWith(_ user: UserID?) -> Bool { namedPeer == nil || namedPeer == user }

    /// Whether we dialled.
    public var isOutgoing: Bool { draft.direction == .outgoing }

    /// The record, once the call has ended.
    public var record: CallRecord? {
        guard case .ended(let record) = current else { return nil }
        return record
    }

    /// Whether the call can carry media and has not ended (contract CALL-2).
    public var isEstablished: Bool {
        guard case .established = current else { return false }
        return true
    }

    /// Whether the call was answered and has not ended; it may not be established yet.
    public var isAnswered: Bool {
        switch current {
        case .settingUp, .established: true
        case .new, .preparingOffer, .inviting, .withdrawing, .ringing, .preparingAnswer, .accepting, .rejecting, .ended:
            false
        }
    }

    /// The call's progress.
    public var progress: CallProgress {
        switch current {
        case .new: isOutgoing ? .calling : .ringing
        case .preparingOffer, .inviting: .calling
        case .ringing: .ringing
        case .preparingAnswer, .accepting, .settingUp: .connecting
        case .established(_, _, let since): .established(since: since)
        case .withdrawing, .rejecting, .ended: .ending
        }
    }

    /// When `handle` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch current {
        case .new, .established, .ended: nil
        case .preparingOffer(let deadline), .settingUp(_, _, let deadline): deadline
        case .inviting(let invite, _), .withdrawing(let invite): invite.nextDeadline
        case .ringing(let invite), .accepting(let invite), .rejecting(let invite): invite.nextDeadline
        case .preparingAnswer(let invite, let deadline): invite.nextDeadline.map { min($0, deadline) } ?? deadline
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (current, input) {
        case (.new, .begin):
            begin(at: now, into: &outbox)
        case (.ended, .service(.accepted(let answer))) where isOutgoing && namedPeer != nil:
            letGo(answer, into: &outbox)
        case (.ended(let record), .user(.answer)), (.ended(let record), .user(.reject)):
            outbox.append(.refused(Self.over(record.reason)))
        case (.new, _), (.ended, _), (_, .begin):
            break  // Not yet, no more, or begun already.
        case (_, .service(.accepted(let answer))) where !isWith(answer.invitee):
            letGo(answer, into: &outbox)
        case (_, .service(.hungUp(let details))) where !isWith(details.from):
            break  // One who was let go.
        case (_, .service(.disconnected)):
            end(.disconnected, by: .local, at: now, into: &outbox)

        case (.preparingOffer(let deadline), _):
            whilePreparingOffer(input, deadline, at: now, into: &outbox)
        case (.inviting(let invite, let rejection), _):
            whileInviting(input, invite, rejection, at: now, into: &outbox)
        case (.withdrawing(let invite), _):
            whileWithdrawing(input, invite, at: now, into: &outbox)
        case (.ringing(let invite), _):
            whileRinging(input, invite, at: now, into: &outbox)
        case (.preparingAnswer(let invite, let deadline), _):
            whilePreparingAnswer(input, invite, deadline, at: now, into: &outbox)
        case (.accepting(let invite), _):
            whileAccepting(input, invite, at: now, into: &outbox)
        case (.rejecting(let invite), _):
            whileRejecting(input, invite, at: now, into: &outbox)
        case (.settingUp(let invite, let answeredAt, let deadline), _):
            whileSettingUp(input, invite, answeredAt, deadline, at: now, into: &outbox)
        case (.established(let invite, let answeredAt, let since), _):
            whileEstablished(input, invite, answeredAt, since, at: now, into: &outbox)
        }
    }

    private mutating func begin(at now: Instant, into outbox: inout [Output]) {
        draft.began = now
        invitedAt = now
        switch origin {
        case .dialled:
            current = .preparingOffer(deadline: now.advanced(by: timings.prepareTimeout))
            outbox.append(.prepareOffer)
        case .received(let invite):
            current = .ringing(
                IncomingInviteMachine(invite.id, remaining: invite.remaining, timings: timings.invite, at: now))
            outbox.append(.ringing)
        }
    }

    private static func over(_ reason: CallEndReason) -> SignalingError {
        let code: SignalingError.Code =
            switch reason {
            case .acceptedElsewhere, .declinedElsewhere: .alreadyHandled
            case .noAnswer: .inviteTimedOut
            case .cancelled: .inviteCancelled
            case .completed, .declined, .busy, .dialFailed, .acceptFailed, .connectionLost, .disconnected,
                .internalError:
                .inviteEnded
            }
        return SignalingError(code, activity: "answer the call", cause: "it has ended (\(reason.rawValue))")
    }
}

/// A call's progress, as seen from outside.
public enum CallProgress: Hashable, Sendable {
    /// It is outgoing and unanswered.
    case calling
    /// It came in, and waits for an answer.
    case ringing
    /// It was answered, and cannot carry media yet.
    case connecting
    /// It has been able to carry media since then.
    case established(since: Instant)
    /// It has ended, except that the service has not confirmed everything yet.
    case ending
}

/// How long a call machine waits for each step.
public struct CallTimings: Hashable, Sendable {
    /// For media to be prepared. Default 5 s.
    public var prepareTimeout: Duration = .seconds(5)
    /// From the accept to a path and keys. Default 10 s.
    public var setUpTimeout: Duration = .seconds(10)
    /// From the accept to the caller's acknowledgement, where the service waits for one. Default 40 s: SIP repeats its
    /// answer for 32 s (RFC 3261 §13.3.1.4), and then ends the call itself.
    public var acknowledgementTimeout: Duration = .seconds(40)
    /// For the invite.
    public var invite = InviteTimings()

    /// Makes the defaults.
    public init() {}
}
