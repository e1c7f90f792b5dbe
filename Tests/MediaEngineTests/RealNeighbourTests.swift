import CallMedia
import Foundation
import TestSupport
import Testing

@testable import MediaEngine

/// ``NeighbourTests`` has neighbours of every kind in virtual time; here are real ones, which the kernel's scheduler runs. Their figures
/// are the machine's, so these tests run at night (`scripts/nightly neighbours`). The witness's limit is 245 ms, a window of the governor.
@Suite(
    "What a call costs beside other programs, by the kernel's clocks", .witnessed(slack: .seconds(1)), .serialized,
    .timeLimit(.minutes(5)),
    .enabled(if: ProcessInfo.processInfo.environment["HANDSET_NIGHTLY"] != nil))
struct RealNeighbourTests {
    private static let calls: UInt32 = 8
    /// Loads of workers that are averaged: 4 s of one.
    private static let windows = 16

    /// Programs that use all the processor time that the kernel gives them.
    private final class Neighbours {
        private var programs: [Process] = []

        /// - Parameter takesTurns: Whether they take turns with others, and not only what is left by them.
        init(count: Int, takesTurns: Bool) throws {
            for _ in 0..<count {
                let program = Process()
                program.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
                let policy = takesTurns ? "--other" : "--idle"
                // Ends by itself even if this process is killed.
                program.arguments = [
                    "-s", "KILL", "120", "/usr/bin/chrt", policy, "0", "/bin/sh", "-c", "while :; do :; done",
                ]
                try program.run()
                programs.append(program)
            }
        }

        var areRunning: Bool { programs.allSatisfy { $0.isRunning } }

        deinit {
            for program in programs {
                // `timeout` heads a process group, of which the shell is a part.
                kill(-program.processIdentifier, SIGKILL)
                kill(program.processIdentifier, SIGKILL)
                program.waitUntilExit()
            }
        }
    }

    /// Averages over windows of the workers that have calls.
    private struct Figures: CustomStringConvertible {
        /// Share of a core that a call takes.
        var cost = 0.0
        /// Share of the workers' time, others' part included.
        var load = 0.0
        /// Further calls that fit.
        var room = 0

        var description: String { "cost \(cost), load \(load), room \(room)" }
    }

    private func figures(of engine: MediaEngine) async throws -> Figures {
        var last = engine.loads
        var sum = (calls: 0.0, work: 0.0, share: 0.0, room: 0.0)
        var seen = 0
        try await until {
            let loads = engine.loads
            for (load, before) in zip(loads, last) where load != before && load.runningCalls >= 1 {
                seen += 1
                sum.calls += load.runningCalls
                sum.work += load.meanCost * load.runningCalls
                sum.share += load.share
                let worker = CallAdmission.Worker(load: load, calls: Int(load.runningCalls.rounded()), capacity: 1_000)
                sum.room += Double(CallAdmission.room(on: worker, isFull: false))
            }
            last = loads
            return seen >= Self.windows
        }
        return Figures(
            cost: sum.work / sum.calls, load: sum.share / Double(seen), room: Int(sum.room / Double(seen)))
    }

    /// A call on processors that sleep between ticks costs up to half more than on ones that are awake, because each tick wakes
    /// one up: caches are cold, and a virtual processor has to be given one. Neighbours are compared to what the same calls cost
    /// while programs that get only what nobody else wants keep the processors awake.
    @Test(
        "Two busy programs for each processor change neither what a call is measured to cost nor, by more than half, the limit",
        arguments: [0, 4, 8])
    func cost(narrowband: UInt32) async throws {
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let pair = try EnginePair()
        defer { pair.shutdown() }
        let tone = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12))
        for number in 1...Self.calls {
            let call = try pair.call(number: number, callerAudio: tone, deviceAudio: tone) { plan in
                guard number <= narrowband else { return }
                plan.codec = .pcmu
                plan.peer.clockRate = 8_000
                plan.peer.sendPayloadType = 0
                plan.peer.receivePayloadType = 0
            }
            try await pair.deviceEvents.flowing(call.device)
        }
        // What was learned while the calls began does not count.
        _ = try await figures(of: pair.device)
        let asleep = try await figures(of: pair.device)
        let idlers = try Neighbours(count: processors, takesTurns: false)
        _ = try await figures(of: pair.device)
        let awake = try await figures(of: pair.device)
        let neighbours = try Neighbours(count: 2 * processors, takesTurns: true)
        _ = try await figures(of: pair.device)
        let beside = try await figures(of: pair.device)
        #expect(idlers.areRunning && neighbours.areRunning)
        print(
            "\(narrowband) of \(Self.calls) calls with G.711: \(asleep); awake: \(awake); beside neighbours: \(beside)")
        #expect((0.75...1.33).contains(beside.cost / awake.cost), "\(beside), and awake \(awake)")
        #expect(beside.room >= awake.room / 2 && beside.room <= awake.room * 5 / 4 + 1, "\(beside), and awake \(awake)")
        // Sleep may only make a call look dearer, so that fewer are taken.
        #expect(asleep.cost >= awake.cost * 0.9, "\(asleep), and awake \(awake)")
    }
}
