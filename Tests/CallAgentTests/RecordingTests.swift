import CThreadCounters
import CallAgent
import Foundation
import Testing

@Suite("Calls that play and record")
struct RecordingTests {
    @Test(
        "Three calls in a row, with no file open between them, are played and recorded whole by every behaviour",
        .timeLimit(.minutes(2)))
    func threeInARow() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "handset-calls-\(UUID())").path()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let site = try await Site(users: CallSeries.users(CallSeries.Behaviour.allCases.count))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, behaviour) in CallSeries.Behaviour.allCases.enumerated() {
                group.addTask {
                    let series = try await CallSeries(behaviour, number: number, at: site, in: folder)
                    // A call has ended when its files have, so that between two calls neither side has a file.
                    for round in 1...3 { try await series.call(round) }
                    await series.close()
                }
            }
            try await group.waitForAll()
        }
        try await site.close()
    }

    /// How many calls ``manyCalls()`` makes; `scripts/nightly` makes 200.
    private static let callCount = ProcessInfo.processInfo.environment["HANDSET_CALLS"].flatMap { Int($0) } ?? 16

    @Test(
        "Many calls in one process, eight at a time, leave every recording whole, and memory and descriptors flat",
        .timeLimit(.minutes(20)))
    func manyCalls() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "handset-calls-\(UUID())").path()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let site = try await Site(users: CallSeries.users(8))
        var all: [CallSeries] = []
        for number in 0..<8 {
            let behaviour = CallSeries.Behaviour.allCases[number % CallSeries.Behaviour.allCases.count]
            all.append(try await CallSeries(behaviour, number: number, at: site, in: folder))
        }
        let rounds = max(2, Self.callCount / all.count)
        // What is allocated once, such as codecs' tables and pools, is there after the first calls.
        let warm = max(1, rounds / 5)
        var before = ProcessUse()
        for round in 1...rounds {
            try await withThrowingTaskGroup(of: Void.self) { [all] group in
                for series in all { group.addTask { try await series.call(round) } }
                try await group.waitForAll()
            }
            if round == warm { before = ProcessUse() }
        }
        let after = ProcessUse()
        let calls = (rounds - warm) * all.count
        print("\(calls) calls after the first \(warm * all.count): \(before) became \(after)")
        // The exchange, which is in this process, remembers an ended invite for five minutes, and what it told a device
        // for one: some 6 KiB a call.
        #expect(after.liveBytes - before.liveBytes < calls * 8_192 + 524_288)
        // The system's thread pools may grow by a few.
        #expect(after.descriptors <= before.descriptors && after.threads <= before.threads + 4)
        for series in all { await series.close() }
        try await site.close()
    }
}

/// What this process holds now.
private struct ProcessUse: CustomStringConvertible {
    let liveBytes = Int(handset_test_live_bytes())
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0

    var description: String { "\(liveBytes / 1_024) KiB, \(descriptors) descriptors, \(threads) threads" }
}
