internal import CallControl
internal import SignalingClient

/// What a device knows from its signaling service: who it is there, how the connection is, and which invites came.
struct SignalingState {
    /// Who this device is to the service; nil until it has connected.
    private(set) var user: UserID?
    /// How the connection to the service is.
    private(set) var connection = DeviceStatus.Connection.connecting
    private var invites = SeenInvites()

    /// Notes that `connect` has returned. The event that says so may still be on its way; a later one may have been handled.
    mutating func noteLogin(of user: UserID?) {
        self.user = user
        if connection == .connecting { connection = .connected }
    }

    mutating func noteLogout() { user = nil }

    mutating func note(_ event: SignalingEvent) {
        if let connection = DeviceStatus.Connection(after: event) { self.connection = connection }
    }

    /// Notes an invite; false if it came before (contract INV-17).
    mutating func isNew(_ invite: InviteID) -> Bool { invites.note(invite) }

    /// Whether an event about these invitees, or all if it names none, is about this user.
    func isUser(among invitees: [UserID]) -> Bool {
        invitees.isEmpty || user.map(invitees.contains) ?? true
    }

    /// Whether an invite asks this user. A member of a group gets invites that ask others, too (contract GRP-2).
    func asksUser(_ invite: ReceivedInvite) -> Bool {
        invite.group == nil || user.map(invite.invitees.contains) ?? true
    }
}
