import Core

extension TokenStore {
    /// What a token can be used for.
    enum Use: Hashable, Sendable {
        case access
        case refresh
    }

    /// How a session uses its login.
    enum SessionUse: Int, Sendable {
        /// It has lost its connection, and can be resumed.
        case resumable = 1
        /// It has a connection.
        case connected = 2
    }

    /// A token.
    struct Entry: Hashable, Sendable {
        var login: LoginID
        var use: Use
        var expires: Instant
        /// Counts the exchanges of refresh tokens before it.
        var generation: UInt64 = 0
        /// When a token of another generation took its place.
        var superseded: Instant?
        /// When nothing is known of it any more.
        var forgotten: Instant

        /// Whether it is a refresh token whose place another has taken.
        var isSupersededRefresh: Bool { use == .refresh && superseded != nil }

        /// Whether it is such a token, and showing it again is no theft yet.
        func isWithinGrace(at now: Instant) -> Bool {
            use == .refresh && superseded.map { now < $0.advanced(by: TokenStore.grace) } ?? false
        }

        /// Whether it is a refresh token whose mark is sufficient to recognise it later as an old token of `login`.
        func isKnownByMark(to login: Login) -> Bool {
            use == .refresh && RefreshToken.firstGeneration <= generation && generation < login.reached
        }
    }
}
