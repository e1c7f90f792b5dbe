import AudioPort
import CallControl
import CallParticipation
import Foundation
import Realtime
import Synchronization
import TestSupport
import Testing
import Core

@testable import CallPrograms

@Suite("Programs that flood", .timeLimit(.minutes(1)))
struct InflowTests {
    /// A stream in virtual time that always has more: what is read and dropped of it, and in how many reads.
    private struct Flood {
        var inflow: Inflow
        var now = Instant.zero
        var reads = 0
        var taken = 0
        var drops = 0
        var reports = 0

        init(_ inflow: Inflow) { self.inflow = inflow }

        /// - Parameter atOnce: Bytes that are there at each read.
        mutating func run(for time: Duration, atOnce: Int) {
            let end = now.advanced(by: time)
            while now < end {
                switch inflow.turn(at: now) {
                case .read(let room):
                    let count = min(room, atOnce, 16_384)
                    inflow.took(count, at: now)
                    (reads, taken) = (reads + 1, taken + count)
                case .drop:
                    if inflow.dropped(min(atOnce, Inflow.droppedAtOnce), at: now) { reports += 1 }
                    drops += 1
                case .wait: break
                }
                now = inflow.restsUntil ?? now.advanced(by: .milliseconds(1))
            }
        }
    }

    @Test(
        "A stream that never ends is read up to a limit of bytes a second; the rest is dropped at 50 reads a second, and reported once",
        arguments: [(65_536, 65_536), (65_536, 16_384)])
    func bounded(burst: Int, perSecond: Int) {
        var flood = Flood(Inflow(burst: burst, perSecond: perSecond))
        flood.run(for: .seconds(100), atOnce: 65_536)
        #expect((burst...burst + 100 * perSecond).contains(flood.taken))
        #expect((4_500...5_000).contains(flood.drops) && flood.reads < 1_000)
        #expect(flood.reports == 1 && flood.inflow.dropped == flood.drops * 65_536)
    }

    @Test("A stream that comes byte by byte is read 500 times a second, and none of it is dropped within the rate")
    func bytes() {
        var flood = Flood(.commands)
        flood.run(for: .seconds(10), atOnce: 1)
        #expect(flood.reads == 5_000 && flood.inflow.dropped == 0)
    }

    @Test("Lines cost more than their bytes, so that 960 short commands are followed at once and 240 a second")
    func lines() {
        var inflow = Inflow.commands
        func taken(_ time: Instant, _ inflow: inout Inflow) -> Int {
            var count = 0
            while case .read(let room) = inflow.turn(at: time, isLast: true), room >= 20 {
                inflow.took(20, at: time)
                guard inflow.takeLine() else { break }
                count += 1
            }
            return count
        }
        let atOnce = taken(.zero, &inflow)
        #expect((955...965).contains(atOnce))
        let later = taken(.zero.advanced(by: .seconds(2)), &inflow)
        #expect((475...485).contains(later))
    }

    @Test("At the edge of the rate all is read; a byte more is dropped, until a quarter of the burst has come back")
    func edge() {
        var inflow = Inflow(burst: 1_000, perSecond: 1_000)
        #expect(inflow.turn(at: .zero) == .read(1_000))
        inflow.took(1_000, at: .zero)
        let rested = Instant.zero.advanced(by: Inflow.rest)
        // What a process that has ended left behind does not wait.
        #expect(inflow.turn(at: .zero) == .wait && inflow.turn(at: .zero, isLast: true) == .drop)
        #expect(inflow.turn(at: rested) == .drop)
        #expect(inflow.dropped(5, at: rested) && !inflow.dropped(5, at: rested))
        #expect(inflow.turn(at: .zero.advanced(by: .milliseconds(249))) == .drop)
        let again = inflow.turn(at: .zero.advanced(by: .milliseconds(251)))
        #expect(again == .read(250) || again == .read(251))
        #expect(inflow.dropped == 10)
    }

    @Test(
        "A program that floods its log and its commands takes little of the thread, is not blocked, and is reported once for each",
        arguments: [false, true])
    func program(byteByByte: Bool) async throws {
        let script = """
            import os, time
            end = time.monotonic() + 1.5
            pieces = (b"x", b"{") if \(byteByByte ? 1 : 0) else (b"x\\n" * 8192, b"[]\\n" * 4096)
            while time.monotonic() < end:
                os.write(2, pieces[0])
                os.write(3, pieces[1])
            """
        let events = Mutex<[ParticipantEvent]>([])
        let plan = ProgramPlan(command: ["python3", "-c", script])
        let programs = try CallPrograms(plan) { one in events.withLock { $0.append(one) } }
        let call = CallID(number: 7)
        let began = MonotonicClock.now
        try programs.begin(ParticipantCall(call, peer: "alice", isOutgoing: false, isAnswered: true))
        func isDropped(_ stream: ProgramStream) -> Bool {
            events.withLock { $0.contains { if case .noted(.dropped(stream, _), call) = $0 { true } else { false } } }
        }
        while began.duration(to: MonotonicClock.now) < .seconds(byteByByte ? 2 : 20),
            byteByByte || !(isDropped(.log) && isDropped(.commands))
        {
            try await Task.sleep(for: .milliseconds(5))
        }
        let share = Self.threadSeconds(named: "programs") / began.duration(to: MonotonicClock.now).seconds
        programs.finish()
        let all = events.withLock { $0 }
        // A program that writes byte by byte may be too slow to lose any.
        for stream in byteByByte ? [] : [ProgramStream.log, .commands] {
            #expect(all.count { $0 == .noted(.flooded(stream), call) } == 1)
            let dropped = all.compactMap {
                if case .noted(.dropped(stream, let bytes), call) = $0 { bytes } else { nil }
            }
            #expect(dropped.count == 1 && (dropped.first ?? 0) > 10_000, "\(dropped)")
        }
        #expect(all.count { if case .noted(.said, _) = $0 { true } else { false } } <= 80)
        #expect(share < 0.3, "\(share) of a core")
    }

    /// Processor time of this process's threads of that name, of which another test may have one that waits.
    private static func threadSeconds(named name: String) -> Double {
        let folder = "/proc/self/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let ticks = threads.reduce(0) { sum, thread in
            guard let stat = try? String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8),
                let end = stat.lastIndex(of: ")"), stat[..<end].hasSuffix("(\(name)")
            else { return sum }
            let fields = stat[end...].split(separator: " ")
            return sum + (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0)
        }
        return Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
