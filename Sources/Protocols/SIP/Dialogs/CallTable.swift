internal import Core

/// The calls of a user agent, by their names and by their dialogs, with their deadlines.
struct CallTable: Sendable {
    private var calls: [SIPCall: Call] = [:]
    /// By the Call-ID and our tag.
    private var dialogs: [String: SIPCall] = [:]
    private var deadlines = DeadlineQueue<SIPCall>()
    private var incoming: UInt64 = 0
    /// Calls that we place for a transfer, and the call whose peer asked for it.
    private var transfers: [SIPCall: SIPCall] = [:]
    /// Addresses that the peers of all calls may have; `nil` after a change.
    private var hosts: HostSet?

    var count: Int { calls.count }
    var isFull: Bool { calls.count >= SIPLimits.calls }
    var nextDeadline: Instant? { deadlines.next }

    subscript(id: SIPCall) -> Call? { calls[id] }

    /// All of them, in an order that is the same in each run.
    var all: [(id: SIPCall, call: Call)] {
        calls.sorted { $0.key.order < $1.key.order }.map { ($0.key, $0.value) }
    }

    func contains(where isMeant: (Call) -> Bool) -> Bool { calls.values.contains(where: isMeant) }

    func flow(_ number: Int) -> SIPFlow? { calls.values.lazy.map(\.flow).first { $0.id == number } }

    func call(_ callID: String, localTag: String) -> SIPCall? { dialogs[Self.key(callID, localTag)] }

    /// The flows of calls, each once, in an order that is the same in each run.
    var flows: [SIPFlow] { Set(calls.values.map(\.flow)).sorted { $0.id < $1.id } }

    /// Addresses that the peers of all calls may have.
    mutating func peerHosts(_ known: KnownHosts) -> HostSet {
        if let hosts { return hosts }
        var all = HostSet()
        for call in calls.values { for host in call.peerHosts { known.insert(host, into: &all) } }
        hosts = all
        return all
    }

    /// Names have led to other addresses.
    mutating func forgetPeerHosts() { hosts = nil }

    /// The name of a call that is not ours.
    mutating func newIncoming() -> SIPCall {
        incoming += 1
        return .incoming(incoming)
    }

    /// Requests with these belong to that call.
    mutating func bind(_ callID: String, localTag: String, to id: SIPCall) { dialogs[Self.key(callID, localTag)] = id }

    /// Keeps a call, with its new deadline.
    mutating func keep(_ id: SIPCall, _ stage: Call.Stage) {
        let call = Call(stage: stage)
        calls[id] = call
        hosts = nil
        deadlines.set(id, call.deadline)
    }

    /// A call whose deadline has come.
    mutating func popDue(at now: Instant) -> SIPCall? { deadlines.popDue(at: now) }

    /// Sets the deadline of a call again, but no earlier than `soonest`.
    mutating func rearm(_ id: SIPCall, soonest: Instant) {
        if let call = calls[id] { deadlines.set(id, call.deadline.map { max($0, soonest) }) }
    }

    mutating func forget(_ id: SIPCall) {
        transfers[id] = nil
        guard let call = calls.removeValue(forKey: id) else { return }
        hosts = nil
        deadlines.set(id, nil)
        switch call.stage {
        case .calling(let calling):
            if let callID = calling.request.headers.callID, let tag = calling.request.headers.from?.tag {
                unbind(callID, tag, id)
            }
        case .ringing(let ringing): unbind(ringing.dialog.callID, ringing.dialog.localTag, id)
        case .talking(let talking): unbind(talking.dialog.callID, talking.dialog.localTag, id)
        case .mortal(let mortal): unbind(mortal.dialog.callID, mortal.dialog.localTag, id)
        }
    }

    // MARK: Transfers

    /// The call whose peer asked for this call.
    func transferrer(of id: SIPCall) -> SIPCall? { transfers[id] }

    /// Whether a call is being placed that this call's peer asked for.
    func isTransferring(_ id: SIPCall) -> Bool { transfers.values.contains(id) }

    /// The peer of `origin` has asked for the call `id`.
    mutating func beginTransfer(by id: SIPCall, of origin: SIPCall) { transfers[id] = origin }

    mutating func endTransfer(by id: SIPCall) { transfers[id] = nil }

    // MARK: Dialogs

    /// A fork shares its Call-ID and our tag with the call.
    private mutating func unbind(_ callID: String, _ localTag: String, _ id: SIPCall) {
        let key = Self.key(callID, localTag)
        if dialogs[key] == id { dialogs[key] = nil }
    }

    private static func key(_ callID: String, _ localTag: String) -> String { callID + " " + localTag }
}
