internal import BotCalls
internal import Call
internal import CallBridging
internal import CallControl
internal import CallMedia
internal import Core
internal import SignalingClient

/// Decides whether a device takes one more call, and places one: by its configuration, its other calls, the sound card, and the room that
/// its machine has. A value of one moment.
///
/// When the machine is about to have more to do than it can, first its encoders spend less effort, which the media workers see to. When
/// none is left to save, new calls are refused as busy. Present calls continue.
struct CallAdmission {
    /// What is done with a call that comes in.
    struct Decision {
        /// What the call's session is fed; nil if the call rings until the user decides.
        var input: CallSession.Input?
        /// Whether the call rings, also before it is answered by itself.
        var rings = false
        /// The rule by which the call is refused, and why; nil if none does.
        var refusal: (rule: String, reason: RejectReason)?

        static func answer(after delay: Duration) -> Decision {
            Decision(input: .user(.answer(after: delay)), rings: delay > .zero)
        }

        /// - Parameter delay: When the call is answered in another part; nil if a user decides.
        static func ring(until delay: Duration?, _ part: CallPart?) -> Decision {
            guard let delay, let part else { return Decision(rings: true) }
            return Decision(input: .user(.passOn(after: delay, to: part)), rings: true)
        }

        static func reject(_ reason: RejectReason, cause: CallFailureCause? = nil, rule: String? = nil) -> Decision {
            Decision(input: .user(.reject(reason, cause: cause)), refusal: rule.map { (rule: $0, reason: reason) })
        }
    }

    private let configuration: DeviceConfiguration
    private let share: MediaShare
    private let calls: CallTable
    private let legs: BotLegs
    private let isDraining: Bool

    init(
        _ configuration: DeviceConfiguration, _ share: MediaShare, among calls: CallTable, _ legs: BotLegs,
        isDraining: Bool
    ) {
        self.configuration = configuration
        self.share = share
        self.calls = calls
        self.legs = legs
        self.isDraining = isDraining
    }

    // MARK: Calls that come in

    /// The rule of the answer table that matches an invite now; nil if none does.
    func rule(for invite: ReceivedInvite, at time: WallClock) -> AnswerRule? {
        let table = configuration.answer.table
        guard !table.rules.isEmpty else { return nil }
        var limit: Int?
        if case .calls(let most) = configuration.answer.callLimit { limit = most }
        return table.rule(
            for: AnswerTable.Call(
                caller: configuration.account.caller(of: invite), group: invite.group, dialled: invite.trunk?.dialled,
                activeCalls: calls.ongoingCount(), mostCalls: limit), at: time)
    }

    /// Decides whether a call that has come in is answered, and when.
    ///
    /// - Parameters:
    ///   - rule: What the answer table says of it; nil if no rule matches.
    ///   - later: The part in which it is answered if it rings and no user takes it; nil if the rule names none.
    func decision(
        on call: CallSession, by rule: AnswerRule? = nil, _ later: CallPart? = nil, hasRoom: Bool, _ card: CallCard
    ) -> Decision {
        let policy = configuration.answer
        if call.hops.areTooMany {
            return .reject(.failed, cause: .tooManyHops, rule: "more than \(CallHops.most) calls led to this one")
        }
        if call.replaces != nil, !isDraining, policy.callers.refusal(of: call.peer) == nil {
            // The transferred peer replaces a call that we have answered already (RFC 3891 §3).
            return .answer(after: .zero)
        }
        let status = AnswerPolicy.Status(
            caller: call.peer, activeCalls: calls.ongoingCount(besides: call.id), isDraining: isDraining,
            hasRoom: hasRoom)
        let refusal = policy.refusal(of: status, isRuled: rule != nil)
        if refusal == nil, case .reject(let how)? = rule?.outcome.action {
            let why = rule?.outcome.reason.map { ": \($0)" } ?? ""
            return .reject(how.reason, cause: how.cause, rule: rule.map { "\($0)\(why)" })
        }
        if call.usesCard, card.isTaken(for: call, among: calls), refusal?.reason != .declined {
            // Who may not get through learns nothing of it.
            return .reject(.busy, rule: "audio.several_calls: refuse, and another call has the sound card")
        }
        if let refusal { return .reject(refusal.reason, rule: "\(refusal)") }
        // Instead of ringing, or being answered in silence. What takes it later without a card is not silent.
        let passesOn = later.map { $0.audio.source != .card } ?? false
        if call.usesCard, !passesOn, let absence = card.absence { return Decision(input: .failed(absence)) }
        switch rule?.outcome.action {
        case .answer(let delay)?: return .answer(after: delay)
        case .ring(let sequel)?: return .ring(until: sequel?.delay, later)
        case .reject?, nil: break
        }
        switch policy.decide(status) {
        case .answer(let delay): return .answer(after: delay)
        case .ring: return Decision(rings: true)
        case .reject(let reason): return .reject(reason)
        }
    }

    /// Whether a transfer that a peer asks for is carried out.
    func admits(_ request: CallTransfer.Request, by traits: SignalingTraits) -> Bool {
        guard configuration.answer.transfers.admits(request) else { return false }
        // A service that judges targets has compared the address, of which the name is a part.
        guard !traits.judgesTargets, configuration.account.callees != nil else { return true }
        return configuration.account.lists(request.target)
    }

    /// Why a call can have no media; nil if it can.
    func obstacle(toMediaOf call: CallSession, _ card: CallCard) -> MediaFailure? {
        if isDraining, call.isOutgoing {
            return MediaFailure(.deviceFull, "the device takes no more calls: it stops")
        }
        return card.obstacle(to: call, among: calls)
    }

    // MARK: Calls that this device places

    /// What is in the way of a call; nil if nothing is but possibly the machine's room.
    func obstacle(while connection: DeviceStatus.Connection) -> CallObstacle? {
        if isDraining { return CallObstacle(.draining) }
        switch connection {
        case .connected, .reconnecting: break
        case .connecting, .disconnected: return CallObstacle(.notConnected)
        }
        if case .calls(let limit) = configuration.answer.callLimit, calls.ongoingCount() >= limit {
            return CallObstacle(.callLimit(limit))
        }
        return nil
    }

    /// Why a bot's server or a call flow may not have a user called.
    struct PlacementRefusal: Error {
        let kind: BotPlacement.Refusal
        let reason: String
    }

    /// The user that a bot's server wants to be called, if the device may call that user for it now.
    ///
    /// - Parameter obstacle: Finds what is in the way of any call.
    func callee(
        of placement: BotPlacement, unless obstacle: () -> CallObstacle?
    ) -> Result<UserID, PlacementRefusal> {
        guard let callee = try? UserID(placement.to) else {
            return .failure(PlacementRefusal(kind: .callee, reason: "no user can have the callee's name"))
        }
        guard configuration.account.lists(callee) else {
            return .failure(PlacementRefusal(kind: .unlisted, reason: "account.callees does not have the callee"))
        }
        if let obstacle = obstacle() {
            return .failure(PlacementRefusal(kind: .unavailable, reason: "\(obstacle)"))
        }
        return .success(callee)
    }

    /// The user that a call flow dials, or one that gets a call from a bot, if the device may call that user for it now.
    ///
    /// - Parameters:
    ///   - own: The device's user, who cannot be dialled: the flow would go round in circles.
    ///   - dialled: Calls that were placed to be joined and that have not ended.
    ///   - hops: How many calls led to that of the caller.
    func callee(
        ofDial name: String, own: UserID?, dialled: Int, after hops: CallHops, unless obstacle: () -> CallObstacle?
    ) -> Result<UserID, PlacementRefusal> {
        guard let callee = try? UserID(name) else {
            return .failure(PlacementRefusal(kind: .callee, reason: "no user can have the callee's name"))
        }
        if let obstacle = hops.obstacle { return .failure(PlacementRefusal(kind: .unavailable, reason: obstacle)) }
        let account = configuration.account
        if let own, account.caller(own).description == account.caller(callee).description {
            return .failure(
                PlacementRefusal(kind: .callee, reason: "the callee is this device itself"))
        }
        guard account.mayCall(name) != nil else {
            return .failure(PlacementRefusal(kind: .unlisted, reason: "account.callees does not have the callee"))
        }
        guard dialled < CallDials.mostCalls else {
            return .failure(
                PlacementRefusal(
                    kind: .unavailable,
                    reason:
                        "\(CallDials.mostCalls) calls were dialled to be joined and have not ended, which is the limit")
            )
        }
        if let obstacle = obstacle() {
            return .failure(PlacementRefusal(kind: .unavailable, reason: "\(obstacle)"))
        }
        return .success(callee)
    }

    // MARK: Room

    /// Whether the machine carries one more call in this part, without harm to those that it has.
    ///
    /// - Parameters:
    ///   - parts: Those that it may have, one or the other.
    ///   - id: The call, if it is among the device's calls.
    ///   - isCall: Whether there is, or will be at once, a call for which the room is reserved.
    /// - Returns: That, and whether it is another answer than the last one.
    func room(
        for parts: [CallPart], besides id: CallID? = nil, isCall: Bool
    ) -> (hasRoom: Bool, isChange: Bool) {
        guard configuration.answer.callLimit == .automatic else { return (true, false) }
        return share.hasRoom(
            streams: parts.map(streams).max() ?? 1, besides: unplacedCount(besides: id), isCall: isCall)
    }

    /// Streams of a call in this part: its own, and that of its bot's leg.
    private func streams(of part: CallPart) -> Int {
        part.audio.source == .program && part.rules.behaviour == configuration.behaviourWithLegs ? 2 : 1
    }

    /// Streams of the device's calls that no media worker runs yet, without this call's.
    func unplacedCount(besides id: CallID? = nil) -> Int {
        calls.unplacedCount(besides: id, legs: configuration.behaviourWithLegs.map { (legs, $0) })
    }
}
