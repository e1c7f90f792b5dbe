/// The kinds of ``Identifier``. No values are made of these types.
public enum Named {
    /// A user.
    public enum User {}
    /// A device of a user.
    public enum Device {}
    /// A group of users.
    public enum Group {}
    /// A room.
    public enum Room {}
    /// An invite, and the calls that it becomes.
    public enum Invite {}
    /// A session.
    public enum Session {}
    /// A connection, for those at its other end.
    public enum Connection {}
    /// A push.
    public enum Push {}
    /// A request that may be sent twice.
    public enum Retry {}
    /// Something that a device can do.
    public enum Capability {}
    /// A service that pushes.
    public enum PushService {}
    /// An application.
    public enum Application {}
    /// A signed token.
    public enum Token {}
}

/// A user's id, or one of its public ids: a call finds the user by any of them.
public typealias UserID = Identifier<Named.User>
/// A device's id, unique among its user's devices.
public typealias DeviceID = Identifier<Named.Device>
/// A group's id, given by its owner or the exchange.
public typealias GroupID = Identifier<Named.Group>
/// A room's name; of a signed token, the session's that it opens.
public typealias RoomName = Identifier<Named.Room>
/// An invite's id, given by the exchange.
public typealias InviteID = Identifier<Named.Invite>
/// A session's id, given by the exchange.
public typealias SessionID = Identifier<Named.Session>
/// The name of a connection for rooms and peers, given by the exchange.
public typealias ConnectionName = Identifier<Named.Connection>
/// A push's id, given by the exchange.
public typealias PushID = Identifier<Named.Push>
/// A client's name of one request, so that a repeated request is carried out once.
public typealias IdempotencyKey = Identifier<Named.Retry>
/// A capability of a device.
public typealias Capability = Identifier<Named.Capability>
/// The service of a push token.
public typealias PushKind = Identifier<Named.PushService>
/// An application's key, or the API key of a signed token (`iss`).
public typealias ApplicationKey = Identifier<Named.Application>
/// Distinguishes one signed token from the next (`jti`).
public typealias TokenID = Identifier<Named.Token>
