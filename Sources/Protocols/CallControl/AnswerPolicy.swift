/// Decides what happens to an invite to a call; a pure function of a status.
public struct AnswerPolicy: Hashable, Sendable {
    /// What to do with callers that may get through.
    public enum Manner: Hashable, Sendable {
        /// Answer by itself after ringing for `delay`.
        case answer(after: Duration)
        /// Ring until the user or the program decides.
        case ring
        /// Reject all calls.
        case reject
    }

    /// Who may get through.
    public enum Callers: Hashable, Sendable {
        case everybody
        /// Only these.
        case only(Set<UserID>)
        /// All except these.
        case everybodyBut(Set<UserID>)
    }

    /// How many calls there may be at once.
    public enum CallLimit: Hashable, Sendable {
        /// As many as the machine carries without harm to any of them.
        case automatic
        /// This number, without regard to the machine's load.
        case calls(Int)
    }

    /// Targets to which a peer may transfer this device (contract CALL-8), of those that the account's list of callees admits.
    public enum Transfers: String, CaseIterable, Hashable, Sendable {
        /// None.
        case refuse
        /// Users and numbers of the device's own service.
        case service
        /// Callees at other hosts, too.
        case anywhere

        /// Whether a transfer request is carried out.
        public func admits(_ request: CallTransfer.Request) -> Bool {
            switch self {
            case .refuse: false
            case .service: !request.isUnlisted && !request.isOutside
            case .anywhere: !request.isUnlisted
            }
        }
    }

    /// The inputs of the decision.
    public struct Status: Hashable, Sendable {
        /// Who calls.
        public var caller: UserID
        /// Calls of this device that have not ended, without this one.
        public var activeCalls: Int
        /// Whether the device takes no new calls because it is going down.
        public var isDraining: Bool
        /// Whether the machine carries one more call without harm to those that it has.
        public var hasRoom: Bool

        /// Makes a status.
        public init(caller: UserID, activeCalls: Int, isDraining: Bool = false, hasRoom: Bool = true) {
            self.caller = caller
            self.activeCalls = activeCalls
            self.isDraining = isDraining
            self.hasRoom = hasRoom
        }
    }

    /// The outputs.
    public enum Decision: Hashable, Sendable {
        case answer(after: Duration)
        case ring
        case reject(RejectReason)
    }

    /// The rule that refuses a call. Its description names the configuration's key and the entry that matched.
    public enum Rule: Hashable, Sendable, CustomStringConvertible {
        /// The list of allowed callers does not have this caller.
        case unlisted(UserID)
        /// The list of refused callers has this caller.
        case denied(UserID)
        /// There are as many calls as the configuration allows.
        case callLimit(Int)
        /// The machine carries no more calls.
        case machineFull
        /// The device takes no calls because it is going down.
        case draining
        /// Every call is refused.
        case rejectsAll

        /// What the caller receives.
        public var reason: RejectReason {
            switch self {
            case .unlisted, .denied, .rejectsAll: .declined
            case .callLimit, .machineFull, .draining: .busy
            }
        }

        /// The key, and what of it matched.
        public var description: String {
            switch self {
            case .unlisted(let caller): "answer.allow: does not list \(caller)"
            case .denied(let caller): "answer.deny: lists \(caller)"
            case .callLimit(let limit): "answer.max_calls: \(limit)"
            case .machineFull: "answer.max_calls: auto, and the machine carries no more calls"
            case .draining: "the device is drained, or stops"
            case .rejectsAll: "answer.mode: reject"
            }
        }
    }

    /// What to do with callers that may get through.
    public var manner: Manner
    /// The most simultaneous calls; further ones are rejected as busy (contract INV-11).
    public var callLimit: CallLimit
    /// Who may get through.
    public var callers: Callers
    /// How long a call rings at most, even if its ttl is longer (contract INV-9).
    public var ringLimit: Duration
    /// Targets to which a peer may transfer this device.
    public var transfers = Transfers.service
    /// Whether no user decides about invites that are no calls, although calls ring, as those of a trunk do.
    public var isUnattended = false
    /// What decides the calls that may get through; if no rule matches, ``manner`` does.
    public var table = AnswerTable()

    /// Makes a policy.
    public init(
        manner: Manner = .ring, callLimit: CallLimit = .calls(1), callers: Callers = .everybody,
        ringLimit: Duration = .seconds(120)
    ) {
        self.manner = manner
        self.callLimit = callLimit
        self.callers = callers
        self.ringLimit = ringLimit
    }

    /// How long an invite that is no call waits for an answer at most, even if its ttl is longer (contract INV-9, INV-12): as
    /// long as a call rings, if no user decides about it here, because such invites would keep strangers' calls away. That is
    /// so if the device answers calls by itself, or ``isUnattended``. With nil they are left to the program.
    public var inviteLimit: Duration? {
        switch manner {
        case .answer: ringLimit
        case .ring, .reject: isUnattended ? ringLimit : nil
        }
    }

    /// Decides. A caller that may not get through is declined even when we are busy, so that it learns nothing.
    public func decide(_ status: Status) -> Decision {
        if let rule = refusal(of: status) { return .reject(rule.reason) }
        return switch manner {
        case .answer(let delay): .answer(after: max(.zero, delay))
        case .ring: .ring
        case .reject: .reject(.declined)
        }
    }

    /// The first rule that refuses a call; nil if none does.
    ///
    /// - Parameter isRuled: Whether a rule of ``table`` matches the call, so that ``manner`` does not count.
    public func refusal(of status: Status, isRuled: Bool = false) -> Rule? {
        if let rule = callers.refusal(of: status.caller) { return rule }
        if status.isDraining { return .draining }
        if let rule = callLimit.refusal(of: status) { return rule }
        return manner == .reject && !isRuled ? .rejectsAll : nil
    }
}

extension AnswerPolicy.CallLimit {
    func refusal(of status: AnswerPolicy.Status) -> AnswerPolicy.Rule? {
        switch self {
        case .automatic: status.hasRoom ? nil : .machineFull
        case .calls(let limit): status.activeCalls < limit ? nil : .callLimit(limit)
        }
    }
}

extension AnswerPolicy.Callers {
    /// The rule that refuses a caller; nil if none does.
    public func refusal(of caller: UserID) -> AnswerPolicy.Rule? {
        switch self {
        case .everybody: nil
        case .only(let allowed): allowed.contains(caller) ? nil : .unlisted(caller)
        case .everybodyBut(let denied): denied.contains(caller) ? .denied(caller) : nil
        }
    }
}
