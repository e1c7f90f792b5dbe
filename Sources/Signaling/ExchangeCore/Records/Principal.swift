public import SignalWire

/// For whom a session is, or an event: somebody who logged in.
///
/// Two of different kinds have nothing in common, even under one name: no device, no session, no event.
public struct Principal: Hashable, Sendable {
    /// How somebody came in.
    public enum Kind: Hashable, Sendable {
        /// As a user with an account.
        case account
        /// By a name alone, for rooms (AUTH-3). Anybody may take that name: what tells guests apart is their logins, by the
        /// digests of their first tokens.
        case guest(login: String)
        /// With a signed token for one room (AUTH-5).
        case visitor(RoomName)
    }

    /// The name: with an account the user's id, else what the login said.
    public var user: UserID
    /// How somebody came in.
    public var kind: Kind

    /// Names somebody.
    public init(user: UserID, kind: Kind) {
        self.user = user
        self.kind = kind
    }

    /// The user with this id.
    public static func account(_ user: UserID) -> Principal { Principal(user: user, kind: .account) }

    /// Whether it came in by a name alone.
    public var isGuest: Bool { if case .guest = kind { true } else { false } }
}
