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

    var count: Int { byInvite.count }

    subscript(invite: InviteID) -> Call? { byInvite[invite] }

    /// The calls that a device is in, oldest first.
    func calls(of endpoint: Endpoint) -> [Call] { (invitesByEndpoint[endpoint] ?? []).compactMap { byInvite[$0] } }

    mutating func add(_ call: Call) {
        byInvite[call.invite] = call
        for end in [call.inviter, call.invitee] { invitesByEndpoint[end, default: []].append(call.invite) }
    }

    mutating func remove(_ call: Call) {
        byInvite[call.invite] = nil
        for end in [call.inviter, call.invitee] {
            invitesByEndpoint[end]?.removeAll { $0 == call.invite }
            if invitesByEndpoint[end]?.isEmpty == true { invitesByEndpoint[end] = nil }
        }
    }
}
