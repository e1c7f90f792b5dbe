@testable import ExchangeCore
import SignalWire
import Testing
import Core

@Suite struct PresenceTests {
    private let subscribe = ClientRequest.presenceSubscribe(PresenceSubscribe())

    private func news(_ user: UserID, _ reachable: Bool) -> ExchangeEvent {
        let publicIDs = ExchangeScenario.users.first { $0.id == user }?.publicIDs ?? []
        return .presenceChanged(Presence(user: user, publicIDs: publicIDs, reachable: reachable))
    }

    private func users(_ scenario: inout ExchangeScenario, _ connection: ConnectionID) -> [Presence] {
        guard case .success(.presence(let result)) = scenario.request(subscribe, from: connection) else { return [] }
        return result.users
    }

    @Test("A subscriber receives all others: those who can be reached first, and the others after them")
    func list() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice", registers: false)
        _ = scenario.device("c", of: "carol")
        _ = scenario.device("b", of: "bob", registers: false)
        #expect(
            users(&scenario, alice) == [
                Presence(user: "carol", publicIDs: [], reachable: true),
                Presence(user: "bob", publicIDs: ["bob@localhost", "+15550100"], reachable: false),
            ])
    }

    @Test("A subscriber hears of a user whose first device registers and whose last one goes, and nothing in between")
    func changes() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        _ = users(&scenario, alice)
        let first = scenario.device("b1", of: "bob")
        #expect(scenario.events(of: alice) == [news("bob", true)])
        let second = scenario.device("b2", of: "bob")
        scenario.feed(.disconnected(first))
        #expect(scenario.events(of: alice).isEmpty)
        _ = scenario.request(.deviceUnregister(DeviceUnregister()), from: second)
        #expect(scenario.events(of: alice) == [news("bob", false)])
        let device = DeviceDescription(id: "b2", name: "b2")
        _ = scenario.request(.deviceRegister(DeviceRegister(device: device)), from: second)
        _ = scenario.request(.sessionEnd(SessionEnd()), from: second)
        #expect(scenario.events(of: alice) == [news("bob", true), news("bob", false)])
    }

    @Test("A user's own presence is not reported to itself, and no presence without a subscription")
    func audience() {
        var scenario = ExchangeScenario()
        let alices = [scenario.device("a1", of: "alice"), scenario.device("a2", of: "alice")]
        let carol = scenario.device("c", of: "carol")
        _ = users(&scenario, alices[0])
        _ = users(&scenario, carol)
        _ = scenario.device("b", of: "bob")
        #expect(scenario.events(of: alices[0]) == [news("bob", true)])
        #expect(scenario.events(of: alices[1]).isEmpty)
        #expect(scenario.events(of: carol) == [news("bob", true)])
        for alice in alices { scenario.feed(.disconnected(alice)) }
        #expect(scenario.events(of: carol) == [news("alice", false)])
        _ = scenario.request(.presenceUnsubscribe(PresenceUnsubscribe()), from: carol)
        _ = scenario.device("a", of: "alice")
        #expect(scenario.events(of: carol).isEmpty)
    }

    @Test("A device that takes its own earlier connection's place, and registers, has not been away for long")
    func replacement() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.device("b", of: "bob")
        _ = users(&scenario, alice)
        _ = scenario.device("b", of: "bob")
        #expect(scenario.events(of: alice) == [news("bob", false), news("bob", true)])
    }

    @Test("Presence is not reported to anonymous logins, and to no user where it is off")
    func refused() {
        var scenario = ExchangeScenario()
        let guest = scenario.device("g", of: "guest", registers: false)
        #expect(scenario.refusal(of: subscribe, from: guest) == .notAllowed)
        var settings = ExchangeCore.Settings()
        settings.tellsPresence = false
        scenario = ExchangeScenario(settings: settings)
        let alice = scenario.device("a", of: "alice")
        #expect(scenario.refusal(of: subscribe, from: alice) == .notAllowed)
        _ = scenario.device("b", of: "bob")
        #expect(scenario.events(of: alice).isEmpty)
    }

    @Test("For any number of users who come and go, a device that resumes gets every invite it missed, and no presence")
    func resume() {
        var scenario = ExchangeScenario()
        let alice = scenario.connect()
        let device = DeviceDescription(id: "a", name: "a")
        let start = SessionStart(token: Redacted("token of alice"), device: device)
        guard case .success(.session(let session)) = scenario.request(.sessionStart(start), from: alice) else {
            Issue.record("no session")
            return
        }
        _ = scenario.request(.deviceRegister(DeviceRegister(device: device)), from: alice)
        _ = users(&scenario, alice)
        for _ in 0..<EventLog.capacity { scenario.feed(.disconnected(scenario.device("b", of: "bob"))) }
        let heard = UInt64(2 * EventLog.capacity)
        #expect(scenario.events(of: alice).count == Int(heard))
        scenario.feed(.disconnected(alice))
        let carol = scenario.device("c", of: "carol")
        let invite = scenario.invite("alice", from: carol)

        let back = scenario.connect()
        var again = start
        again.resume = .init(session: session.session, after: heard)
        guard case .success(.session(let resumed)) = scenario.request(.sessionStart(again), from: back) else {
            Issue.record("no session")
            return
        }
        #expect(resumed.resumed && resumed.sequence == heard + 1)
        let events = scenario.events(of: back)
        #expect(events.count == 1)
        if case .inviteReceived(let received)? = events.first { #expect(received.invite == invite) }
    }
}
