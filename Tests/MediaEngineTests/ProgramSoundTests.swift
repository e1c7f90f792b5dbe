import AudioPort
import Foundation
import AudioKit
import Realtime
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

@Suite("A program's sound in a call")
struct ProgramSoundTests {
    private static func tone(_ count: Int, rate: Int) -> [Int16] {
        (0..<count).map { Int16(8_000 * sin(2 * .pi * 500 * Double($0) / Double(rate))) }
    }

    private static func power(_ samples: some Sequence<Int16>) -> Double {
        let squares = samples.map { Double($0) * Double($0) }
        return squares.isEmpty ? 0 : squares.reduce(0, +) / Double(squares.count)
    }

    private static func take(_ ring: inout AudioRing.Consumer) -> [Int16] {
        var samples = [Int16](repeating: 0, count: 1 << 18)
        var room = samples.mutableSpan
        let count = ring.read(into: &room)
        return Array(samples[..<count])
    }

    @Test(
        "A greeting that was queued before the call begins is heard whole, its mark is reported, and the program hears the caller"
    )
    func greeting() throws {
        let pair = AudioPort.pair(rate: .hz16000, signal: try PortSignal())
        var port = pair.port
        let kept = AudioRing(capacity: 1 << 18)
        var heard = kept.consumer
        var left = CallRings()
        var right = CallRings()
        left.line = .some(pair.line)
        right.recorder = .some(kept.producer)
        var call = try VirtualCall(leftRings: left, rightRings: right) { plan in
            let isLeft = plan.peer.localSSRC == 1
            plan.audio =
                isLeft
                ? AudioBehaviour(source: .program)
                : AudioBehaviour(source: .tone(frequencyHz: 1_000, levelDBFS: -12), recording: "")
        }
        // 400 ms, all of it there before anybody hears.
        let taken = port.write(Self.tone(6_400, rate: 16_000).span, at: .zero)
        let isMarked = port.mark("greeted")
        #expect(taken == 6_400 && isMarked)
        var events: [PlaybackEvent] = []
        var caller: [Int16] = []
        for _ in 0..<50 {
            try call.run(seconds: 0.02)
            port.update(at: call.now, isFinal: false, into: &events)
            port.read(into: &caller)
        }
        #expect(events == [.played(mark: "greeted", played: 6_400)])
        let recorded = Self.take(&heard)
        let energy = Self.power(recorded) * Double(recorded.count)
        let said = 8_000.0 * 8_000 / 2 * 48_000 * 0.4
        #expect(energy / said > 0.9, "nothing of the greeting is lost before the peer hears")
        #expect(Self.power(caller.suffix(8_000)) > 1e6, "the caller is heard at the program's rate")
    }

    @Test(
        "A program that says nothing is silence, and a clear ends what it says within a frame and the encoder's delay")
    func clear() throws {
        let pair = AudioPort.pair(rate: .hz48000, signal: try PortSignal())
        var port = pair.port
        let kept = AudioRing(capacity: 1 << 18)
        var heard = kept.consumer
        var left = CallRings()
        var right = CallRings()
        left.line = .some(pair.line)
        right.recorder = .some(kept.producer)
        var call = try VirtualCall(leftRings: left, rightRings: right) { plan in
            let isLeft = plan.peer.localSSRC == 1
            plan.audio = AudioBehaviour(source: isLeft ? .program : .silence, recording: isLeft ? nil : "")
        }
        try call.run(seconds: 0.5)
        #expect(Self.take(&heard).allSatisfy { abs(Int($0)) <= 2 })
        _ = port.write(Self.tone(30_000, rate: 48_000).span, at: call.now)
        try call.run(seconds: 0.3)
        #expect(Self.power(Self.take(&heard).suffix(4_800)) > 1e7)
        port.clear()
        try call.run(seconds: 0.5)
        // What was sent before is still in the peer's jitter buffer.
        let after = Self.take(&heard)
        #expect(Self.power(after.dropFirst(48 * 140)) < 100)
        var events: [PlaybackEvent] = []
        port.update(at: call.now, isFinal: false, into: &events)
        let played = port.played
        #expect(events == [.cleared(played: played)] && (14_000...17_000).contains(played))
    }

    /// Whether a packet is coded in narrowband, by its configuration (RFC 6716, table 2).
    private static func isNarrow(_ firstByte: UInt8) -> Bool { [0, 1, 2, 3, 16, 17, 18, 19].contains(firstByte >> 3) }

    @Test(
        "What a program says at 8 kHz is coded in narrowband, until it says something wider",
        arguments: PortRate.allCases)
    func band(rate: PortRate) throws {
        let pair = AudioPort.pair(rate: rate, signal: try PortSignal())
        var port = pair.port
        var left = CallRings()
        left.line = .some(pair.line)
        var call = try VirtualCall(leftRings: left) { plan in
            if plan.peer.localSSRC == 1 { plan.audio = AudioBehaviour(source: .program) }
        }
        func say(at said: PortRate, seconds: Int) throws {
            let frame = Self.tone(said.rawValue / 50, rate: said.rawValue)
            for _ in 0..<seconds * 50 {
                _ = port.write(frame.span, rate: said, at: call.now)
                try call.run(seconds: 0.02)
            }
        }
        try say(at: rate, seconds: 2)
        #expect(call.firstBytes.count > 90)
        #expect(call.firstBytes.suffix(90).allSatisfy { Self.isNarrow($0) == (rate == .hz8000) })
        // The encoder widens within 5 s, or in a pause.
        try say(at: .hz48000, seconds: 6)
        #expect(!Self.isNarrow(try #require(call.firstBytes.last)))
    }
}
