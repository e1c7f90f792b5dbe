@testable import ExchangeCore
@testable import ExchangeServer
import TestSupport
import Testing

private typealias Queue = FairQueue<String, Int, Item>

private struct Item: Equatable {
    var payer: String
    var line: Int
    var number: Int
    var cost: Int
}

/// A queue, and what was served from it in which order.
private struct Served {
    var queue: Queue
    var items: [Item] = []
    /// What was charged since the round began.
    var inRound = 0

    init(_ limits: Queue.Limits = .init()) { queue = Queue(limits) }

    @discardableResult
    mutating func enqueue(
        _ payer: String, line: Int = 0, number: Int = 0, cost: Int, weight: Int? = nil, bytes: Int = 1
    ) -> Queue.Admission {
        queue.enqueue(
            Item(payer: payer, line: line, number: number, cost: cost), bytes: bytes, weight: weight ?? cost,
            on: line, of: payer)
    }

    mutating func serveAtOnce(_ payer: String, weight: Int) -> Bool { queue.serveAtOnce(payer, weight: weight) }

    mutating func serveRound() {
        queue.beginRound()
        inRound = 0
        serve()
    }

    /// Rounds in which nothing comes, until nothing is left to remember.
    mutating func forget() {
        queue.beginRound(after: 10_000)
        for _ in 0..<100 { queue.beginRound() }
    }

    mutating func serve() {
        while let item = queue.next() {
            items.append(item)
            inRound += item.cost
            queue.charge(item.cost)
        }
    }
}

@Suite struct FairQueueTests {
    @Test(
        "What one asks who has nothing waiting and asks for little is served before all that waits", arguments: 0..<20)
    func sparsePayersComeFirst(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var served = Served()
        for number in 0..<400 {
            let cost = Int.random(in: 1...400, using: &random)
            served.enqueue("attacker \(number % 8)", line: number % 8, number: number, cost: cost, weight: 1_000)
        }
        for round in 0..<20 {
            // Long enough ago for its credit to be whole.
            for _ in 0..<16 { served.serveRound() }
            served.enqueue("bystander", line: 100, number: round, cost: Int.random(in: 1...32, using: &random))
            let before = served.items.count
            served.serve()
            #expect(served.items[before].payer == "bystander", "no other's comes between asking and being served")
        }
    }

    @Test(
        "With a backlog, what comes before one's own costs at most a quantum a turn for each other, and one element",
        arguments: 0..<50)
    func backloggedPayersShare(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var served = Served()
        let (others, most) = (Int.random(in: 1...20, using: &random), Int.random(in: 1...400, using: &random))
        for payer in 0..<others {
            for number in 0..<200 {
                let cost = Int.random(in: 1...most, using: &random)
                served.enqueue("other \(payer)", line: payer, number: number, cost: cost, weight: 1_000)
            }
        }
        for _ in 0..<Int.random(in: 0...5, using: &random) { served.serveRound() }
        let before = served.items.count
        var own = 0
        for number in 0..<10 {
            let cost = Int.random(in: 1...most, using: &random)
            own += cost
            served.enqueue("own", line: 100, number: number, cost: cost, weight: 1_000)
        }
        while !served.items.contains(where: { $0.payer == "own" && $0.number == 9 }) { served.serveRound() }
        let quantum = served.queue.limits.quantum
        let turns = own / quantum + 2
        let last = served.items.lastIndex { $0.payer == "own" } ?? 0
        for payer in 0..<others {
            let cost = served.items[before..<last].filter { $0.payer == "other \(payer)" }.reduce(0) { $0 + $1.cost }
            #expect(cost <= turns * quantum + most)
        }
    }

    @Test("In the long run all accounts get the same, regardless of the cost of a single request")
    func sharesAreEqual() {
        var served = Served(.init(payerCount: 100_000))
        for number in 0..<20_000 { served.enqueue("cheap", line: 1, number: number, cost: 2, weight: 1_000) }
        for number in 0..<400 { served.enqueue("dear", line: 2, number: number, cost: 300, weight: 1_000) }
        for _ in 0..<140 { served.serveRound() }
        let costs = ["cheap", "dear"].map { payer in
            served.items.filter { $0.payer == payer }.reduce(0) { $0 + $1.cost }
        }
        #expect(abs(costs[0] - costs[1]) <= 300 + 32)
        #expect(costs[0] > 10_000)
    }

    @Test(
        "A round serves no more of those who wait than it allows for, and the one element that exceeds it",
        arguments: 0..<20)
    func roundsAreBounded(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var served = Served()
        for number in 0..<500 {
            let cost = Int.random(in: 1...600, using: &random)
            served.enqueue("\(number % 10)", line: number % 10, number: number, cost: cost, weight: 1_000)
        }
        while !served.queue.isEmpty {
            served.serveRound()
            #expect(served.inRound > 0 && served.inRound < 192 + 600)
        }
    }

    @Test("All that was taken is served, in the order of its line, and then nothing is remembered", arguments: 0..<50)
    func orderAndNoStarvation(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var served = Served()
        var taken = 0
        for number in 0..<2_000 {
            let line = Int.random(in: 0..<40, using: &random)
            let cost = Int.random(in: 1...300, using: &random)
            if served.queue.serveAtOnce("\(line % 7)", weight: cost) {
                let isFirst = served.queue.payer(of: line) == nil
                #expect(isFirst, "nothing overtakes its line")
                served.items.append(Item(payer: "\(line % 7)", line: line, number: number, cost: cost))
                served.queue.charge(cost)
                taken += 1
            } else if served.enqueue("\(line % 7)", line: line, number: number, cost: cost) != .refused {
                taken += 1
            }
            if Int.random(in: 0..<5, using: &random) == 0 { served.serveRound() }
        }
        while !served.queue.isEmpty { served.serveRound() }
        #expect(served.items.count == taken)
        for line in 0..<40 {
            let numbers = served.items.filter { $0.line == line }.map(\.number)
            #expect(numbers == numbers.sorted())
        }
        #expect(served.queue.remembered > 0)
        served.forget()
        #expect(served.queue.remembered == 0 && served.queue.bytes == 0)
    }

    @Test("One line of a user does not hold up another")
    func linesAlternate() {
        var served = Served()
        for number in 0..<50 { served.enqueue("user", line: 1, number: number, cost: 10, weight: 1_000) }
        served.enqueue("user", line: 2, cost: 10)
        served.serveRound()
        #expect(served.items.prefix(2).map(\.line) == [1, 2])
    }

    @Test("An event for many receivers waits for its turn, though its user has nothing waiting")
    func heavyElementsWait() {
        var served = Served()
        let isHeavyServed = served.serveAtOnce("attacker", weight: 33)
        let isLightServed = served.serveAtOnce("user", weight: 32)
        served.queue.charge(32)
        let isMoreServed = served.serveAtOnce("user", weight: 1)
        served.queue.beginRound()
        let isServedLater = served.serveAtOnce("user", weight: 1)
        #expect([isHeavyServed, isLightServed, isMoreServed, isServedLater] == [false, true, false, true])
    }

    @Test("Who took more than expected pays it back before being served again at once")
    func debtsArePaid() {
        var served = Served()
        _ = served.serveAtOnce("user", weight: 1)
        served.queue.charge(320)
        // It owes 288, of which a round pays back 2.
        let isServed = (0..<145).map { _ in
            served.queue.beginRound()
            return served.serveAtOnce("user", weight: 1)
        }
        #expect(isServed == Array(repeating: false, count: 144) + [true])
    }

    @Test("Who asks for one thing after another gets no more of a round than who asks for all at once")
    func roundsAreBoundedForTheNimble() {
        var served = Served()
        served.queue.beginRound()
        for number in 0..<1_000 {
            if served.serveAtOnce("user", weight: 1) {
                served.inRound += 1
                served.queue.charge(1)
            } else {
                served.enqueue("user", number: number, cost: 1)
                served.serve()
            }
        }
        #expect(served.inRound == 192)
    }

    @Test("No debt is longer than 64 turns, regardless of what one thing cost")
    func debtsAreBounded() {
        var served = Served()
        _ = served.serveAtOnce("user", weight: 1)
        served.queue.charge(1_000_000)
        let isServed = (0..<1_025).map { _ in
            served.queue.beginRound()
            return served.serveAtOnce("user", weight: 1)
        }
        #expect(isServed == Array(repeating: false, count: 1_024) + [true])
    }

    @Test("What was refused is charged, and its line is paused if something is there that will resume it")
    func refusals() {
        var served = Served()
        served.queue.fine("user", 64)
        #expect(served.queue.mustWait("user") && served.queue.remembered == 1)
        let isPausedForNothing = served.queue.pause(7, of: "user")
        #expect(!isPausedForNothing)
        served.enqueue("user", line: 1, cost: 1)
        let isPaused = served.queue.pause(7, of: "user")
        #expect(isPaused)
        served.serveRound()
        let resumed = served.queue.takeResumed()
        #expect(resumed == [7])
        served.forget()
        #expect(served.queue.remembered == 0)
    }

    @Test("What waits is bounded for each and in all: lines are paused, then elements refused, and lines resumed")
    func memoryIsBounded() {
        var served = Served(.init(payerCount: 4, payerBytes: 1_000, totalBytes: 2_000))
        let admissions = (0..<18).map { served.enqueue("a", line: 1, number: $0, cost: 100) }
        #expect(admissions.prefix(3).allSatisfy { $0 == .taken })
        #expect(admissions[3..<16].allSatisfy { $0 == .takenAndPaused })
        #expect(admissions[16...].allSatisfy { $0 == .refused })
        let more = [("b", 999), ("b", 1), ("b", 3_001), ("c", 3_900), ("d", 3_900)]
        let others = more.enumerated().map { line, each in
            served.enqueue(each.0, line: 2 + line, cost: 100, bytes: each.1)
        }
        let expected: [Queue.Admission] = [.taken, .takenAndPaused, .refused, .takenAndPaused, .refused]
        #expect(others == expected, "d has none waiting, but all together have much")
        let early = served.queue.takeResumed()
        #expect(early.isEmpty)
        while !served.queue.isEmpty { served.serveRound() }
        let resumed = served.queue.takeResumed()
        #expect(Set(resumed) == [1, 3, 5])
    }

    @Test("A turn is a quantum from the first on, and a round ends with the element that uses it up")
    func exactShares() {
        var served = Served(.init(payerCount: 1_000))
        for payer in ["a", "b"] {
            for number in 0..<300 {
                served.enqueue(payer, line: payer == "a" ? 1 : 2, number: number, cost: 1, weight: 1_000)
            }
        }
        served.serveRound()
        #expect(served.inRound == 192)
        let turns = (0..<6).map { served.items[($0 * 32)..<(($0 + 1) * 32)].map(\.payer) }
        #expect(turns == (0..<6).map { Array(repeating: $0 % 2 == 0 ? "a" : "b", count: 32) })
    }

    @Test("Rounds in which nothing waited pay back as much as rounds one after the other")
    func severalRounds() {
        for (rounds, isPaid) in [(144, false), (145, true)] {
            var served = Served()
            _ = served.serveAtOnce("user", weight: 1)
            served.queue.charge(320)
            served.queue.beginRound(after: rounds)
            let isServed = served.serveAtOnce("user", weight: 1)
            #expect(isServed == isPaid)
        }
    }

    @Test("What is left of a quantum is served at once to the last, and then it must wait")
    func restOfQuantum() {
        var served = Served()
        _ = served.serveAtOnce("user", weight: 1)
        served.queue.charge(22)
        #expect(!served.queue.mustWait("user"))
        let isMoreServed = served.serveAtOnce("user", weight: 11)
        let isRestServed = served.serveAtOnce("user", weight: 10)
        served.queue.charge(10)
        #expect(!isMoreServed && isRestServed)
        #expect(served.queue.mustWait("user"), "all is used up")
        #expect(!served.queue.mustWait("stranger"))
        served.queue.beginRound()
        #expect(!served.queue.mustWait("user"))
        served.enqueue("user", cost: 1)
        #expect(served.queue.mustWait("user"), "it has a backlog")
    }

    @Test("No request is served at once while an earlier one is due")
    func nobodyIsOvertaken() {
        var served = Served()
        served.enqueue("early", line: 1, cost: 1)
        let isServed = served.serveAtOnce("late", weight: 1)
        #expect(!isServed)
        served.serve()
        let isServedThen = served.serveAtOnce("late", weight: 1)
        #expect(isServedThen)
    }

    @Test("A line whose payer becomes another keeps its order: what comes later waits with what came before")
    func payerChanges() {
        var served = Served()
        served.enqueue("stranger", line: 1, number: 0, cost: 1, weight: 1_000)
        served.enqueue("user", line: 1, number: 1, cost: 1)
        #expect(served.queue.payer(of: 1) == "stranger")
        served.serveRound()
        #expect(served.items.map(\.number) == [0, 1])
        served.enqueue("user", line: 1, number: 2, cost: 1)
        #expect(served.queue.payer(of: 1) == "user")
    }

    @Test("Bounds in bytes are reached to the byte, for each and in all, and a line is read on when half is done")
    func exactBounds() {
        var one = Served(.init(payerCount: 100, payerBytes: 100, totalBytes: 10_000))
        let own = [399, 1, 1].map { one.enqueue("a", line: 1, cost: 1, weight: 1_000, bytes: $0) }
        #expect(own == [.takenAndPaused, .takenAndPaused, .refused])
        var all = Served(.init(payerCount: 100, payerBytes: 100, totalBytes: 100))
        let some = (0..<41).map { all.enqueue("\($0)", line: $0, cost: 1, weight: 1_000, bytes: 10) }
        #expect(some == (0..<41).map { $0 < 9 ? .taken : $0 < 40 ? .takenAndPaused : .refused })

        for bytes in [1, 10] {
            // By number, and by bytes.
            var served = Served(.init(payerCount: bytes == 1 ? 8 : 100, payerBytes: 80, totalBytes: 10_000))
            for number in 0..<8 {
                served.enqueue("a", line: 1, number: number, cost: 256, weight: 1_000, bytes: bytes)
            }
            var resumedAfter: [Int] = []
            for number in 1...8 {
                served.serveRound()
                if served.queue.takeResumed() == [1] { resumedAfter.append(number) }
            }
            #expect(resumedAfter == [4])
        }
    }

    @Test("What must not be lost is taken, however much waits")
    func someIsNeverRefused() {
        var queue = Queue(.init(payerCount: 1))
        let item = Item(payer: "a", line: 1, number: 0, cost: 1)
        for _ in 0..<4 { _ = queue.enqueue(item, bytes: 1, weight: 100, on: 1, of: "a") }
        let optional = queue.enqueue(item, bytes: 1, weight: 100, on: 1, of: "a")
        let needed = queue.enqueue(item, bytes: 1, weight: 100, on: 1, of: "a", isOptional: false)
        #expect(optional == .refused)
        #expect(needed == .takenAndPaused)
    }
}
