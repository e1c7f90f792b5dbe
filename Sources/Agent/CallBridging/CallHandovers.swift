public import CallControl
public import CallParticipation
public import Core

/// Calls that are handed over from a bot, a program or a flow to a person.
///
/// It owns what spans two calls. A person is called for a caller, hears a whisper, accepts, and is joined to it; if that fails, the caller is
/// back with what takes part in its call, which is notified why. Its driver places calls, reports what happens to them, and carries out
/// what it orders.
public struct CallHandovers: ProtocolCore {
    /// What happened.
    public enum Input: Equatable, Sendable {
        /// A caller is to be handed over; its person is reported as placed, or as not placed. A caller that is being handed over is not
        /// handed over twice: its driver checks that with ``isUnderWay(for:)``.
        case begin(CallID, HandoverRequest)
        case placed(CallID, for: CallID)
        case notPlaced(for: CallID, because: String)
        /// The person's call was sent.
        case rings(CallID)
        /// The person has answered, and its media runs.
        case answered(CallID)
        /// The whisper has ended, or could not be played.
        case whispered(CallID)
        /// The peer of a call has pressed a key.
        case key(Character, of: CallID)
        /// A call that was joined hears the other one; until then it hears what it did before.
        case heard(CallID)
        /// The hand-over of a caller is taken back, or its join is.
        case cancel(CallID, because: String)
        /// A call has taken the place of another one (RFC 3891).
        case replaced(CallID, by: CallID)
        /// A call has ended; with what that says of a person's call that was not joined.
        case ended(CallID, HandoverEnd)
        case timerFired
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Call the person. It is reported as placed, or as not placed.
        case place(HandoverRequest, for: CallID)
        /// Play this to the caller until it is stopped.
        case playMusic(HandoverRequest.Music, to: CallID)
        /// Play this to the person; it is reported when it ends.
        case whisper(HandoverRequest.Whisper, to: CallID)
        /// Stop music or whisper of a call.
        case stopSound(of: CallID)
        /// Join the two, each of which hears what it does now until it hears the other.
        case join(CallID, caller: CallID, HandoverRequest.Role)
        /// Have what takes part in the caller's call leave it.
        case dismissParticipant(of: CallID)
        /// Hang up, or cancel, the call with the person.
        case hangUp(CallID)
        /// Report a step to the caller's participant, and to clients.
        case report(HandoverReport, of: CallID)
    }

    /// How long a person has to accept, from the end of the whisper.
    public static let acceptTime = Duration.seconds(20)
    /// How long a whisper is at most.
    public static let longestWhisper = Duration.seconds(60)

    private enum Phase {
        case placing
        case ringing(CallID)
        case whispering(CallID, until: Instant)
        case awaitingKey(CallID, until: Instant)
        case joined(CallID)

        var person: CallID? {
            switch self {
            case .placing: nil
            case .ringing(let call), .whispering(let call, _), .awaitingKey(let call, _), .joined(let call): call
            }
        }

        var deadline: Instant? {
            switch self {
            case .placing, .ringing, .joined: nil
            case .whispering(_, let time), .awaitingKey(_, let time): time
            }
        }

        func with(_ call: CallID) -> Phase {
            switch self {
            case .placing: .placing
            case .ringing: .ringing(call)
            case .whispering(_, let time): .whispering(call, until: time)
            case .awaitingKey(_, let time): .awaitingKey(call, until: time)
            case .joined: .joined(call)
            }
        }
    }

    private struct Handover {
        let request: HandoverRequest
        var phase: Phase
        /// Those of the caller and the person that do not hear the other one yet.
        var awaiting: Set<CallID> = []
    }

    private var handovers: [CallID: Handover] = [:]
    private var callers: [CallID: CallID] = [:]

    /// Hands over none.
    public init() {}

    /// Calls that were placed and have not ended.
    public var callCount: Int { callers.count }

    /// Whether a person is called for a caller, or is joined to it.
    public func isUnderWay(for caller: CallID) -> Bool { handovers[caller] != nil }

    /// Whether a call is that of a person.
    public func isPerson(_ call: CallID) -> Bool { callers[call] != nil }

    /// Whether a caller is joined to its person.
    public func isJoined(_ caller: CallID) -> Bool {
        if case .joined? = handovers[caller]?.phase { true } else { false }
    }

    /// The call with the person of a caller; nil before there is one.
    public func person(of caller: CallID) -> CallID? { handovers[caller]?.phase.person }

    /// Whether a person is to hear its whisper now.
    public func isWhispering(to person: CallID) -> Bool {
        guard let caller = callers[person], case .whispering? = handovers[caller]?.phase else { return false }
        return true
    }

    /// When a whisper, or the time to accept, ends.
    public var nextDeadline: Instant? { handovers.values.compactMap(\.phase.deadline).min() }

    /// Takes what happened.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .begin(let caller, let request): begin(request, for: caller, into: &outbox)
        case .placed(let call, let caller):
            guard case .placing? = handovers[caller]?.phase else { return outbox.append(.hangUp(call)) }
            callers[call] = caller
            handovers[caller]?.phase = .ringing(call)
        case .notPlaced(let caller, let why): end(caller, .failed, why, into: &outbox)
        case .rings(let call):
            guard let caller = callers[call], case .ringing? = handovers[caller]?.phase else { return }
            report(.ringing, of: caller, into: &outbox)
        case .answered(let call): answer(call, at: now, into: &outbox)
        case .whispered(let call): endWhisper(of: call, at: now, into: &outbox)
        case .key(let key, let call): press(key, call, into: &outbox)
        case .heard(let call): noteSound(in: call, into: &outbox)
        case .cancel(let caller, let why):
            let isJoined = isJoined(caller)
            release(caller, into: &outbox)
            end(caller, isJoined ? .ended : .cancelled, why, into: &outbox)
        case .replaced(let former, let call): replace(former, by: call)
        case .ended(let call, let how): noteEnd(of: call, how, into: &outbox)
        case .timerFired: fireTimers(at: now, into: &outbox)
        }
    }

    private mutating func begin(_ request: HandoverRequest, for caller: CallID, into outbox: inout [Output]) {
        guard handovers[caller] == nil else { return }
        handovers[caller] = Handover(request: request, phase: .placing)
        report(.asked, of: caller, into: &outbox)
        outbox += [.playMusic(request.music, to: caller), .place(request, for: caller)]
    }

    private mutating func answer(_ call: CallID, at now: Instant, into outbox: inout [Output]) {
        guard let caller = callers[call], let handover = handovers[caller], case .ringing = handover.phase else {
            return
        }
        guard let whisper = handover.request.whisper else {
            guard handover.request.acceptKey != nil else { return join(call, caller, into: &outbox) }
            handovers[caller]?.phase = .awaitingKey(call, until: now.advanced(by: Self.acceptTime))
            return report(.whispering, of: caller, into: &outbox)
        }
        handovers[caller]?.phase = .whispering(call, until: now.advanced(by: Self.longestWhisper))
        report(.whispering, of: caller, into: &outbox)
        outbox.append(.whisper(whisper, to: call))
    }

    private mutating func endWhisper(of call: CallID, at now: Instant, into outbox: inout [Output]) {
        guard let caller = callers[call], let handover = handovers[caller], case .whispering = handover.phase else {
            return
        }
        guard handover.request.acceptKey != nil else { return join(call, caller, into: &outbox) }
        handovers[caller]?.phase = .awaitingKey(call, until: now.advanced(by: Self.acceptTime))
    }

    private mutating func press(_ key: Character, _ call: CallID, into outbox: inout [Output]) {
        guard let caller = callers[call], let handover = handovers[caller], key == handover.request.acceptKey else {
            return
        }
        switch handover.phase {
        case .whispering, .awaitingKey: join(call, caller, into: &outbox)
        case .placing, .ringing, .joined: return
        }
    }

    private mutating func join(_ call: CallID, _ caller: CallID, into outbox: inout [Output]) {
        guard let role = handovers[caller]?.request.role else { return }
        handovers[caller]?.phase = .joined(call)
        report(.accepted, of: caller, into: &outbox)
        // Before the join, which takes the participant out that it is for.
        report(.joined, of: caller, into: &outbox)
        handovers[caller]?.awaiting = [caller, call]
        outbox.append(.join(call, caller: caller, role))
    }

    private mutating func noteSound(in call: CallID, into outbox: inout [Output]) {
        let caller = callers[call] ?? call
        guard let handover = handovers[caller], handovers[caller]?.awaiting.remove(call) != nil else { return }
        outbox.append(.stopSound(of: call))
        if call == caller, handover.request.role == .leaves { outbox.append(.dismissParticipant(of: caller)) }
    }

    private mutating func fireTimers(at now: Instant, into outbox: inout [Output]) {
        for (caller, handover) in handovers.sorted(by: { $0.key.number < $1.key.number }) {
            guard let deadline = handover.phase.deadline, deadline <= now, let call = handover.phase.person else {
                continue
            }
            if case .whispering = handover.phase {
                outbox.append(.stopSound(of: call))
                endWhisper(of: call, at: now, into: &outbox)
            } else {
                release(caller, into: &outbox)
                end(caller, .noAnswer, "the person has answered, and did not accept in time", into: &outbox)
            }
        }
    }

    // MARK: The end

    private mutating func replace(_ former: CallID, by call: CallID) {
        if let caller = callers.removeValue(forKey: former) {
            callers[call] = caller
            if let phase = handovers[caller]?.phase { handovers[caller]?.phase = phase.with(call) }
            if handovers[caller]?.awaiting.remove(former) != nil { handovers[caller]?.awaiting.insert(call) }
        } else if let handover = handovers[former], let person = handover.phase.person {
            // One that is not joined yet ends with its caller: the person was asked for another one.
            guard case .joined = handover.phase else { return }
            var moved = handover
            if moved.awaiting.remove(former) != nil { moved.awaiting.insert(call) }
            handovers[former] = nil
            handovers[call] = moved
            callers[person] = call
        }
    }

    private mutating func noteEnd(of call: CallID, _ how: HandoverEnd, into outbox: inout [Output]) {
        if let handover = handovers[call] {
            if case .joined = handover.phase {
                // The person is hung up as the join's other side.
                if let person = handover.phase.person { callers[person] = nil }
                end(call, .ended, "the caller has hung up", into: &outbox)
            } else {
                release(call, into: &outbox)
                end(call, .gone, "the caller has hung up", into: &outbox)
            }
        } else if let caller = callers.removeValue(forKey: call) {
            if isJoined(caller) { return end(caller, .ended, "the person has hung up", into: &outbox) }
            end(caller, how.state, how.reason, into: &outbox)
        }
    }

    /// Hangs up the call with the person, whose end is not waited for.
    private mutating func release(_ caller: CallID, into outbox: inout [Output]) {
        guard let person = handovers[caller]?.phase.person else { return }
        callers[person] = nil
        outbox += [.stopSound(of: person), .hangUp(person)]
    }

    private mutating func end(
        _ caller: CallID, _ state: HandoverState, _ why: String, into outbox: inout [Output]
    ) {
        guard let handover = handovers[caller] else { return }
        if !isJoined(caller) || handover.awaiting.contains(caller) { outbox.append(.stopSound(of: caller)) }
        report(state, of: caller, because: why, into: &outbox)
        handovers[caller] = nil
    }

    private func report(
        _ state: HandoverState, of caller: CallID, because why: String? = nil, into outbox: inout [Output]
    ) {
        guard let handover = handovers[caller] else { return }
        let report = HandoverReport(to: handover.request.target, state, by: handover.phase.person, because: why)
        outbox.append(.report(report, of: caller))
    }
}

/// What the end of a person's call that was not joined says of the hand-over.
public struct HandoverEnd: Equatable, Sendable {
    /// How the hand-over ends.
    public let state: HandoverState
    /// Why, in words.
    public let reason: String

    /// Makes an end.
    public init(_ state: HandoverState, because reason: String) {
        self.state = state
        self.reason = reason
    }

    /// Reads the record of the person's call.
    public init(of record: CallRecord) {
        switch record.reason {
        case .busy: self.init(.busy, because: "the person is busy")
        case .declined, .declinedElsewhere: self.init(.refused, because: "the person has declined")
        case .noAnswer: self.init(.noAnswer, because: "the person did not answer in time")
        case .completed where record.endedBy == .local, .cancelled where record.endedBy == .local:
            self.init(.cancelled, because: "the call with the person was hung up here")
        case .completed, .cancelled: self.init(.refused, because: "the person has hung up before it accepted")
        case .acceptedElsewhere, .dialFailed, .acceptFailed, .connectionLost, .disconnected, .internalError:
            self.init(.failed, because: "the person could not be called: \(record.reason.rawValue)")
        }
    }
}
