import HTTPTransport
import TestSupport
import Testing

@Suite struct StrangerBudgetTests {
    @Test("Strangers together never hold more than the budget, regardless of what they do")
    func bound() {
        var generator = SeededGenerator(seed: 10)
        var budget = StrangerBudget(limit: 10_000)
        var holders: [StrangerBudget.Holder?] = Array(repeating: nil, count: 500)
        for _ in 0..<50_000 {
            let index = Int.random(in: 0..<500, using: &generator)
            if let holder = holders[index], Int.random(in: 0..<4, using: &generator) == 0 {
                budget.release(holder)
                holders[index] = nil
            } else {
                let bytes = Int.random(in: 1...(Bool.random(using: &generator) ? 40 : 9_000), using: &generator)
                let losers = budget.hold(bytes, for: &holders[index])
                for index in holders.indices where losers.contains(where: { $0 == holders[index] }) {
                    holders[index] = nil
                }
            }
            #expect(budget.held <= 10_000 && budget.held >= 0 && budget.count <= 500)
        }
        for holder in holders.compactMap({ $0 }) { budget.release(holder) }
        #expect(budget.held == 0 && budget.count == 0)
    }

    @Test(
        "The client that has held bytes for the longest must go, and a login among ten thousand attackers gets through"
    )
    func oldestGo() {
        var budget = StrangerBudget(limit: 16 << 20)
        var lost = 0
        for attacker in 0..<10_000 {
            var holder: StrangerBudget.Holder?
            lost += budget.hold(8_000, for: &holder).count
            // Now and then somebody logs in, in two pieces with a hundred more attackers between them.
            guard attacker % 500 == 0 else { continue }
            var login: StrangerBudget.Holder?
            var losers = budget.hold(300, for: &login)
            for _ in 0..<100 {
                var other: StrangerBudget.Holder?
                losers += budget.hold(8_000, for: &other)
            }
            losers += budget.hold(300, for: &login)
            #expect(!losers.contains { $0 == login })
            if let login { budget.release(login) }
        }
        #expect(lost > 7_000 && budget.held <= 16 << 20)
    }

    @Test("One request that is larger than the budget goes itself")
    func alone() {
        var budget = StrangerBudget(limit: 100)
        var holder: StrangerBudget.Holder?
        var losers = budget.hold(101, for: &holder)
        #expect(losers.map(Optional.some) == [holder] && budget.held == 0)
        // What it sends after that is counted from zero.
        losers = budget.hold(60, for: &holder)
        #expect(losers.isEmpty && budget.held == 60)
    }
}
