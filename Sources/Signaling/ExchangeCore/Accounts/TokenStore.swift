import SignalWire
import Core

/// The valid tokens, kept as digests, and the logins that they belong to.
///
/// A login begins with one access token and perhaps a refresh token, which is exchanged for the next pair: the next
/// generation. A refresh token stays valid until a token of its successor pair has been used, and ``grace`` longer, so
/// that a lost answer does no harm. A refresh token that is presented after that is a copy, and ends its login (RFC
/// 9700 §4.14.2); so does one whose answer seemed lost, once another has been used in its place. The store detects this
/// however many exchanges ago the token was superseded: of all refresh tokens a login keeps the family, the generation
/// that was reached, and the last superseded token.
///
/// A signed token's login is that of its issuer and `jti`, so that all tokens with them end together; without a `jti`
/// it is the token's own.
///
/// Capacity: ``capacity`` tokens of the exchange's own, half of them for users without an account, and as many of
/// each issuer, ``signedTokensPerUser`` of them one user's; past it logins are refused until some tokens have
/// expired. A user has ``loginsPerUser`` logins of the exchange's own and as many of each issuer: code that adds
/// tokens first ends ``leastRecentlyUsed(for:issuer:uses:)``. A login has ``tokensPerLogin`` tokens; past that the
/// store removes superseded refresh tokens whose ``grace`` has ended, or that ``gracesPerLogin`` others followed, and
/// then those of the oldest generations, but never of the one that was reached or the newest. Ended logins of the
/// exchange's own are remembered for ``afterlife``, ``endedLoginsPerUser`` at most, so that clients receive
/// `tokenRevoked` rather than `tokenRejected`; signed ones until their tokens would have ended, and
/// ``signedAfterlife`` longer.
struct TokenStore: Sendable {
    static let signedTokensPerUser = 1_000
    static let loginsPerUser = 64
    static let endedLoginsPerUser = 64
    static let tokensPerLogin = 24
    /// Superseded refresh tokens that a login keeps for their ``grace``; after this number of further exchanges within
    /// the grace, the oldest loses it.
    static let gracesPerLogin = 8
    static let afterlife = Duration.seconds(600)
    /// A signed token that was logged out is not good again because the clock is set back by a day.
    static let signedAfterlife = Duration.seconds(86_400 + 600)
    static let grace = Duration.seconds(60)
    /// Interval at which expired tokens are removed.
    static let sweepInterval = Duration.seconds(60)

    /// A login of the exchange's own is called after its first token, one of signed tokens after their `jti`.
    typealias LoginID = SecretDigest

    /// Whose tokens are counted together.
    private struct Holder: Hashable {
        var user: UserID
        var issuer: String
    }

    let capacity: Int
    private(set) var entries = ChangeTrackingMap<SecretDigest, Entry>()
    private(set) var logins = ChangeTrackingMap<LoginID, Login>()
    /// Those that have not ended, oldest first.
    private var standingByUser: [UserID: [LoginID]] = [:]
    /// The same for guests. Each guest is a separate principal, even under a shared name; no guest's login is ended to
    /// make room for another's.
    private var guestsByName: [UserID: Set<LoginID>] = [:]
    /// Those of the exchange's own that have ended, oldest first.
    private var endedByUser: [UserID: [LoginID]] = [:]
    private var loginByFamily: [SecretDigest: LoginID] = [:]
    /// Tokens of each issuer; the exchange itself is `nil`.
    private var countByIssuer: [String?: Int] = [:]
    private var countByHolder: [Holder: Int] = [:]

    init(capacity: Int = ExchangeCore.Settings.mostTokens) { self.capacity = capacity }

    /// How many tokens are remembered.
    var count: Int { entries.count }

    /// Whether there is room for another token.
    ///
    /// - Parameter issuer: The API key that signed it; `nil` for one of the exchange's own.
    func hasRoom(for grant: Grant, issuer: String? = nil) -> Bool {
        let count = countByIssuer[issuer] ?? 0
        guard let issuer else { return count < (grant.isAnonymous ? capacity / 2 : capacity) }
        let own = countByHolder[Holder(user: grant.user, issuer: issuer)] ?? 0
        return count < capacity && own < Self.signedTokensPerUser
    }

    // MARK: - Changing

    /// Begins a login. It counts as used from now on, so that it is not the first to end before it opens a session.
    ///
    /// - Parameter epoch: The user's ``Account/loginsSince``.
    mutating func begin(
        _ grant: Grant, epoch: Int64? = nil, access: SecretDigest, expires: Instant,
        refresh: (token: SecretDigest, mark: RefreshToken.Mark?, expires: Instant)? = nil, at now: Instant
    ) {
        guard entries[access] == nil else { return }
        var login = Login(grant, issuer: nil, epoch: epoch)
        login.begin(at: now)
        if let mark = refresh?.mark { (login.newest, login.reached) = (mark.generation, mark.generation) }
        add(login, as: access)
        // Too few to make room for.
        put(access, .access, in: access, expires: expires, at: .zero)
        guard let refresh else { return }
        put(refresh.token, .refresh, in: access, expires: refresh.expires, at: .zero)
        set(refresh.mark?.family, of: access)
    }

    /// Takes in a signed token. It begins a login unless its own has begun already, or has ended. One that is known
    /// changes nothing, and neither does one whose `jti` belongs to a token with a different grant.
    mutating func admit(
        _ token: SecretDigest, of id: LoginID, _ grant: Grant, issuer: String, epoch: Int64?, expires: Instant,
        at now: Instant
    ) {
        if entries[token] == nil {
            guard !isTaken(id, from: grant) else { return }
            if logins[id] == nil { add(Login(grant, issuer: issuer, epoch: epoch), as: id) }
            put(token, .access, in: id, expires: expires, at: now)
        }
        if let login = entries[token]?.login { use(login, at: now) }
    }

    /// Exchanges a refresh token, which ``refreshGrant(for:mark:at:)`` found to be good, for the next pair.
    mutating func rotate(
        _ old: SecretDigest, access: SecretDigest, expires: Instant, refresh: SecretDigest, family: SecretDigest? = nil,
        refreshExpires: Instant, at now: Instant
    ) {
        guard let login = entries[old]?.login, logins[login]?.isEnded == false else { return }
        confirm(old, at: now)
        let next = nextGeneration(of: old)
        logins[login]?.newest = next
        put(access, .access, in: login, expires: expires, at: now)
        put(refresh, .refresh, in: login, expires: refreshExpires, at: now)
        set(family, of: login)
    }

    /// Notes that a bearer has shown `token`, and therefore needs no refresh token of an earlier generation any more.
    mutating func confirm(_ token: SecretDigest, at now: Instant) {
        guard let entry = entries[token], let login = logins[entry.login], !login.isEnded else { return }
        use(entry.login, at: now)
        guard entry.superseded == nil, entry.generation != login.reached else { return }
        logins[entry.login]?.reached = entry.generation
        for token in login.tokens {
            guard let other = entries[token], other.superseded == nil, other.generation != entry.generation else {
                continue
            }
            // Its bearer may need the one that it had once more; of what else was given it has never had anything.
            let hasGrace = other.generation == login.reached
            entries[token]?.superseded = hasGrace ? now : now.advanced(by: .zero - Self.grace)
            guard let login = logins[entry.login], other.isKnownByMark(to: login) else {
                continue
            }
            entries[token]?.forgotten = min(other.forgotten, now.advanced(by: Self.grace))
        }
    }

    /// Notes that a login is in use.
    mutating func use(_ login: LoginID, at now: Instant) {
        if logins[login]?.isEnded == false { logins[login]?.use(at: now) }
    }

    /// Ends a login: none of its tokens is good any more.
    ///
    /// - Returns: What the login was good for; `nil` if there is none.
    mutating func end(_ id: LoginID, at now: Instant) -> Grant? {
        guard let login = logins[id], !login.isEnded else { return nil }
        logins[id]?.isEnded = true
        unlist(id, of: login.grant)
        for token in login.tokens {
            guard let entry = entries[token] else { continue }
            // A signed token would be good once more if it were forgotten before its time.
            entries[token]?.forgotten =
                login.issuer == nil
                ? min(entry.forgotten, now.advanced(by: Self.afterlife))
                : entry.expires.advanced(by: Self.signedAfterlife)
        }
        if login.issuer == nil { remember(ended: id, of: login.grant.user) }
        return login.grant
    }

    /// Ends a login to make room for another. A signed token is not revoked by this: it is valid when it is presented
    /// again.
    mutating func release(_ id: LoginID, at now: Instant) -> Grant? {
        guard let login = logins[id], login.issuer != nil, !login.isEnded else { return end(id, at: now) }
        forget(id)
        return login.grant
    }

    /// Removes at most `count` expired tokens; returns false if more may remain.
    @discardableResult
    mutating func sweep(at now: Instant, atMost count: Int = .max) -> Bool {
        let over = entries.keys(atMost: count) { $0.forgotten <= now }
        for token in over { remove(token) }
        return over.count < count
    }

    // MARK: - Asking

    /// What `token` is good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func grant(for token: SecretDigest, at now: Instant) throws(RPCError) -> Grant {
        guard let entry = entries[token], entry.use == .access, now < entry.forgotten else {
            throw RPCError(.tokenRejected, "This exchange did not issue the access token; log in again.")
        }
        return try grant(entry, "access", at: now)
    }

    /// What new tokens for the refresh token `token` would be good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func refreshGrant(
        for token: SecretDigest, mark: RefreshToken.Mark? = nil, at now: Instant
    ) throws(RPCError) -> Grant {
        guard copied(token, mark: mark, at: now) == nil else {
            throw RPCError(.tokenRevoked, "The refresh token was used before, so its login has ended; log in again.")
        }
        guard let entry = entries[token], entry.use == .refresh, now < entry.forgotten else {
            throw RPCError(.tokenRejected, "This exchange did not issue the refresh token; log in again.")
        }
        return try grant(entry, "refresh", at: now)
    }

    private func grant(_ entry: Entry, _ kind: String, at now: Instant) throws(RPCError) -> Grant {
        guard let login = logins[entry.login], !login.isEnded else {
            throw RPCError(.tokenRevoked, "The \(kind) token was revoked; log in again.")
        }
        guard now < entry.expires else {
            throw RPCError(.tokenExpired, "The \(kind) token has expired; log in again.")
        }
        return login.grant
    }

    /// The login whose refresh token was copied: `token` is presented after another has replaced it and ``grace`` has
    /// ended, or after enough generations that only its `mark` is known.
    func copied(_ token: SecretDigest, mark: RefreshToken.Mark? = nil, at now: Instant) -> LoginID? {
        if let entry = entries[token] {
            guard entry.use == .refresh, let superseded = entry.superseded else { return nil }
            return superseded.advanced(by: Self.grace) <= now && isStanding(entry.login) ? entry.login : nil
        }
        guard let mark, let id = loginByFamily[mark.family], let login = logins[id], !login.isEnded else { return nil }
        let isOver = mark.generation < login.reached || mark.generation <= lastSuperseded(of: login) ?? 0
        return isOver && mark.generation != login.reached ? id : nil
    }

    /// The generation of the pair that the refresh token `token` would be exchanged for.
    func nextGeneration(of token: SecretDigest) -> UInt64 {
        (entries[token].flatMap { logins[$0.login]?.newest } ?? 0) + 1
    }

    /// The login that a token belongs to.
    func login(of token: SecretDigest) -> LoginID? { entries[token]?.login }

    /// Whether a login's id is already in use for a different grant.
    func isTaken(_ login: LoginID, from grant: Grant) -> Bool { logins[login].map { $0.grant != grant } ?? false }

    /// Whether a login has not been ended.
    func isStanding(_ login: LoginID) -> Bool { logins[login]?.isEnded == false }

    /// When a token ends.
    func expiry(of token: SecretDigest) -> Instant? { entries[token]?.expires }

    /// The logins of a user, those with session tokens in its name included.
    func logins(of user: UserID) -> [LoginID] { (standingByUser[user] ?? []) + (guestsByName[user] ?? []) }

    /// The login that ends before there can be another: if a user has as many of an issuer as it may have, the one that
    /// was used longest ago. A login with a session ends only if all have one; those whose session has lost its connection
    /// end first.
    func leastRecentlyUsed(for grant: Grant, issuer: String?, uses: [LoginID: SessionUse]) -> LoginID? {
        guard !grant.isAnonymous else { return nil }
        let table = (standingByUser[grant.user] ?? []).filter { logins[$0]?.issuer == issuer }
        guard table.count >= Self.loginsPerUser else { return nil }
        let ranked = table.map { id in
            (id: id, use: uses[id]?.rawValue ?? 0, used: logins[id]?.used?.nanoseconds ?? .min)
        }
        return ranked.min { ($0.use, $0.used) < ($1.use, $1.used) }?.id
    }

    // MARK: - To disk and back

    /// The tokens that were changed since last asked.
    mutating func takeChanges() -> [SecretDigest] { entries.takeChanges().map(\.key) }

    /// The logins of which something else must be on disk than when last asked; `nil`: nothing.
    mutating func takeLoginChanges() -> [(id: LoginID, stored: StoredLogin?)] {
        logins.takeChanges().compactMap { id, before in
            guard let login = logins[id] else { return before == nil ? nil : (id, nil) }
            return before?.isOnDisk(as: login) == true ? nil : (id, login.stored(id))
        }
    }

    /// A token's record to store on disk; `nil` if the token is unknown.
    func stored(_ token: SecretDigest) -> StoredToken? {
        guard let entry = entries[token], let login = logins[entry.login] else { return nil }
        return StoredToken(
            digest: token.hex, user: login.grant.user, isAnonymous: login.grant.isAnonymous, expires: entry.expires,
            login: entry.login.hex, isRefresh: entry.use == .refresh, application: login.grant.application,
            scope: login.grant.room.map { StoredPlace(room: $0.room, role: $0.role.rawValue, data: $0.data) },
            generation: entry.generation, superseded: entry.superseded, isRevoked: login.isEnded,
            forgotten: entry.forgotten, epoch: login.epoch)
    }

    /// Has a login's tokens put to disk as they are.
    mutating func write(_ id: LoginID) {
        for token in logins[id]?.tokens ?? [] { entries.note(token) }
    }

    /// Takes in a token that is on disk; those of one login come in the order of their making.
    ///
    /// - Parameter make: Its login, if this is the first of its tokens.
    mutating func restore(_ token: SecretDigest, _ entry: Entry, _ make: @autoclosure () -> Login) {
        if logins[entry.login] == nil {
            let login = make()
            logins.restore(login, for: entry.login)
            if let family = login.family { loginByFamily[family] = entry.login }
            if !login.isEnded { list(entry.login, of: login.grant) }
        }
        guard entries[token] == nil, var login = logins[entry.login] else { return }
        login.tokens.append(token)
        logins.restore(login, for: entry.login)
        entries.restore(entry, for: token)
        count(login, by: 1)
        if login.isEnded, login.issuer == nil, login.tokens.count == 1 {
            remember(ended: entry.login, of: login.grant.user)
        }
    }

    // MARK: - Within

    private mutating func add(_ login: Login, as id: LoginID) {
        logins[id] = login
        list(id, of: login.grant)
    }

    private mutating func set(_ family: SecretDigest?, of id: LoginID) {
        guard let family, logins[id]?.family != family else { return }
        if let earlier = logins[id]?.family { loginByFamily[earlier] = nil }
        logins[id]?.family = family
        loginByFamily[family] = id
    }

    private mutating func put(
        _ token: SecretDigest, _ use: Use, in id: LoginID, expires: Instant, at now: Instant
    ) {
        guard let login = logins[id] else { return }
        let afterlife = login.isEnded && login.issuer != nil ? Self.signedAfterlife : Self.afterlife
        entries[token] = Entry(
            login: id, use: use, expires: expires, generation: login.newest,
            forgotten: expires.advanced(by: afterlife))
        logins[id]?.tokens.append(token)
        count(login, by: 1)
        guard login.tokens.count >= Self.tokensPerLogin else { return }
        if let surplus = surplus(of: id, beside: token, at: now) { remove(surplus) }
    }

    /// The token that a login can do without best: a refresh token that its mark is enough for, one within its grace only
    /// if ``gracesPerLogin`` others are; or else the oldest of a generation that is neither the one that its bearer has nor
    /// the newest, nor the last superseded; of signed tokens, which have no generations, the one that ends first.
    private func surplus(of id: LoginID, beside added: SecretDigest, at now: Instant) -> SecretDigest? {
        guard let login = logins[id] else { return nil }
        guard login.issuer == nil else {
            let others = login.tokens.filter { $0 != added }
            let known = others.compactMap { token in entries[token].map { (token, $0.expires) } }
            return known.min { $0.1 < $1.1 }?.0
        }
        let last = lastSuperseded(of: login)
        let known = login.tokens.first { token in
            entries[token].map { $0.isKnownByMark(to: login) && !$0.isWithinGrace(at: now) } ?? false
        }
        let graces = login.tokens.filter { entries[$0]?.isWithinGrace(at: now) == true }
        return known ?? (graces.count > Self.gracesPerLogin ? graces.first : nil)
            ?? login.tokens.first { token in
                entries[token].map { entry in
                    let isNeeded =
                        entry.isWithinGrace(at: now) || (entry.isSupersededRefresh && entry.generation == last)
                    return entry.generation != login.reached && entry.generation != login.newest && !isNeeded
                } ?? true
            }
    }

    /// The last generation whose refresh token was superseded. All earlier generations are superseded too, except the
    /// one that the client holds. This token is kept, since it identifies the earlier ones when they are presented.
    private func lastSuperseded(of login: Login) -> UInt64? {
        login.tokens.lazy.compactMap { entries[$0] }.filter(\.isSupersededRefresh).map(\.generation).max()
    }

    /// Forgets a token, and its login with the last of them.
    private mutating func remove(_ token: SecretDigest) {
        guard let entry = entries[token], let login = logins[entry.login] else { return }
        entries[token] = nil
        logins[entry.login]?.tokens.removeAll { $0 == token }
        count(login, by: -1)
        if login.tokens == [token] { drop(entry.login) }
    }

    /// Forgets a login and its tokens.
    private mutating func forget(_ id: LoginID) {
        for token in logins[id]?.tokens ?? [] { remove(token) }
    }

    private mutating func drop(_ id: LoginID) {
        guard let login = logins[id] else { return }
        logins[id] = nil
        if let family = login.family { loginByFamily[family] = nil }
        unlist(id, of: login.grant)
        endedByUser[login.grant.user]?.removeAll { $0 == id }
        if endedByUser[login.grant.user]?.isEmpty == true { endedByUser[login.grant.user] = nil }
    }

    private mutating func list(_ id: LoginID, of grant: Grant) {
        guard grant.isAnonymous else { return standingByUser[grant.user, default: []].append(id) }
        guestsByName[grant.user, default: []].insert(id)
    }

    private mutating func unlist(_ id: LoginID, of grant: Grant) {
        standingByUser[grant.user]?.removeAll { $0 == id }
        if standingByUser[grant.user]?.isEmpty == true { standingByUser[grant.user] = nil }
        guestsByName[grant.user]?.remove(id)
        if guestsByName[grant.user]?.isEmpty == true { guestsByName[grant.user] = nil }
    }

    private mutating func remember(ended id: LoginID, of user: UserID) {
        endedByUser[user, default: []].append(id)
        if let ended = endedByUser[user], ended.count > Self.endedLoginsPerUser { forget(ended[0]) }
    }

    private mutating func count(_ login: Login, by change: Int) {
        let ofIssuer = (countByIssuer[login.issuer] ?? 0) + change
        countByIssuer[login.issuer] = ofIssuer == 0 ? nil : ofIssuer
        guard let issuer = login.issuer else { return }
        let holder = Holder(user: login.grant.user, issuer: issuer)
        let ofHolder = (countByHolder[holder] ?? 0) + change
        countByHolder[holder] = ofHolder == 0 ? nil : ofHolder
    }
}

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
