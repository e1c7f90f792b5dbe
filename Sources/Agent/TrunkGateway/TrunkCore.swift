// TrunkGateway: carries calls between an exchange and a telephone network: two accounts, whose calls it joins in pairs.

public import CallControl
public import CallAgent
public import Core

/// The calls of a trunk, in pairs: one comes in on one side, and its other half is placed on the other.
///
/// It is a value without timers: each call's own machine has them. No sequence of events leaves a call without its other half.
public struct TrunkCore: Sendable {
    /// What happens to the calls of both sides.
    public enum Input: Sendable {
        /// A call comes in.
        case incoming(TrunkLeg, TrunkCall?, from: UserID? = nil)
        /// The call that ``Output/place(for:_:_:)`` asked for has that name.
        case placed(TrunkLeg, for: TrunkLeg)
        /// Our call was answered.
        case answered(TrunkLeg)
        /// The call can carry media.
        case established(TrunkLeg)
        /// The peer has pressed a key.
        case digit(TrunkLeg, Character)
        /// The call has ended, but its device has not reported why yet: it no longer counts.
        case over(TrunkLeg)
        /// The call has ended.
        case ended(TrunkLeg, CallEndReason, CallFailureCause? = nil)
        /// The operator ends the pair of this number.
        case hangUp(UInt64)
        /// The operator has new calls refused as busy, or taken again.
        case drain(Bool)
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Place the other half of a call, on the other side.
        case place(for: TrunkLeg, UserID, TrunkCall)
        /// Answer a call.
        case answer(TrunkLeg)
        /// Reject a call that rings.
        case reject(TrunkLeg, RejectReason, CallFailureCause? = nil)
        /// End a call.
        case hangUp(TrunkLeg)
        /// Have both hear each other.
        case join(TrunkLeg, TrunkLeg)
        /// Press a key in a call.
        case press(Character, TrunkLeg)
        /// Report what has happened to the operator.
        case report(TrunkReport)
    }

    /// A call and its other half.
    private struct Pair {
        let number: UInt64
        let origin: TrunkLeg
        let parties: TrunkParties
        let began: Instant
        var joined: Instant?
        var isEndedByOperator = false
        /// Nil until it has a name.
        var target: TrunkLeg?
        var isAnswered = false
        /// Whether one of both is known to be over.
        var isOver = false
        var established: Set<TrunkLeg> = []
    }

    private let routes: TrunkRoutes
    private let limit: Int
    private var pairs: [TrunkLeg: Pair] = [:]
    /// The origins of targets.
    private var origins: [TrunkLeg: TrunkLeg] = [:]
    /// Origins that have ended while their other half was placed.
    private var given: Set<TrunkLeg> = []
    private var lastNumber: UInt64 = 0
    /// Whether the operator has new calls refused.
    public private(set) var isDraining = false
    /// What it has counted since it began.
    public private(set) var counters = TrunkCounters()

    /// - Parameter limit: Pairs at a time; a further call is rejected as busy.
    public init(routes: TrunkRoutes, limit: Int) {
        self.routes = routes
        self.limit = limit
    }

    /// Calls that have an other half, or wait for it.
    public var count: Int { pairs.count }

    /// Whether one call more is one too many.
    public var isFull: Bool { pairs.values.count { !$0.isOver } + given.count >= limit }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .incoming(let leg, let call, let caller): receive(leg, call, from: caller, at: now, &outbox)
        case .placed(let target, let origin): placed(target, for: origin, &outbox)
        case .answered(let leg):
            // One that we answer ourselves says so, too.
            guard let origin = origins[leg], pairs[origin]?.isAnswered == false else { return }
            pairs[origin]?.isAnswered = true
            outbox.append(.answer(origin))
            counters.answered += 1
            if let pair = pairs[origin] { outbox.append(.report(.answered(pair.number))) }
        case .established(let leg): established(leg, at: now, &outbox)
        case .digit(let leg, let digit):
            guard let pair = pair(of: leg), let target = pair.target, pair.established.count == 2 else { return }
            outbox.append(.press(digit, leg == target ? pair.origin : target))
        case .over(let leg):
            // The place of one whose other half is being placed is not free: that half will be there for a moment.
            guard let origin = pair(of: leg)?.origin, pairs[origin]?.target != nil else { return }
            pairs[origin]?.isOver = true
        case .ended(let leg, let reason, let cause): ended(leg, reason, cause, at: now, &outbox)
        case .hangUp(let number):
            guard let origin = pairs.first(where: { $0.value.number == number })?.key else { return }
            pairs[origin]?.isEndedByOperator = true
            // Its end ends the other half.
            outbox.append(.hangUp(origin))
        case .drain(let isDraining):
            guard self.isDraining != isDraining else { return }
            self.isDraining = isDraining
            outbox.append(.report(.draining(isDraining)))
        }
    }

    /// The pairs, the oldest first.
    public func calls(at now: Instant) -> [TrunkCallState] {
        pairs.values.map { pair in
            TrunkCallState(
                number: pair.number, origin: pair.origin, target: pair.target, parties: pair.parties,
                progress: pair.isEndedByOperator || pair.isOver
                    ? .ending : pair.joined != nil ? .talking : pair.isAnswered ? .answered : .calling,
                age: pair.began.duration(to: now), talk: pair.joined.map { $0.duration(to: now) })
        }.sorted { $0.number < $1.number }
    }

    private func pair(of leg: TrunkLeg) -> Pair? { pairs[leg] ?? origins[leg].flatMap { pairs[$0] } }

    private mutating func receive(
        _ leg: TrunkLeg, _ call: TrunkCall?, from caller: UserID?, at now: Instant, _ outbox: inout [Output]
    ) {
        let from = call?.caller ?? caller?.text ?? ""
        func refuse(_ refusal: TrunkRefusal) {
            counters.refused[refusal, default: 0] += 1
            outbox.append(.reject(leg, refusal.reason))
            outbox.append(.report(.refused(leg.side, from: from, dialled: call?.dialled, refusal)))
        }
        // Only the exchange says what a user has dialled, so a call without that was not allowed by it.
        guard let call, let dialled = call.dialled else { return refuse(.notAllowed) }
        let target: UserID?
        let told: TrunkCall
        switch leg.side {
        case .exchange: (target, told) = (routes.networkName(of: dialled), TrunkCall())
        case .network: (target, told) = (routes.user(of: dialled), TrunkCall(caller: call.caller, name: call.name))
        }
        guard let target else { return refuse(.noRoute) }
        guard !isDraining else { return refuse(.draining) }
        guard !isFull else { return refuse(.full) }
        lastNumber += 1
        counters.calls += 1
        let parties = TrunkParties(from: from, name: call.name, dialled: dialled, to: target)
        pairs[leg] = Pair(number: lastNumber, origin: leg, parties: parties, began: now)
        outbox.append(.place(for: leg, target, told))
        outbox.append(.report(.began(lastNumber, leg.side, parties)))
    }

    private mutating func placed(_ target: TrunkLeg, for origin: TrunkLeg, _ outbox: inout [Output]) {
        guard given.remove(origin) == nil else { return outbox.append(.hangUp(target)) }
        guard pairs[origin] != nil else { return outbox.append(.hangUp(target)) }
        pairs[origin]?.target = target
        origins[target] = origin
    }

    private mutating func established(_ leg: TrunkLeg, at now: Instant, _ outbox: inout [Output]) {
        let origin = origins[leg] ?? leg
        guard let pair = pairs[origin], let target = pair.target,
            pairs[origin]?.established.insert(leg).inserted == true, pair.established.count == 1
        else { return }
        pairs[origin]?.joined = now
        outbox.append(.join(origin, target))
        outbox.append(.report(.joined(pair.number)))
    }

    private mutating func ended(
        _ leg: TrunkLeg, _ reason: CallEndReason, _ cause: CallFailureCause?, at now: Instant,
        _ outbox: inout [Output]
    ) {
        if let pair = pairs.removeValue(forKey: leg) {
            defer { report(pair, endedBy: leg, reason, at: now, &outbox) }
            guard let target = pair.target else {
                given.insert(leg)
                return
            }
            origins[target] = nil
            outbox.append(.hangUp(target))
        } else if let origin = origins.removeValue(forKey: leg), let pair = pairs.removeValue(forKey: origin) {
            defer { report(pair, endedBy: leg, reason, at: now, &outbox) }
            let rejection = Self.rejection(reason)
            // Only what the callee's side says of the callee: this trunk's own media is none of the caller's business.
            let told = rejection == .failed && cause?.isOfCallee == true ? cause : nil
            outbox.append(pair.isAnswered ? .hangUp(origin) : .reject(origin, rejection, told))
        }
    }

    private func report(
        _ pair: Pair, endedBy leg: TrunkLeg, _ reason: CallEndReason, at now: Instant, _ outbox: inout [Output]
    ) {
        let end = TrunkCallEnd(
            reason: reason, endedBy: pair.isEndedByOperator ? nil : leg.side,
            talk: pair.joined.map { $0.duration(to: now) })
        outbox.append(.report(.ended(pair.number, pair.origin.side, end)))
    }

    /// The reason that a caller receives for an unanswered call.
    private static func rejection(_ reason: CallEndReason) -> RejectReason {
        switch reason {
        case .busy: .busy
        case .declined, .declinedElsewhere: .declined
        case .noAnswer: .noAnswer
        case .completed, .cancelled, .acceptedElsewhere, .dialFailed, .acceptFailed, .connectionLost, .disconnected,
            .internalError:
            .failed
        }
    }
}

/// The two sides of a trunk.
public enum TrunkSide: String, CaseIterable, Hashable, Sendable {
    /// The account at the exchange.
    case exchange
    /// The account at the telephone network's server.
    case network

    /// The one across.
    public var other: TrunkSide { self == .exchange ? .network : .exchange }
}

/// A call on one side of a trunk.
public struct TrunkLeg: Hashable, Sendable, CustomStringConvertible {
    /// On which side.
    public let side: TrunkSide
    /// Its number there.
    public let number: UInt64

    /// Names a leg.
    public init(_ side: TrunkSide, _ number: UInt64) {
        self.side = side
        self.number = number
    }

    /// Names the leg that is a device's call.
    public init(_ side: TrunkSide, _ call: CallID) { self.init(side, call.number) }

    /// Such as "network call 3".
    public var description: String { "\(side.rawValue) call \(number)" }
}
