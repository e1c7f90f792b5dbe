import Foundation
import TestSupport
import Testing

@testable import BlockingWork

@Suite("Work that blocks", .timeLimit(.minutes(5)))
struct BlockingThreadsTests {
    @Test("More blocked work than cores leaves Swift's threads to other tasks")
    func cores() async throws {
        let count = ProcessInfo.processInfo.activeProcessorCount + 1
        let threads = BlockingThreads(name: "test", most: count)
        let gate = Gate()
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<count { group.addTask { await threads.run { gate.pass() } } }
            try await until { gate.arrived == count }
            gate.open()
            for try await passed in group { #expect(passed) }
        }
    }

    @Test("Work beyond the maximum of threads waits until one is free")
    func maximum() async throws {
        let threads = BlockingThreads(name: "test", most: 2)
        let gate = Gate()
        let blocked = (0..<2).map { _ in Task { await threads.run { gate.pass() } } }
        try await until { gate.arrived == 2 }
        let (numbers, done) = AsyncStream.makeStream(of: Int.self)
        var later: [Task<Void, Never>] = []
        for number in 1...4 {
            later.append(Task { _ = await threads.run { done.yield(number) } })
            try await until { threads.waiting == number }
        }
        #expect(gate.arrived == 2)
        gate.open()
        for task in blocked { #expect(await task.value) }
        for task in later { await task.value }
        done.finish()
        var order: [Int] = []
        for await number in numbers { order.append(number) }
        #expect(order.sorted() == [1, 2, 3, 4] && threads.waiting == 0)
    }

    @Test("One thread does all work, if it comes one after the other")
    func reuse() async {
        let threads = BlockingThreads(name: "test", most: 1)
        var used: Set<UInt> = []
        for number in 0..<100 {
            let (thread, square) = await threads.run { (UInt(pthread_self()), number * number) }
            used.insert(thread)
            #expect(square == number * number)
        }
        #expect(used.count == 1)
    }

    @Test("What the work throws is thrown")
    func failure() async {
        struct Fault: Error {}
        await #expect(throws: Fault.self) {
            try await BlockingThreads.files.run { () throws(Fault) in throw Fault() }
        }
    }
}
