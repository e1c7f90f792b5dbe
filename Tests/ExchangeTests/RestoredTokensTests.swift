@testable import ExchangeCore
import SignalWire
import TestSupport
import Testing
import Core

private func digest(_ text: String) -> SecretDigest { SecretDigest(of: text) }

/// Tokens and sessions over a restart of the exchange.
@Suite struct RestoredTokensTests {
    private func restart(
        _ scenario: ExchangeScenario, users: [Account] = ExchangeScenario.users
    ) -> ExchangeCore {
        var core = ExchangeCore(accounts: users, run: 2)
        core.restore(scenario.saved, at: scenario.timeline.now)
        return core
    }

    private func refusal(_ core: ExchangeCore, _ token: String, at now: Instant) -> RPCErrorCode? {
        do throws(RPCError) {
            _ = try core.accounts.grant(for: digest(token), at: now)
            return nil
        } catch { return error.known }
    }

    private func login(_ scenario: inout ExchangeScenario) {
        let grant = Grant(user: "alice", isAnonymous: false, application: "app")
        scenario.feed(.tokenIssued(digest("access"), grant, refresh: digest("refresh")))
        scenario.feed(
            .tokenRefreshed(digest("refresh"), access: digest("access 2"), refresh: digest("refresh 2")))
    }

    private func start(_ token: String, _ resume: SessionStart.Resume? = nil) -> ClientRequest {
        .sessionStart(
            SessionStart(token: Redacted(token), device: DeviceDescription(id: "d", name: ""), resume: resume))
    }

    @Test(
        "AUTH-4: After a restart tokens are good, refresh tokens can be exchanged, and which were used is not forgotten"
    )
    func standing() throws {
        var scenario = ExchangeScenario()
        login(&scenario)
        let now = scenario.timeline.now
        var core = restart(scenario)
        #expect(try core.accounts.grant(for: digest("access 2"), at: now).application == "app")
        #expect(refusal(core, "access", at: now) == nil && refusal(core, "refresh", at: now) == .tokenRejected)
        #expect(
            try core.accounts.refreshGrant(for: digest("refresh"), at: now).user == "alice", "the answer may be lost")

        scenario.feed(.tokenUsed(digest("access 2")))
        core = restart(scenario)
        let later = now.advanced(by: TokenStore.grace)
        #expect(core.accounts.copied(digest("refresh"), at: later) != nil)
        #expect(try core.accounts.refreshGrant(for: digest("refresh 2"), at: later).user == "alice")
        #expect(core.accounts.logins(of: "alice").contains(digest("access")))
        #expect(refusal(core, "access", at: now.advanced(by: .seconds(3_600))) == .tokenExpired)
    }

    @Test(
        "AUTH-9: What was logged out before a restart stays so, signed tokens too; a session token opens its room alone"
    )
    func revoked() {
        var scenario = ExchangeScenario()
        login(&scenario)
        let room = Grant.RoomGrant(room: "lobby", role: .subscriber, data: "d")
        let grant = Grant(user: "visitor", isAnonymous: false, room: room, application: "key")
        for token in ["gone", "kept"] {
            scenario.feed(.tokenPresented(digest(token), grant, expires: Instant.zero.advanced(by: .seconds(9_000))))
        }
        scenario.feed(.tokenRevoked(digest("access")))
        scenario.feed(.tokenRevoked(digest("gone")))
        var core = restart(scenario)
        let now = scenario.timeline.now
        for token in ["access", "access 2", "gone"] { #expect(refusal(core, token, at: now) == .tokenRevoked) }
        #expect((try? core.accounts.grant(for: digest("kept"), at: now)) == grant)
        // Shown again, it is not good again.
        var outbox: [ExchangeCore.Output] = []
        core.handle(
            .tokenPresented(digest("gone"), grant, expires: now.advanced(by: .seconds(9_000))), at: now, into: &outbox)
        #expect(refusal(core, "gone", at: now) == .tokenRevoked)
    }

    @Test("Who was removed, or whose logins were ended, while the exchange was down is logged out, and resumes nothing")
    func whileDown() throws {
        var scenario = ExchangeScenario()
        login(&scenario)
        let connection = scenario.connect()
        guard case .success(.session(let session)) = scenario.request(start("access"), from: connection) else {
            Issue.record("no session")
            return
        }
        let now = scenario.timeline.now
        #expect(restart(scenario).sessions.session(session.session)?.login == digest("access"))
        var revoked = ExchangeScenario.users
        revoked[0].loginsSince = 5
        for users in [revoked, Array(ExchangeScenario.users.dropFirst())] {
            let core = restart(scenario, users: users)
            #expect(refusal(core, "access", at: now) == .tokenRevoked)
            #expect(core.sessions.session(session.session) == nil)
            #expect(refusal(core, "token of bob", at: now) == nil)
        }
        #expect(refusal(restart(scenario), "token of guest", at: now) == nil)
    }

    @Test("AUTH-9: A session that is resumed after a restart ends with its login")
    func resumed() {
        var scenario = ExchangeScenario()
        login(&scenario)
        let connection = scenario.connect()
        guard case .success(.session(let session)) = scenario.request(start("access"), from: connection) else {
            Issue.record("no session")
            return
        }
        var core = restart(scenario)
        let now = scenario.timeline.now
        var outbox: [ExchangeCore.Output] = []
        let again = ConnectionID(number: 9)
        core.handle(.connected(again), at: now, into: &outbox)
        let resume = SessionStart.Resume(session: session.session, after: 0)
        core.handle(.request(again, .number(1), start("access 2", resume)), at: now, into: &outbox)
        #expect(core.sessions[again]?.id == session.session)
        core.handle(.tokenRevoked(digest("access")), at: now, into: &outbox)
        #expect(outbox.contains(.close(again, .loggedOut)) && core.sessions[again] == nil)
        #expect(outbox.contains(.persist(.sessionForgotten(session.session))))
    }
}
