import SignalWire

/// What an access token is good for.
struct Grant: Hashable, Sendable {
    var user: UserID
    /// Rooms only (AUTH-3).
    var isAnonymous: Bool
    /// With a signed token for a session: the one room that it opens (AUTH-5).
    var room: RoomGrant?
    /// The key of the application that logged the user in, or the API key of a signed token.
    var application: ApplicationKey?

    /// What a session token says of its bearer.
    struct RoomGrant: Hashable, Sendable {
        var room: RoomName
        var role: RoomRole
        /// Connection data, at most ``SignalLimits/connectionDataBytes``.
        var data: String?
    }
}
