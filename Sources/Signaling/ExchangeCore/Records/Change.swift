// ExchangeStore: what the exchange keeps on disk (docs/exchange-database.md). The only module that knows SQLite.

public import SignalWire
public import Core

/// One thing that the exchange's core did and that must survive the process.
///
/// Changes are written in the order in which they come. Each sets a state rather than a difference, so that one that is
/// written twice does no harm. Instants are the core's; the store turns them into times of day.
public enum Change: Hashable, Sendable {
    /// An access token is good from now on, or for another time than before.
    case token(StoredToken)
    /// A token, by its digest, is of no interest any more.
    case tokenForgotten(digest: String)
    /// A login began, was used, or got its next pair of tokens.
    case login(StoredLogin)
    /// Nothing need be known of a login any more.
    case loginForgotten(String)
    /// A session began or changed.
    case session(StoredSession)
    /// A session cannot be resumed any more.
    case sessionForgotten(SessionID)
    /// An invite was sent or changed.
    case invite(StoredInvite)
    /// An ended invite is no longer remembered.
    case inviteForgotten(InviteID)
    /// A group was made, or its members changed.
    case group(StoredGroup)
    /// A group was dismissed.
    case groupForgotten(GroupID)
    /// A device is to be pushed to by these tokens and no others; none: not at all.
    case pushTargets(StoredPushTargets)
    /// A push is to be made, has been tried, or was made.
    case push(StoredPush)
    /// Nothing need be known of a push any more.
    case pushForgotten(PushID)
    /// A push could not be made.
    case pushDied(DeadPush, at: Instant)
    /// Pushes that could not be made are discarded if they are from before.
    case deadPushesPruned(before: Instant)
    /// A user knows another, or has had to do with it once more.
    case acquaintance(StoredAcquaintance)
    /// A user does not know another any more.
    case acquaintanceForgotten(owner: UserID, user: UserID)
    /// A user was added at this time, in milliseconds since 1970 (``Account/added``).
    case userAdded(UserID, at: Int64)
    /// There is no such user any more.
    case userForgotten(UserID)
    /// These are the users of the users file, which was read.
    case fileUsers([UserID])
    /// A user's account is removed: its acquaintances, and its entries in others' acquaintances, are deleted.
    case acquaintancesForgotten(of: UserID)
    /// A call began.
    case call(StoredCall)
    /// A call ended; one invite may have a call for each invitee.
    case callForgotten(invite: InviteID, invitee: UserID)
    /// An event was numbered in a principal's stream.
    case event(StoredEvent)
    /// The principal's event numbers up to this one may have been used.
    case sequenceReserved(Principal, upTo: UInt64)
    /// The principal's events up to this number are discarded.
    case eventsForgotten(Principal, upTo: UInt64)
    /// Events from before are discarded.
    case eventsPruned(before: Instant)
    /// Deletes the event stream of a principal without an account; its sequence numbers restart.
    case streamForgotten(Principal)
    /// A call, answered or not, advanced one step in its record.
    case record(CallStep)
    /// Time has come to drop what is older than retention allows.
    case pruned(eventsBefore: Instant, recordsBefore: Instant)
    /// A shard's core has written to another's.
    case letter(Letter)
    /// Letters from one shard to another were consumed, up to this number.
    case lettersForgotten(from: Shard, to: Shard, upTo: UInt64)
    /// How far the letters between a shard and another have come.
    case letterMarks(StoredLetterMarks)
}

/// A token as stored: its digest, never the token itself.
public struct StoredToken: Hashable, Sendable {
    /// The SHA-256 digest, 64 hexadecimal digits.
    public var digest: String
    /// The user that it logs in; `nil` once its login is unknown.
    public var user: UserID?
    /// Whether for rooms only.
    public var isAnonymous: Bool
    /// When it ends.
    public var expires: Instant
    /// Its login: the digest of that one's first token or, of a signed token, of its issuer and `jti`.
    public var login: String
    /// Whether it is exchanged for the next pair, rather than used.
    public var isRefresh: Bool
    /// The key of the application that logged the user in, or signed the token.
    public var application: ApplicationKey?
    /// The one room that it opens; `nil` unless it is a room's token.
    public var scope: StoredPlace?
    /// Counts the exchanges of refresh tokens before it.
    public var generation: UInt64
    /// For a refresh token: when a token of a later generation was first used.
    public var superseded: Instant?
    /// Whether its login has ended.
    public var isRevoked: Bool
    /// When nothing need be known of it any more.
    public var forgotten: Instant
    /// From when on the user's logins were good when it began, in seconds since 1970; another value ends the login.
    public var epoch: Int64?

    /// Makes an entry.
    public init(
        digest: String, user: UserID?, isAnonymous: Bool, expires: Instant, login: String, isRefresh: Bool,
        application: ApplicationKey?, scope: StoredPlace?, generation: UInt64 = 0, superseded: Instant?,
        isRevoked: Bool,
        forgotten: Instant, epoch: Int64?
    ) {
        self.digest = digest
        self.user = user
        self.isAnonymous = isAnonymous
        self.expires = expires
        self.login = login
        self.isRefresh = isRefresh
        self.application = application
        self.scope = scope
        self.generation = generation
        self.superseded = superseded
        self.isRevoked = isRevoked
        self.forgotten = forgotten
        self.epoch = epoch
    }
}

/// A session as stored.
public struct StoredSession: Hashable, Sendable {
    /// The session's id.
    public var id: SessionID
    /// Whose it is.
    public var principal: Principal
    /// The device of the principal that owns it.
    public var device: DeviceID
    /// Whether the device receives invites.
    public var isRegistered: Bool
    /// How rooms and peers know its connection.
    public var connection: ConnectionName
    /// The one room that its token opens; `nil` unless it is a room's token.
    public var scope: StoredPlace?
    /// The login that it depends on, as its tokens name it.
    public var login: String?
    /// The rooms it is in, in the order of joining.
    public var places: [StoredPlace]
    /// Until when a session without a connection can be resumed; `nil` while it has one.
    public var resumableUntil: Instant?
    /// Whether its peers were notified that it lost its connection; false if the connection ended with the process.
    public var isMissed: Bool

    /// Makes an entry.
    public init(
        id: SessionID, principal: Principal, device: DeviceID, isRegistered: Bool, connection: ConnectionName,
        scope: StoredPlace? = nil, login: String? = nil, places: [StoredPlace] = [], resumableUntil: Instant? = nil,
        isMissed: Bool = false
    ) {
        self.id = id
        self.principal = principal
        self.device = device
        self.isRegistered = isRegistered
        self.connection = connection
        self.scope = scope
        self.login = login
        self.places = places
        self.resumableUntil = resumableUntil
        self.isMissed = isMissed
    }
}

/// An established call as stored.
public struct StoredCall: Hashable, Sendable {
    /// The invite that became it.
    public var invite: InviteID
    /// Who invited.
    public var inviter: UserID
    /// With which device.
    public var inviterDevice: DeviceID
    /// Who accepted.
    public var invitee: UserID
    /// With which device.
    public var inviteeDevice: DeviceID
    /// When it was accepted.
    public var acceptedAt: Instant

    /// Makes an entry.
    public init(
        invite: InviteID, inviter: UserID, inviterDevice: DeviceID, invitee: UserID, inviteeDevice: DeviceID,
        acceptedAt: Instant
    ) {
        self.invite = invite
        self.inviter = inviter
        self.inviterDevice = inviterDevice
        self.invitee = invitee
        self.inviteeDevice = inviteeDevice
        self.acceptedAt = acceptedAt
    }
}
