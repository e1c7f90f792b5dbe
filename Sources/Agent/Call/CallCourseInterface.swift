package import AudioKit
package import CallControl
package import CallMedia
package import CallParticipation
package import VoiceActivity

// What the course of a call takes and orders.
extension CallCourse {
    /// The inputs.
    package enum Input: Sendable {
        /// The call begins: it was dialled, or its invite arrived.
        case begin
        case user(UserRequest)
        case service(ServiceNotice)
        /// The peer signals about the call, with a kind that ``CallCourse/takes(_:by:)``.
        case peer(CallSignal)
        case media(MediaNotice)
        /// What the call's participant asks and reports; notices for the log are not the call's.
        case participant(ParticipantEvent, from: ParticipantKind)
        case device(DeviceNotice)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// Requests of the user, or of a policy on the user's behalf.
    package enum UserRequest: Sendable {
        /// Take the call, after a delay.
        case answer(after: Duration)
        /// Take the call in another part after this time, unless it is taken or declined before.
        case passOn(after: Duration, to: CallPart)
        /// Decline it; the caller receives the cause beside the reason.
        case reject(RejectReason, cause: CallFailureCause?)
        /// Hang up, cancel or decline, whichever fits; the record has the cause, if there is one.
        case hangUp(because: CallRecord.HangUpCause?)
        /// Press keys over signaling.
        case sendKeys([Character])
        /// A participant was attached to the running call.
        case attached
        /// The participant leaves the call, which continues.
        case detach
        /// The participant that was to be attached could not take part.
        case attachingFailed
        /// A recording in mid-call has begun, to this file.
        case recordingBegan(path: String)
        /// The recording in mid-call is to end.
        case recordingStopped
    }

    /// Reports of the signaling service.
    package enum ServiceNotice: Sendable {
        /// An event about the call or its invite.
        case event(CallMachine.ServiceEvent)
        /// The service has taken our accept; its confirmation follows.
        case acceptTaken
        /// What came of a probe; nil if it could not be sent.
        case probed(PeerProbe?)
    }

    /// Reports of the call's media (`MediaControl`).
    package enum MediaNotice: Sendable {
        /// What the call's machine expects of the media.
        case report(CallMachine.MediaReport)
        /// The callee's answer was applied (``MediaOrder/applyAnswer(_:)``).
        case answerApplied
        /// The connection has failed.
        case connectionFailed(MediaFailure)
        /// A media worker runs the call, and records it to this file, if any.
        case started(recording: String?)
        /// A file of the call has failed, which may be the one that is recorded to.
        case fileFailed(AudioFileError)
        /// The connection has found a candidate for this media section; nil when there are no more.
        case candidate(String?, mid: String)
        /// The connection knows the peer's description.
        case peerIsKnown
        /// Our answer to the peer's new offer; with `owesRestart` our own offer gave way and is made again.
        case answered(CallDescription, owesRestart: Bool)
        /// Our new offer, which restarts ICE or which the peer has asked for.
        case offered(CallDescription, restartsICE: Bool)
        /// The peer's new offer was not taken; with a fault it could not be.
        case offerNotTaken(fault: String?)
        /// The answer to our new offer could not be used.
        case answerNotTaken(fault: String)
        /// No offer could be made at the peer's request; with a fault although media runs.
        case nothingOffered(fault: String?)
        /// New ICE credentials could not be offered.
        case restartFailed(String)
        /// The answer to ``MediaOrder/observe``.
        case observed(SilenceWatch.Observation)
        /// The peer does not answer on any path.
        case quiet
        /// The peer answers again.
        case back
        /// The peer has pressed a key, which the media carried.
        case digit(Character, heldFor: Duration)
        /// The call's file was played to its end.
        case playbackEnded
        /// No media worker runs the call, or does any more.
        case over
    }

    /// What the device and its other calls have to do with this one.
    package enum DeviceNotice: Sendable {
        /// The call that an invite replaces this one by is about to be accepted, with that peer.
        case successorConnects(UserID)
        /// It has ended.
        case successorEnded
        /// It was answered: this call ends.
        case replaced(by: UserID)
        /// Whether the transfer that the peer asks for is carried out.
        case decided(CallTransfer.Request, isAdmitted: Bool)
        /// The call to the target of the transfer was made.
        case successorPlaced(CallID, to: UserID)
        /// How that call proceeds.
        case successor(CallID, CallTransfer.Progress)
        /// The user that the participant's target names; nil if the participant may not transfer the call there.
        case judged(UserID?)
        /// The call's record is on disk, or is not to be.
        case recordKept
    }

    /// The outputs.
    package enum Output: Sendable {
        case service(ServiceOrder)
        case media(MediaOrder)
        case participant(ParticipantOrder)
        case device(DeviceOrder)
        case event(CallEvent)
        case note(CallNote)
    }

    /// What is handed to the signaling service, in order.
    package enum ServiceOrder: Sendable {
        /// The answer comes as ``CallMachine/ServiceEvent/inviteSent(_:invitees:)`` or ``CallMachine/ServiceEvent/inviteFailed(_:)``.
        case invite(InviteOptions)
        case cancel(InviteID, InviteWithdrawal)
        case accept(InviteID, InviteAcceptance)
        case reject(InviteID, InviteRejection)
        case hangUp(CallHangUp)
        case signal(CallSignal)
        /// ``ServiceNotice/probed(_:)`` follows.
        case probe(InviteID, peer: UserID?)
    }

    /// What the call's media is to do.
    package enum MediaOrder: Sendable {
        /// Get ready to receive, and report the offer.
        case makeOffer
        /// Get ready to receive what suits the offer, and report the answer, or the offer if the peer leaves that to us.
        case makeAnswer(to: CallDescription)
        /// Take the answer to our first offer.
        case applyAnswer(CallDescription)
        /// Take an answer that comes before the call is answered.
        case hearEarly(CallDescription)
        /// Report what was found out before the call was answered.
        case reportEarly
        /// Take the peer's new offer; `isInviter` says whether ours counts if the two have crossed.
        case answerOffer(CallDescription, isInviter: Bool)
        /// Take an answer to our new offer, or to the one in our accept if `mayBeFirst`.
        case acceptAnswer(CallDescription, mayBeFirst: Bool)
        /// Play and record this, which no media has begun to.
        case play(AudioBehaviour)
        /// Make an offer that the peer has asked for.
        case offerAgain
        /// Take back our new offer, which the peer has refused.
        case withdrawOffer
        /// Offer new ICE credentials.
        case restartICE
        /// Candidates of the peer for the connection.
        case add([CallCandidate])
        /// The peer has answered by signaling: sound to it needs no limit any more, if it is at this host; nil if its host is unknown.
        case liftSoundLimit(host: String?)
        /// Look whether anything comes from the peer; ``MediaNotice/observed(_:)`` follows.
        case observe
        /// Log that the peer has sent no sound for this time, if it has sent none.
        case checkSound(after: Duration)
        /// Press keys at the request of the participant, which is notified if that fails.
        case press(keys: String)
        /// Stop, also before a media worker runs the call.
        case release
        /// Stop the stream; ``MediaNotice/over`` follows.
        case stop
    }

    /// What the call's participant is to do.
    package enum ParticipantOrder: Sendable {
        /// Begin, if the participant delays the answer. ``ParticipantEvent/ready(_:)`` follows, at once from a participant that does not.
        case summon
        /// The callee rings.
        case ring
        case sendDigit(Character, heldFor: Duration)
        case noteTransfer(to: UserID, CallTransfer.Progress)
        case refuse(ParticipantRequest, why: String)
        case hearOut
        case end(ParticipationEnd)
    }

    /// What only the device knows, or does.
    package enum DeviceOrder: Sendable {
        /// Decide whether the call that came in is answered.
        case decide
        /// The call has another part than the one in which it rang, and is about to be answered.
        case passedOn
        /// Decide whether the transfer that the peer asks for is carried out; ``DeviceNotice/decided(_:isAdmitted:)`` follows.
        case consider(CallTransfer.Request)
        /// Judge the target that the participant names; ``DeviceNotice/judged(_:)`` follows.
        case judge(target: String)
        /// Call the target of a transfer; ``DeviceNotice/successorPlaced(_:to:)`` follows.
        case placeSuccessor(UserID, CallTransfer.Origin)
        /// Feed another call.
        case inform(CallID, DeviceNotice)
        /// The call has ended, except that its media and its record may not be finished.
        case ended(CallRecord)
        /// Put the record on disk; ``DeviceNotice/recordKept`` follows.
        case keep(CallRecord, TurnSummary?)
        /// The call, its media and its record are finished: nothing follows.
        case over(CallRecord)
    }
}

/// Events of a call for the program that runs its device.
package enum CallEvent: Hashable, Sendable {
    /// The service knows the call by this id.
    case identified(InviteID)
    case incoming(from: UserID)
    case answered
    case established(after: Duration)
    case flowing(after: Duration, establishedAfter: Duration)
    case playbackEnded
    case recording(path: String)
    case attached
    case detached
    case digit(Character, heldFor: Duration)
    case speech(isOver: Bool, at: Duration)
    case interrupted(played: Duration)
    case responded(after: Duration)
    case transferRequested(to: UserID, isAccepted: Bool)
    case transferProgress(to: UserID, CallTransfer.Progress)
}

/// What a call's log says of its decisions.
package enum CallNote: Hashable, Sendable {
    /// The call has failed, with this record.
    case failed(CallRecord)
    /// A request came too late.
    case tooLate(SignalingError)
    /// The participant does not accept the call.
    case notAccepted(why: String)
    /// Nothing comes on any path; another one is looked for.
    case pathLost
    /// The peer is back.
    case pathBack
    case restartingICE
    case restartFailed(why: String)
    /// The peer's new offer cannot be used; the call continues as it was.
    case offerUnusable(why: String)
    /// The peer's answer to our new offer cannot be used; the call continues as it was.
    case answerUnusable(why: String)
    /// The peer asked for an offer, and none can be made.
    case nothingOffered(why: String)
    /// Nothing comes from the peer, which is probed.
    case probing(isOnHold: Bool)
    /// The callee is heard before it answers.
    case heardEarly
    /// The callee is not heard before it answers.
    case notHeardEarly(why: String)
    /// The peer's first packet has come.
    case firstPacket
    /// The peer has sent no sound, and the call is established for this time.
    case silent(for: Duration)
    /// The peer is gone, and the call ends.
    case peerGone(PeerProbe.Cause)
    /// The call has reached its longest duration, and ends.
    case longestDuration
    /// The participant transfers the call.
    case participantTransfers(to: UserID)
    /// The peer asks for a transfer.
    case transferRequested(to: UserID, isAccepted: Bool)
}
