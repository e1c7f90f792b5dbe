public import CallFlow
public import CallParticipation
public import Core

/// The queues of a device: callers wait in them, the one that came first in front, until a call takes them.
///
/// An owner beside the calls, which has neither calls nor sound: its driver reports what happens to calls, and carries out what it orders. A
/// queue is there while it has callers. One that is being taken keeps its place until it is joined, so that it is not lost if the call that
/// takes it goes.
public struct CallQueues: ProtocolCore {
    /// What bounds queues. A change counts for callers that enter from then on.
    public struct Limits: Equatable, Sendable {
        /// Callers of a queue.
        public var callers: Int
        /// How long a caller waits.
        public var wait: Duration

        /// Makes limits.
        public init(callers: Int = 100, wait: Duration = .seconds(3_600)) {
            self.callers = callers
            self.wait = wait
        }
    }

    /// Who takes callers of a queue.
    public enum Taker: Equatable, Sendable {
        /// A call whose flow has `Dial` with `Queue`, and the document that the caller goes through first. It continues with its flow.
        case flow(FlowWhisper?)
        /// A call for which a user has asked. When one ends, the other continues as before, or is hung up.
        case user(goesBack: Bool)
    }

    /// What happened.
    public enum Input: Equatable, Sendable {
        /// A caller enters a queue, which has this identifier if it is a new one.
        case enter(CallID, queue: String, sid: String, hasMusic: Bool)
        /// A caller leaves its queue, for this reason. Nothing happens if it is in none.
        case leave(CallID, QueueResult)
        /// A call takes the caller of a queue that has waited longest, or waits for one.
        case take(CallID, queue: String, Taker)
        /// The caller can be joined to the call that takes it in this attempt; nothing happens if that attempt has ended.
        case ready(CallID, attempt: Int)
        /// The call that takes a caller is ready to be joined to it.
        case join(CallID)
        /// The call takes no caller any more: it gives up, or parts from the one that it is joined to.
        case giveUp(CallID, isTimeout: Bool)
        /// A call takes the place of another one that is joined (RFC 3891).
        case replaced(CallID, by: CallID)
        /// A call has ended.
        case ended(CallID)
        /// No callers are taken into queues, and those in them leave; or they are again.
        case close(Bool)
        case timerFired
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Report to the caller's flow that it is in the queue at this place, or has another place now.
        case place(CallID, QueuePlace)
        /// Have the caller hear music until that is stopped.
        case playMusic(CallID)
        case stopMusic(CallID)
        /// Report to the caller's flow that a call takes it. ``Input/ready(_:attempt:)`` follows with this attempt.
        case called(CallID, by: CallID, FlowWhisper?, attempt: Int)
        /// Report to the caller's flow that the call is gone.
        case returned(CallID)
        /// Report to the flow of the call that takes a caller that it has one, who goes through a document.
        case found(taker: CallID)
        /// Report to that flow that the caller can be joined. ``Input/join(_:)`` follows.
        case won(taker: CallID)
        /// Join the two.
        case join(CallID, taker: CallID, Taker)
        /// Part the call from its caller.
        case part(taker: CallID)
        /// Hang up a call that has taken the place of a caller: the flow to which it would go back has ended with the caller.
        case hangUp(CallID)
        /// Report to the caller's flow how its time in the queue has ended.
        case ended(CallID, QueueResult, waited: Duration)
        /// Report to the flow of the call that has taken callers, or was to.
        case takerEnded(CallID, DialStatus, joined: Duration)
        /// Report to clients that a call is in a queue, or has left it.
        case reportEntry(CallID, queue: String, position: Int)
        case reportExit(CallID, queue: String, QueueResult, waited: Duration)
    }

    /// A queue, for lists.
    public struct Listed: Equatable, Sendable {
        /// Its name.
        public let name: String
        /// Its identifier.
        public let sid: String
        /// Its callers, the next one first.
        public let callers: [CallID]
        /// The times at which they came.
        public let since: [Instant]
    }

    /// Bytes in the name of a queue.
    public static let longestName = 256
    /// Queues of a device.
    public static let mostQueues = 64

    private enum Phase: Equatable {
        case waiting
        /// It goes through the document of the call that takes it.
        case called(by: CallID, attempt: Int)
        /// That call is about to be joined to it.
        case ready(for: CallID)

        var taker: CallID? {
            switch self {
            case .waiting: nil
            case .called(let call, _), .ready(let call): call
            }
        }

        var isReady: Bool { if case .ready = self { true } else { false } }
    }

    private struct Caller {
        let call: CallID
        let since: Instant
        let until: Instant
        let hasMusic: Bool
        var phase = Phase.waiting
    }

    private struct Queue {
        let sid: String
        let most: Int
        var callers: [Caller] = []
    }

    private struct Claim {
        let queue: String
        let taker: Taker
        var caller: CallID?
    }

    private struct Join {
        var taker: CallID
        let kind: Taker
        let since: Instant
        let waited: Duration
        /// A call has taken the place of the caller.
        var isReplaced = false
    }

    private var limits: Limits
    private var isClosed = false
    private var queues: [String: Queue] = [:]
    /// The queue of each caller that is in one.
    private var names: [CallID: String] = [:]
    /// Calls that wait for callers, or are about to be joined to one.
    private var claims: [CallID: Claim] = [:]
    /// Those that wait, by queue, the first one first.
    private var waiting: [String: [CallID]] = [:]
    /// Numbers the attempts to take a caller: a late answer to one must not count for the next, which may be by the same call.
    private var attempts = 0
    /// By caller.
    private var joins: [CallID: Join] = [:]
    private var callers: [CallID: CallID] = [:]

    /// Has no queue.
    public init(_ limits: Limits = Limits()) { self.limits = limits }

    /// Applies other limits.
    public mutating func adopt(_ limits: Limits) { self.limits = limits }

    /// Whether a caller is in a queue, and not joined yet.
    public func isQueued(_ call: CallID) -> Bool { names[call] != nil }

    /// The queue that a caller is in; nil if it is in none.
    public func queue(of call: CallID) -> String? { names[call] }

    /// Whether a call takes a caller, or is joined to one that it has taken.
    public func isTaking(_ call: CallID) -> Bool { claims[call] != nil || callers[call] != nil }

    /// Whether a caller was taken from a queue, and is joined.
    public func isJoined(_ call: CallID) -> Bool { joins[call] != nil }

    /// Whether a flow decides what the call does: it is in a queue, was taken from one, or takes a caller by `Dial`.
    public func isInFlow(_ call: CallID) -> Bool {
        if names[call] != nil || joins[call] != nil { return true }
        let taker = claims[call]?.taker ?? callers[call].flatMap { joins[$0]?.kind }
        if case .flow? = taker { return true }
        return false
    }

    /// The caller of a queue that a call would take now; nil if there is none.
    public func next(of queue: String) -> CallID? { queues[queue]?.callers.first { $0.phase == .waiting }?.call }

    /// All queues, in the order of their names.
    public var all: [Listed] {
        queues.sorted { $0.key < $1.key }.map { name, queue in
            Listed(name: name, sid: queue.sid, callers: queue.callers.map(\.call), since: queue.callers.map(\.since))
        }
    }

    /// When the first caller has waited for the longest time.
    public var nextDeadline: Instant? { queues.values.flatMap(\.callers).map(\.until).min() }

    /// Takes what happened.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .enter(let call, let queue, let sid, let hasMusic):
            enter(call, queue, sid, hasMusic: hasMusic, at: now, into: &outbox)
        case .leave(let call, let result): leave(call, result, at: now, into: &outbox)
        case .take(let call, let queue, let taker):
            giveUp(call, .canceled, at: now, into: &outbox)
            guard !isClosed else { return endClaim(of: call, taker, .failed, into: &outbox) }
            claims[call] = Claim(queue: queue, taker: taker)
            waiting[queue] = (waiting[queue] ?? []) + [call]
            match(queue, into: &outbox)
        case .ready(let call, let attempt): beReady(call, attempt, at: now, into: &outbox)
        case .join(let call): join(call, at: now, into: &outbox)
        case .giveUp(let call, let isTimeout):
            giveUp(call, isTimeout ? .noAnswer : .canceled, at: now, into: &outbox)
        case .replaced(let former, let call): replace(former, by: call)
        case .ended(let call):
            giveUp(call, .canceled, isGone: true, at: now, into: &outbox)
            leave(call, .hangup, at: now, into: &outbox)
            if let join = joins[call] { end(join, of: call, gone: call, at: now, into: &outbox) }
        case .close(let isClosed): close(isClosed, at: now, into: &outbox)
        case .timerFired:
            let due = queues.values.flatMap(\.callers).filter { $0.until <= now }.map(\.call)
            leave(due, .timeout, at: now, into: &outbox)
        }
    }

    // MARK: Callers

    private mutating func enter(
        _ call: CallID, _ name: String, _ sid: String, hasMusic: Bool, at now: Instant, into outbox: inout [Output]
    ) {
        guard names[call] == nil, joins[call] == nil else { return }
        guard !isClosed else { return outbox.append(.ended(call, .systemError, waited: .zero)) }
        var queue = queues[name] ?? Queue(sid: sid, most: limits.callers)
        guard queue.callers.count < queue.most, queues[name] != nil || queues.count < Self.mostQueues else {
            return outbox.append(.ended(call, .queueFull, waited: .zero))
        }
        queue.callers.append(
            Caller(call: call, since: now, until: now.advanced(by: limits.wait), hasMusic: hasMusic))
        queues[name] = queue
        names[call] = name
        if hasMusic { outbox.append(.playMusic(call)) }
        outbox.append(.reportEntry(call, queue: name, position: queue.callers.count))
        reportPlaces(in: name, into: &outbox)
        match(name, into: &outbox)
    }

    private func reportPlaces(in name: String, into outbox: inout [Output]) {
        guard let queue = queues[name], let first = queue.callers.first else { return }
        let later = queue.callers.reduce(Duration.zero) { $0 + first.since.duration(to: $1.since) }
        let mean = first.since.advanced(by: later / queue.callers.count)
        for (index, caller) in queue.callers.enumerated() {
            let place = QueuePlace(
                sid: queue.sid, position: index + 1, size: queue.callers.count, most: queue.most, since: caller.since,
                meanSince: mean)
            outbox.append(.place(caller.call, place))
        }
    }

    /// - Returns: The caller that is in the queue no more; nil if it was in none.
    private mutating func remove(_ call: CallID, into outbox: inout [Output]) -> (caller: Caller, queue: String)? {
        guard let name = names.removeValue(forKey: call),
            let index = queues[name]?.callers.firstIndex(where: { $0.call == call }),
            let caller = queues[name]?.callers.remove(at: index)
        else { return nil }
        if queues[name]?.callers.isEmpty == true { queues[name] = nil }
        if caller.hasMusic, caller.phase == .waiting { outbox.append(.stopMusic(call)) }
        return (caller, name)
    }

    private mutating func leave(
        _ call: CallID, _ result: QueueResult, at now: Instant, into outbox: inout [Output]
    ) {
        leave([call], result, at: now, into: &outbox)
    }

    /// Callers leave together: those behind them are given their places once.
    private mutating func leave(
        _ calls: [CallID], _ result: QueueResult, at now: Instant, into outbox: inout [Output]
    ) {
        let left = calls.sorted { $0.number < $1.number }.compactMap { call -> (caller: Caller, queue: String)? in
            guard let (caller, name) = remove(call, into: &outbox) else { return nil }
            let time = caller.since.duration(to: now)
            outbox.append(.reportExit(call, queue: name, result, waited: time))
            // The flow of one that has hung up ends with it.
            if result != .hangup { outbox.append(.ended(call, result, waited: time)) }
            return (caller, name)
        }
        for name in Set(left.map(\.queue)).sorted() { reportPlaces(in: name, into: &outbox) }
        for (caller, name) in left { release(caller, from: name, into: &outbox) }
    }

    /// A caller has left: the call that was about to take it gets the next one, waits for one, or gives up.
    private mutating func release(_ caller: Caller, from name: String, into outbox: inout [Output]) {
        guard let taker = caller.phase.taker, let claim = claims[taker] else { return }
        switch claim.taker {
        case .user:
            // Its user has asked for the caller that there was.
            claims[taker] = nil
        case .flow where isClosed:
            claims[taker] = nil
            endClaim(of: taker, claim.taker, .failed, into: &outbox)
        case .flow where caller.phase.isReady:
            // Its flow does not ring any more, and is about to be joined.
            claims[taker] = nil
            endClaim(of: taker, claim.taker, .noAnswer, into: &outbox)
        case .flow:
            claims[taker]?.caller = nil
            waiting[name] = [taker] + (waiting[name] ?? [])
            match(name, into: &outbox)
        }
    }

    // MARK: Calls that take callers

    /// Gives waiting callers to the calls that wait for them.
    private mutating func match(_ name: String, into outbox: inout [Output]) {
        while let taker = waiting[name]?.first, let claim = claims[taker],
            let index = queues[name]?.callers.firstIndex(where: { $0.phase == .waiting }),
            let caller = queues[name]?.callers[index]
        {
            waiting[name]?.removeFirst()
            if waiting[name]?.isEmpty == true { waiting[name] = nil }
            attempts += 1
            queues[name]?.callers[index].phase = .called(by: taker, attempt: attempts)
            claims[taker]?.caller = caller.call
            if caller.hasMusic { outbox.append(.stopMusic(caller.call)) }
            switch claim.taker {
            case .flow(let whisper):
                outbox += [.found(taker: taker), .called(caller.call, by: taker, whisper, attempt: attempts)]
            case .user: outbox.append(.called(caller.call, by: taker, nil, attempt: attempts))
            }
        }
    }

    private mutating func setPhase(_ phase: Phase, of call: CallID) {
        guard let name = names[call], let index = queues[name]?.callers.firstIndex(where: { $0.call == call }) else {
            return
        }
        queues[name]?.callers[index].phase = phase
    }

    private func caller(_ call: CallID) -> Caller? {
        names[call].flatMap { queues[$0]?.callers.first { $0.call == call } }
    }

    private mutating func beReady(_ call: CallID, _ attempt: Int, at now: Instant, into outbox: inout [Output]) {
        guard case .called(let taker, attempt)? = caller(call)?.phase, let claim = claims[taker] else { return }
        setPhase(.ready(for: taker), of: call)
        switch claim.taker {
        case .flow: outbox.append(.won(taker: taker))
        case .user: join(taker, at: now, into: &outbox)
        }
    }

    private mutating func join(_ taker: CallID, at now: Instant, into outbox: inout [Output]) {
        guard let claim = claims[taker], let call = claim.caller, case .ready(taker)? = caller(call)?.phase,
            let (caller, name) = remove(call, into: &outbox)
        else { return }
        claims[taker] = nil
        let time = caller.since.duration(to: now)
        joins[call] = Join(taker: taker, kind: claim.taker, since: now, waited: time)
        callers[taker] = call
        outbox += [
            .reportExit(call, queue: name, .bridged, waited: time), .join(call, taker: taker, claim.taker),
        ]
        reportPlaces(in: name, into: &outbox)
    }

    /// A caller that was about to be joined keeps its place.
    private mutating func giveUp(
        _ taker: CallID, _ status: DialStatus, isGone: Bool = false, at now: Instant, into outbox: inout [Output]
    ) {
        if let call = callers[taker], let join = joins[call] {
            if !isGone {
                outbox.append(.part(taker: taker))
                if join.isReplaced { outbox.append(.hangUp(call)) }
            }
            return end(join, of: call, gone: isGone ? taker : nil, at: now, into: &outbox)
        }
        guard let claim = claims.removeValue(forKey: taker) else { return }
        waiting[claim.queue]?.removeAll { $0 == taker }
        if waiting[claim.queue]?.isEmpty == true { waiting[claim.queue] = nil }
        if !isGone { endClaim(of: taker, claim.taker, status, into: &outbox) }
        guard let call = claim.caller, let caller = caller(call) else { return }
        setPhase(.waiting, of: call)
        guard !isClosed else { return leave(call, .systemError, at: now, into: &outbox) }
        outbox.append(.returned(call))
        if caller.hasMusic { outbox.append(.playMusic(call)) }
        match(claim.queue, into: &outbox)
    }

    private func endClaim(
        of taker: CallID, _ kind: Taker, _ status: DialStatus, into outbox: inout [Output]
    ) {
        switch kind {
        case .flow: outbox.append(.takerEnded(taker, status, joined: .zero))
        case .user: return
        }
    }

    // MARK: Joined calls

    /// - Parameter gone: The one that has ended, whose flow ends with it.
    private mutating func end(
        _ join: Join, of call: CallID, gone: CallID?, at now: Instant, into outbox: inout [Output]
    ) {
        joins[call] = nil
        callers[join.taker] = nil
        // The flow of one that was replaced has ended with it.
        if gone != call, !join.isReplaced { outbox.append(.ended(call, .bridged, waited: join.waited)) }
        switch join.kind {
        case .flow where gone == join.taker: return
        case .flow: outbox.append(.takerEnded(join.taker, .completed, joined: join.since.duration(to: now)))
        case .user: return
        }
    }

    /// The flow of a call ends with it; the join does not.
    private mutating func replace(_ former: CallID, by call: CallID) {
        if let join = joins.removeValue(forKey: former) {
            joins[call] = join
            joins[call]?.isReplaced = true
            callers[join.taker] = call
        } else if let caller = callers.removeValue(forKey: former) {
            callers[call] = caller
            joins[caller]?.taker = call
        }
    }

    private mutating func close(_ isClosed: Bool, at now: Instant, into outbox: inout [Output]) {
        self.isClosed = isClosed
        guard isClosed else { return }
        for taker in waiting.values.flatMap(\.self).sorted(by: { $0.number < $1.number }) {
            giveUp(taker, .failed, at: now, into: &outbox)
        }
        leave(names.keys.filter { caller($0)?.phase == .waiting }, .systemError, at: now, into: &outbox)
    }
}
