import ExchangeStore
import JSON
import SignalSupport
import SignalWire
import Testing

@testable import Exchange

@Suite struct RemovedUserTests {
    @Test("Of a removed user no event stays, so that who is given the name finds none")
    func removed() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        _ = scenario.device("b", of: "bob")
        for number in 0..<3 { _ = scenario.invite("bob", from: alice, data: "old", key: "\(number)") }
        scenario.feed(.accountsChanged(ExchangeScenario.users.filter { $0.id != "bob" }))
        #expect(!scenario.saved.events.contains { $0.principal == .account("bob") })
        scenario.feed(.accountsChanged(ExchangeScenario.users))
        _ = scenario.invite("bob", from: alice, data: "new", key: "new")
        let stored = scenario.saved.events.filter { $0.principal == .account("bob") }
        #expect(stored.map(\.sequence) == [1])
    }

    @Test("Open invites of a removed user, sent and received, leave no event for whoever gets the name")
    func openInvites() {
        var scenario = ExchangeScenario()
        let alice = scenario.device("a", of: "alice")
        let bob = scenario.device("b", of: "bob")
        _ = scenario.invite("bob", from: alice, ttl: 5, key: "received")
        _ = scenario.invite("alice", from: bob, ttl: 5, key: "sent")
        scenario.feed(.accountsChanged(ExchangeScenario.users.filter { $0.id != "bob" }))
        #expect(scenario.saved.events.allSatisfy { $0.principal != .account("bob") })
        scenario.advance(by: .seconds(10))
        #expect(scenario.saved.events.allSatisfy { $0.principal != .account("bob") })
        #expect(scenario.core.logs[.account("bob")] == nil)
        #expect(scenario.saved.events.contains { $0.principal == .account("alice") })
    }
}
