import CallControl
import SignalWire
import Core
import JSON

/// Names one call: each invitee that accepts an invite has a call of its own with the inviter.
package struct CallKey: Hashable, Sendable {
    let invite: InviteID
    let invitee: UserID
}

/// One accepted invite, until a party hangs up.
struct Call: Hashable, Sendable {
    let invite: InviteID
    let inviter: Endpoint
    let invitee: Endpoint
    let acceptedAt: Instant

    var id: CallKey { CallKey(invite: invite, invitee: invitee.user) }

    /// The other end, if `endpoint` is one of the two.
    func peer(of endpoint: Endpoint) -> Endpoint? {
        switch endpoint {
        case inviter: invitee
        case invitee: inviter
        default: nil
        }
    }
}

/// The calls under way. Ends are devices, not connections, so that a call outlives a connection that drops (CALL-6).
struct Calls: Sendable {
    /// The calls of one invite.
    private struct Entry {
        var calls: [Call] = []
        /// How many have begun since the first of those that are left.
        var begun = 0
    }

    /// What happened to a call.
    private enum Step: Sendable {
        case began(Call)
        case ended(Call)
    }

    private var byInvite = PartedDictionary<InviteID, Entry>()
    private var callsByEndpoint: [Endpoint: [CallKey]] = [:]
    /// The calls that a user has made, oldest first, each with a number that rises from call to call.
    private var callsByInviter: [UserID: [(number: UInt64, key: CallKey)]] = [:]
    private var lastNumber: UInt64 = 0
    /// In memory alone: after a restart a transfer is asked for again.
    private var transfers: [CallKey: CallTransfers] = [:]
    private var changes: [Step] = []
    private(set) var count = 0

    subscript(id: CallKey) -> Call? { byInvite[id.invite]?.calls.first { $0.invitee.user == id.invitee } }

    /// The calls that an invite has become, oldest first.
    func calls(of invite: InviteID) -> [Call] { byInvite[invite]?.calls ?? [] }

    /// Whether an invite has become more than one call, so that its inviter must name the call.
    func isAmbiguous(_ invite: InviteID) -> Bool { (byInvite[invite]?.begun ?? 0) > 1 }

    /// All that are under way.
    var all: [Call] { byInvite.values.flatMap(\.calls) }

    /// The calls that a device is in, oldest first.
    func calls(of endpoint: Endpoint) -> [Call] { (callsByEndpoint[endpoint] ?? []).compactMap { self[$0] } }

    /// The calls that a user has made behind a number, oldest first, each with its own.
    func calls(by user: UserID, after number: UInt64, atMost limit: Int) -> [(number: UInt64, call: Call)] {
        let own = callsByInviter[user] ?? []
        return own[own.sortedIndex(behind: { $0.number > number })...].prefix(limit).compactMap { entry in
            self[entry.key].map { (entry.number, $0) }
        }
    }

    /// The call of an invite that a device is in, with `peer` if that is given; `nil` if it is in none.
    ///
    /// - Throws: `invalidParams` if the invite has become several calls, and the inviter does not name one.
    func call(_ invite: InviteID, _ peer: UserID?, of endpoint: Endpoint) throws(RPCError) -> Call? {
        let own = calls(of: invite).filter { $0.peer(of: endpoint) != nil }
        if let peer { return own.first { $0.peer(of: endpoint)?.user == peer } }
        if own.first?.inviter == endpoint, isAmbiguous(invite) {
            throw RPCError(.invalidParams, "Several users have accepted the invite: peer must name one of them.")
        }
        return own.first
    }

    /// Why a device is in no call of an invite, or not in the one that it means.
    func noCall(_ invite: InviteID, for endpoint: Endpoint) -> RPCError {
        let others = calls(of: invite)
        let isParty = others.contains { $0.peer(of: endpoint) != nil }
        guard others.isEmpty || isParty else { return RPCError(.notYours, "This device is not in that call.") }
        return Self.unknownCall
    }

    /// What is known of a call's transfers.
    func transfers(of call: Call) -> CallTransfers { transfers[call.id] ?? CallTransfers() }

    /// Records that a party asks the other to call another user in its place.
    mutating func note(_ request: CallTransfers.Request, by user: UserID, in call: Call) {
        transfers[call.id, default: CallTransfers()].requests[user] = request
    }

    /// What a party has asked for is done.
    mutating func forgetRequest(of user: UserID, in call: Call) { transfers[call.id]?.requests[user] = nil }

    static let unknownCall = RPCError(
        .unknownCall, "The invite has not become a call, or the call has ended.")

    /// - Parameter transfers: The how-manyeth transfer in a row has made it; 0 if none has.
    mutating func add(_ call: Call, transfers count: Int = 0) {
        changes.append(.began(call))
        if count > 0 { transfers[call.id] = CallTransfers(count: count) }
        restore(call)
    }

    /// Adds a call that is on disk already.
    mutating func restore(_ call: Call) {
        count += 1
        var entry = byInvite[call.invite] ?? Entry()
        entry.calls.append(call)
        entry.begun += 1
        byInvite[call.invite] = entry
        for end in [call.inviter, call.invitee] { callsByEndpoint[end, default: []].append(call.id) }
        lastNumber += 1
        callsByInviter[call.inviter.user, default: []].append((lastNumber, call.id))
    }

    /// Ends a call and notifies the other party.
    mutating func end(
        _ call: Call, by endpoint: Endpoint, reason: String, cause: String?, duration: Int64, at now: Instant,
        _ effects: inout Effects
    ) {
        guard let peer = call.peer(of: endpoint) else { return }
        remove(call)
        effects.recordEnd(of: call.invite, with: call.invitee.user, reason: reason, duration: duration, at: now)
        let event = CallEnded(
            invite: call.invite, reason: reason, cause: cause, durationMilliseconds: duration, from: endpoint.user)
        effects.notify(peer, .callEnded(event))
        note(call, reason, duration, at: now, &effects)
    }

    /// Ends a call at the operator's request. To each party it is as if the other one had disconnected.
    mutating func endByOperator(_ call: Call, at now: Instant, _ effects: inout Effects) {
        remove(call)
        let duration = Int64(call.acceptedAt.duration(to: now).milliseconds)
        effects.recordEnd(
            of: call.invite, with: call.invitee.user, reason: Self.operatorReason, duration: duration, at: now)
        for (end, peer) in [(call.inviter, call.invitee), (call.invitee, call.inviter)] {
            let event = CallEnded(
                invite: call.invite, reason: "disconnected", durationMilliseconds: duration, from: peer.user)
            effects.notify(end, .callEnded(event))
        }
        note(call, Self.operatorReason, duration, at: now, &effects)
    }

    /// Why a call ended that the operator has ended, in its record.
    static let operatorReason = "operator"

    private func note(
        _ call: Call, _ reason: String, _ duration: Int64, at now: Instant, _ effects: inout Effects
    ) {
        effects.trace(
            call.invite,
            .callEnded(
                call.invitee.user, reason: reason,
                isFailure: CallEndReason(rawValue: reason)?.isFailure ?? false),
            at: now)
        effects.note(
            .callEnded(
                call.invite, between: [call.inviter.user, call.invitee.user], reason: reason,
                durationMilliseconds: duration))
    }

    /// Drops a call when neither device is connected or can resume. A device internal to the exchange does not keep the
    /// call, and is notified of its end.
    mutating func dropOrphan(_ id: CallKey, _ sessions: Sessions, at now: Instant, _ effects: inout Effects) {
        guard let call = self[id] else { return }
        let ends = [call.inviter, call.invitee]
        let left = ends.compactMap { sessions.session(at: $0) }
        // A device that went later than the other has the whole window too, and asks for this again when that ends.
        guard left.allSatisfy(\.isInternal), !ends.contains(where: { sessions.canReturn($0, at: now) }) else { return }
        remove(call)
        let reason = "connectionLost"
        let duration = Int64(call.acceptedAt.duration(to: now).milliseconds)
        effects.recordEnd(of: call.invite, with: call.invitee.user, reason: reason, duration: duration, at: now)
        for session in left {
            guard let peer = call.peer(of: session.endpoint) else { continue }
            let event = CallEnded(
                invite: call.invite, reason: reason, durationMilliseconds: duration, from: peer.user)
            effects.notify(session.endpoint, .callEnded(event))
        }
        note(call, reason, duration, at: now, &effects)
    }

    private mutating func remove(_ call: Call) {
        guard let index = byInvite[call.invite]?.calls.firstIndex(where: { $0.id == call.id }) else { return }
        changes.append(.ended(call))
        count -= 1
        transfers[call.id] = nil
        byInvite[call.invite]?.calls.remove(at: index)
        if byInvite[call.invite]?.calls.isEmpty == true { byInvite[call.invite] = nil }
        for end in [call.inviter, call.invitee] {
            callsByEndpoint[end]?.removeAll { $0 == call.id }
            if callsByEndpoint[end]?.isEmpty == true { callsByEndpoint[end] = nil }
        }
        callsByInviter[call.inviter.user]?.removeAll { $0.key == call.id }
        if callsByInviter[call.inviter.user]?.isEmpty == true { callsByInviter[call.inviter.user] = nil }
    }

    // MARK: - To disk

    /// Puts out what happened, in order, and charges the inviters.
    mutating func recordChanges(
        at now: Instant, _ budget: inout Budget, into outbox: inout [ExchangeCore.Output]
    ) {
        guard !changes.isEmpty else { return }
        for change in changes {
            switch change {
            case .began(let call):
                charge(call, &budget)
                outbox.append(.persist(.call(call.stored)))
                let kind = CallStep.Kind.answered(device: call.invitee.device)
                let step = CallStep(invite: call.invite, invitee: call.invitee.user, kind: kind, at: now)
                outbox.append(.persist(.record(step)))
            case .ended(let call):
                charge(call, &budget)
                outbox.append(.persist(.callForgotten(invite: call.invite, invitee: call.invitee.user)))
            }
        }
        changes = []
    }

    /// Charges the inviters of all calls.
    func chargeAll(_ budget: inout Budget) { for call in all { charge(call, &budget) } }

    private func charge(_ call: Call, _ budget: inout Budget) {
        budget.charge(.call(call.id), self[call.id] == nil ? 0 : Weight.record, for: call.inviter.principal)
    }
}

extension Call {
    /// The record to store on disk.
    var stored: StoredCall {
        StoredCall(
            invite: invite, inviter: inviter.user, inviterDevice: inviter.device, invitee: invitee.user,
            inviteeDevice: invitee.device, acceptedAt: acceptedAt)
    }

    init(_ stored: StoredCall) {
        self.init(
            invite: stored.invite, inviter: Endpoint(user: stored.inviter, device: stored.inviterDevice),
            invitee: Endpoint(user: stored.invitee, device: stored.inviteeDevice), acceptedAt: stored.acceptedAt)
    }
}

/// What a call's parties have asked each other to do in their place, and how long the chain of transfers is (CALL-8).
struct CallTransfers: Sendable {
    /// What one of them wants the other to do.
    struct Request: Sendable {
        let target: UserID
        /// The asking party's call with the target, which the new one takes the place of.
        let replaces: InviteID?

        init(_ data: JSONValue?) throws(RPCError) {
            guard let text = data?["to"]?.string, let target = try? UserID(text) else {
                throw RPCError(.invalidParams, "A transfer needs \"to\", the user that the peer should call.")
            }
            self.target = target
            guard let replaces = data?["replaces"] else {
                self.replaces = nil
                return
            }
            guard let id = replaces.string.flatMap({ try? InviteID($0) }) else {
                throw RPCError(.invalidParams, "\"replaces\" must be the id of an invite.")
            }
            self.replaces = id
        }
    }

    /// An invite that does what the other party of its inviter's call has asked for.
    struct Granted: Sendable {
        /// The how-manyeth transfer in a row it is.
        let count: Int
        /// The call in which it was asked for.
        let call: Call
        /// Who asked.
        let by: UserID
    }

    /// The how-manyeth transfer in a row made the call; 0 if none did.
    var count = 0
    /// The last request of each party.
    var requests: [UserID: Request] = [:]
}
