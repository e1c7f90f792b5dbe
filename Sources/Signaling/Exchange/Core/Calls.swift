import SignalWire
import Timekeeping

/// One accepted invite, until somebody hangs up.
struct Call: Hashable, Sendable {
    let invite: InviteID
    let inviter: Endpoint
    let invitee: Endpoint
    let acceptedAt: Instant

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
    private var byInvite: [InviteID: Call] = [:]
    private var invitesByEndpoint: [Endpoint: [InviteID]] = [:]
    private var changes: [Change] = []

    /// What happened to a call.
    enum Change: Sendable {
        case began(Call)
        case ended(Call)
    }

    var count: Int { byInvite.count }

    subscript(invite: InviteID) -> Call? { byInvite[invite] }

    /// The calls that a device is in, oldest first.
    func calls(of endpoint: Endpoint) -> [Call] { (invitesByEndpoint[endpoint] ?? []).compactMap { byInvite[$0] } }

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
        byInvite[call.invite] = call
        for end in [call.inviter, call.invitee] { invitesByEndpoint[end, default: []].append(call.invite) }
    }

    mutating func remove(_ call: Call) {
        changes.append(.ended(call))
        byInvite[call.invite] = nil
        for end in [call.inviter, call.invitee] {
            invitesByEndpoint[end]?.removeAll { $0 == call.invite }
            if invitesByEndpoint[end]?.isEmpty == true { invitesByEndpoint[end] = nil }
        }
    }
}
