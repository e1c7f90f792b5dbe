@testable import ExchangeCore
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

/// Somebody has copied a refresh token.
@Suite struct RefreshTests {
    /// A login as the exchange and whoever has its refresh tokens see it.
    private struct Login {
        var store = TokenStore()
        var now = Instant.zero
        private var count = 0
        static let id = SecretDigest(of: "access 0")

        /// The first refresh token.
        let first = RefreshToken()

        init() {
            let later = now.advanced(by: .seconds(1_000_000))
            store.begin(
                Grant(user: "alice", isAnonymous: false), access: Self.id, expires: later,
                refresh: (first.digest, first.mark, later), at: now)
        }

        /// What the exchange does when `token` is shown: the next one, or `nil` if it is refused.
        mutating func exchange(_ shown: RefreshToken?) -> RefreshToken? {
            // As over the wire: nothing but the text.
            guard let shown, let token = RefreshToken(shown.text) else { return nil }
            do throws(RPCError) {
                _ = try store.refreshGrant(for: token.digest, mark: token.mark, at: now)
            } catch {
                if let copied = store.copied(token.digest, mark: token.mark, at: now) { _ = store.end(copied, at: now) }
                return nil
            }
            count += 1
            let next = RefreshToken(after: token, generation: store.nextGeneration(of: token.digest))
            let later = now.advanced(by: .seconds(1_000_000))
            store.rotate(
                token.digest, access: SecretDigest(of: "access \(count)"), expires: later, refresh: next.digest,
                family: next.mark.family, refreshExpires: later, at: now)
            return next
        }

        var isStanding: Bool { store.isStanding(Self.id) }
    }

    @Test(
        "AUTH-4: A stolen refresh token ends its login, however many exchanges ago it was given",
        arguments: [
            1, 2, 7, 8, 9, 10, 100, 3_000,
        ])
    func theft(rotations: Int) throws {
        var login = Login()
        var current: RefreshToken? = login.first
        // As quick as can be.
        for _ in 0...rotations { current = login.exchange(current) }
        #expect(current != nil && login.isStanding)
        login.now = login.now.advanced(by: TokenStore.grace)
        #expect(login.exchange(login.first) == nil)
        #expect(!login.isStanding, "somebody has a copy")
        #expect(login.exchange(current) == nil)
    }

    @Test("AUTH-4: A thief who exchanges first, and whose victim exchanges too, is found out by either's next exchange")
    func parallelLines() {
        for thiefIsFirst in [true, false] {
            var login = Login()
            // Both have the first token, and neither has used what it gave.
            var (thief, victim) = (login.exchange(login.first), login.exchange(login.first))
            for _ in 0..<3 {
                if thiefIsFirst { thief = login.exchange(thief) }
                victim = login.exchange(victim)
                if !thiefIsFirst { thief = login.exchange(thief) }
                login.now = login.now.advanced(by: .seconds(3_600))
            }
            #expect(!login.isStanding)
        }
    }

    @Test("AUTH-4: A thief who comes within the time of grace is found out when either token is exchanged next")
    func grace() {
        var login = Login()
        let victim = login.exchange(login.exchange(login.first))
        login.now = login.now.advanced(by: .seconds(59))
        let thief = login.exchange(login.first)
        #expect(victim != nil && thief != nil)
        login.now = login.now.advanced(by: .seconds(3_600))
        #expect(login.exchange(thief) != nil)
        login.now = login.now.advanced(by: .seconds(60))
        #expect(login.exchange(victim) == nil && !login.isStanding)
    }

    @Test("AUTH-4: However many answers are lost, the token that a device has stays good, and so does the last answer")
    func lostAnswers() {
        var login = Login()
        var last: RefreshToken?
        for _ in 0..<100 {
            last = login.exchange(login.first)
            login.now = login.now.advanced(by: .seconds(100))
        }
        #expect(login.exchange(login.first) != nil)
        #expect(login.exchange(last) != nil && login.isStanding)
    }

    @Test(
        "AUTH-4: However many answers were lost before, a refresh token is good for a minute after another was used",
        arguments: [1, 5, 7, 8, 12, 40], [1, 3, 8])
    func graceAfterLostAnswers(lost: Int, after: Int) {
        var login = Login()
        var current: RefreshToken?
        for _ in 0..<lost { current = login.exchange(login.first) }
        for _ in 0..<after { current = login.exchange(current) }
        login.now = login.now.advanced(by: .seconds(59))
        #expect(login.exchange(login.first) != nil && login.isStanding)
        #expect(login.exchange(current) != nil)
        login.now = login.now.advanced(by: .seconds(1))
        #expect(login.exchange(login.first) == nil && !login.isStanding)
    }

    @Test("AUTH-4: However many exchanges there are within a minute, a login keeps few tokens for their grace")
    func gracesAreBounded() {
        var login = Login()
        var current: RefreshToken? = login.first
        for _ in 0..<200 {
            current = login.exchange(current)
            #expect(login.store.count <= TokenStore.tokensPerLogin)
        }
        let graces = login.store.entries.values.count { $0.isWithinGrace(at: login.now) }
        #expect(graces >= TokenStore.gracesPerLogin && graces <= TokenStore.gracesPerLogin + 1)
        #expect(login.exchange(login.first) == nil && !login.isStanding)
    }

    @Test(
        "AUTH-4: A refresh token of an answer that was not used ends its login, however many others were given before and after",
        arguments: [3, 7, 12, 40], [1, 4, 12, 40])
    func unusedAnswers(before: Int, after: Int) {
        var login = Login()
        // The same token is exchanged again and again, and then what one of the answers that are still known gave.
        let answers = (0..<before).map { _ in login.exchange(login.first) }
        let used = answers[before > 7 ? before - 2 : 1]
        for _ in 0..<after { #expect(login.exchange(used) != nil) }
        login.now = login.now.advanced(by: TokenStore.grace)
        for (index, answer) in answers.enumerated() where answer != used {
            var copy = login
            #expect(copy.exchange(answer) == nil)
            #expect(!copy.isStanding, "answer \(index) came up")
        }
        #expect(login.exchange(used) != nil && login.isStanding)
    }

    @Test("A device that runs for a month leaves a handful of tokens, and any of the others still ends the login")
    func alwaysOn() {
        var login = Login()
        var shown: [RefreshToken] = []
        var current: RefreshToken? = login.first
        for _ in 0..<720 {
            if let current { shown.append(current) }
            current = login.exchange(current)
            login.now = login.now.advanced(by: .seconds(3_300))
            login.store.sweep(at: login.now)
            // Two access tokens may be good, and two refresh tokens; the lifetimes here are longer than a device's.
            #expect(login.store.entries.values.count { $0.use == .refresh } <= 2)
        }
        #expect(shown.count == 720 && login.isStanding)
        for stolen in [shown[0], shown[300], shown[717], shown[718]] {
            var copy = login
            #expect(copy.exchange(stolen) == nil && !copy.isStanding)
        }
        #expect(login.exchange(shown.last) != nil, "nobody has used what it gave")
    }

    @Test("AUTH-4: An access token is good to its end, though its login was given a dozen others since")
    func accessTokens() {
        var login = Login()
        var current: RefreshToken? = login.first
        for _ in 0..<12 { current = login.exchange(current) }
        for name in ["access 0", "access 1", "access 12"] {
            #expect(throws: Never.self) { try login.store.grant(for: SecretDigest(of: name), at: login.now) }
        }
        for _ in 0..<50 { current = login.exchange(current) }
        #expect(login.store.count == TokenStore.tokensPerLogin)
    }

    @Test("A forged token ends no login, not even with another token's generation")
    func forgery() throws {
        var login = Login()
        var current: RefreshToken? = login.first
        for _ in 0..<20 { current = login.exchange(current) }
        let stranger = RefreshToken()
        #expect(login.exchange(stranger) == nil && login.isStanding)
        let future = RefreshToken(after: login.first, generation: 1_000)
        #expect(login.exchange(future) == nil && login.isStanding)
        #expect(login.exchange(current) != nil)
    }

    @Test("A login from before there were families gets one with its next exchange, and theft is noticed from then on")
    func olderTokens() throws {
        var store = TokenStore()
        let (now, later) = (Instant.zero, Instant.zero.advanced(by: .seconds(1_000_000)))
        let old = Redacted(String(repeating: "x", count: 43))
        #expect(RefreshToken(old) == nil)
        let login = SecretDigest(of: "access")
        store.begin(
            Grant(user: "alice", isAnonymous: false), access: login, expires: later,
            refresh: (SecretDigest(of: old.secret), nil, later), at: now)
        var (token, digest) = (RefreshToken?.none, SecretDigest(of: old.secret))
        var first: RefreshToken?
        for number in 1...20 {
            let next = RefreshToken(after: token, generation: store.nextGeneration(of: digest))
            store.rotate(
                digest, access: SecretDigest(of: "\(number)"), expires: later, refresh: next.digest,
                family: next.mark.family, refreshExpires: later, at: now)
            (token, digest) = (next, next.digest)
            first = first ?? next
        }
        let stolen = try #require(first)
        #expect(store.copied(stolen.digest, mark: stolen.mark, at: now) == login)
        #expect(try store.refreshGrant(for: digest, mark: token?.mark, at: now).user == "alice")
    }

    @Test("A refresh token's text gives family and generation back, has one spelling, and no two are the same")
    func text() throws {
        for generation: UInt64 in [0, 1, 63, 64, 1 << 32, (1 << 48) - 1] {
            let token = RefreshToken(after: nil, generation: generation)
            let back = try #require(RefreshToken(token.text))
            #expect(back.generation == generation && back.mark == token.mark && back.digest == token.digest)
            #expect(token.text.secret.utf8.count == 76 && !"\(token)".contains(token.text.secret))
            let next = RefreshToken(after: token, generation: generation)
            #expect(next.mark == token.mark && next.digest != token.digest)
            for length in 0..<76 { #expect(RefreshToken(Redacted(String(token.text.secret.prefix(length)))) == nil) }
            for wrong in ["=", "+", "/", " ", ".", "é"] {
                #expect(RefreshToken(Redacted(String(token.text.secret.dropLast()) + wrong)) == nil)
            }
        }
    }
}
