package import AudioKit
internal import AudioPort
package import CallControl
package import CallMedia
package import CallParticipation
package import Core
internal import VoiceActivity

/// The course of one call (contract CALL-1 to 8): its machine, and everything that joins signaling, media, participant and user in it.
///
/// `CallMachine` decides how the call is set up and ends. The course owns that machine and what lives as long as the call: candidates,
/// keys, transfers, the participation, recordings, the figures of turns, the watch of a peer that vanishes, and all deadlines. What the
/// media is to do for it, `MediaControl` does.
package struct CallCourse: ProtocolCore, Sendable {
    /// What an outgoing call reaches with the callee's answer, and an incoming one with its own.
    private enum Milestone {
        case answered
        case established(after: Duration)
        case flowing(after: Duration, establishedAfter: Duration)
    }

    private enum Ending {
        case running
        /// The machine has ended.
        case ended(CallRecord)
        /// The record is on disk, or is not kept; the media may still run.
        case kept(CallRecord)
        case over(CallRecord)
    }

    /// The call's name at its device.
    package let id: CallID
    /// What the call plays and records, and by which rules.
    package private(set) var part: CallPart
    /// The part in which the call is answered by itself; nil if that is the one in which it rings.
    private var laterPart: CallPart?
    private let traits: SignalingTraits
    private var machine: CallMachine
    private var invite: CallInvite
    private var candidates = CandidateExchange()
    private var keys = ReceivedKeys()
    private var transfers: TransferRole
    private var participation = Participation()
    private var recordings = CallRecordings()
    private var turns = TurnFigures()
    private var deadlines = CallDeadlines()
    /// Notices that the peer has vanished; nil before the call is established, or if that is turned off.
    private var watch: SilenceWatch?
    /// Notes of what the peer asks for, which it may do without end: twenty at once, and ten a minute.
    private var askedNotes = LogLimit(burst: 20, perSecond: 1.0 / 6)
    /// The caller's offer, while the call waits for its participant.
    private var waitingOffer: CallDescription?
    /// What the call has reached since the media was given the callee's answer. It is reported once the media has applied the answer, because
    /// an answer that does not fit ends the call. Nil while no answer is being applied.
    private var heldMilestones: [Milestone]?
    /// What acknowledged our answer, where the service reports that.
    private var acknowledgement: Acknowledgement?
    /// The file was played to its end before the call was established.
    private var isFileOverEarly = false
    /// Why this device hangs up, once it does. The first cause counts.
    private var hangUpCause: CallRecord.HangUpCause?
    /// Why it hangs up at the deadline for that.
    private var laterHangUpCause: CallRecord.HangUpCause?
    private var ending = Ending.running

    /// Makes an outgoing call.
    ///
    /// - Parameters:
    ///   - options: The invite, whose idempotency key the service reports with its id.
    ///   - origin: Our call whose peer asked for this one, and that peer; that call ends when this one is answered.
    package init(
        _ id: CallID, dialling options: InviteOptions, audio: AudioBehaviour, rules: CallRules = CallRules(),
        traits: SignalingTraits = SignalingTraits(), inPlaceOf origin: (call: CallID, peer: UserID)? = nil,
        timings: CallTimings = CallTimings()
    ) {
        self.init(
            id, CallMachine(dialling: options, timings: timings), .sending(idempotencyKey: options.idempotencyKey),
            audio, rules, traits, TransferRole(origin: origin?.call, requester: origin?.peer))
    }

    /// Makes an incoming call.
    ///
    /// - Parameter replaced: Our call that ends when this one is answered, because either side has transferred it.
    package init(
        _ id: CallID, receiving received: ReceivedInvite, audio: AudioBehaviour, rules: CallRules = CallRules(),
        traits: SignalingTraits = SignalingTraits(), replacing replaced: CallID? = nil,
        timings: CallTimings = CallTimings()
    ) {
        let machine = CallMachine(
            receiving: received, timings: timings, awaitsAcknowledgement: traits.acknowledgesAnswers)
        self.init(
            id, machine, .received(received.id), audio, rules, traits,
            TransferRole(replaces: replaced, requester: received.transfer?.by))
    }

    private init(
        _ id: CallID, _ machine: CallMachine, _ invite: CallInvite, _ audio: AudioBehaviour, _ rules: CallRules,
        _ traits: SignalingTraits, _ transfers: TransferRole
    ) {
        self.id = id
        self.machine = machine
        self.invite = invite
        part = CallPart(audio, rules)
        self.traits = traits
        self.transfers = transfers
    }

    // MARK: What is known of the call

    /// What the call plays and records.
    package var audio: AudioBehaviour { part.audio }

    private var rules: CallRules { part.rules }

    /// Whether we called.
    package var isOutgoing: Bool { machine.isOutgoing }

    /// The direction of the call.
    package var direction: CallRecord.Direction { isOutgoing ? .outgoing : .incoming }

    /// The other side.
    package var peer: UserID { machine.peer }

    /// The one of several invitees that the call is with, to be named to the service; nil if that is not in doubt.
    package var namedPeer: UserID? { machine.namedPeer }

    /// The service's name for the call; nil until there is one.
    package var inviteID: InviteID? { invite.id }

    /// What an invite that this device sends is known by until the service gives it an id.
    package var idempotencyKey: IdempotencyKey? { invite.idempotencyKey }

    /// What the invite says of a call that came from, or through, a telephone network; nil for others and for outgoing calls.
    package var trunk: TrunkCall? { machine.trunk }

    /// How far the call is.
    package var progress: CallProgress { machine.progress }

    /// Whether the call was answered and has not ended; it may not be established yet.
    package var isAnswered: Bool { machine.isAnswered }

    /// Whether the call can carry media and has not ended (contract CALL-2).
    package var isEstablished: Bool { machine.isEstablished }

    /// Whether the call was accepted, here or there, and has not ended; the service may not have confirmed it yet.
    package var isAccepted: Bool { machine.isAnswered || machine.progress == .connecting }

    /// The record, once the call has ended. Its media may still run then, and the record not be on disk yet.
    package var record: CallRecord? {
        switch ending {
        case .running: nil
        case .ended(let record), .kept(let record), .over(let record): record
        }
    }

    /// Whether the call hinders others: not once it was rejected or has ended, even while the service, its sound or its record need time.
    package var isOngoing: Bool { record == nil && !machine.isRejecting }

    /// The name of the call's behaviour; empty for that of the section `behaviour`.
    package var behaviour: String { rules.behaviour }

    /// Whether the sound that is sent is that of a participant.
    package var hasParticipant: Bool { audio.source == .program }

    /// Whether the microphone and loudspeaker are the sound card's.
    package var usesCard: Bool { audio.source == .card }

    /// Whether a participant takes part in the running call.
    package var isAttended: Bool { participation.isPresent }

    /// Whether the participant was detached, so that later requests of it do not count.
    package var hasDetached: Bool { participation.hasLeft }

    /// Whether the caller has acknowledged our answer; never where the service does not report that.
    package var isAcknowledged: Bool { acknowledgement != nil }

    /// Our call that this one replaces when it is answered.
    package var replaces: CallID? { transfers.replaces }

    /// Our call that ends when this one is answered, because either side has transferred it.
    package var predecessor: CallID? { transfers.origin ?? transfers.replaces }

    /// Whether the peer may ask for a transfer now.
    package var canBeTransferred: Bool { machine.isAnswered && !transfers.isUnderWay }

    /// The file that is being recorded to.
    package var recording: String? { recordings.recording }

    /// Whether a recording has begun whose end has not been noted.
    package var awaitsRecording: Bool { recordings.areOpen }

    /// The same, if it has not failed.
    package var wholeRecording: String? { recordings.intact }

    /// The format of recordings that begin in mid-call.
    package var recordingFormat: RecordingFormat { rules.recordingFormat }

    /// The file for the next recording; nil if the configuration names none for the call.
    ///
    /// - Parameter isTaken: Whether there is a file of this name.
    package func nextRecording(isTaken: (String) -> Bool) -> String? {
        audio.recording.map { recordings.next(beside: $0, isTaken: isTaken) }
    }

    /// When `handle` must next be called even if nothing happens.
    package var nextDeadline: Instant? {
        // A call that has ended does nothing more by itself.
        let own: [Instant?] = record == nil ? [watch?.nextDeadline, deadlines.next] : []
        return ([machine.nextDeadline] + own).compactMap(\.self).min()
    }

    // MARK: Inputs

    /// Takes one input.
    package mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .begin: feed(.begin, at: now, into: &outbox)
        case .user(let request): take(request, at: now, into: &outbox)
        case .service(let news): take(news, at: now, into: &outbox)
        case .peer(let signal): take(signal, at: now, into: &outbox)
        case .media(let news): take(news, at: now, into: &outbox)
        case .participant(let event, let kind): take(event, from: kind, at: now, into: &outbox)
        case .device(let news): take(news, at: now, into: &outbox)
        case .timerFired: fireTimers(at: now, into: &outbox)
        }
    }

    private mutating func fireTimers(at now: Instant, into outbox: inout [Output]) {
        while record == nil, let event = deadlines.takeDue(at: now) {
            switch event {
            case .answer: answerByItself(at: now, into: &outbox)
            case .longestDuration: reachLongestDuration(at: now, into: &outbox)
            case .hangUp: hangUp(because: laterHangUpCause, at: now, into: &outbox)
            case .sound:
                if machine.isEstablished { outbox.append(.media(.checkSound(after: Self.soundExpected))) }
            case .restart: outbox.append(.media(.restartICE))
            case .loss: feed(.media(.lost), at: now, into: &outbox)
            case .transfer: hear(.failed, at: now, into: &outbox)
            }
        }
        feed(.timerFired, at: now, into: &outbox)
        feed(watch: .timerFired, at: now, into: &outbox)
    }

    // MARK: The machine

    private mutating func feed(_ input: CallMachine.Input, at now: Instant, into outbox: inout [Output]) {
        var steps: [CallMachine.Output] = []
        machine.handle(input, at: now, into: &steps)
        for step in steps { follow(step, at: now, into: &outbox) }
    }

    private mutating func follow(_ step: CallMachine.Output, at now: Instant, into outbox: inout [Output]) {
        switch step {
        case .prepareOffer: outbox.append(.media(.makeOffer))
        case .prepareAnswer(let offer): prepareAnswer(to: offer, into: &outbox)
        case .applyAnswer(let answer):
            heldMilestones = []
            outbox.append(.media(.applyAnswer(answer)))
        case .answered: reach(.answered, at: now, into: &outbox)
        case .established(let time): reach(.established(after: time), at: now, into: &outbox)
        case .flowing(let time, let established):
            reach(.flowing(after: time, establishedAfter: established), at: now, into: &outbox)
        case .releaseMedia: outbox.append(.media(.release))
        case .sendInvite(let options): outbox.append(.service(.invite(options)))
        case .sendCancel(let invite, let withdrawal): outbox.append(.service(.cancel(invite, withdrawal)))
        case .sendAccept(let invite, let acceptance):
            outbox.append(.service(.accept(invite, acceptance)))
            if traits.gathersForAccept { sendCandidates(candidates.peerKnowsCall(), into: &outbox) }
        case .sendReject(let invite, let rejection):
            if let replaced = transfers.replaces { outbox.append(.device(.inform(replaced, .successorEnded))) }
            outbox.append(.service(.reject(invite, rejection)))
        case .sendHangUp(let news): outbox.append(.service(.hangUp(news)))
        case .ringing:
            if let invite = invite.id { outbox.append(.event(.identified(invite))) }
            outbox += [.event(.incoming(from: machine.peer)), .device(.decide)]
        case .ended(let record): becomeEnded(record, into: &outbox)
        case .refused(let error): outbox.append(.note(.tooLate(error)))
        }
    }

    private mutating func reach(_ milestone: Milestone, at now: Instant, into outbox: inout [Output]) {
        guard heldMilestones == nil else {
            heldMilestones?.append(milestone)
            return
        }
        switch milestone {
        case .answered: becomeAnswered(at: now, into: &outbox)
        case .established(let time): becomeEstablished(after: time, at: now, into: &outbox)
        case .flowing(let time, let established):
            outbox.append(.event(.flowing(after: time, establishedAfter: established)))
        }
    }

    /// The media has applied the callee's answer.
    private mutating func answerApplied(at now: Instant, into outbox: inout [Output]) {
        guard record == nil, let milestones = heldMilestones else { return }
        heldMilestones = nil
        for milestone in milestones { reach(milestone, at: now, into: &outbox) }
    }

    /// Has the media answer at once, or when the participant is ready.
    private mutating func prepareAnswer(to offer: CallDescription, into outbox: inout [Output]) {
        if let replaced = transfers.replaces {
            outbox.append(.device(.inform(replaced, .successorConnects(machine.peer))))
        }
        guard hasParticipant else { return outbox.append(.media(.makeAnswer(to: offer))) }
        waitingOffer = offer
        outbox.append(.participant(.summon))
    }

    private mutating func becomeAnswered(at now: Instant, into outbox: inout [Output]) {
        outbox.append(.event(.answered))
        // Elsewhere the acknowledgement shows it.
        if !traits.acknowledgesAnswers { outbox.append(.media(.liftSoundLimit(host: nil))) }
        informOrigin(.accepted, into: &outbox)
        if let replaced = transfers.replaces { outbox.append(.device(.inform(replaced, .replaced(by: machine.peer)))) }
        outbox.append(.media(.reportEarly))
        if let target = transfers.takeWaitingTarget() { askForParticipant(target, at: now, into: &outbox) }
        if let request = transfers.takeWaitingRequest() { consider(request, into: &outbox) }
    }

    private mutating func becomeEstablished(after time: Duration, at now: Instant, into outbox: inout [Output]) {
        outbox.append(.event(.established(after: time)))
        if isFileOverEarly { hangUp(because: .playbackEnded, after: Self.lastWord, at: now) }
        if let longest = rules.maximumDuration { deadlines.set(.longestDuration, at: now.advanced(by: longest)) }
        if let period = rules.silenceTimeout {
            watch = SilenceWatch(period: period)
            feed(watch: .begin, at: now, into: &outbox)
        }
        deadlines.set(.sound, at: now.advanced(by: Self.soundExpected))
    }

    private mutating func becomeEnded(_ ended: CallRecord, into outbox: inout [Output]) {
        var record = ended
        if record.endedBy == .local { record.hangUpCause = hangUpCause }
        informOrigin(.failed, into: &outbox)
        record.transferredBy = transfers.requester
        record.transferredTo = transfers.heir
        ending = .ended(record)
        deadlines.clearAll()
        if let replaced = transfers.replaces { outbox.append(.device(.inform(replaced, .successorEnded))) }
        outbox += [
            .note(.failed(record)), .device(.ended(record)), .participant(.end(.callEnded(record))),
            .device(.keep(record, turns.summary)),
        ]
    }

    // MARK: The user

    private mutating func take(_ request: UserRequest, at now: Instant, into outbox: inout [Output]) {
        switch request {
        case .answer(let delay) where delay > .zero: deadlines.set(.answer, at: now.advanced(by: delay))
        case .passOn(let delay, let part):
            laterPart = part
            deadlines.set(.answer, at: now.advanced(by: delay))
        case .answer:
            deadlines.clear(.answer)
            feed(.user(.answer), at: now, into: &outbox)
        case .reject(let reason, let cause):
            deadlines.clear(.answer)
            feed(.user(.reject(reason, cause: cause)), at: now, into: &outbox)
        case .hangUp(let cause):
            deadlines.clear(.answer)
            hangUp(because: cause, at: now, into: &outbox)
        case .sendKeys(let keys):
            for key in keys {
                if let key = CallKey(key, held: Self.keyDuration) { signal(.key(key), into: &outbox) }
            }
        case .attached:
            participation.joined()
            outbox.append(.event(.attached))
        case .detach:
            participation.detach()
            outbox += [.participant(.end(.detached)), .event(.detached)]
        case .attachingFailed:
            participation.joiningFailed()
            outbox.append(.participant(.end(.detached)))
        case .recordingBegan(let path): recordingBegan(path, into: &outbox)
        case .recordingStopped: recordings.stop()
        }
    }

    /// The answer policy's delay has passed, and the call still rings.
    private mutating func answerByItself(at now: Instant, into outbox: inout [Output]) {
        if let later = laterPart {
            part = later
            outbox += [.media(.play(later.audio)), .device(.passedOn)]
        }
        feed(.user(.answer), at: now, into: &outbox)
    }

    /// How long a key that goes by signaling is said to be held.
    private static let keyDuration = Duration.milliseconds(180)

    private mutating func hangUp(
        because cause: CallRecord.HangUpCause?, at now: Instant, into outbox: inout [Output]
    ) {
        hangUpCause = hangUpCause ?? cause
        feed(.user(.hangUp), at: now, into: &outbox)
    }

    /// Another call has taken this one's place; it is complete even if media has not flowed yet.
    private mutating func handOver(at now: Instant, into outbox: inout [Output]) {
        hangUpCause = hangUpCause ?? .request
        feed(.user(.handOver), at: now, into: &outbox)
    }

    // MARK: The service

    private mutating func take(_ news: ServiceNotice, at now: Instant, into outbox: inout [Output]) {
        switch news {
        case .event(let event):
            if case .inviteSent(let id, _) = event {
                invite.noteSent(as: id)
                outbox.append(.event(.identified(id)))
            }
            feed(.service(event), at: now, into: &outbox)
            switch event {
            case .inviteSent:
                sendCandidates(candidates.peerKnowsCall(), into: &outbox)
                outbox.append(.participant(.ring))
            case .answerConfirmed:
                if machine.isAnswered { sendCandidates(candidates.peerKnowsCall(), into: &outbox) }
            case .inviteFailed, .accepted, .rejected, .cancelConfirmed, .cancelFailed, .inviteEnded, .answerFailed,
                .handledElsewhere, .cancelled, .acknowledged, .timedOut, .hungUp, .disconnected:
                break
            }
        case .acceptTaken:
            // This side had given up waiting for that: the caller is not left with it.
            guard let record, record.isGivenUp, let invite = invite.id else { return }
            outbox.append(.service(.hangUp(CallHangUp(invite: invite, reason: .acceptFailed, duration: .zero))))
        case .probed(let probe):
            if case .answered(let host) = probe { outbox.append(.media(.liftSoundLimit(host: host))) }
            feed(watch: .probed(probe), at: now, into: &outbox)
        }
    }

    // MARK: The peer

    /// Whether a signal of this kind is about the call itself; others are their program's.
    package static func takes(_ kind: CallMessage.Kind, by traits: SignalingTraits) -> Bool {
        switch kind {
        case .candidate, .offer, .answer, .earlyAnswer, .offerRefused, .transfer, .transferProgress: true
        case .key: traits.carriesKeys
        case .acknowledged: traits.acknowledgesAnswers
        case .probe: false
        }
    }

    private mutating func take(_ signal: CallSignal, at now: Instant, into outbox: inout [Output]) {
        // Of several who were asked, another one is not the one who got the call.
        guard machine.isWith(signal.from) else { return }
        switch signal.message {
        case .candidate(let candidate)?: give(candidates.received(candidate), into: &outbox)
        case .offer(let offer)? where traits.takesOfferRequests && offer.content == .wanted:
            outbox.append(.media(.offerAgain))
        case .offer(let offer)?:
            outbox.append(.media(.answerOffer(offer, isInviter: machine.isOutgoing && !traits.ordersOffers)))
        case .answer(let answer)?: outbox.append(.media(.acceptAnswer(answer, mayBeFirst: !machine.isOutgoing)))
        case .offerRefused?: outbox.append(.media(.withdrawOffer))
        case .earlyAnswer(let answer)?:
            // A participant begins with the answer, so that a call with one is not heard before.
            guard traits.hasEarlyMedia, machine.progress == .calling, !hasParticipant else { return }
            outbox.append(.media(.hearEarly(answer)))
        case .key(let key)?:
            // Before the answer nothing of the device takes part in the call.
            guard isAccepted else { return }
            hear(key.key, by: .signaling, heldFor: key.held, at: now, into: &outbox)
        case .acknowledged(let host)?:
            acknowledgement = Acknowledgement(host: host)
            outbox.append(.media(.liftSoundLimit(host: host)))
            feed(.service(.acknowledged), at: now, into: &outbox)
        case .transfer(let request)?: hear(request, into: &outbox)
        case .transferProgress(let progress)?: hear(progress, at: now, into: &outbox)
        case .probe?, nil: break  // The device answers probes; what cannot be read is ignored.
        }
    }

    private func signal(_ message: CallMessage, into outbox: inout [Output]) {
        guard let invite = invite.id else { return }
        outbox.append(.service(.signal(CallSignal(invite: invite, message, peer: machine.namedPeer))))
    }

    private func sendCandidates(_ candidates: [CallCandidate], into outbox: inout [Output]) {
        for candidate in candidates { signal(.candidate(candidate), into: &outbox) }
    }

    private func give(_ candidates: [CallCandidate], into outbox: inout [Output]) {
        if !candidates.isEmpty { outbox.append(.media(.add(candidates))) }
    }

    private mutating func hear(
        _ key: Character, by carrier: ReceivedKeys.Carrier, heldFor time: Duration, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard keys.isNew(key, by: carrier, heldFor: time, at: now) else { return }
        outbox += [.event(.digit(key, heldFor: time)), .participant(.sendDigit(key, heldFor: time))]
    }

    // MARK: The media

    private mutating func take(_ news: MediaNotice, at now: Instant, into outbox: inout [Output]) {
        switch news {
        case .report(let report): feed(.media(report), at: now, into: &outbox)
        case .answerApplied: answerApplied(at: now, into: &outbox)
        case .connectionFailed(let failure):
            feed(.media(machine.isEstablished ? .lost : .failed(failure)), at: now, into: &outbox)
        case .started(let recording):
            if let acknowledgement { outbox.append(.media(.liftSoundLimit(host: acknowledgement.host))) }
            if hasParticipant { participation.joined() }
            if let recording { recordingBegan(recording, into: &outbox) }
        case .fileFailed(let error): recordings.failed(error)
        case .candidate(let candidate, let mid):
            sendCandidates(candidates.found(candidate, mid: mid), into: &outbox)
        case .peerIsKnown: give(candidates.peerIsKnown(), into: &outbox)
        case .answered(let answer, let owesRestart):
            signal(.answer(answer), into: &outbox)
            if owesRestart { outbox.append(.media(.restartICE)) }
        case .offered(let offer, let restartsICE):
            if restartsICE { outbox.append(.note(.restartingICE)) }
            signal(.offer(offer), into: &outbox)
        case .offerNotTaken(let fault):
            if let fault { noteAsked(.offerUnusable(why: fault), at: now, into: &outbox) }
            // Offers that cross are settled without a word where the service does not order them.
            if fault != nil || traits.ordersOffers { signal(.offerRefused, into: &outbox) }
        case .answerNotTaken(let fault): outbox.append(.note(.answerUnusable(why: fault)))
        case .nothingOffered(let fault):
            if let fault { outbox.append(.note(.nothingOffered(why: fault))) }
            signal(.offerRefused, into: &outbox)
        case .restartFailed(let why): outbox.append(.note(.restartFailed(why: why)))
        case .observed(let observation): feed(watch: .observed(observation), at: now, into: &outbox)
        case .quiet: peerFellSilent(at: now, into: &outbox)
        case .back: peerIsBack(into: &outbox)
        case .digit(let key, let time): hear(key, by: .media, heldFor: time, at: now, into: &outbox)
        case .playbackEnded:
            outbox.append(.event(.playbackEnded))
            fileIsOver(at: now)
        case .over:
            guard case .kept(let record) = ending else { return }
            ending = .over(record)
            outbox.append(.device(.over(record)))
        }
    }

    private mutating func recordingBegan(_ path: String, into outbox: inout [Output]) {
        recordings.began(path)
        outbox.append(.event(.recording(path: path)))
    }

    /// Notes that a recording has ended, also after the end of the call.
    ///
    /// - Parameter path: The file that was asked for.
    /// - Returns: Why it has ended.
    package mutating func recordingEnded(_ path: String, isWhole: Bool) -> RecordingEndReason {
        recordings.ended(path, isWhole: isWhole)
    }

    // MARK: A peer that is not heard

    /// How long after a call is established its peer may be silent before the log says so (contract CALL-2).
    private static let soundExpected = Duration.seconds(10)
    /// How much later the side that was called restarts ICE, if the other has not by then.
    private static let inviteeDelay = Duration.seconds(4)
    /// How long a call waits for a peer that is silent on all paths (contract CALL-4).
    private static let silenceLimit = Duration.seconds(25)

    /// ICE is restarted once over signaling, and if that does not help the call ends (contract CALL-4).
    private mutating func peerFellSilent(at now: Instant, into outbox: inout [Output]) {
        guard machine.isEstablished, !deadlines.isSet(.loss) else { return }
        outbox.append(.note(.pathLost))
        deadlines.set(.restart, at: now.advanced(by: machine.isOutgoing ? .zero : Self.inviteeDelay))
        deadlines.set(.loss, at: now.advanced(by: Self.silenceLimit))
    }

    private mutating func peerIsBack(into outbox: inout [Output]) {
        guard deadlines.isSet(.loss) else { return }
        outbox.append(.note(.pathBack))
        deadlines.clear(.restart)
        deadlines.clear(.loss)
    }

    private mutating func feed(watch input: SilenceWatch.Input, at now: Instant, into outbox: inout [Output]) {
        guard record == nil, watch != nil else { return }
        var steps: [SilenceWatch.Output] = []
        watch?.handle(input, at: now, into: &steps)
        for step in steps {
            switch step {
            case .observe: outbox.append(.media(.observe))
            case .probe(let isOnHold):
                outbox.append(.note(.probing(isOnHold: isOnHold)))
                guard let invite = invite.id else { return feed(watch: .probed(nil), at: now, into: &outbox) }
                outbox.append(.service(.probe(invite, peer: machine.namedPeer)))
            case .lost(let cause):
                outbox.append(.note(.peerGone(cause)))
                feed(.media(.lost), at: now, into: &outbox)
            }
        }
    }

    // MARK: Calls that end by themselves

    /// The last packets are still on their way, or in the peer's jitter buffer.
    private static let lastWord = Duration.milliseconds(250)
    /// How long the last words of a participant may take.
    private static let drainLimit = Duration.seconds(15)

    private mutating func fileIsOver(at now: Instant) {
        guard rules.hangsUpAfterFile else { return }
        guard machine.isEstablished else { return isFileOverEarly = true }
        hangUp(because: .playbackEnded, after: Self.lastWord, at: now)
    }

    /// The call ends, once its participant's last words are played.
    private mutating func reachLongestDuration(at now: Instant, into outbox: inout [Output]) {
        outbox.append(.note(.longestDuration))
        guard participation.isPresent else { return hangUp(because: .maximumDuration, at: now, into: &outbox) }
        hangUpCause = hangUpCause ?? .maximumDuration
        hangUp(because: .maximumDuration, after: Self.drainLimit, at: now)
        outbox.append(.participant(.hearOut))
    }

    private mutating func hangUp(because cause: CallRecord.HangUpCause, after delay: Duration, at now: Instant) {
        laterHangUpCause = cause
        deadlines.set(.hangUp, at: now.advanced(by: delay))
    }

    // MARK: The participant

    private mutating func take(
        _ event: ParticipantEvent, from kind: ParticipantKind, at now: Instant, into outbox: inout [Output]
    ) {
        switch event {
        case .ready:
            guard let offer = waitingOffer else { return }
            waitingOffer = nil
            // The call may have been rejected, or have ended, meanwhile.
            guard machine.progress == .connecting else { return }
            outbox.append(.media(.makeAnswer(to: offer)))
        case .rejected(_, let reason, let why):
            if let why { outbox.append(.note(.notAccepted(why: why))) }
            feed(.user(.reject(reason)), at: now, into: &outbox)
        case .failed(_, let why): fail(kind, why, at: now, into: &outbox)
        case .press(_, let keys): if !participation.hasLeft { outbox.append(.media(.press(keys: keys))) }
        case .transfer(_, let target): if !participation.hasLeft { outbox.append(.device(.judge(target: target))) }
        case .speech(_, let isOver, let time): outbox.append(.event(.speech(isOver: isOver, at: time)))
        case .turn(_, let news, let summary): note(news, summary, from: kind, into: &outbox)
        case .done(_, let failure):
            // It may say so while it is being detached.
            guard !participation.hasLeft else { return }
            if let failure {
                fail(kind, failure, at: now, into: &outbox)
            } else {
                hangUp(because: .program, at: now, into: &outbox)
            }
        case .left:
            participation.noteLeft()
            turns.leave(kind)
        // The device joins calls: it has taken these.
        case .handover, .cancelHandover, .noted: break
        }
    }

    private mutating func fail(
        _ kind: ParticipantKind, _ why: String, at now: Instant, into outbox: inout [Output]
    ) {
        let cause =
            switch kind {
            case .bot: "the call's bot: \(why)"
            case .flow: "the call's flow: \(why)"
            case .meeting: "the call's conference: \(why)"
            case .mailbox: "the call's voicemail: \(why)"
            case .program, .port, .line: "the call's program: \(why)"
            }
        feed(.media(.failed(MediaFailure(.deviceFault, cause))), at: now, into: &outbox)
    }

    private mutating func note(
        _ news: TurnNotice, _ summary: TurnSummary, from kind: ParticipantKind, into outbox: inout [Output]
    ) {
        turns.note(summary, from: kind)
        switch news {
        case .speechBegan(let at): outbox.append(.event(.speech(isOver: false, at: at)))
        case .speechEnded(let at): outbox.append(.event(.speech(isOver: true, at: at)))
        case .interrupted(let played): outbox.append(.event(.interrupted(played: played)))
        case .answered(let time):
            turns.noteResponse(time)
            outbox.append(.event(.responded(after: time)))
        }
    }

    // MARK: Transfers (contract CALL-8)

    /// A peer that reports nothing of a transfer for this long does not carry it out. It equals the longest ringing time.
    private static let transferTime = Duration.seconds(180)

    /// Asks the peer to call another user in our place. Once the target has answered that call, this one is hung up.
    ///
    /// - Parameters:
    ///   - target: The user to call.
    ///   - consulted: Our call with the target, which the new one takes the place of (attended); nil for a blind transfer.
    /// - Throws: ``SignalingError`` if one of the calls is not answered, or this one has a transfer under way.
    package mutating func transfer(
        to target: UserID, replacing consulted: CallCourse? = nil, at now: Instant, into outbox: inout [Output]
    ) throws(SignalingError) {
        let activity = "transfer \(id)"
        guard machine.isAnswered, consulted?.id != id else {
            throw SignalingError(.inviteEnded, activity: activity, cause: "it is not answered, or has ended")
        }
        guard !transfers.isUnderWay else {
            throw SignalingError(.alreadyHandled, activity: activity, cause: "a transfer of it is under way")
        }
        var request = CallTransfer.Request(target: target)
        if let consulted {
            guard consulted.isAnswered, let invite = consulted.inviteID else {
                throw SignalingError(
                    .inviteEnded, activity: activity, cause: "\(consulted.id) is not answered, or has ended")
            }
            request.replaces = invite
        }
        transfers.ask(target)
        deadlines.set(.transfer, at: now.advanced(by: Self.transferTime))
        signal(.transfer(request), into: &outbox)
    }

    /// The participant transfers the peer to a user, once the service has confirmed our accept.
    private mutating func transferForParticipant(to target: UserID?, at now: Instant, into outbox: inout [Output]) {
        guard let target else {
            return refuseTransfer("account.callees does not have the target of the transfer", into: &outbox)
        }
        guard record == nil else { return refuseTransfer("the call has ended", into: &outbox) }
        if machine.progress == .connecting, !machine.isAnswered { return transfers.wait(target) }
        askForParticipant(target, at: now, into: &outbox)
    }

    private mutating func askForParticipant(_ target: UserID, at now: Instant, into outbox: inout [Output]) {
        do throws(SignalingError) {
            try transfer(to: target, at: now, into: &outbox)
            outbox.append(.note(.participantTransfers(to: target)))
        } catch {
            refuseTransfer("\(error)", into: &outbox)
        }
    }

    private func refuseTransfer(_ why: String, into outbox: inout [Output]) {
        outbox.append(.participant(.refuse(.transfer, why: why)))
    }

    /// The peer asks us to call another user. It may know of our accept before the service has confirmed it to us; then its request
    /// waits for that.
    private mutating func hear(_ request: CallTransfer.Request, into outbox: inout [Output]) {
        if machine.progress == .connecting, !machine.isAnswered { return transfers.wait(request) }
        consider(request, into: &outbox)
    }

    private func consider(_ request: CallTransfer.Request, into outbox: inout [Output]) {
        if invite.id != nil { outbox.append(.device(.consider(request))) }
    }

    /// The peer reports the progress of the transfer that we have asked it for.
    private mutating func hear(
        _ progress: CallTransfer.Progress, at now: Instant, into outbox: inout [Output]
    ) {
        guard let target = transfers.note(progress) else { return }
        if progress.isFinal {
            deadlines.clear(.transfer)
        } else {
            deadlines.set(.transfer, at: now.advanced(by: Self.transferTime))
        }
        outbox.append(.event(.transferProgress(to: target, progress)))
        if !participation.hasLeft { outbox.append(.participant(.noteTransfer(to: target, progress))) }
        if progress == .accepted { handOver(at: now, into: &outbox) }
    }

    /// A call that takes the place of another one was answered, or did not come about.
    private func informOrigin(_ progress: CallTransfer.Progress, into outbox: inout [Output]) {
        if let origin = transfers.origin { outbox.append(.device(.inform(origin, .successor(id, progress)))) }
    }

    // MARK: The device

    private mutating func take(_ news: DeviceNotice, at now: Instant, into outbox: inout [Output]) {
        switch news {
        case .successorConnects(let peer): transfers.noteSuccessor(peer)
        case .successorEnded: transfers.noteSuccessor(nil)
        case .replaced(let peer):
            transfers.noteReplaced(by: peer)
            handOver(at: now, into: &outbox)
        case .decided(let request, let isAdmitted): decide(request, isAdmitted: isAdmitted, at: now, into: &outbox)
        case .successorPlaced(let call, let target): transfers.place(call, to: target)
        case .successor(let call, let progress):
            guard let target = transfers.note(progress, of: call) else { return }
            outbox.append(.event(.transferProgress(to: target, progress)))
            signal(.transferProgress(progress), into: &outbox)
            if progress == .accepted { handOver(at: now, into: &outbox) }
        case .judged(let target): transferForParticipant(to: target, at: now, into: &outbox)
        case .recordKept:
            guard case .ended(let record) = ending else { return }
            ending = .kept(record)
            outbox.append(.media(.stop))
        }
    }

    /// Notes what the peer asks for, unless it asks so often that it would fill the log.
    private mutating func noteAsked(_ note: CallNote, at now: Instant, into outbox: inout [Output]) {
        guard askedNotes.admit(at: now) != nil else { return }
        outbox.append(.note(note))
    }

    private mutating func decide(
        _ request: CallTransfer.Request, isAdmitted: Bool, at now: Instant, into outbox: inout [Output]
    ) {
        outbox.append(.event(.transferRequested(to: request.target, isAccepted: isAdmitted)))
        noteAsked(.transferRequested(to: request.target, isAccepted: isAdmitted), at: now, into: &outbox)
        let progress = isAdmitted ? CallTransfer.Progress.trying : .refused
        signal(.transferProgress(progress), into: &outbox)
        guard isAdmitted, let invite = invite.id else { return }
        let origin = CallTransfer.Origin(invite: invite, replaces: request.replaces)
        outbox.append(.device(.placeSuccessor(request.target, origin)))
    }
}

/// What has acknowledged our answer.
private struct Acknowledgement {
    /// Where it came from, if that is known.
    let host: String?
}

/// What a call's invite is known by.
private enum CallInvite {
    /// The invite came in.
    case received(InviteID)
    /// The service has not given it an id yet.
    case sending(idempotencyKey: IdempotencyKey)
    case sent(InviteID, idempotencyKey: IdempotencyKey)

    /// The service's id; nil until there is one.
    var id: InviteID? {
        switch self {
        case .received(let id), .sent(let id, _): id
        case .sending: nil
        }
    }

    /// What an invite that this device sends is known by until the service gives it an id.
    var idempotencyKey: IdempotencyKey? {
        switch self {
        case .sending(let key), .sent(_, let key): key
        case .received: nil
        }
    }

    /// Notes the id that the service has given.
    mutating func noteSent(as id: InviteID) {
        if let idempotencyKey { self = .sent(id, idempotencyKey: idempotencyKey) }
    }
}

extension CallRecord {
    /// Whether the call ended before its accept was confirmed, without a hang-up of either side.
    fileprivate var isGivenUp: Bool {
        guard answeredAfter == nil else { return false }
        return switch reason {
        case .acceptFailed, .acceptedElsewhere, .declinedElsewhere, .noAnswer: true
        case .cancelled: endedBy == .remote
        case .completed, .declined, .busy, .dialFailed, .connectionLost, .disconnected, .internalError: false
        }
    }
}
