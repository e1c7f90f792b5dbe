public import SignalWire

/// The owner of a session or an event: a logged-in user, guest or visitor.
///
/// Principals of different kinds share nothing, even under one name: no device, no session, no event.
public struct Principal: Hashable, Sendable {
    /// How a principal logged in.
    public enum Kind: Hashable, Sendable {
        /// As a user with an account.
        case account
        /// By a name alone, for rooms (AUTH-3). Anyone may take that name: guests are distinguished by their logins, as
        /// the digests of their first tokens.
        case guest(login: String)
        /// With a signed token for one room (AUTH-5).
        case visitor(RoomName)
    }

    /// The name: with an account the user's id, else what the login said.
    public var user: UserID
    /// How the principal logged in.
    public var kind: Kind

    /// Makes a principal of a user id and a kind.
    public init(user: UserID, kind: Kind) {
        self.user = user
        self.kind = kind
    }

    /// The user with this id.
    public static func account(_ user: UserID) -> Principal { Principal(user: user, kind: .account) }

    /// Whether it came in by a name alone.
    public var isGuest: Bool { if case .guest = kind { true } else { false } }
}

/// One device of a principal: a party of a call, however often the device's connection changes.
package struct Endpoint: Hashable, Sendable {
    package let principal: Principal
    package let device: DeviceID

    init(_ principal: Principal, _ device: DeviceID) {
        self.principal = principal
        self.device = device
    }

    /// A device of a user with an account: the only ones that call and are called.
    package init(user: UserID, device: DeviceID) { self.init(.account(user), device) }

    /// Whose it is, by name.
    package var user: UserID { principal.user }
}
