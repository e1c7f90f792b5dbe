import SignalWire

/// What an access token is good for.
struct Grant: Hashable, Sendable {
    var user: UserID
    /// Rooms only (AUTH-3).
    var isAnonymous: Bool
    /// With a signed token for a session: the one room that it opens (AUTH-5).
    var room: RoomGrant?
    /// The key of the application that logged the user in, or the API key of a signed token.
    var application: String?

    /// What a session token says of its bearer.
    struct RoomGrant: Hashable, Sendable {
        var room: RoomName
        var role: RoomRole
        /// Connection data, at most ``SignalLimits/connectionDataBytes``.
        var data: String?
    }
}

extension UserID {
    /// Whether this may be the name of somebody who has no account.
    var isFitForStrangers: Bool {
        !isEmpty && utf8.count <= SignalLimits.nameBytes
            && unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }
}
