public import JSON

/// A group as its members see it (contract GRP-1).
public struct Group: Hashable, Sendable {
    /// The group.
    public var id: GroupID
    /// What people call it.
    public var name: String?
    /// Its creator, the only one who may dismiss it.
    public var owner: UserID
    /// Everybody in it, the owner included; empty in a list of groups.
    public var members: [UserID]

    /// Makes a group's description.
    public init(id: GroupID, name: String? = nil, owner: UserID, members: [UserID] = []) {
        self.id = id
        self.name = name
        self.owner = owner
        self.members = members
    }
}

/// A change of a group (contract GRP-1).
public struct GroupChange: Hashable, Sendable {
    /// What happened.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        case created, joined, left, dismissed
    }

    /// The group.
    public var group: GroupID
    /// What happened.
    public var kind: Kind
    /// Who did it.
    public var user: UserID
    /// Its members, if the service lists them.
    public var members: [UserID]

    /// Makes a change.
    public init(group: GroupID, kind: Kind, user: UserID, members: [UserID] = []) {
        self.group = group
        self.kind = kind
        self.user = user
        self.members = members
    }
}

/// A participant of a room.
public struct RoomParticipant: Hashable, Sendable {
    /// The connection's name.
    public var connection: ConnectionName
    /// Whose it is.
    public var user: UserID
    /// The connection data from its join or its token.
    public var data: String?

    /// Makes a participant.
    public init(connection: ConnectionName, user: UserID, data: String? = nil) {
        self.connection = connection
        self.user = user
        self.data = data
    }
}

/// A message in a room, to everybody or to one connection (contract SIG-1).
public struct RoomSignal: Hashable, Sendable {
    /// The room.
    public var room: RoomName
    /// Up to 128 bytes.
    public var type: String
    /// Up to 8 KiB as JSON text.
    public var data: JSONValue
    /// The connection that it is for; `nil` for everybody else in the room.
    public var to: ConnectionName?
    /// The connection that sent it; nil on the way out.
    public var from: ConnectionName?
    /// Who sent it; nil on the way out.
    public var user: UserID?

    /// Makes a signal.
    public init(
        room: RoomName, type: String, data: JSONValue = .null, to: ConnectionName? = nil,
        from: ConnectionName? = nil, user: UserID? = nil
    ) {
        self.room = room
        self.type = type
        self.data = data
        self.to = to
        self.from = from
        self.user = user
    }
}

/// A peer whose signaling connection dropped, or came back (contract CONN-8).
public struct StreamPeer: Hashable, Sendable {
    /// The room that it is in with us, if that is how we know it.
    public var room: RoomName?
    /// The call that it is in with us, if that is how we know it.
    public var invite: InviteID?
    /// Its connection.
    public var connection: ConnectionName
    /// Who it is.
    public var user: UserID

    /// Makes a peer.
    public init(room: RoomName? = nil, invite: InviteID? = nil, connection: ConnectionName, user: UserID) {
        self.room = room
        self.invite = invite
        self.connection = connection
        self.user = user
    }
}
