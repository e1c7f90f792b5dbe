import SignalWire
import Core

/// The users, their logins, and their acquaintances.
package struct Accounts: Sendable {
    /// What another list of accounts means for users.
    struct Replacement {
        /// Users whose logins end, in the order of their ids; `isRemoved`: they have no account any more.
        var loggedOut: [(user: UserID, isRemoved: Bool)]
        /// Names that were strangers' and are users' now.
        var taken: [UserID]
    }

    package private(set) var directory: AccountDirectory
    private(set) var acquaintances = Acquaintances()
    /// Users with the name of an earlier user, of which something is left: they have no account until that is gone.
    private var namesakes: [UserID: Account] = [:]
    /// Logins that ended because their user had no account at the start; the disk does not know their end.
    private var unwrittenEnds: [UserID: Set<TokenStore.LoginID>] = [:]
    /// When users were added, as it is on disk.
    private var recorded: [UserID: Int64] = [:]
    /// Whether that may differ from the directory.
    private var isUnrecorded = true
    private var tokens: TokenStore
    private var tokenLifetime: Duration
    private var refreshLifetime: Duration
    private var signedTokenLifetime: Duration

    init(_ accounts: [Account], _ settings: ExchangeCore.Settings) {
        directory = AccountDirectory(accounts)
        tokens = TokenStore(capacity: settings.tokens)
        tokenLifetime = settings.tokenLifetime
        refreshLifetime = settings.refreshLifetime
        signedTokenLifetime = settings.signedTokenLifetime
    }

    /// New tokens are good for as long as here.
    mutating func adopt(_ settings: ExchangeCore.Settings) {
        tokenLifetime = settings.tokenLifetime
        refreshLifetime = settings.refreshLifetime
        signedTokenLifetime = settings.signedTokenLifetime
    }

    /// The account whose own id this is.
    func account(id: UserID) -> Account? { directory.account(id: id) }

    /// Whether a principal may receive events: a principal of kind `account` needs an existing account; the others do
    /// not.
    func mayBeTold(_ principal: Principal) -> Bool {
        principal.kind != .account || directory.account(id: principal.user) != nil
    }

    /// There are other accounts from now on.
    mutating func replace(with accounts: [Account]) -> Replacement {
        let before = directory
        directory = AccountDirectory(accounts)
        isUnrecorded = true
        // A later start must not take them for logins of the user who has the name now.
        for account in directory.all where before.account(id: account.id) == nil {
            for login in unwrittenEnds.removeValue(forKey: account.id) ?? [] { tokens.write(login) }
        }
        return Replacement(
            loggedOut: before.all.compactMap { account in
                let after = directory.account(id: account.id)
                return after == nil || after?.loginsSince != account.loginsSince ? (account.id, after == nil) : nil
            },
            taken: directory.all.filter { before.account(called: $0.id) == nil }.flatMap { [$0.id] + $0.publicIDs })
    }

    // MARK: - Users of the same name

    /// Keeps apart the accounts whose name another user had or, as far as is known, may have had: they come back by
    /// ``takeNamesakes()``.
    ///
    /// - Returns: The others, in their order.
    mutating func holdNamesakes(of accounts: [Account]) -> [Account] {
        let held = namesakes
        namesakes = [:]
        return accounts.filter { account in
            let before = directory.account(id: account.id)
            let isOther = before != nil && account.added != nil && before?.added != account.added
            guard isOther || held[account.id] != nil else { return true }
            namesakes[account.id] = account
            return false
        }
    }

    /// Those that were held, in the order of their ids.
    mutating func takeNamesakes() -> [Account] {
        defer { namesakes = [:] }
        return namesakes.values.sorted { $0.id < $1.id }
    }

    /// Holds the users that were added since the exchange last ran: what is on disk under their names is not theirs.
    private mutating func restoreUsers(_ saved: Saved, at now: Instant, _ effects: inout Effects) {
        recorded = saved.added
        // A new database has nothing of any user.
        guard saved.run > 1 else { return }
        let added = directory.all.filter { $0.added != nil && $0.added != recorded[$0.id] }
        guard !added.isEmpty else { return }
        namesakes = Dictionary(uniqueKeysWithValues: added.map { ($0.id, $0) })
        directory = AccountDirectory(directory.all.filter { namesakes[$0.id] == nil })
        effects.schedule(.namesakesAreDue, due: now)
    }

    // MARK: - Acquaintances

    /// `owner` has invited `user`, or has accepted an invite of `user`.
    mutating func meet(_ owner: UserID, _ user: UserID, at now: Instant) { acquaintances.meet(owner, user, at: now) }

    /// A user's account is removed: forgets its acquaintances, so that a later user of the same name does not inherit
    /// them.
    mutating func forget(_ user: UserID) { acquaintances.forget(user) }

    // MARK: - What tokens say

    /// What an access token is good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func grant(for token: SecretDigest, at now: Instant) throws(RPCError) -> Grant {
        try tokens.grant(for: token, at: now)
    }

    /// What a token is good for, wherever it is in a request.
    func grant(for token: Redacted<String>, at now: Instant) throws(RPCError) -> Grant {
        try tokens.grant(for: SecretDigest(of: token.secret), at: now)
    }

    /// What new tokens for a refresh token would be good for at `now`.
    ///
    /// - Throws: `tokenExpired`, `tokenRevoked` or `tokenRejected`.
    func refreshGrant(
        for token: SecretDigest, mark: RefreshToken.Mark? = nil, at now: Instant
    ) throws(RPCError) -> Grant {
        try tokens.refreshGrant(for: token, mark: mark, at: now)
    }

    /// The login whose refresh token was copied, if the presented token proves that.
    func copied(_ token: SecretDigest, mark: RefreshToken.Mark? = nil, at now: Instant) -> TokenStore.LoginID? {
        tokens.copied(token, mark: mark, at: now)
    }

    /// The generation of the pair that a refresh token would be exchanged for.
    func nextGeneration(of token: SecretDigest) -> UInt64 { tokens.nextGeneration(of: token) }

    /// How many tokens are remembered.
    var tokenCount: Int { tokens.count }
    /// The login that a token belongs to.
    func login(of token: SecretDigest) -> TokenStore.LoginID? { tokens.login(of: token) }
    /// When a token ends.
    func expiry(of token: SecretDigest) -> Instant? { tokens.expiry(of: token) }
    /// What a login is good for, if it is known.
    func grant(of login: TokenStore.LoginID) -> Grant? { tokens.logins[login]?.grant }
    /// Whether a login has not been ended.
    func isStanding(_ login: TokenStore.LoginID) -> Bool { tokens.isStanding(login) }
    /// The logins of a user, those with session tokens in its name included.
    func logins(of user: UserID) -> [TokenStore.LoginID] { tokens.logins(of: user) }

    /// Whether there is room for another token.
    ///
    /// - Parameter issuer: The API key that signed it; `nil` for one of the exchange's own.
    func hasRoom(for grant: Grant, issuer: String? = nil) -> Bool { tokens.hasRoom(for: grant, issuer: issuer) }

    /// Whether a login's id is already in use for a different grant.
    func isTaken(_ login: TokenStore.LoginID, from grant: Grant) -> Bool { tokens.isTaken(login, from: grant) }

    /// The login that ends before a user can have another.
    func surplusLogin(
        for grant: Grant, issuer: String?, uses: [TokenStore.LoginID: TokenStore.SessionUse]
    ) -> TokenStore.LoginID? {
        tokens.leastRecentlyUsed(for: grant, issuer: issuer, uses: uses)
    }

    // MARK: - What happens to tokens

    /// Begins a login with the exchange's own tokens.
    mutating func issue(
        _ token: SecretDigest, _ grant: Grant, refresh: SecretDigest?, mark: RefreshToken.Mark?, at now: Instant,
        _ effects: inout Effects
    ) {
        tokens.begin(
            grant, epoch: epoch(of: grant), access: token, expires: now.advanced(by: tokenLifetime),
            refresh: refresh.map { ($0, mark, now.advanced(by: refreshLifetime)) }, at: now)
        planSweep(at: now, &effects)
    }

    /// Exchanges a refresh token for the next pair.
    mutating func rotate(
        _ old: SecretDigest, access: SecretDigest, refresh: SecretDigest, family: SecretDigest?, at now: Instant,
        _ effects: inout Effects
    ) {
        tokens.rotate(
            old, access: access, expires: now.advanced(by: tokenLifetime), refresh: refresh, family: family,
            refreshExpires: now.advanced(by: refreshLifetime), at: now)
        planSweep(at: now, &effects)
    }

    /// Takes in a signed token.
    mutating func admit(
        _ token: SecretDigest, of login: TokenStore.LoginID, _ grant: Grant, issuer: String, expires: Instant,
        at now: Instant, _ effects: inout Effects
    ) {
        tokens.admit(
            token, of: login, grant, issuer: issuer, epoch: epoch(of: grant), expires: expires, at: now)
        planSweep(at: now, &effects)
    }

    /// A bearer has shown a token.
    mutating func confirm(_ token: SecretDigest, at now: Instant) { tokens.confirm(token, at: now) }

    /// A login is in use.
    mutating func use(_ login: TokenStore.LoginID, at now: Instant) { tokens.use(login, at: now) }

    /// Ends a login.
    ///
    /// - Returns: What it was good for; `nil` if there is none.
    mutating func end(_ login: TokenStore.LoginID, _ cause: LoginEnd, at now: Instant) -> Grant? {
        cause == .replaced ? tokens.release(login, at: now) : tokens.end(login, at: now)
    }

    /// Removes expired tokens.
    mutating func sweep(at now: Instant, _ effects: inout Effects) {
        guard tokens.sweep(at: now, atMost: ExchangeCore.timersAtOnce) else {
            // The rest has a turn of its own.
            return effects.plan(.tokenSweep, due: now.advanced(by: .milliseconds(1)))
        }
        if tokens.count > 0 { planSweep(at: now, &effects) }
    }

    private func planSweep(at now: Instant, _ effects: inout Effects) {
        effects.plan(.tokenSweep, due: now.advanced(by: TokenStore.sweepInterval))
    }

    private func epoch(of grant: Grant) -> Int64? { directory.account(id: grant.user)?.loginsSince }

    // MARK: - To disk and back

    /// Puts out which users are there, and when they were added.
    mutating func recordUsers(into outbox: inout [ExchangeCore.Output]) {
        guard isUnrecorded, namesakes.isEmpty else { return }
        isUnrecorded = false
        for user in recorded.keys.filter({ directory.account(id: $0) == nil }).sorted() {
            recorded[user] = nil
            outbox.append(.persist(.userForgotten(user)))
        }
        for account in directory.all {
            guard let added = account.added, recorded[account.id] != added else { continue }
            recorded[account.id] = added
            outbox.append(.persist(.userAdded(account.id, at: added)))
        }
    }

    /// Puts out which tokens and logins changed.
    mutating func recordLogins(into outbox: inout [ExchangeCore.Output]) {
        for digest in tokens.takeChanges() {
            let stored = tokens.stored(digest)
            outbox.append(.persist(stored.map(Change.token) ?? .tokenForgotten(digest: digest.hex)))
        }
        for (id, stored) in tokens.takeLoginChanges() {
            outbox.append(.persist(stored.map(Change.login) ?? .loginForgotten(id.hex)))
        }
    }

    /// Outputs the changes of acquaintances.
    mutating func recordAcquaintances(into outbox: inout [ExchangeCore.Output]) {
        for change in acquaintances.takeChanges() { outbox.append(.persist(change)) }
    }

    /// Takes in the users and logins that are on disk.
    mutating func restore(_ saved: Saved, at now: Instant, _ effects: inout Effects) {
        restoreUsers(saved, at: now, &effects)
        let logins = Dictionary(saved.logins.map { ($0.id, $0) }) { first, _ in first }
        for token in saved.tokens.sorted(by: { $0.expires < $1.expires }) {
            restore(token, logins[token.login], at: now)
        }
        if tokens.count > 0 { planSweep(at: now, &effects) }
    }

    private mutating func restore(_ token: StoredToken, _ login: StoredLogin?, at now: Instant) {
        guard let digest = SecretDigest(hex: token.digest) else { return }
        let lifetimes = [tokenLifetime, refreshLifetime, signedTokenLifetime]
        let lifetime = token.isRefresh ? refreshLifetime : lifetimes.max() ?? tokenLifetime
        let expires = min(token.expires, now.advanced(by: lifetime))
        let afterlife = token.isRevoked ? TokenStore.signedAfterlife : TokenStore.afterlife
        let entry = TokenStore.Entry(
            login: SecretDigest(hex: token.login) ?? digest, use: token.isRefresh ? .refresh : .access,
            expires: expires, generation: token.generation, superseded: token.superseded.map { min($0, now) },
            forgotten: min(token.forgotten, expires.advanced(by: afterlife)))
        // The owner of a token that an earlier version revoked is unknown: a placeholder user owns it.
        let user = token.user ?? UserID(ours: "nobody-\(digest.hex)")
        // Who was removed, or whose logins were taken back, while the exchange was down is logged out.
        let account = directory.account(id: user)
        let isOver =
            account?.loginsSince != token.epoch || (account == nil && !token.isAnonymous && token.scope == nil)
        let room = token.scope.flatMap { Grant.RoomGrant($0) }
        let grant = Grant(
            user: user, isAnonymous: token.isAnonymous, room: room, application: token.application)
        if account == nil, isOver, !token.isRevoked { unwrittenEnds[user, default: []].insert(entry.login) }
        tokens.restore(
            digest, entry, Login(login, grant, epoch: token.epoch, isEnded: isOver || token.isRevoked, at: now))
    }

    /// Restores the acquaintances. Drops users that were removed while the exchange was down.
    mutating func restore(_ stored: [StoredAcquaintance]) {
        var gone: Set<UserID> = []
        for entry in stored {
            let strangers = [entry.owner, entry.user].filter { directory.account(id: $0) == nil }
            gone.formUnion(strangers)
            if strangers.isEmpty { acquaintances.restore(entry) }
        }
        for user in gone { acquaintances.forget(user) }
        acquaintances.trim()
    }
}

extension Grant.RoomGrant {
    /// One that was kept on disk; `nil` without a role, which a session token always has.
    init?(_ stored: StoredPlace) {
        guard let role = stored.role.flatMap(RoomRole.init(rawValue:)) else { return nil }
        self.init(room: stored.room, role: role, data: stored.data)
    }
}
