@testable import AudioDevices
import CThreadCounters
import CScriptedCard
import CardSupport
import Foundation
import Realtime
import Synchronization
import TestSupport
import Testing
import Core

/// A worker and a device's loop on the real libasound, whose card the test's time rules.
final class ALSABench {
    let card: ScriptedCard
    private var loop: CardLoop<ALSACard>
    private var line: SoundLine
    private var eventRing: SPSCRing<CardEvent>.Consumer
    private(set) var events: [CardEvent] = []
    private var generator = SeededGenerator(seed: 7)
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private var nextFrame = Instant(nanoseconds: 1_004_000_000)
    /// How late the card's thread looks at the card at the most.
    var jitterNanoseconds: Int64 = 0
    /// Round trips through the cable, in ms.
    private(set) var roundTrips: [Double] = []
    private var playedAt: Instant?
    /// What the loop and libasound have allocated in steps.
    private(set) var allocations: Int64 = 0

    init(_ card: ScriptedCard, _ configuration: AudioDeviceConfiguration) {
        self.card = card
        let pair = LinePair()
        let ring = SPSCRing<CardEvent>(capacity: 4_096)
        line = pair.worker
        eventRing = ring.consumer
        loop = CardLoop(ALSACard(configuration), pair.device, events: ring.producer, eventSignal: nil)
        card.control.now_ns = now.nanoseconds
        loop.start(at: now)
        collect()
    }

    var statistics: CardStatistics { loop.statistics }
    var isStopped: Bool { loop.isStopped }
    var worker: SoundLine.Counters { line.counters }

    func stop() {
        loop.stop(at: now)
        collect()
    }

    func forget() {
        allocations = 0
        roundTrips = []
        events = []
    }

    func run(seconds: Int) { run(milliseconds: seconds * 1_000) }

    /// The card's thread looks at it every half millisecond, or later. Between looks the card's position, which it tells
    /// at interrupts only, grows old, and nobody can tell by how much.
    func run(milliseconds: Int) {
        let end = now.advanced(by: .milliseconds(milliseconds))
        var nextStep = now
        while now < end {
            now = min(nextFrame, nextStep)
            card.control.now_ns = now.nanoseconds
            if nextFrame <= now { runFrame() }
            guard nextStep <= now else { continue }
            let before = handset_test_allocations()
            loop.step(at: now)
            _ = loop.nextDeadline
            allocations += handset_test_allocations() - before
            let late = jitterNanoseconds == 0 ? 0 : Int64.random(in: 0...jitterNanoseconds, using: &generator)
            nextStep = now.advanced(byNanoseconds: 500_000 + late)
            collect()
        }
    }

    /// 20 ms: a millisecond of sound at the beginning of each second, and a look for what came back.
    private func runFrame() {
        var frame = [Int16](repeating: 0, count: 960)
        if nextFrame.nanoseconds / 1_000_000_000 != nextFrame.advanced(by: .milliseconds(-20)).nanoseconds
            / 1_000_000_000
        {
            for index in 0..<48 { frame[index] = 20_000 }
            playedAt = nextFrame
        }
        line.play(frame.span, at: nextFrame)
        var space = frame.mutableSpan
        line.capture(into: &space, at: nextFrame)
        if let first = frame.firstIndex(where: { $0 > 10_000 }), let played = playedAt {
            let heard = nextFrame.advanced(byNanoseconds: Int64(first - 960) * 1_000_000 / 48)
            roundTrips.append(Double(played.nanoseconds(to: heard)) * 1e-6)
            playedAt = nil
        }
        nextFrame = nextFrame.advanced(by: .milliseconds(20))
    }

    private func collect() {
        while let event = eventRing.pop() {
            if case .report = event { continue }
            events.append(event)
        }
    }
}

/// Cards behind the real libasound, in virtual time but for the last two tests.
@Suite("Sound cards through libasound", .serialized)
struct ALSATests {
    private let configuration = AudioDeviceConfiguration(playback: "card", capture: "card")

    private func expectSteadySound(_ bench: ALSABench, sourceLocation: SourceLocation = #_sourceLocation) {
        bench.run(seconds: 2)
        bench.forget()
        bench.run(seconds: 8)
        let statistics = bench.statistics
        let target = statistics.playback.targetMilliseconds + statistics.capture.targetMilliseconds
        #expect(bench.roundTrips.count >= 7, sourceLocation: sourceLocation)
        for trip in bench.roundTrips { #expect(abs(trip - target) < 2, sourceLocation: sourceLocation) }
    }

    @Test(
        "Sound comes back through a card's cable after the reported delay, at any rate, format and number of channels",
        arguments: [
            (48_000, "S16_LE", 2, 1), (44_100, "S32_LE", 10, 2), (16_000, "S24_3LE", 32, 2),
            (96_000, "FLOAT_LE", 14, 6),
            (8_000, "U8", 1, 1),
        ] as [(UInt32, String, UInt32, UInt32)])
    func formats(rate: UInt32, name: String, format: UInt32, channels: UInt32) throws {
        let card = try ScriptedCard(rate: rate, format: format, channels: channels)
        let bench = ALSABench(card, configuration)
        bench.run(seconds: 1)
        guard case .opened(let playback?, let capture?) = try #require(bench.events.first) else {
            Issue.record("not opened: \(bench.events)")
            return
        }
        #expect(playback == capture)
        #expect(playback.rate == Int(rate) && playback.channels == Int(channels) && playback.format.name == name)
        #expect(playback.periodFrames == Int(rate) / 100 && playback.bufferFrames == playback.periodFrames * 8)
        expectSteadySound(bench)
        #expect(bench.statistics.playback.xruns == 0 && bench.statistics.capture.xruns == 0)
    }

    @Test("A card that has long periods only is accepted as it is, and its grant reports that")
    func longPeriods() throws {
        let card = try ScriptedCard()
        card.control.least_period = 2_048
        card.control.most_period = 4_096
        let bench = ALSABench(card, configuration)
        bench.run(seconds: 2)
        guard case .opened(let playback?, _) = try #require(bench.events.first) else {
            Issue.record("not opened: \(bench.events)")
            return
        }
        #expect(playback.periodFrames >= 2_048)
        expectSteadySound(bench)
    }

    @Test(
        "The round trip stays within 2 ms a direction through a minute of drift and late wake-ups",
        arguments: [(1_500.0, 1_500.0), (-1_500, 1_500), (1_500, -1_500)])
    func drift(playback: Double, capture: Double) throws {
        let card = try ScriptedCard()
        card.control.ppm = (playback, capture)
        let bench = ALSABench(card, configuration)
        bench.jitterNanoseconds = 1_500_000
        bench.run(seconds: 5)
        bench.forget()
        bench.run(seconds: 60)
        let statistics = bench.statistics
        let target = statistics.playback.targetMilliseconds + statistics.capture.targetMilliseconds
        #expect(bench.roundTrips.count >= 58)
        for trip in bench.roundTrips { #expect(abs(trip - target) < 4) }
        #expect(statistics.playback.jumps == 0 && statistics.capture.jumps == 0)
        #expect(abs(statistics.playback.driftPPM - playback) < 100, "\(statistics.playback.driftPPM)")
        #expect(abs(statistics.capture.driftPPM - capture) < 100, "\(statistics.capture.driftPPM)")
    }

    @Test("Xruns that libasound reports are recovered from and counted", arguments: [0, 1])
    func xruns(direction: Int) throws {
        let bench = ALSABench(try ScriptedCard(), configuration)
        bench.run(seconds: 2)
        for _ in 0..<5 {
            if direction == 0 { bench.card.control.xrun.0 = 1 } else { bench.card.control.xrun.1 = 1 }
            bench.run(milliseconds: 200)
        }
        #expect(bench.statistics.playback.xruns == (direction == 0 ? 5 : 0))
        #expect(bench.statistics.capture.xruns == (direction == 0 ? 0 : 5))
        expectSteadySound(bench)
    }

    @Test("Transfers of eleven frames at a time lose nothing")
    func shortTransfers() throws {
        let bench = ALSABench(try ScriptedCard(), configuration)
        bench.card.control.most_at_once = 11
        bench.run(seconds: 1)
        expectSteadySound(bench)
        #expect(bench.statistics.playback.xruns == 0)
    }

    @Test("A card that reports ENODEV is let go of, and taken again when it is back")
    func unplugged() throws {
        let bench = ALSABench(try ScriptedCard(), configuration)
        bench.run(seconds: 2)
        bench.card.control.absent_errno = ENODEV
        bench.run(seconds: 10)
        #expect(bench.events.contains(.lost(errno: ENODEV)))
        #expect(bench.events.last == .unavailable(CardFailure(direction: .playback, errno: ENODEV)))
        #expect(bench.worker.playOverrun == 0)
        bench.card.control.absent_errno = 0
        bench.run(seconds: 3)
        #expect(bench.events.last == .running)
        expectSteadySound(bench)
        #expect(bench.card.control.opens == 4, "two directions, twice")
    }

    @Test("A card that runs costs no allocation, while rates are corrected and reports are made")
    func allocations() throws {
        let card = try ScriptedCard()
        card.control.ppm = (300, -300)
        let bench = ALSABench(card, configuration)
        bench.run(seconds: 5)
        bench.forget()
        bench.run(seconds: 10)
        #expect(bench.statistics.isRunning && bench.statistics.playback.correctionPPM != 0)
        #expect(bench.allocations == 0)
    }

    @Test("A stop lets the card play what it has")
    func stop() throws {
        let bench = ALSABench(try ScriptedCard(), configuration)
        bench.run(seconds: 2)
        bench.stop()
        #expect(!bench.isStopped)
        bench.run(milliseconds: 100)
        #expect(bench.isStopped)
        #expect(bench.events.last == .stopped)
    }

    @Test("libasound reads its configuration for every fifth look at a missing card, and when something came")
    func missingCard() throws {
        let machine = FileManager.default.temporaryDirectory.appendingPathComponent("machine-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: machine) }
        try FileManager.default.createDirectory(atPath: machine + "/proc/asound", withIntermediateDirectories: true)
        let scripted = try ScriptedCard()
        scripted.control.absent_errno = ENODEV
        var card = ALSACard(configuration, directory: CardDirectory(root: machine))
        var reads = 0
        for look in 0..<6 {
            let failure = card.open()
            #expect(failure == CardFailure(direction: .playback, errno: ENODEV))
            reads = card.configurationReads
            #expect(reads == (look < 5 ? 1 : 2))
        }

        try " 0 [Headset        ]: USB-Audio - Headset\n".write(
            toFile: machine + "/proc/asound/cards", atomically: true, encoding: .utf8)
        for _ in 0..<2 { _ = card.open() }
        reads = card.configurationReads
        #expect(reads == 3)

        try FileManager.default.createDirectory(atPath: machine + "/etc", withIntermediateDirectories: true)
        try "# of a user's\n".write(toFile: machine + "/etc/asound.conf", atomically: true, encoding: .utf8)
        for _ in 0..<2 { _ = card.open() }
        reads = card.configurationReads
        #expect(reads == 4)
    }

    @Test("libasound reads its configuration for every fifth opening of a card that is there, too")
    func presentCard() throws {
        let scripted = try ScriptedCard()
        var card = ALSACard(configuration, directory: CardDirectory(root: "/nonexistent"))
        var reads: [Int] = []
        for _ in 0..<11 {
            let failure = card.open()
            #expect(failure == nil)
            reads.append(card.configurationReads)
        }
        #expect(reads == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3])
        #expect(scripted.control.opens == 22)
    }

    @Test("A card is opened without the priority of the thread that does it, which has it again afterwards")
    func openingPriority() throws {
        let scripted = try ScriptedCard()
        let outcome = Mutex<(before: Int32, after: Int32)?>(nil)
        let configuration = configuration
        let thread = try RealtimeThread(name: "opening") {
            // Machines that refuse the priority have nothing to show here.
            guard (try? RealtimeThread.makeCurrentRealtime(priority: 2)) != nil else { return }
            let before = sched_getscheduler(0)
            var card = ALSACard(configuration)
            _ = card.open()
            outcome.withLock { $0 = (before, sched_getscheduler(0)) }
        }
        thread.join()
        guard let outcome = outcome.withLock({ $0 }) else { return }
        #expect(outcome.before == SCHED_FIFO && outcome.after == SCHED_FIFO)
        #expect(scripted.control.opens == 2 && scripted.control.open_policy == SCHED_OTHER)
    }

    @Test("A name that libasound does not know is reported with what to try")
    func unknownName() throws {
        let card = try ScriptedCard()
        let bench = ALSABench(card, AudioDeviceConfiguration(playback: "nonesuch", capture: nil))
        #expect(bench.events == [.unavailable(CardFailure(direction: .playback, errno: ENOENT))])
        let error = AudioDeviceError(device: "nonesuch", direction: .playback, errno: ENOENT)
        #expect(
            "\(error)"
                == #"cannot use the sound card "nonesuch" for playback: No such file or directory (2). "#
                + "`handset devices` lists those that are there.")
    }
}
