import ExchangeStore
import SignalWire
import Timekeeping

/// The tokens that are good, kept as digests, and the logins that they belong to.
///
/// A login begins with one access token and perhaps a refresh token, which is exchanged for the next pair. A refresh
/// token stays good until a token that was given for it has been used, and ``grace`` longer, so that a lost answer
/// harms nobody. One that comes up after that was copied by somebody, and ends its login (RFC 9700 §4.14.2).
///
/// Capacity: ``capacity`` tokens, half of them for people without an account; past it nobody is logged in until some
/// have expired. A user has ``loginsPerUser`` logins, a login ``tokensPerLogin`` tokens; past that the oldest goes.
/// A token is remembered for ``afterlife`` after its end, so that its bearer hears `tokenExpired` or `tokenRevoked`
/// rather than `tokenRejected`.
struct TokenStore: Sendable {
    static let capacity = 200_000
    static let loginsPerUser = 64
    static let tokensPerLogin = 16
    static let afterlife = Duration.seconds(600)
    static let grace = Duration.seconds(60)
    /// How often tokens that are over are cleared away.
    static let sweepInterval = Duration.seconds(60)

    /// A login is called after its first token.
    typealias LoginID = SecretDigest

    /// What a token can be used for.
    enum Use: Hashable, Sendable {
        case access
        case refresh
    }

    /// A token.
    struct Entry: Hashable, Sendable {
        var login: LoginID
        var use: Use
        var expires: Instant
        /// The refresh token that this one was given for, until this one is used.
        var parent: SecretDigest?
        /// For a refresh token: when a token that was given for it was first used.
        var superseded: Instant?
        var isRevoked = false
        /// When nothing is known of it any more.
        var forgotten: Instant
    }

    private struct Login {
        var grant: Grant
        /// The user's ``Account/loginsSince`` when it began.
        var epoch: Int64?
        /// Oldest first.
        var tokens: [SecretDigest]
    }

    private(set) var entries = Kept<SecretDigest, Entry>()
    private var logins: [LoginID: Login] = [:]
    /// Oldest first.
    private var loginsByUser: [UserID: [LoginID]] = [:]

    /// How many tokens are remembered.
    var count: Int { entries.count }

    /// Whether there is room for another login.
    func hasRoom(for grant: Grant) -> Bool {
        count < (grant.isAnonymous || grant.room != nil ? Self.capacity / 2 : Self.capacity)
    }

    // MARK: - Changing

    /// Begins a login. A token that is known already, as a signed one may be, changes nothing.
    ///
    /// - Parameter epoch: The user's ``Account/loginsSince``.
    mutating func begin(
        _ grant: Grant, epoch: Int64? = nil, access: SecretDigest, expires: Instant,
        refresh: (token: SecretDigest, expires: Instant)? = nil
    ) {
        guard entries[access] == nil else { return }
        let known = loginsByUser[grant.user] ?? []
        if known.count >= Self.loginsPerUser { drop(known[0]) }
        logins[access] = Login(grant: grant, epoch: epoch, tokens: [])
        loginsByUser[grant.user, default: []].append(access)
        put(access, .access, in: access, expires: expires)
        if let refresh { put(refresh.token, .refresh, in: access, expires: refresh.expires) }
    }

    /// Exchanges a refresh token, which ``refreshGrant(for:at:)`` found to be good, for the next pair.
    mutating func rotate(
        _ old: SecretDigest, access: SecretDigest, expires: Instant, refresh: SecretDigest, refreshExpires: Instant,
        at now: Instant
    ) {
        guard let login = entries[old]?.login else { return }
        confirm(old, at: now)
        put(access, .access, in: login, expires: expires, parent: old)
        put(refresh, .refresh, in: login, expires: refreshExpires, parent: old)
    }

    /// Notes that `token` has reached its bearer, who therefore does not need the refresh token before it any more.
    mutating func confirm(_ token: SecretDigest, at now: Instant) {
        guard let parent = entries[token]?.parent else { return }
        entries[token]?.parent = nil
        if let entry = entries[parent], entry.superseded == nil { entries[parent]?.superseded = now }
    }

    /// Ends a login: none of its tokens is good any more.
    ///
    /// - Returns: What the login was good for; `nil` if there is none.
    mutating func revoke(_ login: LoginID, at now: Instant) -> Grant? {
        guard let ended = logins[login] else { return nil }
        for token in ended.tokens {
            entries[token]?.isRevoked = true
            // A signed token would be good once more if it were forgotten before its time.
            if let entry = entries[token], entry.use == .refresh {
                entries[token]?.forgotten = min(entry.forgotten, now.advanced(by: Self.afterlife))
            }
        }
        unlist(login)
        return ended.grant
    }

    /// Clears away what is over.
    mutating func sweep(at now: Instant) {
        for (token, entry) in entries.all(where: { $0.forgotten <= now }) {
            entries[token] = nil
            logins[entry.login]?.tokens.removeAll { $0 == token }
            if logins[entry.login]?.tokens.isEmpty == true { unlist(entry.login) }
        }
    }

    // MARK: - Asking

    /// What `token` is good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func grant(for token: SecretDigest, at now: Instant) throws(RPCError) -> Grant {
        guard let entry = entries[token], entry.use == .access, now < entry.forgotten else {
            throw RPCError(.tokenRejected, "The access token is not one of this exchange's; log in again.")
        }
        return try grant(entry, "access", at: now)
    }

    /// What new tokens for the refresh token `token` would be good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func refreshGrant(for token: SecretDigest, at now: Instant) throws(RPCError) -> Grant {
        guard let entry = entries[token], entry.use == .refresh, now < entry.forgotten else {
            throw RPCError(.tokenRejected, "The refresh token is not one of this exchange's; log in again.")
        }
        let grant = try grant(entry, "refresh", at: now)
        guard !isReused(token, at: now) else {
            throw RPCError(.tokenRevoked, "The refresh token was used before, so that its login is over; log in again.")
        }
        return grant
    }

    private func grant(_ entry: Entry, _ kind: String, at now: Instant) throws(RPCError) -> Grant {
        guard !entry.isRevoked, let login = logins[entry.login] else {
            throw RPCError(.tokenRevoked, "The \(kind) token was taken back; log in again.")
        }
        guard now < entry.expires else {
            throw RPCError(.tokenExpired, "The \(kind) token has expired; log in again.")
        }
        return login.grant
    }

    /// Whether a refresh token comes up after its successor has been in use for longer than ``grace``.
    func isReused(_ token: SecretDigest, at now: Instant) -> Bool {
        guard let superseded = entries[token]?.superseded else { return false }
        return superseded.advanced(by: Self.grace) <= now
    }

    /// The login that a token belongs to.
    func login(of token: SecretDigest) -> LoginID? { entries[token]?.login }

    /// Whether a login has not been ended.
    func isStanding(_ login: LoginID) -> Bool { logins[login] != nil }

    /// When a token ends.
    func expiry(of token: SecretDigest) -> Instant? { entries[token]?.expires }

    /// The logins of a user, those with session tokens in its name included.
    func logins(of user: UserID) -> [LoginID] { loginsByUser[user] ?? [] }

    // MARK: - To disk and back

    /// What was changed since last asked.
    mutating func takeChanges() -> [SecretDigest] { entries.takeChanges().map(\.key) }

    /// A token as it is kept on disk; `nil` if it is not.
    func stored(_ token: SecretDigest) -> StoredToken? {
        guard let entry = entries[token] else { return nil }
        let login = logins[entry.login]
        return StoredToken(
            digest: token.hex, user: login?.grant.user, isAnonymous: login?.grant.isAnonymous ?? false,
            expires: entry.expires, login: entry.login.hex, isRefresh: entry.use == .refresh,
            application: login?.grant.application,
            scope: login?.grant.room.map { StoredPlace(room: $0.room, role: $0.role.rawValue, data: $0.data) },
            parent: entry.parent?.hex, superseded: entry.superseded, isRevoked: entry.isRevoked || login == nil,
            forgotten: entry.forgotten, epoch: login?.epoch)
    }

    /// Takes in a token that is on disk; those of one login come in the order of their making.
    ///
    /// - Parameter grant: What its login is good for; `nil` if that is over.
    mutating func restore(_ token: SecretDigest, _ entry: Entry, _ grant: Grant?, epoch: Int64?) {
        var entry = entry
        if grant == nil { entry.isRevoked = true }
        entries.restore(entry, for: token)
        guard let grant, !entry.isRevoked else { return }
        if logins[entry.login] == nil {
            logins[entry.login] = Login(grant: grant, epoch: epoch, tokens: [])
            loginsByUser[grant.user, default: []].append(entry.login)
        }
        if logins[entry.login]?.tokens.contains(token) == false { logins[entry.login]?.tokens.append(token) }
    }

    // MARK: - Within

    private mutating func put(
        _ token: SecretDigest, _ use: Use, in login: LoginID, expires: Instant, parent: SecretDigest? = nil
    ) {
        entries[token] = Entry(
            login: login, use: use, expires: expires, parent: parent,
            forgotten: expires.advanced(by: Self.afterlife))
        logins[login]?.tokens.append(token)
        guard let tokens = logins[login]?.tokens, tokens.count > Self.tokensPerLogin else { return }
        entries[tokens[0]] = nil
        logins[login]?.tokens.removeFirst()
    }

    /// Forgets a login and its tokens.
    private mutating func drop(_ login: LoginID) {
        for token in logins[login]?.tokens ?? [] { entries[token] = nil }
        unlist(login)
    }

    private mutating func unlist(_ login: LoginID) {
        guard let user = logins.removeValue(forKey: login)?.grant.user else { return }
        loginsByUser[user]?.removeAll { $0 == login }
        if loginsByUser[user]?.isEmpty == true { loginsByUser[user] = nil }
    }
}
