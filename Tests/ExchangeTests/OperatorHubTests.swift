@testable import ExchangeCore
@testable import ExchangeServer
import Core
import NIOCore
import SignalWire
import Testing

/// What became of orders, by number.
private final class Outcomes {
    var all: [ExchangeHub.OrderOutcome] = []

    var words: [String] {
        all.map { outcome in
            switch outcome {
            case .obeyed(.done(let count)): "done \(count)"
            case .obeyed(.refused): "refused"
            case .unchanged: "unchanged"
            case .unknown: "unknown"
            }
        }
    }
}

@Suite("An operator's orders and the disk") struct OperatorHubTests {
    @Test("An order is answered only once what it has changed is on disk")
    func afterCommit() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        _ = try scenario.device(of: "bob")
        let outcomes = Outcomes()
        scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) }
        #expect(outcomes.all.isEmpty, "nothing is on disk yet")
        scenario.settle()
        #expect(outcomes.words == ["done 1"])
    }

    @Test("While nothing can be stored, orders change nothing, and their answers say so")
    func unwritten() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        _ = try scenario.device(of: "bob")
        scenario.disk.fault = StoreError(stopped: "slow disk")
        let outcomes = Outcomes()
        scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) }
        scenario.advance(by: .milliseconds(10))
        scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) }
        scenario.disk.fault = nil
        scenario.settle()
        #expect(outcomes.words == ["unchanged", "unchanged"])
        #expect(scenario.hub.core.openSessions == 0, "all sockets were closed")
        scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) }
        scenario.settle()
        #expect(outcomes.words.last == "done 0")
    }

    @Test("An order whose write may have happened is answered that this is not known")
    func doubtful() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        _ = try scenario.device(of: "bob")
        let fault = StoreError(.unknown, "slow disk")
        try #require(fault.leavesDoubt)
        scenario.disk.fault = fault
        let outcomes = Outcomes()
        scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) }
        scenario.advance(by: .milliseconds(10))
        #expect(outcomes.words == ["unknown"])
    }

    @Test("Without a database an order is answered at once")
    func withoutDisk() {
        let scenario = HubScenario(users: ["alice"], keeps: false)
        let outcomes = Outcomes()
        scenario.hub.obey(.logOut("alice")) { outcomes.all.append($0) }
        #expect(outcomes.words == ["done 0"])
    }

    @Test("Lists and orders take turns: a client that asks rarely is served beside 10,000 requests of the operator")
    func turns() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        let alice = try scenario.device(of: "alice")
        let outcomes = Outcomes()
        for _ in 0..<200 { scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) } }
        let id = try scenario.ask(Ping(), on: alice)
        #expect(try scenario.wait(for: id, on: alice) < .milliseconds(50))
        scenario.settle()
        #expect(outcomes.all.count == 200)
    }
}
