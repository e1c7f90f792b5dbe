import Foundation
import LoopbackAnalysis
import Realtime
import Synchronization
import TestSupport
import Testing
import Core
import VoiceActivity

@testable import AudioPort
@testable import CallParticipation

@Suite("A call's sound in the process that embeds the library", .timeLimit(.minutes(5)))
struct CallPortTests {
    /// A port whose worker and thread the test runs, frame by frame.
    private final class Bench: @unchecked Sendable {
        // One task uses it.
        private(set) var port: CallPort?
        private let box: PortBox
        private var line: PortLine
        private var now = MonotonicClock.now
        private(set) var sent: [Int16] = []
        private(set) var reports: [ParticipantEvent] = []

        init(_ rate: PortRate = .hz16000, bargeIn: BargeInMode? = nil, startsAt start: Int = 0) throws {
            let pair = AudioPort.pair(rate: rate, signal: try PortSignal(), turns: bargeIn.map(TurnPlan.init))
            box = PortBox(PortSession(pair.port))
            line = pair.line
            if start > 0 { line.begin(at: start) }
            port = CallPort(call: CallID(number: 7), rate, box)
        }

        /// One frame of 20 ms.
        func runFrame(hearing received: [Int16] = [Int16](repeating: 0, count: 960)) {
            var sending = [Int16](repeating: 99, count: received.count)
            var room = sending.mutableSpan
            line.exchange(received: received.span, sending: &room)
            sent += sending
            now = now.advanced(by: .milliseconds(20))
            serve()
        }

        func runFrames(_ count: Int) { for _ in 0..<count { runFrame() } }

        /// What the ports' thread does.
        func serve() {
            box.change { session, wakes in session.run(call: CallID(number: 7), at: now, into: &wakes, &reports) }
        }

        func endCall() {
            line.finish()
            serve()
        }

        func hearOut() { box.change { session, wakes in session.hearOut(into: &wakes) } }
        func dropPort() { port = nil }
        var isClosed: Bool { box.change { session, _ in session.isClosed } }

        /// Runs other tasks until so many samples wait.
        func waits(_ samples: Int) async throws { try await until { port?.waitingSamples == samples } }
    }

    private static func tone(_ count: Int, rate: Int) -> [Int16] {
        (0..<count).map { Int16(8_000 * sin(2 * .pi * 400 * Double($0) / Double(rate))) }
    }

    private func events(_ count: Int, of port: CallPort) async -> [PortEvent] {
        var (found, iterator): ([PortEvent], _) = ([], port.events.makeAsyncIterator())
        while found.count < count, let event = await iterator.next() { found.append(event) }
        return found
    }

    @Test("Frames come in order, each with its position, at every rate", arguments: PortRate.allCases)
    func frames(rate: PortRate) async throws {
        let bench = try Bench(rate)
        let port = try #require(bench.port)
        let tone = Self.tone(9_600, rate: 48_000)
        for frame in 0..<10 { bench.runFrame(hearing: Array(tone[frame * 960..<frame * 960 + 960])) }
        bench.endCall()
        var position = 0
        var energy = 0.0
        for await frame in port.frames {
            #expect(frame.position == position)
            #expect(frame.rate == rate)
            position += frame.samples.count
            energy += frame.samples.reduce(0) { $0 + Double($1) * Double($1) }
        }
        #expect(abs(position - rate.rawValue / 5) <= rate.rawValue / 50)
        #expect(abs(energy / Double(position) / (8_000 * 8_000 / 2) - 1) < 0.1)
        #expect(port.missedSamples == 0)
    }

    @Test("A process that stalls loses the oldest sound beyond 0.5 s; positions and the count show the gap")
    func stalledReader() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        for number in 0..<100 { bench.runFrame(hearing: [Int16](repeating: Int16(number), count: 960)) }
        var iterator = port.frames.makeAsyncIterator()
        let first = try #require(await iterator.next())
        #expect(first.position == 75 * 960)
        #expect(first.samples.first == 75)
        #expect(port.missedSamples == 75 * 960)
        for _ in 1..<25 { _ = await iterator.next() }
        bench.runFrame(hearing: [Int16](repeating: 100, count: 960))
        let next = await iterator.next()
        #expect(next?.position == 100 * 960)
        #expect(next?.samples.first == 100)
    }

    @Test(
        "Frames and speech count from the port's beginning in a call that has lasted, and the device's events from the call's"
    )
    func origin() async throws {
        var speaker = SyntheticSpeech(seed: 31, levelDBFS: -26)
        let heard = [Int16](repeating: 0, count: 48_000) + speaker.samples(seconds: 2)
        func speech(startsAt start: Int) async throws -> (frame: CallPort.Frame, event: PortEvent, began: [Duration]) {
            let bench = try Bench(.hz16000, bargeIn: .off, startsAt: start)
            for index in stride(from: 0, through: heard.count - 960, by: 960) {
                bench.runFrame(hearing: Array(heard[index..<index + 960]))
            }
            let port = try #require(bench.port)
            var iterator = port.frames.makeAsyncIterator()
            let began = bench.reports.compactMap { report -> Duration? in
                if case .turn(_, .speechBegan(let at), _) = report { at } else { nil }
            }
            return (try #require(await iterator.next()), try #require(await events(1, of: port).first), began)
        }
        let atOnce = try await speech(startsAt: 0)
        let later = try await speech(startsAt: 480_000)
        #expect(later.frame.position == atOnce.frame.position && later.event == atOnce.event)
        guard case .speech(isOver: false, let at) = later.event else { throw CallPortError(.over, "\(later.event)") }
        #expect((16_000...24_000).contains(at), "speech begins after a second or so")
        #expect(!atOnce.began.isEmpty && later.began == atOnce.began.map { $0 + .seconds(10) })
    }

    @Test("A port takes the place of another of its call, and reports nothing before that one has left")
    func successor() throws {
        let reports = Mutex<[ParticipantEvent]>([])
        let ports = CallPorts { report in reports.withLock { $0.append(report) } }
        let call = CallID(number: 1)
        var speaker = SyntheticSpeech(seed: 31, levelDBFS: -26)
        let said = speaker.samples(seconds: 2)
        for _ in 0..<3 {
            let opened = try Line(ports, PortPlan(rate: .hz16000), call)
            for index in stride(from: 0, through: said.count - 960, by: 960) {
                opened.runFrame(hearing: Array(said[index..<index + 960]))
            }
        }
        // Publishes what the thread has not seen.
        ports.end(call, .detached)
        ports.finish()
        let parts = reports.withLock { $0 }.split(separator: .left(call), omittingEmptySubsequences: false)
        #expect(parts.count == 4 && parts.last?.isEmpty == true, "\(parts)")
        // Each port counts its own turns: the figures of its first report are those of no other.
        for part in parts.dropLast() {
            guard case .turn(call, .speechBegan, _)? = part.first else {
                Issue.record("\(part)")
                continue
            }
        }
    }

    @Test("A writer waits while 0.68 s are queued, and continues as they are played; not a sample is lost")
    func backPressure() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        let tone = Self.tone(100_000, rate: 48_000)
        let writer = Task { try await port.write(tone) }
        try await bench.waits(100_000)
        #expect(port.offer([1, 2, 3]) == 0)
        bench.runFrames(60)
        #expect(port.waitingSamples == 100_000 - 60 * 960)
        #expect(port.playedSamples == 60 * 960)
        bench.runFrames(20)
        try await writer.value
        bench.runFrames(30)
        #expect(port.playedSamples == 100_000)
        #expect(Array(bench.sent[240..<100_000]) == Array(tone[240...]))
        #expect(bench.sent[100_000 + 960..<110 * 960].allSatisfy { $0 == 0 })
    }

    @Test("Two writers are queued in the order of their calls, each as a whole")
    func writers() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        let first = Task { try await port.write([Int16](repeating: 1_000, count: 40_000)) }
        try await bench.waits(40_000)
        let second = Task { try await port.write([Int16](repeating: 2_000, count: 10_000)) }
        try await bench.waits(50_000)
        bench.runFrames(60)
        try await first.value
        try await second.value
        #expect(bench.sent[240..<40_000].allSatisfy { $0 == 1_000 })
        #expect(bench.sent[40_000..<50_000].allSatisfy { $0 == 2_000 })
    }

    @Test(
        "A mark names the very sample before which it was set, and comes with the frame that has the last of them",
        arguments: PortRate.allCases)
    func marks(rate: PortRate) async throws {
        let bench = try Bench(rate)
        let port = try #require(bench.port)
        // Frames of the call do not divide these.
        let lengths = [rate.rawValue / 10 + 3, 77, rate.rawValue / 4 + 1]
        var (written, expected): (Int, [PortEvent]) = (0, [])
        for length in lengths {
            try await port.write(Self.tone(length, rate: rate.rawValue))
            written += length
            try port.mark("\(written)")
            expected.append(.played(mark: "\(written)", at: written))
        }
        let reader = Task { await events(3, of: port) }
        var seen = 0
        for _ in 0..<60 {
            bench.runFrame()
            seen += 1
            if port.playedSamples == written { break }
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(await reader.value == expected)
        // The last one came with the frame that has its sample, and not one later.
        #expect(seen == (written * (48_000 / rate.rawValue) + 959) / 960)
    }

    @Test("A mark that is set while writers wait comes behind their sound")
    func markBehindWaiting() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        let writer = Task { try await port.write([Int16](repeating: 500, count: 60_000)) }
        try await bench.waits(60_000)
        try port.mark("behind")
        bench.runFrames(80)
        try await writer.value
        #expect(await events(1, of: port) == [.played(mark: "behind", at: 60_000)])
    }

    @Test("Clear discards what waits in the queue and in writers, reports its marks, and later sound is played")
    func clear() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        let writer = Task { try await port.write([Int16](repeating: 500, count: 60_000)) }
        try await bench.waits(60_000)
        try port.mark("first")
        bench.runFrames(5)
        port.clear()
        try await writer.value
        // The queue has room again when the worker has carried out the order.
        let second = Task { try await port.write([Int16](repeating: 700, count: 9_600)) }
        try await bench.waits(9_600)
        try port.mark("second")
        bench.runFrames(15)
        try await second.value
        #expect(
            await events(3, of: port) == [
                .discarded(mark: "first"), .cleared(played: 4_800), .played(mark: "second", at: 14_400),
            ])
        #expect(port.playedSamples == 14_400)
        #expect(bench.sent[5 * 960 + 480..<15 * 960].allSatisfy { $0 != 500 })
    }

    @Test("Drain returns when the last sample is sent and had 0.25 s to be heard, and not before")
    func drain() async throws {
        let bench = try Bench()
        let port = try #require(bench.port)
        try await port.write(Self.tone(3_200, rate: 16_000))
        try port.mark("drained")
        let isDone = Flag()
        let drain = Task {
            await port.drain()
            isDone.set()
        }
        try await Task.sleep(for: .milliseconds(10))
        bench.runFrames(10)
        #expect(await events(1, of: port) == [.played(mark: "drained", at: 3_200)])
        #expect(!isDone.value)
        bench.runFrames(12)
        try await Task.sleep(for: .milliseconds(10))
        #expect(!isDone.value)
        while !isDone.value {
            bench.runFrame()
            try await Task.sleep(for: .milliseconds(1))
        }
        await drain.value
    }

    @Test("A port that is dropped plays what was written, then silence; the call continues")
    func dropped() async throws {
        let bench = try Bench(.hz48000)
        do {
            let port = try #require(bench.port)
            try await port.write([Int16](repeating: 500, count: 9_600))
        }
        #expect(!bench.isClosed)
        bench.dropPort()
        #expect(bench.isClosed)
        bench.runFrames(40)
        #expect(bench.sent[240..<9_600].allSatisfy { $0 == 500 })
        #expect(bench.sent[10_000...].allSatisfy { $0 == 0 })
    }

    @Test("A port that is closed takes nothing more, and ends its sequences and all waiting tasks")
    func closed() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        let writer = Task { try await port.write([Int16](repeating: 500, count: 60_000)) }
        try await bench.waits(60_000)
        let drain = Task { await port.drain() }
        let frames = Task { for await _ in port.frames {} }
        port.close()
        await #expect(throws: CallPortError.self) { try await writer.value }
        await drain.value
        await frames.value
        #expect(throws: CallPortError.self) { try port.mark("late") }
        #expect(port.offer([1]) == 0)
        await #expect(throws: CallPortError.self) { try await port.write([1]) }
    }

    @Test(
        "When the call has ended, frames that wait can be read, and then the sequences end; writers and drains return"
    )
    func callOver() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        let writer = Task { try await port.write([Int16](repeating: 500, count: 60_000)) }
        try await bench.waits(60_000)
        let drain = Task { await port.drain() }
        bench.runFrames(3)
        bench.endCall()
        await #expect(throws: CallPortError.self) { try await writer.value }
        await drain.value
        var count = 0
        for await frame in port.frames { count += frame.samples.count }
        #expect(count == 3 * 960)
        for await _ in port.events {}
    }

    @Test("A cancelled writer's rest is not played, and others continue; a cancelled reader ends alone")
    func cancelled() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        let writer = Task { try await port.write([Int16](repeating: 500, count: 60_000)) }
        try await bench.waits(60_000)
        let next = Task { try await port.write([Int16](repeating: 700, count: 4_800)) }
        try await bench.waits(64_800)
        writer.cancel()
        await #expect(throws: CallPortError.self) { try await writer.value }
        let reader = Task { for await _ in port.frames {} }
        reader.cancel()
        await reader.value
        bench.runFrames(60)
        try await next.value
        #expect(port.playedSamples == 32_768 + 4_800)
        var iterator = port.frames.makeAsyncIterator()
        #expect(await iterator.next() != nil)
        let already = Task {
            try await Task.sleep(for: .seconds(60))
        }
        already.cancel()
        let late = Task {
            _ = try? await already.value
            try await port.write([1])
        }
        late.cancel()
        await #expect(throws: CallPortError.self) { try await late.value }
    }

    @Test("At most 256 marks and 1,024 events wait; the rest is refused, or counted")
    func bounds() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        try await port.write([Int16](repeating: 500, count: 960))
        for number in 0..<256 { try port.mark("\(number)") }
        #expect(throws: CallPortError.self) { try port.mark("one too many") }
        bench.runFrames(2)
        try await port.write([Int16](repeating: 500, count: 960))
        for _ in 0..<4 {
            for number in 0..<256 { try port.mark("\(number)") }
            bench.runFrames(2)
        }
        #expect(port.lostEvents == 256)
        #expect(await events(1_024, of: port).count == 1_024)
    }

    @Test("A call that is to end plays what was written before, takes nothing more, and then says so")
    func hearOut() async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        try await port.write([Int16](repeating: 500, count: 9_600))
        bench.hearOut()
        #expect(port.offer([1]) == 0)
        bench.runFrames(10)
        #expect(bench.reports.isEmpty)
        bench.runFrames(14)
        #expect(bench.reports == [.done(CallID(number: 7), failure: nil)])
    }

    @Test("Other encodings are read and written at the port's rate", arguments: PortFormat.Encoding.allCases)
    func encodings(encoding: PortFormat.Encoding) async throws {
        let bench = try Bench(.hz48000)
        let port = try #require(bench.port)
        let format = PortFormat(rate: .hz48000, encoding: encoding)
        var bytes: [UInt8] = []
        format.append(Self.tone(1_920, rate: 48_000), to: &bytes)
        try await port.write(bytes, encoding)
        bench.runFrame(hearing: Self.tone(960, rate: 48_000))
        bench.runFrame()
        #expect(Array(bench.sent[240...]) == Array(format.samples(of: bytes)[240...]))
        var iterator = port.frames.makeAsyncIterator()
        let heard = await iterator.next()?.bytes(encoding)
        #expect(heard == Array(bytes.prefix(960 * format.sampleBytes)))
    }

    @Test("Ports of one device share a thread: an unserved one delays no other")
    func shared() async throws {
        let ports = CallPorts { _ in }
        let (first, second) = (CallID(number: 1), CallID(number: 2))
        let opened = [
            try Line(ports, PortPlan(rate: .hz48000), first), try Line(ports, PortPlan(rate: .hz48000), second),
        ]
        let (stalled, served) = (opened[0].port, opened[1].port)
        let blocked = Task { try await stalled.write([Int16](repeating: 500, count: 100_000)) }
        let reader = Task {
            var count = 0
            for await frame in served.frames { count += frame.samples.count }
            return count
        }
        for _ in 0..<20 { opened[1].runFrame() }
        ports.end(second, .detached)
        // The thread may not have read the last of them before the port ended.
        #expect(await reader.value <= 20 * 960)
        ports.end(first, .detached)
        await #expect(throws: CallPortError.self) { try await blocked.value }
        ports.finish()
    }

    private final class Flag: @unchecked Sendable {
        private let lock = NSLock()
        private var isSet = false
        var value: Bool { lock.withLock { isSet } }
        func set() { lock.withLock { isSet = true } }
    }

    private struct NoLine: Error {}

    private final class Line {
        let port: CallPort
        private var line: PortLine

        init(_ ports: CallPorts, _ plan: PortPlan, _ call: CallID) throws {
            port = try ports.open(plan, for: call)
            guard let line = ports.attach(to: call) else { throw NoLine() }
            self.line = line
        }

        func runFrame(hearing received: [Int16] = [Int16](repeating: 1, count: 960)) {
            var sending = received
            var room = sending.mutableSpan
            line.exchange(received: received.span, sending: &room)
        }
    }
}
