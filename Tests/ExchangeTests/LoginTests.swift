@testable import ExchangeCore
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

private func digest(_ text: String) -> SecretDigest { SecretDigest(of: text) }

/// Somebody with a user's secret logs in over and over, and somebody with a signed token shows it in other ways.
@Suite struct LoginTests {
    private func login(
        _ scenario: inout ExchangeScenario, _ user: UserID = "alice", access: String, refresh: String? = nil
    ) {
        let grant = Grant(user: user, isAnonymous: false, application: "app")
        scenario.feed(.tokenIssued(digest(access), grant, refresh: refresh.map(digest)))
    }

    private func start(_ token: String, device: DeviceID = "d", resume: SessionStart.Resume? = nil) -> ClientRequest {
        .sessionStart(
            SessionStart(token: Redacted(token), device: DeviceDescription(id: device, name: ""), resume: resume))
    }

    /// A signed token that was found to be good.
    private func present(
        _ scenario: inout ExchangeScenario, _ token: String, id: TokenID?, user: UserID = "alice",
        issuer: ApplicationKey = "school", room: RoomName? = nil, seconds: Int = 600
    ) {
        let grant = Grant(
            user: user, isAnonymous: false, room: room.map { .init(room: $0, role: .publisher, data: nil) },
            application: issuer)
        let expires = scenario.timeline.now.advanced(by: .seconds(seconds))
        let login = SignedToken(application: issuer, user: user, issued: nil, expires: 0, id: id)
            .login(digest: digest(token))
        scenario.feed(.tokenPresented(digest(token), grant, login: login, expires: expires))
    }

    private func refusal(_ scenario: ExchangeScenario, _ token: String) -> RPCErrorCode? {
        do throws(RPCError) {
            _ = try scenario.core.accounts.grant(for: digest(token), at: scenario.timeline.now)
            return nil
        } catch { return error.known }
    }

    /// A revoke as `handset user revoke` makes it: the user's logins count from a later time on.
    private func revoke(_ scenario: inout ExchangeScenario, since: Int64 = 1) {
        var users = ExchangeScenario.users
        users[0].loginsSince = since
        scenario.feed(.accountsChanged(users))
    }

    /// Every session belongs to a login that has not ended.
    private func everySessionHasItsLogin(_ scenario: ExchangeScenario) -> Bool {
        scenario.core.sessions.all.allSatisfy { $0.login.map(scenario.core.accounts.isStanding) ?? true }
    }

    // MARK: - A full table

    @Test("AUTH-9: However many logins come after it, a session is there until its login ends, and a revoke ends it")
    func revokeMissesNothing() {
        var scenario = ExchangeScenario()
        login(&scenario, access: "first", refresh: "refresh")
        let device = scenario.connect()
        scenario.request(start("first"), from: device)
        for number in 0..<200 {
            login(&scenario, access: "later \(number)", refresh: "later refresh \(number)")
            scenario.advance(by: .seconds(1))
        }
        #expect(scenario.closed[device] == nil, "an always-on device is in use")
        #expect(refusal(scenario, "first") == nil)
        #expect(throws: Never.self) {
            try scenario.core.accounts.refreshGrant(for: digest("refresh"), at: scenario.timeline.now)
        }
        #expect(everySessionHasItsLogin(scenario))
        revoke(&scenario)
        #expect(scenario.closed[device] == .loggedOut)
        #expect(scenario.core.sessions.sessions(of: "alice").isEmpty && refusal(scenario, "first") == .tokenRevoked)
    }

    @Test("AUTH-9: A device that lost its connection a moment ago keeps its login, however many come after it")
    func resumable() {
        var scenario = ExchangeScenario()
        login(&scenario, access: "first")
        let device = scenario.connect()
        scenario.request(start("first"), from: device)
        guard let resume = scenario.resumePoint(of: device) else {
            Issue.record("no session")
            return
        }
        scenario.feed(.disconnected(device))
        for number in 0..<200 {
            login(&scenario, access: "later \(number)")
            // Each is shown, as a script would that asks for something.
            scenario.feed(.tokenUsed(digest("later \(number)")))
        }
        let again = scenario.connect()
        #expect(scenario.refusal(of: start("first", resume: resume), from: again) == nil)
        #expect(scenario.session(on: again)?.id == resume.session)
    }

    @Test("AUTH-9: Behind 64 logins that were used, the newest two are both good before either has opened a session")
    func newestTwo() {
        var scenario = ExchangeScenario()
        for number in 0..<TokenStore.loginsPerUser {
            login(&scenario, access: "token \(number)", refresh: "refresh \(number)")
            let device = scenario.connect()
            scenario.request(start("token \(number)"), from: device)
            scenario.request(.sessionEnd(SessionEnd()), from: device)
            scenario.feed(.disconnected(device))
            scenario.advance(by: .seconds(1))
        }
        login(&scenario, access: "first of two")
        login(&scenario, access: "second of two")
        let connections = [scenario.connect(), scenario.connect()]
        for (token, connection) in zip(["first of two", "second of two"], connections) {
            #expect(scenario.refusal(of: start(token, device: "of \(token)"), from: connection) == nil)
        }
        #expect(refusal(scenario, "token 0") == .tokenRevoked && refusal(scenario, "token 1") == .tokenRevoked)
        // Nor does a restart make them the oldest.
        login(&scenario, access: "third")
        var next = scenario.restarted()
        login(&next, access: "fourth")
        #expect(refusal(next, "third") == nil && refusal(next, "token 3") == .tokenRevoked)
    }

    @Test("Of a full table the login that was used longest ago ends first; that it began counts as use")
    func leastRecentlyUsed() {
        var scenario = ExchangeScenario()
        // The scenario has made a login of its own, which nobody uses.
        for number in 1..<TokenStore.loginsPerUser {
            login(&scenario, access: "token \(number)")
            scenario.advance(by: .seconds(1))
        }
        for number in (1...3).reversed() {
            scenario.feed(.tokenUsed(digest("token \(number)")))
            scenario.advance(by: .seconds(10))
        }
        login(&scenario, access: "one more")
        #expect(refusal(scenario, "token of alice") == .tokenRevoked, "it began before the others")
        for number in 4..<TokenStore.loginsPerUser { login(&scenario, access: "more \(number)") }
        for number in 1...3 { #expect(refusal(scenario, "token \(number)") == nil) }
        for token in ["one more"] + (4..<TokenStore.loginsPerUser).map({ "more \($0)" }) {
            scenario.feed(.tokenUsed(digest(token)))
        }
        login(&scenario, access: "last")
        #expect(refusal(scenario, "token 3") == .tokenRevoked, "it was used before the other two")
        #expect(refusal(scenario, "token 1") == nil && refusal(scenario, "token 2") == nil)
        #expect(scenario.notes.contains(.loginEnded("alice", .replaced)))
    }

    @Test("AUTH-9: If all logins of a full table have sessions, the one shown longest ago ends with its own")
    func allInUse() throws {
        var scenario = ExchangeScenario()
        var devices: [ConnectionID] = []
        for number in 0..<TokenStore.loginsPerUser {
            login(&scenario, access: "token \(number)")
            devices.append(scenario.connect())
            scenario.request(start("token \(number)", device: "d\(number)"), from: try #require(devices.last))
            scenario.advance(by: .seconds(1))
        }
        let renewal = ClientRequest.sessionRenew(SessionRenew(token: Redacted("token 0")))
        #expect(scenario.refusal(of: renewal, from: devices[0]) == nil)
        let bob = scenario.device("b", of: "bob")
        let invite = scenario.invite("bob", from: devices[1])
        scenario.request(.inviteAccept(InviteAccept(invite: invite)), from: bob)
        login(&scenario, access: "one more")
        #expect(scenario.closed == [devices[1]: .loggedOut] && scenario.closed[devices[1]]?.code == 4001)
        #expect(scenario.core.invites.calls.count == 0)
        #expect(refusal(scenario, "token 1") == .tokenRevoked && refusal(scenario, "token 0") == nil)
        #expect(everySessionHasItsLogin(scenario))
    }

    @Test("Of 64 devices one that restarts takes the place that it had itself, and none of the connected ones'")
    func startedAnew() throws {
        var scenario = ExchangeScenario()
        var devices: [ConnectionID] = []
        for number in 0..<TokenStore.loginsPerUser {
            login(&scenario, access: "token \(number)")
            devices.append(scenario.connect())
            scenario.request(start("token \(number)", device: "d\(number)"), from: try #require(devices.last))
            scenario.advance(by: .seconds(1))
        }
        scenario.feed(.disconnected(devices[40]))
        login(&scenario, access: "anew")
        #expect(scenario.refusal(of: start("anew", device: "d40"), from: scenario.connect()) == nil)
        #expect(scenario.closed.isEmpty && scenario.core.sessions.sessions(of: "alice").count == 64)
        #expect(refusal(scenario, "token 40") == .tokenRevoked)
    }

    @Test("A user's endless logins and logouts leave no more behind than a stated number of tokens")
    func endedLogins() {
        var scenario = ExchangeScenario()
        for number in 0..<500 {
            login(&scenario, access: "a\(number)", refresh: "r\(number)")
            scenario.feed(.tokenRevoked(digest("a\(number)")))
        }
        #expect(scenario.core.accounts.tokenCount <= 4 + 2 * TokenStore.endedLoginsPerUser)
        #expect(refusal(scenario, "a499") == .tokenRevoked && refusal(scenario, "a0") == .tokenRejected)
    }

    @Test("AUTH-9: A stream that was begun with a login's token ends with that login")
    func streams() {
        var scenario = ExchangeScenario()
        login(&scenario, access: "first")
        let (stream, other) = (ConnectionID(number: 900), ConnectionID(number: 901))
        scenario.feed(.attached(stream, Endpoint(user: "alice", device: "whip"), token: digest("first")))
        scenario.feed(.attached(other, Endpoint(user: "alice", device: "door"), token: digest("stream token")))
        scenario.feed(.tokenRevoked(digest("first")))
        #expect(scenario.closed[stream] == .loggedOut && scenario.closed[other] == nil)
    }

    @Test("AUTH-9: A session whose login's last token has ended, and which can be resumed still, ends with a revoke")
    func afterTheLastToken() {
        var settings = ExchangeCore.Settings()
        settings.tokenLifetime = .seconds(600)
        settings.resumeWindow = .seconds(5_000)
        var scenario = ExchangeScenario(settings: settings)
        let device = scenario.connect()
        scenario.request(start("token of alice"), from: device)
        guard let resume = scenario.resumePoint(of: device) else {
            Issue.record("no session")
            return
        }
        scenario.advance(by: .seconds(2_000))
        #expect(scenario.closed[device] == .tokenExpired && scenario.core.accounts.logins(of: "alice").isEmpty)
        revoke(&scenario)
        #expect(scenario.core.sessions.session(resume.session) == nil)
    }

    @Test("Which login is in use, and which was used when, is known after a restart")
    func restart() throws {
        var scenario = ExchangeScenario()
        for number in 1..<TokenStore.loginsPerUser {
            login(&scenario, access: "token \(number)")
            scenario.advance(by: .seconds(1))
        }
        let device = scenario.connect()
        scenario.request(start("token 1"), from: device)
        scenario.feed(.tokenUsed(digest("token of alice")))
        scenario.feed(.tokenUsed(digest("token 2")))
        var next = scenario.restarted()
        login(&next, access: "one more")
        #expect(refusal(next, "token 3") == .tokenRevoked)
        for token in ["token of alice", "token 1", "token 2"] { #expect(refusal(next, token) == nil) }
    }

    // MARK: - Signed tokens

    @Test("AUTH-9: Two tokens with one issuer and jti are one login: a logout of either refuses both, and no other")
    func sameID() {
        var scenario = ExchangeScenario()
        present(&scenario, "first", id: "1")
        present(&scenario, "second", id: "1", seconds: 900)
        present(&scenario, "of another issuer", id: "1", issuer: "inn")
        present(&scenario, "without", id: nil)
        present(&scenario, "without, too", id: nil)
        let device = scenario.connect()
        scenario.request(start("first"), from: device)
        scenario.feed(.tokenRevoked(digest("second")))
        #expect(scenario.closed[device] == .loggedOut)
        #expect(refusal(scenario, "first") == .tokenRevoked && refusal(scenario, "second") == .tokenRevoked)
        for token in ["of another issuer", "without", "without, too"] { #expect(refusal(scenario, token) == nil) }
        present(&scenario, "third", id: "1")
        #expect(refusal(scenario, "third") == .tokenRevoked, "whoever has another copy has nothing")
        scenario.feed(.tokenRevoked(digest("without")))
        #expect(refusal(scenario, "without") == .tokenRevoked && refusal(scenario, "without, too") == nil)
    }

    @Test("A jti that is already used with other claims opens nothing, and leaves its login alone")
    func takenID() {
        var scenario = ExchangeScenario()
        present(&scenario, "of alice", id: "1")
        present(&scenario, "of bob", id: "1", user: "bob")
        present(&scenario, "of a room", id: "1", room: "lobby")
        #expect(refusal(scenario, "of bob") == .tokenRejected && refusal(scenario, "of a room") == .tokenRejected)
        #expect(refusal(scenario, "of alice") == nil)
    }

    @Test("No issuer's tokens end the logins of another, or of the exchange's own, and none fills another's room")
    func issuers() {
        var scenario = ExchangeScenario()
        login(&scenario, access: "own")
        present(&scenario, "of the inn", id: nil, issuer: "inn")
        for number in 0..<300 { present(&scenario, "token \(number)", id: nil) }
        #expect(refusal(scenario, "own") == nil && refusal(scenario, "of the inn") == nil)
        #expect(scenario.core.accounts.logins(of: "alice").count == TokenStore.loginsPerUser + 3)
        #expect(refusal(scenario, "token 0") == .tokenRejected)
        // Nobody took it back: shown again, it is good again.
        present(&scenario, "token 0", id: nil)
        #expect(refusal(scenario, "token 0") == nil)
    }

    @Test("A bearer who logs out of one signed token after the other reaches its limit before all others")
    func loggingOutForEver() {
        var scenario = ExchangeScenario()
        for number in 0..<TokenStore.signedTokensPerUser {
            present(&scenario, "token \(number)", id: nil, seconds: 5_000)
            scenario.feed(.tokenRevoked(digest("token \(number)")))
        }
        let tokens = scenario.core.accounts
        func hasRoom(_ user: UserID, _ issuer: String?) -> Bool {
            tokens.hasRoom(for: Grant(user: user, isAnonymous: false), issuer: issuer)
        }
        #expect(!hasRoom("alice", "school"))
        #expect(hasRoom("bob", "school") && hasRoom("alice", "inn") && hasRoom("alice", nil))
        #expect(refusal(scenario, "token 0") == .tokenRevoked)
        // A clock that is set back by a day makes none of them good again.
        scenario.advance(by: .seconds(5_000 + 86_400))
        #expect(scenario.core.accounts.login(of: digest("token 0")) != nil)
        scenario.advance(by: .seconds(700))
        #expect(scenario.core.accounts.tokenCount == 0)
    }

    @Test("AUTH-3: Guests fill their half and no more, and end no user's session")
    func capacity() throws {
        var store = TokenStore(capacity: 1_000)
        let later = Instant.zero.advanced(by: .seconds(600))
        let (guest, alice) = (Grant(user: "guest", isAnonymous: true), Grant(user: "alice", isAnonymous: false))
        store.begin(alice, access: digest("of alice"), expires: later, at: .zero)
        var count = 0
        while store.hasRoom(for: guest) {
            count += 1
            let grant = Grant(user: "guest \(count)", isAnonymous: true)
            store.begin(grant, access: digest("\(count)"), expires: later, at: .zero)
        }
        #expect(count == 499)
        #expect(store.hasRoom(for: alice) && store.hasRoom(for: alice, issuer: "school"))
        #expect(try store.grant(for: digest("of alice"), at: .zero) == alice)
        #expect(try store.grant(for: digest("1"), at: .zero).user == "guest 1")
    }

    @Test("AUTH-9: A logout by jti survives a restart, for tokens that were never used before")
    func restartedLogout() {
        var scenario = ExchangeScenario()
        present(&scenario, "first", id: "1", seconds: 9_000)
        scenario.feed(.tokenRevoked(digest("first")))
        var next = scenario.restarted()
        next.advance(by: .seconds(8_000))
        present(&next, "second", id: "1", seconds: 900)
        #expect(refusal(next, "second") == .tokenRevoked)
    }
}
