public import CallControl
public import CallFlow
public import CallParticipation
public import Core

extension DialStatus {
    /// The status of a call that has ended before it was joined.
    public init(of record: CallRecord) {
        self =
            switch record.reason {
            case .busy, .declined, .declinedElsewhere: .busy
            case .noAnswer, .completed, .cancelled: .noAnswer
            case .acceptedElsewhere, .dialFailed, .acceptFailed, .connectionLost, .disconnected, .internalError: .failed
            }
    }

    /// Which of several callees' results is reported: one that rang says more than one that could not be called.
    fileprivate var rank: Int {
        switch self {
        case .completed: 4
        case .noAnswer: 3
        case .busy: 2
        case .canceled: 1
        case .failed: 0
        }
    }
}

/// The calls that a device places to join one of them to a caller: all ring at once, and the first that answers, or accepts if it is
/// asked, gets the caller.
///
/// An owner beside the calls, which are its members. Its driver places calls, reports what happens to them, and carries out what it orders.
public struct CallDials: Sendable {
    /// What happened.
    public enum Input: Equatable, Sendable {
        /// Callees are called for a caller, one call for each; each is reported as placed, or as not placed.
        case begin(CallID, callees: Int, asksCallees: Bool)
        case placed(CallID, for: CallID)
        case notPlaced(for: CallID)
        /// A placed call was answered, and its media runs.
        case answered(CallID)
        /// The callee that was asked accepts.
        case accepted(CallID)
        /// The caller is ready to be joined to the call that was won.
        case join(CallID)
        /// The caller is in a room in place of a call.
        case entered(CallID)
        /// The caller gives up, or the callees have rung for long enough.
        case stop(CallID, isTimeout: Bool)
        /// A call has taken the place of another one that is joined (RFC 3891).
        case replaced(CallID, by: CallID)
        /// A caller or a placed call has ended; with the status of one that was not joined.
        case ended(CallID, DialStatus)
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Report to the caller's flow that a callee has answered and is asked whether it accepts.
        case asks(caller: CallID)
        /// Report to the caller's flow that a callee is there.
        case won(CallID, caller: CallID)
        /// Join the two.
        case join(CallID, caller: CallID)
        /// Take the caller out of its room.
        case leaveRoom(caller: CallID)
        /// Hang up a placed call, or cancel it.
        case hangUp(CallID)
        /// Report the end to the caller's flow.
        case ended(caller: CallID, DialStatus, duration: Duration)
    }

    /// Placed calls of a device at a time. It bounds flows that dial in a circle.
    public static let mostCalls = 64
    /// Callees that ring at once for one caller.
    public static let mostCallees = 10

    private enum Phase {
        /// Calls that are to be placed yet, and the best result of those that have ended.
        case ringing(awaited: Int, DialStatus)
        case won(CallID)
        case joined(CallID, since: Instant)
        case inRoom(since: Instant)
    }

    private struct Dial {
        var phase: Phase
        var calls: Set<CallID> = []
        let asksCallees: Bool
    }

    private var dials: [CallID: Dial] = [:]
    private var callers: [CallID: CallID] = [:]

    /// Places none.
    public init() {}

    /// Calls that were placed and have not ended.
    public var callCount: Int { callers.count }

    /// Whether a call was placed for a caller who waits for it, or is joined to it.
    public func isPlaced(_ call: CallID) -> Bool { callers[call] != nil }

    /// Whether callees are called for a call, or one was joined to it.
    public func isDialling(for caller: CallID) -> Bool { dials[caller] != nil }

    /// Takes what happened.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .begin(let caller, let count, let asks):
            stop(caller, .canceled, at: now, into: &outbox)
            dials[caller] = Dial(phase: .ringing(awaited: count, .failed), asksCallees: asks)
        case .placed(let call, let caller): place(call, for: caller, into: &outbox)
        case .notPlaced(let caller): note(.failed, placed: true, for: caller, at: now, into: &outbox)
        case .answered(let call):
            guard let caller = callers[call], case .ringing? = dials[caller]?.phase else { return }
            if dials[caller]?.asksCallees == true {
                outbox.append(.asks(caller: caller))
            } else {
                win(call, for: caller, into: &outbox)
            }
        case .accepted(let call): if let caller = callers[call] { win(call, for: caller, into: &outbox) }
        case .join(let caller):
            guard case .won(let call)? = dials[caller]?.phase else { return }
            dials[caller]?.phase = .joined(call, since: now)
            outbox.append(.join(call, caller: caller))
        case .entered(let caller): dials[caller]?.phase = .inRoom(since: now)
        case .stop(let caller, let isTimeout):
            stop(caller, isTimeout ? .noAnswer : .canceled, at: now, into: &outbox)
        case .replaced(let former, let call): replace(former, by: call)
        case .ended(let call, let status):
            if dials[call] != nil {
                stop(call, .canceled, at: now, into: &outbox)
            } else if let caller = callers.removeValue(forKey: call) {
                dials[caller]?.calls.remove(call)
                noteEnd(of: call, status, for: caller, at: now, into: &outbox)
            }
        }
    }

    private mutating func place(_ call: CallID, for caller: CallID, into outbox: inout [Output]) {
        guard case .ringing(let awaited, let best)? = dials[caller]?.phase else { return outbox.append(.hangUp(call)) }
        dials[caller]?.phase = .ringing(awaited: awaited - 1, best)
        dials[caller]?.calls.insert(call)
        callers[call] = caller
    }

    private mutating func win(_ call: CallID, for caller: CallID, into outbox: inout [Output]) {
        guard case .ringing? = dials[caller]?.phase else { return }
        dials[caller]?.phase = .won(call)
        for other in (dials[caller]?.calls ?? []).sorted(by: { $0.number < $1.number }) where other != call {
            release(other, of: caller, into: &outbox)
        }
        outbox.append(.won(call, caller: caller))
    }

    private mutating func release(_ call: CallID, of caller: CallID, into outbox: inout [Output]) {
        dials[caller]?.calls.remove(call)
        callers[call] = nil
        outbox.append(.hangUp(call))
    }

    /// The flow of a caller ends with the caller's call; the join does not.
    private mutating func replace(_ former: CallID, by call: CallID) {
        if let dial = dials[former], case .joined = dial.phase {
            dials[former] = nil
            dials[call] = dial
            for placed in dial.calls { callers[placed] = call }
            return
        }
        guard let caller = callers[former], case .joined(former, let since)? = dials[caller]?.phase else { return }
        callers[former] = nil
        callers[call] = caller
        dials[caller]?.calls.remove(former)
        dials[caller]?.calls.insert(call)
        dials[caller]?.phase = .joined(call, since: since)
    }

    private mutating func noteEnd(
        of call: CallID, _ status: DialStatus, for caller: CallID, at now: Instant, into outbox: inout [Output]
    ) {
        switch dials[caller]?.phase {
        case .ringing: note(status, placed: false, for: caller, at: now, into: &outbox)
        case .won(let winner) where winner == call:
            // It has answered, and is gone before the caller could be joined to it.
            end(caller, .failed, .zero, into: &outbox)
        case .joined(let winner, let since) where winner == call:
            end(caller, .completed, since.duration(to: now), into: &outbox)
        case .won, .joined, .inRoom, nil: return
        }
    }

    /// Notes the result of one callee. Behind the last one the best result counts.
    private mutating func note(
        _ status: DialStatus, placed: Bool, for caller: CallID, at now: Instant, into outbox: inout [Output]
    ) {
        guard case .ringing(var awaited, var best)? = dials[caller]?.phase else { return }
        if placed { awaited -= 1 }
        if status.rank > best.rank { best = status }
        dials[caller]?.phase = .ringing(awaited: awaited, best)
        if awaited <= 0, dials[caller]?.calls.isEmpty == true { end(caller, best, .zero, into: &outbox) }
    }

    private mutating func stop(
        _ caller: CallID, _ status: DialStatus, at now: Instant, into outbox: inout [Output]
    ) {
        guard let dial = dials[caller] else { return }
        for call in dial.calls.sorted(by: { $0.number < $1.number }) { release(call, of: caller, into: &outbox) }
        switch dial.phase {
        case .ringing, .won: end(caller, status, .zero, into: &outbox)
        case .joined(_, let since): end(caller, .completed, since.duration(to: now), into: &outbox)
        case .inRoom(let since):
            outbox.append(.leaveRoom(caller: caller))
            end(caller, .completed, since.duration(to: now), into: &outbox)
        }
    }

    private mutating func end(
        _ caller: CallID, _ status: DialStatus, _ duration: Duration, into outbox: inout [Output]
    ) {
        dials[caller] = nil
        outbox.append(.ended(caller: caller, status, duration: duration))
    }
}
