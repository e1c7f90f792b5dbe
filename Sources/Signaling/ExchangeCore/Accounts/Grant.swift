package import SignalWire

/// What an access token is good for.
package struct Grant: Hashable, Sendable {
    package var user: UserID
    /// Rooms only (AUTH-3).
    package var isAnonymous: Bool
    /// With a signed token for a session: the one room that it opens (AUTH-5).
    package var room: RoomGrant?
    /// The key of the application that logged the user in, or the API key of a signed token.
    var application: ApplicationKey?

    /// Makes the grant of a login.
    package init(user: UserID, isAnonymous: Bool, room: RoomGrant? = nil, application: ApplicationKey? = nil) {
        self.user = user
        self.isAnonymous = isAnonymous
        self.room = room
        self.application = application
    }

    /// What a session token says of its bearer.
    package struct RoomGrant: Hashable, Sendable {
        var room: RoomName
        var role: RoomRole
        /// Connection data, at most ``SignalLimits/connectionDataBytes``.
        var data: String?
    }
}
