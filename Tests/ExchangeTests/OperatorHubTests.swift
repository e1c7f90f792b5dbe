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

    @Test("A list shows what is on disk: it is answered after what it shows, and not at all if that is lost")
    func lists() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        _ = try scenario.device(of: "bob")
        var answers: [String] = []
        func read() {
            let isTaken = scenario.hub.read {
                $0.users(after: nil, atMost: 10).entries.count
            } then: { result in
                answers.append((try? result.get()).map { "\($0) users" } ?? "unavailable")
            }
            #expect(isTaken)
        }
        let outcomes = Outcomes()
        scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) }
        read()
        #expect(answers.isEmpty && outcomes.all.isEmpty, "nothing is on disk yet")
        scenario.settle()
        #expect(outcomes.words == ["done 1"] && answers == ["2 users"])
        scenario.disk.fault = StoreError(stopped: "slow disk")
        _ = try? scenario.device(of: "alice")
        scenario.hub.obey(.logOut("alice")) { outcomes.all.append($0) }
        scenario.advance(by: .milliseconds(10))
        read()
        scenario.advance(by: .milliseconds(10))
        #expect(answers == ["2 users", "unavailable"])
    }

    @Test("Once the exchange has ended, orders that wait are not known, and nothing more is observed")
    func ended() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        _ = try scenario.device(of: "bob")
        var notes = 0
        scenario.hub.observer = { _ in notes += 1 }
        let outcomes = Outcomes()
        scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) }
        scenario.hub.endOrders()
        #expect(outcomes.words == ["unknown"])
        scenario.settle()
        #expect(outcomes.words == ["unknown"] && notes == 0)
    }

    @Test("Lists and orders take turns: a client that asks rarely is served within 50 ms beside 200 of each")
    func turns() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        let alice = try scenario.device(of: "alice")
        let outcomes = Outcomes()
        var lists = 0
        for _ in 0..<200 {
            scenario.hub.obey(.logOut("bob")) { outcomes.all.append($0) }
            if scenario.hub.read({ $0.users(after: nil, atMost: 100) }, then: { _ in lists += 1 }) == false {
                lists += 1
            }
        }
        let id = try scenario.ask(Ping(), on: alice)
        #expect(try scenario.wait(for: id, on: alice) < .milliseconds(50))
        scenario.settle()
        #expect(outcomes.all.count == 200 && lists == 200)
    }
}
