import SignalWire
import Timekeeping

/// Names one call: each invitee that accepts an invite has a call of its own with the inviter.
package struct CallKey: Hashable, Sendable {
    let invite: InviteID
    let invitee: UserID
}

/// One accepted invite, until somebody hangs up.
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
    enum Change: Sendable {
        case began(Call)
        case ended(Call)
    }

    private var byInvite: [InviteID: Entry] = [:]
    private var callsByEndpoint: [Endpoint: [CallKey]] = [:]
    private var changes: [Change] = []
    private(set) var count = 0

    subscript(id: CallKey) -> Call? { byInvite[id.invite]?.calls.first { $0.invitee.user == id.invitee } }

    /// The calls that an invite has become, oldest first.
    func calls(of invite: InviteID) -> [Call] { byInvite[invite]?.calls ?? [] }

    /// Whether an invite has become more than one call, so that its inviter must say which one it means.
    func isAmbiguous(_ invite: InviteID) -> Bool { (byInvite[invite]?.begun ?? 0) > 1 }

    /// All that are under way.
    var all: [Call] { byInvite.values.flatMap(\.calls) }

    /// The calls that a device is in, oldest first.
    func calls(of endpoint: Endpoint) -> [Call] { (callsByEndpoint[endpoint] ?? []).compactMap { self[$0] } }

    /// What happened since last asked, in order.
    mutating func takeChanges() -> [Change] {
        guard !changes.isEmpty else { return [] }
        defer { changes = [] }
        return changes
    }

    mutating func add(_ call: Call) {
        changes.append(.began(call))
        restore(call)
    }

    /// Adds a call that is on disk already.
    mutating func restore(_ call: Call) {
        count += 1
        byInvite[call.invite, default: Entry()].calls.append(call)
        byInvite[call.invite]?.begun += 1
        for end in [call.inviter, call.invitee] { callsByEndpoint[end, default: []].append(call.id) }
    }

    mutating func remove(_ call: Call) {
        guard let index = byInvite[call.invite]?.calls.firstIndex(where: { $0.id == call.id }) else { return }
        changes.append(.ended(call))
        count -= 1
        byInvite[call.invite]?.calls.remove(at: index)
        if byInvite[call.invite]?.calls.isEmpty == true { byInvite[call.invite] = nil }
        for end in [call.inviter, call.invitee] {
            callsByEndpoint[end]?.removeAll { $0 == call.id }
            if callsByEndpoint[end]?.isEmpty == true { callsByEndpoint[end] = nil }
        }
    }
}
