// Call: one call of a device, from its invite to its end, as one core. It does no I/O: its driver feeds it what signaling, media,
// participant, user and other calls report, and carries out what it orders.

package import AudioKit
package import CallControl
package import CallMedia
package import CallParticipation
package import Core
package import ICE
package import SDP
package import Tracing

/// One call of a device: its course, and its media.
///
/// `CallCourse` decides what happens in the call, and `MediaControl` what its media does for that, by what the two ends have agreed on.
/// The session passes the orders of the one and the reports of the other on. A driver carries out ``Output``s in their order, each to its
/// end, and may feed the session again while it does. What an order for the media reports is fed before anything else,
/// unless the order says otherwise.
package struct CallSession: ProtocolCore, Sendable {
    /// The inputs.
    package enum Input: Sendable {
        /// The call begins: it was dialled, or its invite arrived.
        case begin
        case user(CallCourse.UserRequest)
        case service(CallCourse.ServiceNotice)
        /// The peer signals about the call, with a kind that ``CallSession/takes(_:by:)``.
        case peer(CallSignal)
        /// The media engine reports, and what carries out its orders.
        case engine(EngineReport)
        /// The call cannot be set up, or cannot continue.
        case failed(MediaFailure)
        /// What the call's participant asks and reports; notices for the log are not the call's.
        case participant(ParticipantEvent, from: ParticipantKind)
        case device(CallCourse.DeviceNotice)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    package enum Output: Sendable {
        case service(CallCourse.ServiceOrder)
        case media(MediaOrder)
        case engine(EngineOrder)
        case participant(CallCourse.ParticipantOrder)
        case device(CallCourse.DeviceOrder)
        case event(CallEvent)
        case note(CallNote)
    }

    /// What connects a call, or receives its media.
    package enum EngineLink: Sendable {
        /// A connection by ICE of this name.
        case ice(MediaCallID, ICECredentials, candidates: [String])
        /// A connection by DTLS of this name; its sockets are bound to these addresses, one for each family of addresses.
        case handshake(MediaCallID, atOneOf: [SocketAddress])
        /// A port of the call's own, likewise.
        case port(atOneOf: [SocketAddress])
    }

    /// What is done for the call's media with more than the media engine.
    package enum MediaOrder: Sendable {
        /// Find a place for the call's media. ``EngineReport/prepared(_:)`` follows.
        case prepare
        /// Run the stream, with the call's participant. ``EngineReport/started(_:isRecorded:)`` follows.
        case start(MediaCallPlan, connection: MediaCallID?)
        /// Find out when the stream's newest packet came; ``EngineReport/newestArrival(_:guessed:)`` follows, possibly after other inputs.
        case observe(MediaCallID)
        /// What rings at the callee is heard in place of our tone.
        case hearPeer
        /// Press keys at the request of the participant, which is notified if that fails.
        case press(keys: String)
    }

    /// What the media engine does for the call. The names of connections and streams are the engine's.
    package enum EngineOrder: Sendable {
        /// Open what connects the call. ``EngineReport/opened(_:)`` follows.
        case open(NegotiatedMedia.Way)
        /// Find the address of this machine that reaches a host. ``EngineReport/source(_:)`` follows.
        case findSource(reaching: SocketAddress)
        /// Make a change that the two ends agreed on. ``EngineReport/changed(_:)`` follows.
        case change([NegotiatedMedia.Order])
        case setDirection(MediaCallID, MediaDirection)
        case connect(MediaCallID, to: RemoteConnection)
        /// Candidates of the peer for the connection.
        case add([CallCandidate], to: MediaCallID)
        /// Sound to the peer needs no limit any more.
        case liftSoundLimit(of: MediaCallID)
        /// Close the port that no stream has taken over, if there is one.
        case closePort
        /// Stop the stream or the connection; of a stream ``EngineReport/ended(_:)`` follows.
        case stop(MediaCallID)
    }

    /// What the media engine reports, and what carries out orders for it.
    package enum EngineReport: Sendable {
        /// There is a place for the call's media, and what can be negotiated for it.
        case prepared(MediaNegotiation)
        /// Nil if it was open already.
        case opened(EngineLink?)
        case source(SocketAddress?)
        /// A media worker runs the stream, under this name.
        case started(MediaCallID, isRecorded: Bool)
        /// The change was made, unless it failed.
        case changed(MediaFailure?)
        /// An order that has a report could not be carried out.
        case failed(MediaFailure)
        /// Of a packet of the peer's, and of one that may be a stranger's, if that is newer.
        case newestArrival(Instant?, guessed: Instant?)
        /// The stream can carry media.
        case ready
        /// The connection has a path to the peer.
        case pathFound
        /// Media flows both ways.
        case flowing
        /// The peer's first packet has come.
        case packetReceived
        case playbackEnded
        case digit(Character, heldFor: Duration)
        case fileFailed(AudioFileError)
        /// The connection has found a candidate; nil when there are no more.
        case candidate(String?)
        case connectionFailed(MediaFailure)
        /// The peer does not answer on any path.
        case quiet
        /// The peer answers again.
        case back
        /// The media workers have no room for the stream.
        case refused
        /// The stream has ended.
        case ended(MediaReport)
        /// The device ends, and its media with it.
        case deviceEnds
    }

    /// What the inviter says of its trace; nil for a call that we make.
    package let receivedTrace: TraceContext?
    /// How many calls led to this one.
    package let hops: CallHops
    /// What the call is in traces; nil if calls are not traced. It is set before the call begins.
    package var trace: CallTrace?
    private var course: CallCourse
    private var media: MediaControl

    /// Makes an outgoing call.
    ///
    /// - Parameters:
    ///   - options: The invite, whose idempotency key the service reports with its id.
    ///   - origin: Our call whose peer asked for this one, and that peer; that call ends when this one is answered.
    ///   - generator: For ICE credentials and names in descriptions.
    package init(
        _ id: CallID, dialling options: InviteOptions, audio: AudioBehaviour, rules: CallRules = CallRules(),
        traits: SignalingTraits = SignalingTraits(), inPlaceOf origin: (call: CallID, peer: UserID)? = nil,
        timings: CallTimings = CallTimings(), using generator: any RandomNumberGenerator & Sendable
    ) {
        course = CallCourse(
            id, dialling: options, audio: audio, rules: rules, traits: traits, inPlaceOf: origin, timings: timings)
        media = MediaControl(audio, isOutgoing: true, traits, using: generator)
        receivedTrace = nil
        hops = options.hops
    }

    /// Makes an incoming call.
    ///
    /// - Parameters:
    ///   - replaced: Our call that ends when this one is answered, because either side has transferred it.
    ///   - generator: For ICE credentials and names in descriptions.
    package init(
        _ id: CallID, receiving received: ReceivedInvite, audio: AudioBehaviour, rules: CallRules = CallRules(),
        traits: SignalingTraits = SignalingTraits(), replacing replaced: CallID? = nil,
        timings: CallTimings = CallTimings(), using generator: any RandomNumberGenerator & Sendable
    ) {
        course = CallCourse(
            id, receiving: received, audio: audio, rules: rules, traits: traits, replacing: replaced, timings: timings)
        media = MediaControl(audio, isOutgoing: false, traits, using: generator)
        receivedTrace = received.trace
        hops = received.hops
    }

    // MARK: What is known of the call

    /// The call's name at its device.
    package var id: CallID { course.id }

    /// What the call plays and records, and by which rules.
    package var part: CallPart { course.part }

    /// What the call plays and records.
    package var audio: AudioBehaviour { course.audio }

    /// Whether we called.
    package var isOutgoing: Bool { course.isOutgoing }

    /// The direction of the call.
    package var direction: CallRecord.Direction { course.direction }

    /// The other side.
    package var peer: UserID { course.peer }

    /// The one of several invitees that the call is with, to be named to the service; nil if that is not in doubt.
    package var namedPeer: UserID? { course.namedPeer }

    /// The service's name for the call; nil until there is one.
    package var inviteID: InviteID? { course.inviteID }

    /// What an invite that this device sends is known by until the service gives it an id.
    package var idempotencyKey: IdempotencyKey? { course.idempotencyKey }

    /// What the invite says of a call that came from, or through, a telephone network; nil for others and for outgoing calls.
    package var trunk: TrunkCall? { course.trunk }

    /// How far the call is.
    package var progress: CallProgress { course.progress }

    /// Whether the call was accepted, here or there, and has not ended; the service may not have confirmed it yet.
    package var isAccepted: Bool { course.isAccepted }

    /// The record, once the call has ended. Its media may still run then, and the record not be on disk yet.
    package var record: CallRecord? { course.record }

    /// Whether the call hinders others: not once it was rejected or has ended, even while the service, its sound or its record need time.
    package var isOngoing: Bool { course.isOngoing }

    /// The name of the call's behaviour; empty for that of the section `behaviour`.
    package var behaviour: String { course.behaviour }

    /// Whether the sound that is sent is that of a participant.
    package var hasParticipant: Bool { course.hasParticipant }

    /// Whether the microphone and loudspeaker are the sound card's.
    package var usesCard: Bool { course.usesCard }

    /// Whether a participant takes part in the running call.
    package var isAttended: Bool { course.isAttended }

    /// Our call that this one replaces when it is answered.
    package var replaces: CallID? { course.replaces }

    /// Our call that ends when this one is answered, because either side has transferred it.
    package var predecessor: CallID? { course.predecessor }

    /// Whether the peer may ask for a transfer now.
    package var canBeTransferred: Bool { course.canBeTransferred }

    /// The file that is being recorded to.
    package var recording: String? { course.recording }

    /// Whether a recording has begun whose end has not been noted.
    package var awaitsRecording: Bool { course.awaitsRecording }

    /// The same, if it has not failed.
    package var wholeRecording: String? { course.wholeRecording }

    /// The format of recordings that begin in mid-call.
    package var recordingFormat: RecordingFormat { course.recordingFormat }

    /// The file for the next recording; nil if the configuration names none for the call.
    ///
    /// - Parameter isTaken: Whether there is a file of this name.
    package func nextRecording(isTaken: (String) -> Bool) -> String? { course.nextRecording(isTaken: isTaken) }

    /// When `handle` must next be called even if nothing happens.
    package var nextDeadline: Instant? { course.nextDeadline }

    /// Whether a signal of this kind is about the call itself; others are their program's.
    package static func takes(_ kind: CallMessage.Kind, by traits: SignalingTraits) -> Bool {
        CallCourse.takes(kind, by: traits)
    }

    // MARK: What is known of its media

    /// The media engine's name for the stream, once it has run.
    package var stream: MediaCallID? { media.negotiated.id }

    /// The same while the stream runs.
    package var runningStream: MediaCallID? { media.negotiated.runningID }

    /// Whether the media engine knows the stream or the connection by this name.
    package func goes(by name: MediaCallID) -> Bool { media.negotiated.goes(by: name) }

    /// What the media saw, once it has ended.
    package var mediaReport: MediaReport? { media.negotiated.report }

    /// How telephone events go to the peer; nil if it takes none.
    package var sentEvents: NegotiatedTelephoneEvents? { media.negotiated.sentEvents }

    // MARK: Inputs

    /// Takes one input.
    package mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        let first = outbox.count
        trace?.note(input, at: now)
        take(input, at: now, into: &outbox)
        trace?.note(outbox[first...], at: now)
    }

    private mutating func take(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .begin: feed(.begin, at: now, into: &outbox)
        case .user(let request): feed(.user(request), at: now, into: &outbox)
        case .service(let news): feed(.service(news), at: now, into: &outbox)
        case .peer(let signal): feed(.peer(signal), at: now, into: &outbox)
        case .engine(let report):
            var results: [MediaControl.Output] = []
            media.handle(report, isAcknowledged: course.isAcknowledged, into: &results)
            follow(results, at: now, into: &outbox)
        case .failed(let failure): feed(.media(.report(.failed(failure))), at: now, into: &outbox)
        case .participant(let event, let kind): feed(.participant(event, from: kind), at: now, into: &outbox)
        case .device(let news): feed(.device(news), at: now, into: &outbox)
        case .timerFired: feed(.timerFired, at: now, into: &outbox)
        }
    }

    /// Asks the peer of the call to call another user in our place. Once the target has answered that call, this one is hung up.
    ///
    /// - Parameters:
    ///   - target: The user to call.
    ///   - consulted: Our call with the target, which the new one takes the place of (attended); nil for a blind transfer.
    /// - Throws: ``SignalingError`` if one of the calls is not answered, or this one has a transfer under way.
    package mutating func transfer(
        to target: UserID, replacing consulted: CallSession? = nil, at now: Instant, into outbox: inout [Output]
    ) throws(SignalingError) {
        var steps: [CallCourse.Output] = []
        try course.transfer(to: target, replacing: consulted?.course, at: now, into: &steps)
        follow(steps, at: now, into: &outbox)
    }

    /// Notes that a recording has ended, also after the end of the call.
    ///
    /// - Parameter path: The file that was asked for.
    /// - Returns: Why it has ended.
    package mutating func recordingEnded(_ path: String, isWhole: Bool) -> RecordingEndReason {
        course.recordingEnded(path, isWhole: isWhole)
    }

    // MARK: Between course and media

    private mutating func feed(_ input: CallCourse.Input, at now: Instant, into outbox: inout [Output]) {
        var steps: [CallCourse.Output] = []
        course.handle(input, at: now, into: &steps)
        follow(steps, at: now, into: &outbox)
    }

    private mutating func follow(_ steps: [CallCourse.Output], at now: Instant, into outbox: inout [Output]) {
        for step in steps {
            switch step {
            case .media(let order):
                var results: [MediaControl.Output] = []
                media.handle(order, isAcknowledged: course.isAcknowledged, into: &results)
                follow(results, at: now, into: &outbox)
            case .service(.invite(var options)):
                options.trace = trace?.context
                outbox.append(.service(.invite(options)))
            case .service(let order): outbox.append(.service(order))
            case .participant(let order): outbox.append(.participant(order))
            case .device(let order): outbox.append(.device(order))
            case .event(let event): outbox.append(.event(event))
            case .note(let note): outbox.append(.note(note))
            }
        }
    }

    private mutating func follow(_ results: [MediaControl.Output], at now: Instant, into outbox: inout [Output]) {
        for result in results {
            switch result {
            case .media(let order): outbox.append(.media(order))
            case .engine(let order): outbox.append(.engine(order))
            case .news(let news): feed(.media(news), at: now, into: &outbox)
            case .note(let note): outbox.append(.note(note))
            }
        }
    }
}

extension CallSession.EngineOrder {
    /// Whether the peer neither sends nor takes sound from now on; nil if the order does not change that.
    package var isOnHold: Bool? {
        func isOnHold(_ direction: MediaDirection) -> Bool { !direction.sends && !direction.receives }
        switch self {
        case .setDirection(_, let direction): return isOnHold(direction)
        case .change(let orders):
            return orders.compactMap { if case .setDirection(_, let direction) = $0 { direction } else { nil } }.last
                .map(isOnHold)
        case .open, .findSource, .connect, .add, .liftSoundLimit, .closePort, .stop: return nil
        }
    }
}
