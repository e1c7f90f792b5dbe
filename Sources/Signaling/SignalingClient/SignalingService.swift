// SignalingClient: the one face that every signaling service has, and the adapter for Handset's own exchange.

public import CallControl
public import JSON

/// A signaling service that a device is logged in to: the connection, calls, and rooms and groups if it has them. Every service's
/// adapter meets it.
///
/// Every function may be called from any task. Requests made before `connect` has been called fail at once with
/// `notAuthenticated`; an answer to an invite asked for while it is under way waits for it (contract AUTH-6, AUTH-7).
public protocol SignalingService: CallSignaling {
    /// How the service's calls differ from those of others.
    var traits: SignalingTraits { get }

    /// The service's rooms; nil if it has none.
    var roomSignaling: (any RoomSignaling)? { get }

    /// The service's groups; nil if it has none.
    var groupSignaling: (any GroupSignaling)? { get }

    /// Notifications of what waits in a mailbox; nil if the service has none.
    var mailboxSignaling: (any MailboxSignaling)? { get }

    /// The service's events, in order. The first listener receives all from the beginning (CONN-10).
    var events: SignalingEvents { get }

    /// The state of the connection (CONN-2).
    var connectionState: ConnectionState { get async }

    /// Who this device is to the service; `nil` until it has connected.
    var session: SessionGrant? { get async }

    /// Servers that help media through firewalls; empty until the service has been asked.
    var iceServers: [ICEServer] { get async }

    /// Logs in, connects, and returns when the connection is established. It is then maintained until `disconnect`.
    func connect() async throws(SignalingError)

    /// The machine's network has changed. A service that waits for its next attempt tries at once; one that is connected finds
    /// out if it still is.
    func networkChanged() async

    /// Says goodbye, closes, and returns when it is closed (CONN-9).
    func disconnect() async

    /// Says goodbye, and makes the login worthless there and forgotten here (AUTH-9).
    func logOut() async throws(SignalingError)

    /// Unregisters the device: it receives no invites until it connects again, and gets no pushes (DEV-2).
    func unregister() async throws(SignalingError)
}

extension SignalingService {
    /// A service whose calls have nothing of their own.
    public var traits: SignalingTraits { SignalingTraits() }

    /// A service without rooms.
    public var roomSignaling: (any RoomSignaling)? { nil }

    /// A service without groups.
    public var groupSignaling: (any GroupSignaling)? { nil }

    /// A service that notifies no others of messages.
    public var mailboxSignaling: (any MailboxSignaling)? { nil }

    /// Nothing: the next attempt comes by itself.
    public func networkChanged() async {}
}

/// Invites, and the calls that they become.
///
/// What is requested is on its way, in order, before the function first suspends, which is why these functions run where their caller
/// does: a device that hangs up and calls again has its hang-up leave first.
public protocol CallSignaling: Sendable {
    /// Sends an invite. The event `inviteSent` comes before every other about it.
    nonisolated(nonsending) func invite(_ options: InviteOptions) async throws(SignalingError) -> SentInvite

    /// Accepts an invite.
    nonisolated(nonsending) func accept(_ invite: InviteID, _ acceptance: InviteAcceptance) async throws(SignalingError)

    /// Rejects an invite.
    nonisolated(nonsending) func reject(_ invite: InviteID, _ rejection: InviteRejection) async throws(SignalingError)

    /// Changes what a pending invite says (INV-15).
    nonisolated(nonsending) func modify(_ invite: InviteID, data: JSONValue) async throws(SignalingError)

    /// Takes an invite back.
    nonisolated(nonsending) func cancel(_ invite: InviteID, _ withdrawal: InviteWithdrawal) async throws(SignalingError)

    /// Sends a message to the peer of a call.
    ///
    /// - Parameter retryAfterReconnect: While it reconnects, whether the message waits for it or
    ///   fails at once (CONN-6).
    nonisolated(nonsending) func send(_ signal: CallSignal, retryAfterReconnect: Bool) async throws(SignalingError)

    /// Notifies the peer of a call that it ended.
    nonisolated(nonsending) func hangUp(_ details: CallHangUp) async throws(SignalingError)

    /// Checks over signaling whether the peer of a call is still connected (contract CALL-4).
    ///
    /// - Parameter peer: The invitee, if the caller is the inviter of several.
    /// - Throws: ``SignalingError`` if the peer could not be asked, which leaves its state unknown.
    nonisolated(nonsending) func probe(_ invite: InviteID, peer: UserID?) async throws(SignalingError) -> PeerProbe
}

extension CallSignaling {
    /// Not possible at a service whose invites cannot be changed.
    public nonisolated(nonsending) func modify(_ invite: InviteID, data: JSONValue) async throws(SignalingError) {
        throw SignalingError(
            .invalidRequest, activity: "change the invite", cause: "the service's invites cannot be changed")
    }

    /// A service without probes: nothing is known against the peer.
    public nonisolated(nonsending) func probe(_ invite: InviteID, peer: UserID?) async throws(SignalingError)
        -> PeerProbe
    { .answered() }

    /// Sends a message to the peer of a call; while it reconnects, the message waits.
    public nonisolated(nonsending) func send(_ signal: CallSignal) async throws(SignalingError) {
        try await send(signal, retryAfterReconnect: true)
    }
}

/// Rooms, whose participants know of each other and exchange signals.
public protocol RoomSignaling: Sendable {
    /// Joins a room; returns its present connections, each of which is also reported as `connectionCreated`.
    ///
    /// - Parameter data: Data about this device that the others receive, up to 1,000 bytes.
    func join(room: RoomName, data: String?) async throws(SignalingError) -> [RoomParticipant]

    /// Sends a signal in a room (SIG-1); while the connection is being restored, the signal waits, or fails at once.
    func send(_ signal: RoomSignal, retryAfterReconnect: Bool) async throws(SignalingError)

    /// Leaves a room.
    func leave(room: RoomName) async throws(SignalingError)
}

/// Groups of users, whose members receive invites to the group.
public protocol GroupSignaling: Sendable {
    /// Makes a group; without an id the service gives it one (GRP-1).
    func createGroup(_ id: GroupID?, name: String?, members: [UserID]) async throws(SignalingError) -> GroupID

    /// Joins a group whose id one knows.
    func join(group: GroupID) async throws(SignalingError)

    /// Leaves a group.
    func leave(group: GroupID) async throws(SignalingError)

    /// Ends a group; only its owner may.
    func dismiss(group: GroupID) async throws(SignalingError)

    /// A group with its members, for a member.
    func group(_ id: GroupID) async throws(SignalingError) -> Group

    /// The groups that this user is in, without their members.
    func groups() async throws(SignalingError) -> [Group]
}

/// Notifications of what waits in the account's mailbox.
public protocol MailboxSignaling: Sendable {
    /// Notifies others from now on of these messages; nil if there is no mailbox. It may come before `connect`.
    func notify(of messages: WaitingMessages?) async
}

/// An invite that the service has taken.
public struct SentInvite: Hashable, Sendable {
    /// Its id.
    public var id: InviteID
    /// Who is invited by it.
    public var invitees: [UserID]

    /// Makes the receipt.
    public init(id: InviteID, invitees: [UserID]) {
        self.id = id
        self.invitees = invitees
    }
}
