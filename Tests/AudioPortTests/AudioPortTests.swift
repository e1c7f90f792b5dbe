import AudioKit
import Foundation
import TestSupport
import Testing
import Core

@testable import AudioPort

@Suite("A call's sound as a program sees it")
struct AudioPortTests {
    /// A port whose worker the test runs frame by frame.
    private final class Bench {
        private var port: AudioPort
        private var line: PortLine
        var now = Instant.zero
        var sent: [Int16] = []
        var events: [PlaybackEvent] = []

        init(_ rate: PortRate) throws {
            let pair = AudioPort.pair(rate: rate, signal: try PortSignal())
            port = pair.port
            line = pair.line
        }

        /// One frame of 20 ms, and what the program's side does with it.
        func runFrame(hearing received: [Int16] = [Int16](repeating: 0, count: 960), isFinal: Bool = false) {
            var sending = [Int16](repeating: 99, count: received.count)
            var room = sending.mutableSpan
            line.exchange(received: received.span, sending: &room)
            sent += sending
            now = now.advanced(by: .milliseconds(20))
            port.update(at: now, isFinal: isFinal, into: &events)
        }

        var waiting: Int { port.waiting }
        var played: Int { port.played }
        var room: Int { port.room }
        var missed: Int { port.missedSamples }
        var isOver: Bool { port.isOver }

        func write(_ samples: [Int16]) -> Int { port.write(samples.span, at: now) }
        func write(_ samples: [Int16], rate: PortRate) -> Int { port.write(samples.span, rate: rate, at: now) }
        func mark(_ name: String) -> Bool { port.mark(name) }
        func end(unread: Int) { port.end(unread: unread) }
        func clear(unread: Int = 0) { port.clear(unread: unread) }
        func read(into samples: inout [Int16]) { port.read(into: &samples) }
        func finish() { line.finish() }

        func update() { port.update(at: now, isFinal: false, into: &events) }

        /// Frames of which the program's side learns later.
        func runFramesUnwatched(_ count: Int) {
            let silence = [Int16](repeating: 0, count: 960)
            for _ in 0..<count {
                var sending = silence
                var room = sending.mutableSpan
                line.exchange(received: silence.span, sending: &room)
            }
        }

        /// Writes all, frame by frame as room comes.
        func say(_ samples: [Int16]) {
            var rest = samples[...]
            while !rest.isEmpty {
                let taken = port.write(Array(rest).span, at: now)
                rest = rest.dropFirst(taken)
                if !rest.isEmpty { runFrame() }
            }
        }
    }

    private static func tone(_ count: Int, rate: Int, hertz: Double = 400, level: Double = 10_000) -> [Int16] {
        (0..<count).map { Int16(level * sin(2 * .pi * hertz * Double($0) / Double(rate))) }
    }

    @Test("At 48 kHz the caller gets the very samples that the program wrote, except the first 5 ms, which rise")
    func exact() throws {
        let bench = try Bench(.hz48000)
        let tone = Self.tone(4_000, rate: 48_000)
        bench.runFrame()
        bench.say(tone)
        #expect(bench.mark("end"))
        for _ in 0..<5 { bench.runFrame() }
        #expect(Array(bench.sent[960..<960 + 4_000].dropFirst(240)) == Array(tone.dropFirst(240)))
        #expect(bench.events == [.played(mark: "end", played: 4_000)])
    }

    @Test(
        "At every rate, what the program says is as long at 48 kHz as it was, and its end is not held back",
        arguments: PortRate.allCases)
    func length(rate: PortRate) throws {
        let bench = try Bench(rate)
        // Three utterances with pauses of half a second, of odd lengths.
        for count in [rate.rawValue / 2 + 7, 333, rate.rawValue / 4 + 1] {
            bench.say(Self.tone(count, rate: rate.rawValue))
            #expect(bench.mark("\(count)"))
            for _ in 0..<60 { bench.runFrame() }
            #expect(bench.events == [.played(mark: "\(count)", played: bench.played)])
            #expect(bench.waiting == 0)
            bench.events = []
        }
        let said = rate.rawValue / 2 + 7 + 333 + rate.rawValue / 4 + 1
        #expect(bench.played == said)
        let energy = bench.sent.reduce(0) { $0 + Double($1) * Double($1) }
        let expected = Double(said * (48_000 / rate.rawValue)) * 10_000 * 10_000 / 2
        #expect(abs(energy / expected - 1) < 0.05)
    }

    @Test(
        "What the caller says arrives at the program's rate, as a tone of the same height", arguments: PortRate.allCases
    )
    func heard(rate: PortRate) throws {
        let bench = try Bench(rate)
        let tone = Self.tone(48_000, rate: 48_000, hertz: 1_000)
        var samples: [Int16] = []
        for frame in 0..<50 {
            bench.runFrame(hearing: Array(tone[frame * 960..<frame * 960 + 960]))
            bench.read(into: &samples)
        }
        #expect(abs(samples.count - rate.rawValue) < rate.rawValue / 100)
        let crossings = zip(samples, samples.dropFirst()).filter { $0 < 0 && $1 >= 0 }.count
        #expect(abs(crossings - 1_000) <= 12)
        #expect(!bench.isOver)
        bench.finish()
        bench.read(into: &samples)
        #expect(bench.isOver)
    }

    @Test("A clear is silence from the next frame on, within 5 ms, and reports what had been played")
    func clear() throws {
        let bench = try Bench(.hz16000)
        bench.say(Self.tone(6_400, rate: 16_000))
        _ = bench.mark("end")
        for _ in 0..<5 { bench.runFrame() }
        bench.sent = []
        bench.clear(unread: 500)
        #expect(bench.waiting == 0)
        for _ in 0..<20 { bench.runFrame() }
        #expect(bench.sent[240...].allSatisfy { $0 == 0 })
        #expect(bench.events == [.discarded(mark: "end"), .cleared(played: 1_600)])
        // What follows is played whole.
        bench.events = []
        bench.say(Self.tone(320, rate: 16_000))
        _ = bench.mark("next")
        for _ in 0..<10 { bench.runFrame() }
        #expect(bench.events == [.played(mark: "next", played: 1_920)])
    }

    @Test("Where a program is late, or is cleared, the sound has no step: it falls and rises within 5 ms")
    func noClicks() throws {
        let bench = try Bench(.hz48000)
        // Each piece breaks off at a crest.
        let piece = Self.tone(48 * 33 + 30, rate: 48_000)
        for round in 0..<6 {
            bench.say(piece)
            bench.runFrame()
            if round == 3 { bench.clear() }
            for _ in 0..<4 { bench.runFrame() }
        }
        let steepest = 10_000 * 2 * Double.pi * 400 / 48_000 + 10_000 / 240 + 2
        let steps = zip(bench.sent, bench.sent.dropFirst()).map { abs(Int($0) - Int($1)) }
        #expect(Double(try #require(steps.max())) <= steepest)
        #expect(bench.sent.contains { abs(Int($0)) > 9_000 })
    }

    @Test("A program that writes without end is held back: no more than 0.7 s wait")
    func backPressure() throws {
        let bench = try Bench(.hz8000)
        let second = [Int16](repeating: 1, count: 8_000)
        let taken = bench.write(second)
        #expect((5_000...5_600).contains(taken))
        #expect(bench.write(second) == 0 && bench.room == 0)
        bench.runFrame()
        #expect((150...170).contains(bench.room))
    }

    @Test("The end is reported when all is played, also what the program has yet to hand over")
    func end() throws {
        let bench = try Bench(.hz24000)
        bench.say(Self.tone(1_000, rate: 24_000))
        bench.end(unread: 200)
        for _ in 0..<20 { bench.runFrame() }
        #expect(bench.events.isEmpty)
        bench.say(Self.tone(200, rate: 24_000))
        bench.runFrame(isFinal: true)
        for _ in 0..<2 { bench.runFrame(isFinal: true) }
        #expect(bench.events == [.ended] && bench.played == 1_200)
    }

    @Test("A program's side that stops for a second loses nothing but sound, and the worker continues")
    func stall() throws {
        let bench = try Bench(.hz48000)
        _ = bench.write([Int16](repeating: 5, count: 30_000))
        _ = bench.mark("a")
        bench.runFramesUnwatched(500)
        // Reports were lost; the next that there is room for tells all.
        bench.update()
        bench.runFrame()
        #expect(bench.events == [.played(mark: "a", played: 30_000)])
        #expect(bench.missed == 500 * 960 - AudioPort.heardCapacity + 960)
    }

    @Test("Sound at other rates than the port's is played one after the other, and marks between them are exact")
    func otherRates() throws {
        let bench = try Bench(.hz8000)
        for (rate, count) in [(PortRate.hz8000, 800), (.hz48000, 4_800), (.hz16000, 1_600), (.hz24000, 2_400)] {
            #expect(bench.write([Int16](repeating: 1_000, count: count), rate: rate) == count)
            #expect(bench.mark("\(rate.rawValue)"))
        }
        for _ in 0..<25 { bench.runFrame(isFinal: true) }
        #expect(
            bench.events == [
                .played(mark: "8000", played: 800), .played(mark: "48000", played: 1_600),
                .played(mark: "16000", played: 2_400), .played(mark: "24000", played: 3_200),
            ])
    }

    @Test(
        "A format's bytes read back as its samples, and half a sample is left out",
        arguments: PortFormat.Encoding.allCases)
    func formats(encoding: PortFormat.Encoding) {
        let format = PortFormat(rate: .hz8000, encoding: encoding)
        let samples = stride(from: -32_768, through: 32_767, by: 111).map { Int16($0) }
        var bytes: [UInt8] = []
        format.append(samples, to: &bytes)
        #expect(bytes.count == samples.count * format.sampleBytes)
        let read = format.samples(of: bytes)
        // G.711 is right within a step, which is 1/16 of the size at most; its largest value is 32,124.
        for (sample, back) in zip(samples, read) {
            let tolerance = encoding == .linear ? 0 : max(16, abs(Int(sample)) / 16)
            #expect(abs(Int(sample) - Int(back)) <= tolerance)
        }
        #expect(format.samples(of: bytes.dropLast(1)).count == samples.count - 1)
    }
}
