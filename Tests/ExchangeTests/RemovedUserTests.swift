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
}
