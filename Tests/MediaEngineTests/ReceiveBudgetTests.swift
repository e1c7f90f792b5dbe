import Realtime
@testable import MediaEngine
import Testing

@Suite("What a worker reads in one turn")
struct ReceiveBudgetTests {
    /// What one turn takes from sockets on which so many datagrams wait, read as a worker reads them.
    private func turn(_ queues: inout [Int]) -> [Int] {
        var budget = ReceiveBudget()
        var taken = queues.map { _ in 0 }
        var waiting = queues.indices.filter { queues[$0] > 0 }
        while !waiting.isEmpty {
            budget.beginRound(sockets: waiting.count)
            waiting = waiting.filter { index in
                let limit = budget.limit(ofBatch: DatagramBatch.capacity)
                let count = min(limit, queues[index])
                budget.spend(count)
                queues[index] -= count
                taken[index] += count
                return limit > 0 && count == limit
            }
        }
        return taken
    }

    @Test("However many sockets are flooded, a turn reads no more than 500 datagrams: a quarter of 10 ms at 5 µs each")
    func bound() {
        #expect(ReceiveBudget.perTurn == 500)
        for sockets in [1, 2, 63, 64, 65, 100, 255, 256] {
            var queues = [Int](repeating: 10_000, count: sockets)
            let taken = turn(&queues)
            #expect(taken.reduce(0, +) == 500)
            let (least, most) = (taken.min() ?? 0, taken.max() ?? 0)
            #expect(most - least <= 1, "\(sockets) sockets")
        }
    }

    @Test("A turn reads all of what the calls of a full worker send, on one socket or on one for each")
    func calls() {
        var shared = [256 + 44]
        #expect(turn(&shared) == [300] && shared == [0])
        var own = [Int](repeating: 1, count: 254)
        #expect(turn(&own).allSatisfy { $0 == 1 })
    }

    @Test("A flood on some sockets takes nothing from the calls on the others")
    func fairness() {
        var queues = [Int](repeating: 10_000, count: 128) + [Int](repeating: 2, count: 126)
        // 500 for 254 sockets are one each in the first round; what is left goes on in the next.
        var taken = turn(&queues)
        #expect(taken[128...].allSatisfy { $0 >= 1 })
        taken = turn(&queues)
        #expect(queues[128...].allSatisfy { $0 == 0 })
        var few = [10_000, 3, 10_000, 3]
        #expect(turn(&few) == [247, 3, 247, 3])
    }
}
