@testable import ExchangeCore
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

private func digest(_ text: String) -> SecretDigest { SecretDigest(of: text) }

@Suite struct TokenTests {
    private static let settings: ExchangeCore.Settings = {
        var settings = ExchangeCore.Settings()
        settings.tokenLifetime = .seconds(600)
        settings.refreshLifetime = .seconds(86_400)
        return settings
    }()

    private func start(
        _ token: String, device: DeviceID = "d", resume: SessionStart.Resume? = nil, user: UserID? = nil,
        application: ApplicationKey? = nil
    ) -> ClientRequest {
        .sessionStart(
            SessionStart(
                token: Redacted(token), device: DeviceDescription(id: device, name: ""), resume: resume, user: user,
                application: application))
    }

    private func login(
        _ scenario: inout ExchangeScenario, _ user: UserID, access: String, refresh: String? = nil
    ) {
        let grant = Grant(user: user, isAnonymous: false, application: "app")
        scenario.feed(.tokenIssued(digest(access), grant, refresh: refresh.map(digest)))
    }

    /// A session token, as the hub presents it once its signature was found to be good.
    private func present(
        _ scenario: inout ExchangeScenario, _ token: String, user: UserID = "alice", room: RoomName = "lobby",
        seconds: Int = 600
    ) {
        let grant = Grant(
            user: user, isAnonymous: false, room: .init(room: room, role: .publisher, data: "d"), application: "key")
        let expires = scenario.timeline.now.advanced(by: .seconds(seconds))
        scenario.feed(.tokenPresented(digest(token), grant, expires: expires))
    }

    /// Two devices in a call, by way of an invite.
    private func call(_ scenario: inout ExchangeScenario, from: ConnectionID, to: ConnectionID, _ user: UserID)
        -> CallKey
    {
        let invite = scenario.invite(user, from: from, key: "\(user)")
        scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: to)
        _ = (scenario.events(of: from), scenario.events(of: to))
        return CallKey(invite: invite, invitee: user)
    }

    // MARK: - The end of a token

    @Test("AUTH-4: A session hears in time that its token ends, shows a new one, and neither it nor its call drops")
    func renewal() {
        var scenario = ExchangeScenario(settings: Self.settings)
        let alice = scenario.device("a", of: "alice")
        login(&scenario, "bob", access: "long")
        let bob = scenario.device("b", of: "bob")
        let invite = call(&scenario, from: alice, to: bob, "bob")
        scenario.advance(by: .seconds(539))
        #expect(scenario.events(of: alice).isEmpty)
        scenario.advance(by: .seconds(1))
        #expect(scenario.events(of: alice) == [.tokenExpiring(TokenExpiring(expiresIn: 60))])
        login(&scenario, "alice", access: "second")
        login(&scenario, "bob", access: "second of bob")
        let renewal = ClientRequest.sessionRenew(SessionRenew(token: Redacted("second")))
        #expect(scenario.request(renewal, from: alice) == .success(.renewal(.init(expiresIn: 600))))
        scenario.request(.sessionRenew(SessionRenew(token: Redacted("second of bob"))), from: bob)
        scenario.advance(by: .seconds(300))
        #expect(scenario.closed[alice] == nil && scenario.closed[bob] == nil)
        #expect(scenario.core.invites.calls[invite] != nil)
        scenario.advance(by: .seconds(240))
        #expect(scenario.events(of: alice) == [.tokenExpiring(TokenExpiring(expiresIn: 60))], "and once for each token")
    }

    @Test(
        "AUTH-4: A session whose token expires is closed with 4001 and counts as lost: its call stays, and it can resume"
    )
    func expiry() throws {
        var scenario = ExchangeScenario(settings: Self.settings)
        let alice = scenario.connect()
        guard case .success(.session(let session)) = scenario.request(start("token of alice"), from: alice) else {
            Issue.record("no session")
            return
        }
        scenario.advance(by: .seconds(30))
        login(&scenario, "bob", access: "later")
        let bob = scenario.connect()
        scenario.request(start("later", device: "b"), from: bob)
        scenario.request(
            .deviceRegister(DeviceRegister(device: DeviceDescription(id: "b", name: ""))), from: bob)
        let invite = call(&scenario, from: alice, to: bob, "bob")
        scenario.advance(by: .seconds(570))
        #expect(scenario.closed[alice] == .tokenExpired && scenario.closed[alice]?.code == 4001)
        #expect(scenario.core.invites.calls[invite] != nil)
        login(&scenario, "alice", access: "second")
        let again = scenario.connect()
        let heard = scenario.core.streams[.account("alice")]?.sequence ?? 0
        let resumption = start("second", resume: .init(session: session.session, after: heard))
        guard case .success(.session(let resumed)) = scenario.request(resumption, from: again) else {
            Issue.record("no session")
            return
        }
        #expect(resumed.resumed)
    }

    @Test("A renewal with a token that is not good, or another user's, changes nothing and closes nothing")
    func badRenewals() {
        var scenario = ExchangeScenario(settings: Self.settings)
        let alice = scenario.device("a", of: "alice")
        for (token, code) in [("nobody's", RPCErrorCode.tokenRejected), ("token of bob", .tokenRejected)] {
            let renewal = ClientRequest.sessionRenew(SessionRenew(token: Redacted(token)))
            #expect(scenario.refusal(of: renewal, from: alice) == code)
        }
        #expect(scenario.closed[alice] == nil)
        let stranger = scenario.connect()
        let renewal = ClientRequest.sessionRenew(SessionRenew(token: Redacted("token of alice")))
        #expect(scenario.refusal(of: renewal, from: stranger) == .notAuthenticated)
        // A shorter token counts from when it is shown.
        present(&scenario, "short", room: "r")
        let pass = scenario.connect()
        scenario.request(start("short"), from: pass)
        present(&scenario, "shorter", room: "r", seconds: 100)
        scenario.request(.sessionRenew(SessionRenew(token: Redacted("shorter"))), from: pass)
        scenario.advance(by: .seconds(101))
        #expect(scenario.closed[pass] == .tokenExpired)
    }

    @Test("AUTH-4, AUTH-8: A token of another user or application than the client takes it for is refused")
    func mismatch() {
        var scenario = ExchangeScenario()
        login(&scenario, "alice", access: "mine")
        let wrong = [start("mine", user: "bob"), start("mine", application: "other")]
        for request in wrong {
            let connection = scenario.connect()
            #expect(scenario.refusal(of: request, from: connection) == .tokenRejected)
            #expect(scenario.closed[connection]?.code == 4001)
        }
        let right = start("mine", user: "alice", application: "app")
        #expect(scenario.refusal(of: right, from: scenario.connect()) == nil)
    }

    // MARK: - Logging out

    @Test("AUTH-9: Logout ends the login's calls and sessions, lost ones too, and its tokens are refused afterwards")
    func logout() {
        var scenario = ExchangeScenario()
        login(&scenario, "alice", access: "one", refresh: "refresh")
        let first = scenario.connect()
        scenario.request(start("one", device: "first"), from: first)
        let second = scenario.connect()
        scenario.request(start("one", device: "second"), from: second)
        let other = scenario.device("third", of: "alice")
        let bob = scenario.device("b", of: "bob")
        let carol = scenario.device("c", of: "carol")
        let standing = call(&scenario, from: first, to: bob, "bob")
        let lost = call(&scenario, from: second, to: carol, "carol")
        scenario.feed(.disconnected(second))

        scenario.feed(.tokenRevoked(digest("one")))
        #expect(scenario.closed[first] == .loggedOut && scenario.closed[first]?.code == 4001)
        #expect(scenario.closed[other] == nil, "another login of the same user goes on")
        #expect(scenario.core.invites.calls[standing] == nil && scenario.core.invites.calls[lost] == nil)
        for (peer, invite) in [(bob, standing), (carol, lost)] {
            let ended = scenario.events(of: peer).contains {
                if case .callEnded(let data) = $0 {
                    data.invite == invite.invite && data.reason == "disconnected"
                } else {
                    false
                }
            }
            #expect(ended)
        }
        let late = scenario.connect()
        #expect(scenario.refusal(of: start("one"), from: late) == .tokenRevoked)
        #expect(throws: RPCError.self) {
            try scenario.core.accounts.refreshGrant(for: digest("refresh"), at: scenario.timeline.now)
        }
    }

    @Test("AUTH-9: A signed token that was logged out is refused until it would have ended, however often it is shown")
    func signedLogout() {
        var scenario = ExchangeScenario()
        present(&scenario, "signed", seconds: 5_000)
        scenario.feed(.tokenRevoked(digest("signed")))
        scenario.advance(by: .seconds(4_900))
        present(&scenario, "signed", seconds: 100)
        #expect(scenario.refusal(of: start("signed"), from: scenario.connect()) == .tokenRevoked)
    }

    @Test("A removed user, or one whose logins were revoked, is logged out, and no other")
    func accountsChange() {
        var scenario = ExchangeScenario()
        let (alice, bob, carol) = (
            scenario.device("a", of: "alice"), scenario.device("b", of: "bob"), scenario.device("c", of: "carol")
        )
        var users = ExchangeScenario.users.filter { $0.id != "bob" }
        users[0].loginsSince = 1
        users.append(Account(id: "dora"))
        scenario.feed(.accountsChanged(users))
        #expect(scenario.closed[alice] == .loggedOut && scenario.closed[bob] == .loggedOut)
        #expect(scenario.closed[carol] == nil)
        #expect(scenario.refusal(of: start("token of bob"), from: scenario.connect()) == .tokenRevoked)
        let invite = InviteSend(to: "bob", ttl: 1, idempotencyKey: "k")
        #expect(scenario.refusal(of: .inviteSend(invite), from: carol) == .unknownUser)
        let toDora = InviteSend(to: "dora", ttl: 1, idempotencyKey: "k2")
        #expect(scenario.refusal(of: .inviteSend(toDora), from: carol) == nil)
    }

    // MARK: - Session tokens

    @Test("AUTH-5: A session token opens its session and nothing else, and does not reach its user's own devices")
    func sessionToken() {
        var scenario = ExchangeScenario()
        let real = scenario.device("kitchen", of: "alice")
        present(&scenario, "signed")
        let bearer = scenario.connect()
        guard case .success(.session(let result)) = scenario.request(start("signed", device: "kitchen"), from: bearer)
        else {
            Issue.record("no session")
            return
        }
        #expect(result.user == "alice" && result.isAnonymous && result.publicIDs.isEmpty)
        #expect(scenario.closed[real] == nil, "the user's own device of the same name stays")
        #expect(scenario.refusal(of: .roomJoin(RoomJoin(room: "cellar")), from: bearer) == .tokenForAnotherSession)
        #expect(scenario.refusal(of: .roomJoin(RoomJoin(room: "lobby")), from: bearer) == nil)
        #expect(scenario.closed[bearer] == nil)
        let device = DeviceDescription(id: "kitchen", name: "")
        for request: ClientRequest in [
            .deviceRegister(DeviceRegister(device: device)),
            .inviteSend(InviteSend(to: "bob", ttl: 1, idempotencyKey: "k")),
            .inviteAccept(InviteAccept(invite: "i")), .presenceSubscribe(PresenceSubscribe()),
        ] { #expect(scenario.refusal(of: request, from: bearer) == .notAllowed) }

        _ = scenario.invite("alice", from: scenario.device("b", of: "bob"))
        #expect(scenario.events(of: bearer).isEmpty, "its user's invites are not for it")
        #expect(!scenario.events(of: real).isEmpty)

        present(&scenario, "elsewhere", room: "cellar")
        let renewal = ClientRequest.sessionRenew(SessionRenew(token: Redacted("elsewhere")))
        #expect(scenario.refusal(of: renewal, from: bearer) == .tokenForAnotherSession)
    }

    // MARK: - Refresh tokens

    @Test(
        "AUTH-4: A refresh token stays valid until its successor is used, and 60 s more, so that a lost answer does no harm"
    )
    func refresh() throws {
        var store = TokenStore()
        let grant = Grant(user: "alice", isAnonymous: false)
        func at(_ seconds: Int) -> Instant { Instant.zero.advanced(by: .seconds(seconds)) }
        func rotate(_ old: String, _ number: Int, at now: Instant) {
            store.rotate(
                digest(old), access: digest("a\(number)"), expires: now.advanced(by: .seconds(600)),
                refresh: digest("r\(number)"), refreshExpires: now.advanced(by: .seconds(9_000)), at: now)
        }
        store.begin(grant, access: digest("a0"), expires: at(600), refresh: (digest("r0"), nil, at(9_000)), at: at(0))
        #expect(throws: RPCError.self) { try store.grant(for: digest("r0"), at: at(0)) }
        #expect(throws: RPCError.self) { try store.refreshGrant(for: digest("a0"), at: at(0)) }
        rotate("r0", 1, at: at(500))
        #expect(try store.grant(for: digest("a0"), at: at(599)) == grant, "the old access token is good to its end")
        // The answer was lost, and the device is back much later.
        #expect(try store.refreshGrant(for: digest("r0"), at: at(5_000)) == grant)
        rotate("r0", 2, at: at(5_000))
        #expect(try store.grant(for: digest("a2"), at: at(5_000)) == grant)
        store.confirm(digest("a2"), at: at(5_001))
        #expect(try store.refreshGrant(for: digest("r0"), at: at(5_060)) == grant)
        #expect(throws: RPCError.self) { try store.refreshGrant(for: digest("r0"), at: at(5_061)) }
        #expect(store.copied(digest("r0"), at: at(5_061)) == digest("a0"), "somebody has a copy of it")
        #expect(try store.refreshGrant(for: digest("r2"), at: at(5_061)) == grant)
        rotate("r2", 3, at: at(6_000))
        #expect(store.copied(digest("r2"), at: at(8_999)) == nil)
        rotate("r3", 4, at: at(6_001))
        #expect(store.copied(digest("r2"), at: at(6_061)) != nil, "a refresh with its successor counts as use, too")
    }

    @Test("A login has a limited number of tokens, oldest out; expired ones are forgotten")
    func bounds() throws {
        var store = TokenStore()
        let now = Instant.zero
        let later = now.advanced(by: .seconds(600))
        store.begin(
            Grant(user: "alice", isAnonymous: false), access: digest("a"), expires: later,
            refresh: (digest("r"), nil, later), at: now)
        for number in 0..<100 {
            store.rotate(
                digest(number == 0 ? "r" : "n\(number - 1)"), access: digest("m\(number)"), expires: later,
                refresh: digest("n\(number)"), refreshExpires: later, at: now)
        }
        #expect(store.count == TokenStore.tokensPerLogin)
        #expect(try store.grant(for: digest("m99"), at: now).user == "alice")
        store.sweep(at: later.advanced(by: .seconds(599)))
        #expect(store.count > 0)
        store.sweep(at: later.advanced(by: TokenStore.afterlife))
        #expect(store.count == 0 && store.logins(of: "alice").isEmpty)
        #expect(store.logins.count == 0 && store.hasRoom(for: Grant(user: "guest", isAnonymous: true)))
    }

    // MARK: - Too many messages

    @Test("A connection that sends too much is notified, continues when it slows down, and is closed if it does not")
    func flood() {
        var settings = ExchangeCore.Settings()
        settings.messageBurst = 20
        settings.messagesPerSecond = 10
        settings.messagesRefused = 5
        var scenario = ExchangeScenario(settings: settings)
        let bob = scenario.device("b", of: "bob")
        let alice = scenario.device("a", of: "alice")
        func ping(_ connection: ConnectionID) -> RPCErrorCode? { scenario.refusal(of: .ping(Ping()), from: connection) }
        for _ in 0..<18 { #expect(ping(bob) == nil) }
        for _ in 0..<5 { #expect(ping(bob) == .tooManyRequests) }
        #expect(scenario.closed[bob] == nil && ping(alice) == nil)
        scenario.advance(by: .seconds(1))
        for _ in 0..<10 { #expect(ping(bob) == nil) }
        #expect(ping(bob) == .tooManyRequests)
        #expect(scenario.closed[bob] == .policy("too many messages") && scenario.closed[bob]?.code == 1_008)
        #expect(scenario.core.sessions[bob] == nil && ping(alice) == nil)
    }
    @Test("The count of refused messages begins again once the connection was silent until a whole burst fits")
    func floodsApart() {
        var settings = ExchangeCore.Settings()
        settings.messageBurst = 20
        settings.messagesPerSecond = 10
        settings.messagesRefused = 5
        var scenario = ExchangeScenario(settings: settings)
        let bob = scenario.device("b", of: "bob")
        func ping() -> RPCErrorCode? { scenario.refusal(of: .ping(Ping()), from: bob) }
        for _ in 0..<10 {
            scenario.advance(by: .seconds(2))
            for _ in 0..<20 { #expect(ping() == nil) }
            for _ in 0..<5 { #expect(ping() == .tooManyRequests) }
        }
        #expect(scenario.closed[bob] == nil)
        // A tenth of a second less is no such silence.
        scenario.advance(by: .milliseconds(1_900))
        for _ in 0..<19 { #expect(ping() == nil) }
        #expect(ping() == .tooManyRequests && scenario.closed[bob] == .policy("too many messages"))
    }
}
