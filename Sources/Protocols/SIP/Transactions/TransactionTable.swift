public import Core

/// The name of a transaction in one table.
public enum TransactionID: Hashable, Sendable {
    /// One of ours; its user chooses the number.
    case client(UInt64)
    /// One of a peer's; the table chooses the number.
    case server(UInt64)
}

/// An input of ``TransactionTable``.
public enum TransactionInput: Sendable {
    /// A message came in on that flow; the top `Via` of a request is stamped already.
    case received(SIPMessage, SIPFlow)
    /// Send a request, not ACK or CANCEL, and track it. The table adds the `Via`.
    case start(UInt64, SIPRequest, SIPFlow)
    /// Cancel that INVITE by a CANCEL, which is a separate transaction, with these headers added, such as `Reason`.
    /// It must have had a provisional response (RFC 3261 §9.1).
    case cancel(UInt64, by: UInt64, SIPHeaders)
    /// Send a request without a transaction: the ACK of a 2xx. The table adds the `Via`.
    case sendWithoutTransaction(SIPRequest, SIPFlow)
    /// Answer a peer's request.
    case respond(TransactionID, SIPResponse)
    /// The flow is gone; transactions that wait for an answer on it fail.
    case flowFailed(SIPFlow)
    /// Another flow replaces one that is gone: responses that peers still wait for use it, and the last response to an
    /// INVITE that is not acknowledged is sent again.
    case moved(SIPFlow, to: SIPFlow)
    /// ``TransactionTable/nextDeadline`` has come. Early calls are harmless.
    case timerFired
}

/// An output of ``TransactionTable``.
public enum TransactionOutput: Equatable, Sendable {
    /// Put the message on the wire.
    case transmit(SIPMessage, SIPFlow)
    /// A new request of a peer's, to be answered.
    case request(SIPRequest, TransactionID, SIPFlow)
    /// A CANCEL, and the INVITE that it is for, if that exists. It has no effect on one that has its final answer.
    case cancelled(SIPRequest, TransactionID, SIPFlow, invite: TransactionID?)
    /// An ACK for a 2xx, or for nothing that is known here.
    case ack(SIPRequest, SIPFlow)
    /// A response to our request; for an INVITE every response, of each fork, until it ends.
    case response(SIPResponse, TransactionID)
    /// No final response came in time: to be treated as 408.
    case timedOut(TransactionID)
    /// The flow failed, or the table is full. Treat it as a 503.
    case failed(TransactionID)
    /// The peer did not acknowledge our refusal of its INVITE. No action is needed.
    case ackMissing(TransactionID)
}

/// All transactions of an element, with the matching of messages to them (RFC 3261 §17).
///
/// Capacity: ``SIPLimits/transactions``, and for those of peers ``TransactionBudget`` in bytes: a request counts with
/// its text until it has a final answer, and then that answer alone counts. When the table is full, requests of peers
/// are answered with 503 without a transaction, and ours fail; both are counted in ``refusals``. Our own transactions
/// have no budget, because calls bound their number: a BYE is always sent.
public struct TransactionTable: ProtocolCore, Sendable {
    /// Each case is a separate heap block, so that tables of them stay small.
    private indirect enum Machine {
        case inviteClient(InviteClientTransaction)
        case client(RequestClientTransaction)
        case inviteServer(InviteServerTransaction)
        case server(RequestServerTransaction)
    }

    private struct Entry {
        var machine: Machine
        var flow: SIPFlow
        let key: String
        /// The peer that is charged for it, and the number of bytes; nil for our own.
        var charge: (peer: TransactionBudget.Peer, bytes: Int)?
    }

    private let timers: TransactionTimers
    private let capacity: Int
    private var tokens: TokenSource
    private var entries: [TransactionID: Entry] = [:]
    private var keys: [String: TransactionID] = [:]
    private var deadlines = DeadlineQueue<TransactionID>()
    private var serverCount: UInt64 = 0
    private var budget: TransactionBudget
    /// The most entries since memory was given back last.
    private var peak = 0
    /// The addresses of the peers of calls.
    var callers = HostSet()
    /// Requests that found the table full.
    public private(set) var refusals = 0
    /// Responses that belong to none of our requests, or came by more than one hop.
    public private(set) var strays = 0
    /// The hosts whose messages are accepted from other addresses than those that transactions use.
    var known = KnownHosts()
    /// Messages that name a transaction, but come from another address.
    public internal(set) var foreign = ForeignMessages()

    /// Makes an empty table.
    ///
    /// - Parameter memory: Bytes that transactions of peers may take up.
    public init(
        tokens: TokenSource, timers: TransactionTimers = .init(), capacity: Int = SIPLimits.transactions,
        memory: Int = SIPLimits.transactionMemory.lowerBound
    ) {
        budget = TransactionBudget(limit: memory)
        self.tokens = tokens
        self.timers = timers
        self.capacity = capacity
    }

    /// How many there are.
    public var count: Int { entries.count }

    /// The flow of a transaction; `nil` if the transaction has ended.
    func flow(of id: TransactionID) -> SIPFlow? { entries[id]?.flow }

    /// Bytes that the transactions of peers take up.
    public var bytes: Int { budget.used }

    /// Sets the server's addresses, each of which may answer for another.
    public mutating func locate(servers: [SIPHost]) { known.locate(servers: servers) }

    /// When ``handle(_:at:into:)`` must next be called.
    public var nextDeadline: Instant? { deadlines.next }

    /// Takes one input.
    public mutating func handle(_ input: TransactionInput, at now: Instant, into outbox: inout [TransactionOutput]) {
        switch input {
        case .received(.request(let request), let flow): receive(request, flow, now, &outbox)
        case .received(.response(let response), let flow): receive(response, flow, now, &outbox)
        case .start(let number, let request, let flow): start(.client(number), request, flow, now, &outbox)
        case .cancel(let invite, let number, let headers):
            cancel(.client(invite), .client(number), headers, now, &outbox)
        case .sendWithoutTransaction(let request, let flow):
            outbox.append(.transmit(.request(withVia(request, flow).0), flow))
        case .respond(let id, let response): respond(id, response, now, &outbox)
        case .flowFailed(let flow): fail(flow, &outbox)
        case .moved(let old, let new): move(old, new, &outbox)
        case .timerFired:
            while let id = deadlines.popDue(at: now) { fire(id, now, &outbox) }
        }
    }

    // MARK: Our requests

    private mutating func withVia(_ request: SIPRequest, _ flow: SIPFlow) -> (SIPRequest, String) {
        var request = request
        let branch = Via.cookie + tokens.next()
        let via = Via(
            transport: flow.transport.rawValue, host: flow.localHost, port: flow.localPort, branch: branch)
        request.headers.insertFirst("Via", via.description)
        return (request, branch)
    }

    private mutating func start(
        _ id: TransactionID, _ request: SIPRequest, _ flow: SIPFlow, _ now: Instant,
        _ outbox: inout [TransactionOutput]
    ) {
        let (request, branch) = withVia(request, flow)
        insertClient(id, request, branch, flow, now, &outbox)
    }

    private mutating func insertClient(
        _ id: TransactionID, _ request: SIPRequest, _ branch: String, _ flow: SIPFlow, _ now: Instant,
        _ outbox: inout [TransactionOutput]
    ) {
        precondition(entries[id] == nil, "a transaction's number is used once")
        guard entries.count < capacity else {
            refusals += 1
            return outbox.append(.failed(id))
        }
        let isReliable = flow.transport.isReliable
        let machine: Machine =
            request.method == .invite
            ? .inviteClient(InviteClientTransaction(request, isReliable: isReliable, timers: timers, at: now))
            : .client(RequestClientTransaction(request, isReliable: isReliable, timers: timers, at: now))
        let key = Self.clientKey(branch, request.method)
        entries[id] = Entry(machine: machine, flow: flow, key: key)
        peak = max(peak, entries.count)
        keys[key] = id
        outbox.append(.transmit(.request(request), flow))
        settle(id)
    }

    private mutating func cancel(
        _ invite: TransactionID, _ id: TransactionID, _ headers: SIPHeaders, _ now: Instant,
        _ outbox: inout [TransactionOutput]
    ) {
        guard var entry = entries[invite], case .inviteClient(var machine) = entry.machine, !machine.isFinal else {
            return
        }
        let original = machine.request
        var request = SIPRequest(method: .cancel, uri: original.uri)
        guard let via = original.headers.topVia, let branch = via.branch else { return }
        request.headers.append("Via", via.description)
        request.headers.append("Max-Forwards", "70")
        for name: SIPHeaderName in ["Route", "From", "To", "Call-ID"] {
            for line in original.headers.lines(name) { request.headers.append(name, line) }
        }
        request.headers.append("CSeq", CSeq(original.headers.sequence?.number ?? 0, .cancel).description)
        for header in headers.all { request.headers.append(header.name, header.value) }
        machine.cancel(at: now)
        entry.machine = .inviteClient(machine)
        entries[invite] = entry
        settle(invite)
        insertClient(id, request, branch, entry.flow, now, &outbox)
    }

    private mutating func receive(
        _ response: SIPResponse, _ flow: SIPFlow, _ now: Instant, _ outbox: inout [TransactionOutput]
    ) {
        guard let vias = response.headers.vias, vias.count == 1, let branch = vias[0].branch,
            let method = response.headers.sequence?.method, let id = keys[Self.clientKey(branch, method)],
            let entry = entries[id]
        else {
            strays += 1
            return
        }
        guard known.isSamePeer(flow, as: entry.flow) else { return foreign.note(method, by: flow) }
        var effects: [TransactionEffect] = []
        switch entry.machine {
        case .inviteClient(var machine):
            machine.receive(response, at: now, into: &effects)
            entries[id]?.machine = .inviteClient(machine)
        case .client(var machine):
            machine.receive(response, at: now, into: &effects)
            entries[id]?.machine = .client(machine)
        case .inviteServer, .server: break
        }
        apply(effects, id, entry.flow, &outbox)
        settle(id)
    }

    // MARK: Requests of peers

    private mutating func receive(
        _ request: SIPRequest, _ flow: SIPFlow, _ now: Instant, _ outbox: inout [TransactionOutput]
    ) {
        guard let via = request.headers.topVia else { return }
        let key = Self.serverKey(request, via, request.method == .ack ? .invite : request.method)
        if let id = keys[key], let entry = entries[id] {
            guard known.isSamePeer(flow, as: entry.flow) else {
                // An ACK of a 2xx may have the branch of its INVITE, and comes from the caller itself.
                if request.method == .ack {
                    outbox.append(.ack(request, flow))
                } else {
                    foreign.note(request.method, by: flow)
                }
                return
            }
            return receiveAgain(request, id, entry, by: flow, now, &outbox)
        }
        guard request.method != .ack else { return outbox.append(.ack(request, flow)) }
        let peer = peer(flow)
        let isInvite = request.method == .invite
        // The call keeps an offer, too, and passes it to the device as text.
        let copies = isInvite ? 2 * request.body.count : 0
        let bytes =
            SIPLimits.transactionBytes + MessageFootprint.of(key) + request.footprint + copies + SIPLimits.answerBytes
        guard entries.count < capacity, budget.allows(bytes, for: peer) else {
            refusals += 1
            var response = SIPResponse(503, to: request)
            response.headers.append("Retry-After", "10")
            return outbox.append(.transmit(.response(response), flow))
        }
        serverCount += 1
        let id = TransactionID.server(serverCount)
        let isReliable = flow.transport.isReliable
        let machine: Machine =
            isInvite
            ? .inviteServer(InviteServerTransaction(request, isReliable: isReliable, timers: timers, at: now))
            : .server(RequestServerTransaction(isReliable: isReliable, timers: timers, at: now))
        entries[id] = Entry(machine: machine, flow: flow, key: key, charge: (peer, bytes))
        budget.use(bytes, by: peer)
        keys[key] = id
        peak = max(peak, entries.count)
        if request.method == .cancel {
            outbox.append(.cancelled(request, id, flow, invite: invite(cancelledBy: request, via, by: flow)))
        } else {
            outbox.append(.request(request, id, flow))
        }
        settle(id)
    }

    private mutating func invite(cancelledBy request: SIPRequest, _ via: Via, by flow: SIPFlow) -> TransactionID? {
        guard let id = keys[Self.serverKey(request, via, .invite)], let entry = entries[id],
            case .inviteServer = entry.machine
        else { return nil }
        guard known.isSamePeer(flow, as: entry.flow) else {
            foreign.note(.cancel, by: flow)
            return nil
        }
        return id
    }

    private mutating func receiveAgain(
        _ request: SIPRequest, _ id: TransactionID, _ entry: Entry, by flow: SIPFlow, _ now: Instant,
        _ outbox: inout [TransactionOutput]
    ) {
        var effects: [TransactionEffect] = []
        switch entry.machine {
        case .inviteServer(var machine):
            if request.method == .ack {
                if machine.acknowledge(at: now) { outbox.append(.ack(request, flow)) }
                entries[id]?.machine = .inviteServer(machine)
            } else {
                machine.repeated(into: &effects)
            }
        case .server(let machine): machine.repeated(into: &effects)
        case .inviteClient, .client: break
        }
        apply(effects, id, entry.flow, &outbox)
        settle(id)
    }

    private mutating func respond(
        _ id: TransactionID, _ response: SIPResponse, _ now: Instant, _ outbox: inout [TransactionOutput]
    ) {
        guard let entry = entries[id] else { return }
        var effects: [TransactionEffect] = []
        switch entry.machine {
        case .inviteServer(var machine):
            machine.respond(response, at: now, into: &effects)
            entries[id]?.machine = .inviteServer(machine)
        case .server(var machine):
            machine.respond(response, at: now, into: &effects)
            entries[id]?.machine = .server(machine)
        case .inviteClient, .client: break
        }
        apply(effects, id, entry.flow, &outbox)
        recharge(id)
        settle(id)
    }

    // MARK: Memory

    private func peer(_ flow: SIPFlow) -> TransactionBudget.Peer {
        guard !known.isServer(flow) else { return .server }
        let address = flow.remoteHost.flatMap { ClientAddress($0.text) } ?? .none
        return flow.remoteHost.map { callers.contains($0) } == true ? .caller(address) : .stranger(address)
    }

    /// Charges a request that has its final answer for the answer alone. If the budget does not allow a larger answer,
    /// the transaction is removed: a repetition of the request is then a new one.
    private mutating func recharge(_ id: TransactionID) {
        guard let entry = entries[id], let charge = entry.charge else { return }
        let answer: SIPResponse?
        switch entry.machine {
        case .inviteServer(let machine):
            guard !machine.isProceeding else { return }
            answer = machine.answer
        case .server(let machine):
            guard !machine.isWaiting else { return }
            answer = machine.answer
        case .inviteClient, .client: return
        }
        let bytes = SIPLimits.transactionBytes + MessageFootprint.of(entry.key) + (answer?.footprint ?? 0)
        let more = bytes - charge.bytes
        guard more != 0 else { return }
        if more > 0, !budget.allows(more, for: charge.peer) { return remove(id) }
        budget.use(more, by: charge.peer)
        entries[id]?.charge = (charge.peer, bytes)
    }

    /// Releases the memory of tables that have shrunk since a peak.
    private mutating func shrink() {
        guard peak > 256, entries.count < peak / 4 else { return }
        peak = entries.count
        entries = entries.packed
        keys = keys.packed
        deadlines.shrink()
    }

    // MARK: Time and failures

    private mutating func fire(_ id: TransactionID, _ now: Instant, _ outbox: inout [TransactionOutput]) {
        guard let entry = entries[id] else { return }
        var effects: [TransactionEffect] = []
        switch entry.machine {
        case .inviteClient(var machine):
            machine.fire(at: now, into: &effects)
            entries[id]?.machine = .inviteClient(machine)
        case .client(var machine):
            machine.fire(at: now, into: &effects)
            entries[id]?.machine = .client(machine)
        case .inviteServer(var machine):
            machine.fire(at: now, tag: tokens.next(), into: &effects)
            entries[id]?.machine = .inviteServer(machine)
        case .server(var machine):
            machine.fire(at: now)
            entries[id]?.machine = .server(machine)
        }
        apply(effects, id, entry.flow, &outbox)
        recharge(id)
        settle(id)
    }

    private mutating func fail(_ flow: SIPFlow, _ outbox: inout [TransactionOutput]) {
        for (id, entry) in entries.sorted(by: { $0.value.key < $1.value.key }) where entry.flow == flow {
            switch entry.machine {
            case .inviteClient(let machine): if !machine.isFinal { outbox.append(.failed(id)) }
            case .client(let machine):
                // A completed transaction only absorbs repetitions, so it does not fail.
                if !machine.isCompleted { outbox.append(.failed(id)) }
            case .inviteServer, .server: continue
            }
            remove(id)
        }
    }

    /// Sends the last response to an INVITE again on the new flow, because the old one may have lost it.
    private mutating func move(_ old: SIPFlow, _ new: SIPFlow, _ outbox: inout [TransactionOutput]) {
        for (id, entry) in entries.sorted(by: { $0.value.key < $1.value.key }) where entry.flow == old {
            switch entry.machine {
            case .inviteServer(let machine):
                entries[id]?.flow = new
                var effects: [TransactionEffect] = []
                machine.repeated(into: &effects)
                apply(effects, id, new, &outbox)
            case .server: entries[id]?.flow = new
            case .inviteClient, .client: break
            }
        }
    }

    private func apply(
        _ effects: [TransactionEffect], _ id: TransactionID, _ flow: SIPFlow, _ outbox: inout [TransactionOutput]
    ) {
        for effect in effects {
            switch effect {
            case .transmit(let message): outbox.append(.transmit(message, flow))
            case .deliver(let response): outbox.append(.response(response, id))
            case .timedOut: outbox.append(.timedOut(id))
            case .ackMissing: outbox.append(.ackMissing(id))
            }
        }
    }

    /// Sets the deadline of a transaction, or removes the transaction if it has ended.
    private mutating func settle(_ id: TransactionID) {
        guard let entry = entries[id] else { return }
        let (deadline, isTerminated) =
            switch entry.machine {
            case .inviteClient(let machine): (machine.deadline, machine.isTerminated)
            case .client(let machine): (machine.deadline, machine.isTerminated)
            case .inviteServer(let machine): (machine.deadline, machine.isTerminated)
            case .server(let machine): (machine.deadline, machine.isTerminated)
            }
        if isTerminated { remove(id) } else { deadlines.set(id, deadline) }
    }

    private mutating func remove(_ id: TransactionID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        keys[entry.key] = nil
        if let charge = entry.charge { budget.use(-charge.bytes, by: charge.peer) }
        deadlines.set(id, nil)
        shrink()
    }

    // MARK: Matching

    private static func clientKey(_ branch: String, _ method: SIPMethod) -> String {
        "c \(branch.lowercased()) \(method)"
    }

    /// The key by branch, sender and method (RFC 3261 §17.2.3); without the cookie by the fields of RFC 2543, except
    /// the tag in `To`, which an ACK has and its INVITE does not.
    private static func serverKey(_ request: SIPRequest, _ via: Via, _ method: SIPMethod) -> String {
        if let branch = via.transactionBranch {
            return "s \(branch.lowercased()) \(via.host.text.lowercased()) \(via.port ?? 0) \(method)"
        }
        let headers = request.headers
        let sequence = headers.sequence?.number ?? 0
        return "o \(request.uri) \(headers.from?.tag ?? "") \(headers.callID ?? "") \(sequence) \(via) \(method)"
    }
}
