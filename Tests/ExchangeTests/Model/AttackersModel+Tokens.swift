@testable import ExchangeCore
import SignalWire
import Core

/// Signed tokens, which are signed before a run begins.
struct SignedPool {
    struct Entry {
        var token: Pending
        var login: Oracle.Login
    }

    struct Pending {
        var text: String
        var signed: SignedToken
        var isBad: Bool

        func of(_ login: Int) -> Oracle.Credential {
            let left = signed.expires - Double(ModelClock.epoch) / 1_000
            return Oracle.Credential(
                text: text, login: login, expires: Instant.zero.advanced(by: .seconds(left)), signed: signed,
                isBad: isBad)
        }
    }

    let reader: SignedTokenReader
    var credentials: [Entry] = []

    init() throws {
        let key = try required(SigningKey(name: "key", secret: String(repeating: "k", count: 32)))
        let other = try required(SigningKey(name: "key", secret: String(repeating: "o", count: 32)))
        reader = SignedTokenReader([key], maximumLifetime: 2_592_000)
        let now = Double(ModelClock.epoch) / 1_000
        for user in ["mallory", "eve", "oscar", "trudy", "vera"] {
            for room in [nil, "lobby", "den"] as [String?] {
                guard room != nil || user != "vera" else { continue }
                for (number, life) in [120.0, 1_500, 20_000, 400_000].enumerated() {
                    let signed = SignedToken(
                        application: "key", user: UserID(ours: user), issued: now, expires: now + life,
                        id: number == 0 ? nil : TokenID(ours: "\(user) \(room ?? "") \(number)"),
                        session: room.map { .init(id: RoomName(ours: $0), role: .publisher) })
                    let text = try SignedTokenMint.sign(signed, with: number == 2 && room == "den" ? other : key)
                    let login = Oracle.Login(user: user, room: room, isKnown: false)
                    let isBad = number == 2 && room == "den"
                    credentials.append(
                        Entry(token: Pending(text: text, signed: signed, isBad: isBad), login: login))
                }
            }
        }
    }
}

private func required<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw Oracle.Violation(description: "no key") }
    return value
}

/// Logging in, going on with other tokens, logging out.
extension AttackersModel {
    private static let tokensPerUser = 12

    func logIn() throws {
        let user = wire.pick(Self.attackers + Self.guests) ?? ""
        let isGuest = Self.guests.contains(user) && !oracle.accounts.contains(user)
        guard isGuest || oracle.accounts.contains(user) else { return }
        try logIn(user, isGuest: isGuest)
    }

    /// Logs somebody in over REST.
    ///
    /// - Returns: The access token.
    @discardableResult
    func logIn(_ user: String, isGuest: Bool = false) throws -> String {
        let number = oracle.logins.count
        let text = "access-\(number)-0"
        let digest = SecretDigest(of: text)
        let refresh = isGuest ? nil : RefreshToken()
        oracle.logins.append(
            Oracle.Login(user: user, isGuest: isGuest, digest: isGuest ? digest.hex : nil))
        let lifetime = exchange.settings
        oracle.credentials[text] = Oracle.Credential(
            text: text, login: number, expires: exchange.now.advanced(by: lifetime.tokenLifetime))
        offer(text, of: user)
        if let refresh {
            oracle.credentials[refresh.text.secret] = Oracle.Credential(
                text: refresh.text.secret, login: number, isRefresh: true,
                expires: exchange.now.advanced(by: lifetime.refreshLifetime))
            if !Self.honest.contains(user) { offer(refresh.text.secret, of: user) }
        }
        let grant = Grant(user: UserID(ours: user), isAnonymous: isGuest, application: "app")
        try feed(.tokenIssued(digest, grant, refresh: refresh?.digest, mark: refresh?.mark))
        return text
    }

    private func offer(_ text: String, of user: String) {
        guard !Self.honest.contains(user) else { return }
        wire.tokens[user, default: []].append(text)
        let own = wire.tokens[user, default: []]
        guard own.count > Self.tokensPerUser + 12, let first = own.firstIndex(where: { !$0.contains(".") }) else {
            return
        }
        wire.tokens[user]?.remove(at: first)
    }

    /// Exchanges any token for the next pair, as `POST /v1.1/token` does.
    func refresh() throws {
        let user = wire.pick(Self.attackers) ?? ""
        let all = (wire.tokens[user] ?? []).filter { oracle.credentials[$0]?.isRefresh == true || wire.chance(3) }
        guard let text = wire.pick(all) else { return }
        let (digest, shown) = (SecretDigest(of: text), RefreshToken(Redacted(text)))
        do {
            let grant = try exchange.core.accounts.refreshGrant(for: digest, mark: shown?.mark, at: exchange.now)
            let next = exchange.core.accounts.nextGeneration(of: digest)
            let refresh = RefreshToken(after: shown, generation: next)
            let number = oracle.credentials[text]?.login ?? 0
            let generation = Int(next)
            let access = "access-\(number)-\(generation)-\(steps)"
            let lifetimes = exchange.settings
            let pair = (
                access: Oracle.Credential(
                    text: access, login: number, expires: exchange.now.advanced(by: lifetimes.tokenLifetime),
                    generation: generation),
                refresh: Oracle.Credential(
                    text: refresh.text.secret, login: number, isRefresh: true,
                    expires: exchange.now.advanced(by: lifetimes.refreshLifetime), generation: generation)
            )
            _ = try oracle.refreshed(text, for: pair)
            try oracle.require(grant.user.text == oracle.logins[number].user, "a refresh token is another's")
            offer(access, of: user)
            offer(refresh.text.secret, of: user)
            oracle.count("refreshed")
            try feed(
                .tokenRefreshed(
                    digest, access: SecretDigest(of: access), refresh: refresh.digest, family: refresh.mark.family))
        } catch is RPCError {
            let mustEnd = try oracle.refreshed(text, for: nil)
            let copied = exchange.core.accounts.copied(digest, mark: shown?.mark, at: exchange.now)
            try oracle.require(!mustEnd || copied != nil, "a copied token comes up, and its login goes on")
            guard let copied else { return }
            oracle.count("copied")
            try oracle.endsAsCopied(text)
            try feed(.tokenCopied(copied))
        }
    }

    func logOut() throws {
        let user = wire.pick(Self.attackers + Self.guests) ?? ""
        guard let text = wire.pick(wire.tokens[user] ?? []), let credential = oracle.credentials[text],
            !credential.isRefresh, let (number, _) = oracle.grant(of: text), oracle.logins[number].isKnown
        else { return }
        note("\(user) logs out")
        if exchange.core.accounts.login(of: SecretDigest(of: text)) != nil { oracle.endLogin(number) }
        try feed(.tokenRevoked(SecretDigest(of: text)))
    }
}
