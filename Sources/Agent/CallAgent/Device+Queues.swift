internal import Call
internal import CallBridging
internal import CallControl
internal import CallFlow
internal import CallFlows
internal import CallMedia
public import CallParticipation
internal import Core
internal import Realtime

/// A queue of a device, in which callers of flows wait.
public struct CallQueueStatus: Sendable, Equatable {
    /// A caller in it.
    public struct Caller: Sendable, Equatable {
        /// Its call.
        public let call: CallID
        /// How long it waits.
        public let waited: Duration
    }

    /// Its name.
    public let name: String
    /// Its `QueueSid` for flows.
    public let sid: String
    /// The next one to be taken first.
    public let callers: [Caller]
}

// Callers of flows that wait in queues, and calls that take them. `CallQueues` decides; this carries out.
extension Device {
    /// The queues that have callers, in the order of their names.
    public var queues: [CallQueueStatus] {
        let now = MonotonicClock.now
        return participants.queues.all.map { queue in
            CallQueueStatus(
                name: queue.name, sid: queue.sid,
                callers: zip(queue.callers, queue.since).map { .init(call: $0, waited: $1.duration(to: now)) })
        }
    }

    /// Joins a call whose media runs to the caller of a queue that has waited longest. The caller's flow continues when the call ends.
    ///
    /// - Parameter goesBack: Whether the call continues as before when the caller hangs up; otherwise it is hung up.
    /// - Returns: The caller.
    /// - Throws: ``CallSoundError`` if no caller waits there, or the call cannot be joined.
    @discardableResult
    public func takeFromQueue(_ queue: String, by id: CallID, goesBack: Bool = false) throws(CallSoundError) -> CallID {
        guard let caller = participants.queues.next(of: queue) else {
            throw CallSoundError(
                .wrongState, "no caller waits in the queue \"\(queue)\"; queue list lists those that do")
        }
        try checkJoining(id)
        feed(queues: .take(id, queue: queue, .user(goesBack: goesBack)))
        return caller
    }

    /// Takes a caller out of its queue: its flow continues, with `QueueResult=redirected`.
    ///
    /// - Throws: ``CallSoundError`` if the call waits in no queue.
    public func removeFromQueue(_ id: CallID) throws(CallSoundError) {
        guard participants.queues.isQueued(id) else {
            throw CallSoundError(.wrongState, "\(id) waits in no queue; queue list lists those that do")
        }
        feed(queues: .leave(id, .redirected))
    }

    /// Puts the caller of a flow into a queue.
    func enqueue(_ caller: CallID, in queue: String, hasMusic: Bool) {
        // The end of a call that has ended is no longer noted.
        guard goesOn(caller) else { return }
        guard !isElsewhere(caller), queue.utf8.count <= CallQueues.longestName else {
            log.cannotWait(queue, about: calls.about(caller))
            return participants.report(.ended(.error, .zero), to: caller)
        }
        feed(queues: .enter(caller, queue: queue, sid: "QU\(CallMaker.newKey())", hasMusic: hasMusic))
    }

    func feed(queues input: CallQueues.Input) {
        var outbox: [CallQueues.Output] = []
        participants.queues.handle(input, at: MonotonicClock.now, into: &outbox)
        for output in outbox { carryOut(output) }
        setJoiningTimer()
    }

    private func carryOut(_ output: CallQueues.Output) {
        switch output {
        case .place(let caller, let place): participants.report(.placed(place), to: caller)
        case .playMusic(let caller):
            if let path = configuration.handover.music { feed(music: .play(path, to: caller, repeats: true)) }
        case .stopMusic(let caller): feed(music: .stop(caller))
        case .called(let caller, let taker, let whisper, let attempt):
            participants.call(caller, by: taker, through: whisper, attempt: attempt)
        case .returned(let caller): participants.report(.returned, to: caller)
        case .found(let taker): participants.report(.asked, to: taker)
        case .won(let taker): participants.report(.answered, to: taker)
        case .join(let caller, let taker, let kind):
            let sequel: CallBridges.Sequel =
                switch kind {
                case .flow, .user(goesBack: true): .goBack
                case .user(goesBack: false): .hangUp
                }
            feed(bridges: .join(caller, taker, then: .goBack, otherThen: sequel))
            participants.report(.joined, to: caller)
        case .part(let taker): feed(bridges: .part(taker))
        case .hangUp(let call): feed(.user(.hangUp(because: .request)), to: call)
        case .ended(let caller, let result, let time): participants.report(.ended(result, time), to: caller)
        case .takerEnded(let taker, let status, let time):
            log.dialHasEnded(status, after: time, about: calls.about(taker))
            participants.report(.ended(status, time), to: taker)
        case .reportEntry(let caller, let queue, let position):
            log.waits(in: queue, at: position, about: calls.about(caller))
            publish(.queued(caller, queue: queue, position: position))
        case .reportExit(let caller, let queue, let result, let time):
            log.leftQueue(queue, result, after: time, about: calls.about(caller))
            publish(.leftQueue(caller, queue: queue, result: result.rawValue, waited: time))
        }
    }
}
