import JSON
import SignalWire
import Timekeeping

/// What is kept, and on whose account. A request for which there is no room is refused before anything is done.
extension ExchangeCore {
    /// Makes sure that so many bytes more may be kept.
    ///
    /// - Throws: `tooManyRequests`, which says whether it is for the user's own bound or for that of all.
    mutating func afford(_ bytes: Int, _ cause: Ledger.Cause = .request) throws(RPCError) {
        guard !ledger.hasRoom(for: bytes, of: actsFor, cause) else { return }
        if ledger.isOwnFault(bytes, of: actsFor, cause) {
            count(\.overBudget)
            throw RPCError(
                .tooManyRequests,
                "What the exchange keeps for this user would exceed \(settings.kept.user) bytes; end invites, or wait "
                    + "for a minute.", limit: settings.kept.user)
        }
        count(\.overload)
        throw RPCError(
            .tooManyRequests,
            "The exchange is short of memory, and this user has its share of it; try again in a minute.")
    }

    /// Bytes that an event takes up which so many are told of.
    func cost(of event: EventBody, for receivers: Int) -> Int {
        receivers > 0 ? Weight.body(event) + receivers * Weight.entry : 0
    }

    /// Bytes that an answer, an end or a change takes up that bears `data`.
    func cost(of data: JSONValue?, to record: InviteRecord) -> Int {
        let receivers = record.invitees.count + (record.group.flatMap { groups[$0] }?.members.count ?? 0)
        return (data?.textBytes ?? 0) + Weight.record + (receivers + 2) * Weight.entry
    }

    /// Bytes that an invite takes up, with its event and its pushes.
    func cost(of record: InviteRecord, _ event: EventBody) -> Int {
        let members = record.group.flatMap { groups[$0] }?.members.count ?? 0
        let push = Weight.record + (record.payload?.bytes ?? 0)
        let pushed = record.invitees.flatMap { pushes.entries(of: $0) }.flatMap(\.targets)
        let all = pushed.reduce(0) { $0 + push + $1.token.secret.utf8.count }
        return Weight.of(record) + cost(of: event, for: record.invitees.count + members) + all
    }

    // MARK: - The ledger

    /// Enters what an invite takes up.
    mutating func settle(_ id: InviteID) {
        let record = invites[id]
        ledger.set(.invite(id), record.map(Weight.of) ?? 0, for: record?.inviter.principal)
    }

    /// Enters what a session takes up.
    mutating func settle(_ id: SessionID, _ stored: StoredSession?) {
        guard let stored, let device = sessions.session(id)?.device else {
            return ledger.set(.session(id), 0, for: nil)
        }
        ledger.set(.session(id), Weight.of(stored, device), for: stored.principal)
    }

    /// Enters what a group takes up.
    mutating func settle(_ id: GroupID) {
        let group = groups[id]
        ledger.set(.group(id), group.map(Weight.of) ?? 0, for: (group?.owner).map(Principal.account))
    }

    /// Enters what a device's push tokens take up.
    mutating func settle(_ endpoint: Endpoint) {
        ledger.set(.pushTargets(endpoint), Weight.of(pushes.targets(of: endpoint)), for: endpoint.principal)
    }

    /// Enters what a push takes up.
    mutating func settle(_ id: PushID, _ push: StoredPush?) {
        ledger.set(.push(id), push.map(Weight.of) ?? 0, for: (push?.inviter).map(Principal.account))
    }

    /// Enters what a call takes up.
    mutating func settle(_ call: Call) {
        ledger.set(.call(call.id), calls[call.id] == nil ? 0 : Weight.record, for: call.inviter.principal)
    }

    /// Enters all that was on disk. Of events it is not known any more who caused them: they are the exchange's own until
    /// they go, within the resume window.
    mutating func settleAll() {
        for id in invites.keys { settle(id) }
        for id in sessions.resumable { settle(id, stored(id)) }
        for id in groups.ids { settle(id) }
        for endpoint in pushes.endpoints { settle(endpoint) }
        for (id, push) in pushQueue.all { settle(id, push) }
        for call in calls.all { settle(call) }
        for body in logs.values.flatMap(\.bodies) { ledger.enter(body, for: nil) }
    }

    // MARK: - Deadlines

    /// Takes deadlines out that are of no more interest, before they become more than the others: an invite may have a day
    /// to live and be cancelled at once.
    mutating func sweepDeadlines() {
        guard deadlines.isDueForSweep else { return }
        var queue = deadlines
        queue.sweep { matters($0) }
        deadlines = queue
    }

    /// Whether anything would come of a deadline. It changes nothing: a closure that calls what is not `mutating` has the
    /// whole core copied for each call.
    mutating func matters(_ deadline: Deadline) -> Bool {
        switch deadline {
        case .inviteTimesOut(let id): invites[id]?.isEnded == false
        case .inviteIsForgotten(let id): invites[id] != nil
        case .sessionIsForgotten(let id): sessions.end(of: id) != nil
        case .callMayBeOrphaned(let id): calls[id] != nil
        case .loginIsDue(let connection): connections[connection] != nil && sessions[connection] == nil
        case .tokenIsChecked(let connection): sessions[connection] != nil
        case .eventsExpire(let principal): logs[principal] != nil
        case .accountIsMissed, .tokensAreSwept, .pruningIsDue, .eventsArePruned: true
        }
    }
}
