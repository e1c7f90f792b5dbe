@testable import ExchangeCore
import TestSupport
import Testing

private typealias Queue = FairQueue<Int, Int, Request>

private struct Request: Equatable {
    var number: Int
    var cost: Int
}

/// How accounts try to hold up others.
private enum Strategy: CaseIterable {
    /// Each always has signals waiting that cost 80.
    case heavy
    /// Each always has little requests waiting.
    case cheap
    /// Each sends a little request as often as it is served at once.
    case nimble
    /// Each saves up its credit, and all send at the same time.
    case inTurn
    /// Each is idle until nothing that it has used counts, and then all send at the same time.
    case patient

    /// Rounds between two requests of an account; `nil` if it always has one waiting.
    var pause: Int? {
        switch self {
        case .heavy, .cheap: nil
        case .nimble: 3
        case .inTurn: 16
        case .patient: 512
        }
    }

    var cost: Int {
        switch self {
        case .heavy: 80
        case .inTurn: 32
        case .cheap, .nimble, .patient: 6
        }
    }
}

/// An exchange that serves while the disk writes the round before, and one bystander.
private struct Race {
    static let bystander = -1
    var queue = Queue()
    let strategy: Strategy
    let attackers: Int
    /// What the rounds cost, and in which ones the bystander's requests were served.
    var rounds: [Int] = []
    var waits: [Int] = []
    private var number = 0
    /// The bystander's request: the round in which it came, what that had cost by then, and the one in which it was served.
    private var asked: (round: Int, done: Int, served: Int?)?

    init(_ strategy: Strategy, attackers: Int) {
        (self.strategy, self.attackers) = (strategy, attackers)
    }

    /// Adds a request of an account.
    private mutating func send(_ payer: Int, _ cost: Int) {
        number += 1
        let weight = min(cost, 1_000)
        _ = queue.enqueue(Request(number: payer, cost: cost), bytes: 1, weight: weight, on: payer, of: payer)
    }

    private mutating func attack(at round: Int) {
        for attacker in 0..<attackers {
            guard let pause = strategy.pause else {
                while queue.waiting(of: attacker) < 8 { send(attacker, strategy.cost) }
                continue
            }
            if round % pause == 0 { send(attacker, strategy.cost) }
        }
    }

    /// Runs rounds, in which the bystander asks for something as soon as `after` was served in one of them.
    mutating func run(rounds count: Int, every interval: Int, seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var next = Int.random(in: 0..<interval, using: &random)
        for round in 0..<count {
            queue.beginRound()
            attack(at: round)
            var cost = 0
            let moment = Int.random(in: 0..<400, using: &random)
            func isDue(_ cost: Int) -> Bool { round >= next && cost >= moment }
            while let request = queue.next() {
                cost += request.cost
                queue.charge(request.cost)
                if request.number == Self.bystander { asked?.served = round }
                if isDue(cost), asked == nil {
                    asked = (round, cost, nil)
                    send(Self.bystander, 6)
                    next = round + Int.random(in: (interval / 2)...(interval * 3 / 2), using: &random)
                }
            }
            // The round in which nothing was left to serve is waited for by the bystander as well.
            if round >= next, asked == nil {
                asked = (round, cost, nil)
                send(Self.bystander, 6)
                next = round + interval
                while let request = queue.next() {
                    cost += request.cost
                    queue.charge(request.cost)
                    if request.number == Self.bystander { asked?.served = round }
                }
            }
            rounds.append(cost)
            // The commit of the round in which it was served takes as long as that round's work did.
            if let request = asked, let served = request.served {
                let work = rounds[request.round...served].reduce(0, +) - request.done
                waits.append(work + rounds[served])
                asked = nil
            }
        }
    }

    func percentile(_ share: Double) -> Int {
        let sorted = waits.sorted()
        return sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
    }
}

@Suite struct FairOrderTests {
    /// 50 ms at 50 µs each.
    private static let allowed = 1_000

    @Test("An invite beside 100 accounts that do what they may waits for 50 ms at most in 99 of 100 cases")
    func bystanderBesideHundred() {
        let limits = Queue.Limits()
        // The arithmetic of docs/protocol.md#turns, with a signal to a full room.
        #expect(2 * (limits.longestRound + 80) <= Self.allowed)
        for strategy in Strategy.allCases {
            for attackers in [1, 100] {
                var race = Race(strategy, attackers: attackers)
                race.run(rounds: 10_000, every: 31, seed: UInt64(attackers))
                #expect(race.waits.count > 250)
                let (p99, most) = (race.percentile(0.99), race.percentile(1))
                #expect(p99 <= Self.allowed, "\(strategy), \(attackers): \(p99)")
                // Once in a while all others are as new as it is, and came first.
                let rounds = 2 + (attackers * 7 + limits.round - 1) / limits.round
                #expect(most <= rounds * (limits.longestRound + 80), "\(strategy), \(attackers): \(most)")
                #expect(race.rounds.allSatisfy { $0 < limits.longestRound + 80 })
            }
        }
    }

    @Test(
        "A rare request goes before all accounts that have used their share, however many", arguments: [1, 100, 5_000])
    func rareGoesFirst(attackers: Int) {
        var queue = Queue()
        for attacker in 0..<attackers {
            for number in 0..<3 {
                _ = queue.enqueue(
                    Request(number: number, cost: 30), bytes: 1, weight: 30, on: attacker, of: attacker)
            }
        }
        for round in 0..<10 {
            queue.beginRound()
            while let request = queue.next() { queue.charge(request.cost) }
            let rare = Request(number: -1 - round, cost: 6)
            _ = queue.enqueue(rare, bytes: 1, weight: 6, on: -1 - round, of: -1 - round)
            let next = queue.next()
            #expect(next == rare, "this round still has room for it")
            queue.charge(6)
        }
    }

    @Test("Accounts with a backlog have 64 of each round, however many others send rarely")
    func backlogIsNotStarved() {
        var queue = Queue()
        var served = [0, 0, 0, 0]
        let rounds = 300
        var newcomer = served.count
        for _ in 0..<rounds {
            queue.beginRound()
            for _ in 0..<100 {
                _ = queue.enqueue(Request(number: newcomer, cost: 6), bytes: 1, weight: 6, on: newcomer, of: newcomer)
                newcomer += 1
            }
            for payer in served.indices {
                while queue.waiting(of: payer) < 4 {
                    _ = queue.enqueue(Request(number: payer, cost: 20), bytes: 1, weight: 1_000, on: payer, of: payer)
                }
            }
            while let request = queue.next() {
                if request.number < served.count { served[request.number] += request.cost }
                queue.charge(request.cost)
            }
        }
        #expect(served.allSatisfy { $0 >= rounds * 64 / served.count - 64 })
    }

    @Test("An account that sends often is served beside any number of rare ones")
    func sparseIsNotStarved() {
        var queue = Queue()
        for _ in 0..<4 {
            for _ in 0..<8 {
                _ = queue.enqueue(Request(number: 0, cost: 4), bytes: 1, weight: 4, on: 0, of: 0)
                while let request = queue.next() { queue.charge(request.cost) }
            }
            queue.beginRound(after: 16)
        }
        // It has its credit, and has used more than the others. Each round brings 400 of those.
        _ = queue.enqueue(Request(number: 0, cost: 4), bytes: 1, weight: 4, on: 0, of: 0)
        var newcomer = 1
        var isServed = false
        for _ in 0..<10 {
            for _ in 0..<400 {
                _ = queue.enqueue(Request(number: newcomer, cost: 6), bytes: 1, weight: 6, on: newcomer, of: newcomer)
                newcomer += 1
            }
            queue.beginRound()
            while let request = queue.next() {
                if request.number == 0 { isServed = true }
                queue.charge(request.cost)
            }
        }
        #expect(isServed)
    }

    @Test(
        "An account that was idle gains one quantum over one that was not, however long it was idle", arguments: 0..<20)
    func idlenessGainsLittle(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = Queue(.init(payerCount: 100_000))
        var served = [0, 0]
        let most = Int.random(in: 1...60, using: &random)
        func fill(_ payer: Int) {
            while queue.waiting(of: payer) < 100 {
                let cost = Int.random(in: 1...most, using: &random)
                _ = queue.enqueue(Request(number: payer, cost: cost), bytes: 1, weight: cost, on: payer, of: payer)
            }
        }
        for round in 0..<2_000 {
            queue.beginRound()
            fill(0)
            if round >= 1_000 { fill(1) }
            while let request = queue.next() {
                if round >= 1_000 { served[request.number] += request.cost }
                queue.charge(request.cost)
            }
        }
        // A turn is a quantum and an element, and one of them may be in the middle of it.
        #expect(served[1] - served[0] <= 2 * queue.limits.quantum + 2 * most)
        #expect(served[0] > 50_000)
    }

    @Test("N accounts that are idle in turn are served at once for no more than the refill of each in a round")
    func refillBoundsTheNimble() {
        var queue = Queue()
        let (accounts, rounds) = (100, 1_000)
        var atOnce = 0
        for _ in 0..<rounds {
            queue.beginRound()
            for account in 0..<accounts {
                while queue.serveAtOnce(account, weight: 1) {
                    atOnce += 1
                    queue.charge(1)
                }
            }
        }
        #expect(atOnce <= accounts * (queue.limits.quantum + rounds * queue.limits.refill))
        #expect(atOnce > accounts * rounds, "they are served nevertheless")
    }

    @Test(
        "The order within one account is that of its requests, regardless of their cost and waiting",
        arguments: 0..<50)
    func orderWithinAccount(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = Queue()
        var (sent, served) = (0, -1)
        for _ in 0..<500 {
            queue.beginRound(after: Int.random(in: 1...40, using: &random))
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let cost = Int.random(in: 1...60, using: &random)
                _ = queue.enqueue(Request(number: sent, cost: cost), bytes: 1, weight: cost, on: 7, of: 7)
                sent += 1
            }
            for other in 100..<(100 + Int.random(in: 0...60, using: &random)) {
                _ = queue.enqueue(
                    Request(number: -1, cost: 20), bytes: 1, weight: Int.random(in: 1...40, using: &random), on: other,
                    of: other)
            }
            while let request = queue.next() {
                queue.charge(request.cost)
                guard request.number >= 0 else { continue }
                #expect(request.number == served + 1)
                served = request.number
            }
        }
        #expect(served > 30)
    }
}
