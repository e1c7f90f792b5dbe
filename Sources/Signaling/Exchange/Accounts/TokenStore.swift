import ExchangeStore
import SignalWire
import Timekeeping

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

/// The access tokens that are good, kept as digests.
///
/// Capacity: ``capacity`` tokens; past it nobody is logged in until some have expired. A token is remembered for
/// ``afterlife`` after its end, so that its bearer hears `tokenExpired` rather than `tokenRejected`.
struct TokenStore: Sendable {
    static let capacity = 100_000
    static let afterlife = Duration.seconds(600)

    /// One token.
    struct Entry: Sendable {
        var grant: Grant
        var expires: Instant
    }

    var entries = Kept<SecretDigest, Entry>()

    /// There is no room for another token.
    var isFull: Bool { entries.count >= Self.capacity }

    mutating func add(_ token: SecretDigest, _ grant: Grant, expires: Instant) {
        entries[token] = Entry(grant: grant, expires: expires)
    }

    /// Takes in a token that is on disk.
    mutating func restore(_ token: SecretDigest, _ grant: Grant, expires: Instant) {
        entries.restore(Entry(grant: grant, expires: expires), for: token)
    }

    /// A token as it is kept on disk; `nil` if it is not.
    func stored(_ token: SecretDigest) -> StoredToken? {
        entries[token].map {
            StoredToken(
                digest: token.hex, user: $0.grant.user, isAnonymous: $0.grant.isAnonymous, expires: $0.expires)
        }
    }

    mutating func forget(_ token: SecretDigest) { entries[token] = nil }

    /// What `token` is good for at `now`.
    ///
    /// - Throws: `tokenExpired` or `tokenRejected`.
    func grant(for token: SecretDigest, at now: Instant) throws(RPCError) -> Grant {
        guard let entry = entries[token] else {
            throw RPCError(.tokenRejected, "The access token is not one of this exchange's; log in again.")
        }
        guard now < entry.expires else {
            throw RPCError(.tokenExpired, "The access token has expired; log in again.")
        }
        return entry.grant
    }
}
