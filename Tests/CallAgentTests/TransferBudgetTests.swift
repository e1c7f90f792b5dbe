import CallControl
import Core
import Testing

@testable import CallAgent

@Suite("How many transfers peers may ask for")
struct TransferBudgetTests {
    private func taken(_ count: Int, of peer: UserID, from budget: inout TransferBudget, at now: Instant) -> Int {
        (0..<count).count { _ in budget.take(peer, at: now) }
    }

    @Test("One peer has five at once and five a minute, beside what others ask for")
    func ofPeer() {
        var budget = TransferBudget()
        let start = Instant.zero
        #expect(taken(100, of: "bob", from: &budget, at: start) == 5)
        #expect(taken(100, of: "carol", from: &budget, at: start) == 5)
        let asked = (1...60).map { second in
            taken(10, of: "bob", from: &budget, at: start.advanced(by: .seconds(second)))
        }
        #expect(asked.reduce(0, +) == 5)
        #expect(taken(100, of: "bob", from: &budget, at: start.advanced(by: .seconds(180))) == 5)
    }

    @Test("Peers that change their names have sixty at once and sixty a minute together")
    func ofAll() {
        var budget = TransferBudget()
        var number = 0
        func asked(at now: Instant) -> Int {
            (0..<500).count { _ in
                number += 1
                return budget.take(UserID(ours: "eve-\(number)"), at: now)
            }
        }
        #expect(asked(at: .zero) == 60)
        #expect((1...60).map { asked(at: Instant.zero.advanced(by: .seconds($0))) }.reduce(0, +) == 60)
    }
}
