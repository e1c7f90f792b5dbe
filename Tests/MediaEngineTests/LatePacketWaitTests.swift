import AudioKit
import Playout
import TestSupport
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

@Suite("Where a call's frames are")
struct LatePacketWaitTests {
    private static func call(
        travel: Duration, _ change: (inout MediaCallPlan) -> Void = { _ in }
    ) throws -> VirtualCall {
        var call = try VirtualCall(audio: AudioBehaviour(source: .silence), change)
        call.turn = .microseconds(2_500)
        call.travel = travel
        return call
    }

    /// One packet in 70 comes 4 ms late.
    private static func jitter() -> () -> Duration {
        var random = SeededGenerator(seed: 5)
        return { Double.random(in: 0..<1, using: &random) < 0.015 ? .milliseconds(4) : .zero }
    }

    @Test("Frames that are due just after packets have come wait for those that are a little late, and stay there")
    func later() throws {
        // Packets wait for 3.1 ms.
        var call = try Self.call(travel: .microseconds(16_900))
        call.jitter = Self.jitter()
        try call.run(seconds: 120)
        let (left, right) = call.reports
        #expect(right.playout.samplesConcealed == 0)
        #expect((5...9).contains(Double(right.playout.targetDelayNanoseconds) / 1e6))
        // What it sends went on.
        #expect(left.playout.samplesConcealed == 0 && left.playout.packetsLost == 0)
        #expect(right.call.framesSkipped == 0)
        #expect(right.call.framesRun >= 120 * 50 - 1)
    }

    /// Chromium probes every 5 s; frames are 1 to 19 ms behind the packets.
    @Test("Packets that a browser holds back behind its probes of the path are waited for", arguments: 1...19)
    func probes(behind: Int) throws {
        var call = try Self.call(travel: .milliseconds(20 - behind))
        call.mediaBetweenProbes = 250
        // A browser sends when its microphone says so, not when packets come.
        call.right.pointee.setDirection(sends: false, receives: true)
        try call.run(seconds: 60)
        let right = call.reports.right
        #expect(right.playout.samplesConcealed == 0 && right.playout.packetsLost == 0)
        #expect(right.playout.packetsReceived >= 60 * 50 + 10, "probes included")
        #expect(right.call.framesRun >= 60 * 50 - 1)
    }

    @Test("Where no packet comes too late nothing moves", arguments: [1, 6, 11, 16])
    func still(travel: Int) throws {
        var call = try Self.call(travel: .milliseconds(travel))
        try call.run(seconds: 5)
        let before = call.reports.right.playout.targetDelayNanoseconds
        try call.run(seconds: 60)
        #expect(call.reports.right.playout.targetDelayNanoseconds == before)
        #expect(call.reports.right.call.framesRun == 65 * 50)
    }

    @Test("For packets that are lost frames wait in vain, and stay where they were", arguments: [10, 20])
    func loss(frame: Int) throws {
        // 10 ms packets wait for 8 ms, so that the next comes while a frame waits for one that is lost.
        let travel = frame == 10 ? 2 : 10
        var call = try Self.call(travel: .milliseconds(travel)) {
            if frame == 10 { $0.encoder.frameDuration = .tenMilliseconds }
        }
        try call.run(seconds: 5)
        let before = call.reports.right
        call.loss = 0.05
        try call.run(seconds: 180)
        let after = call.reports.right
        let moved = after.playout.targetDelayNanoseconds - before.playout.targetDelayNanoseconds
        #expect(moved.quotientAndRemainder(dividingBy: Int64(frame) * 1_000_000).remainder == 0, "whole frames")
        #expect(after.call.framesRun - before.call.framesRun == 180 * 1_000 / frame)
    }

    @Test("A worker that is late itself has that counted as waited, and waits no more after 10 ms")
    func lateWorker() throws {
        var configuration = PlayoutConfiguration()
        configuration.initialDelayMilliseconds = 0
        var playout = PlayoutBuffer(configuration: configuration, decoder: try OpusDecoder())
        var frame = [Int16](repeating: 0, count: 960)
        var samples = frame.mutableSpan
        // 20 ms of wideband speech; each packet comes 3 ms before its frame is due.
        let packet: [UInt8] = [0x48] + Array(repeating: 0x55, count: 40)
        for index in 0..<10 {
            let arrival = Instant.zero.advanced(by: .milliseconds(20 * index))
            playout.insert(
                payload: packet.span.bytes, number: Int64(index), timestamp: UInt32(960 * index),
                marker: false, ssrc: 1, arrival: arrival)
            _ = playout.pull(into: &samples, at: arrival.advanced(by: .milliseconds(3)))
        }
        let due = Instant.zero.advanced(by: .milliseconds(203))
        for (late, wait) in [(0, 2_500_000), (2, 2_500_000), (6, 7_500_000), (9, 10_000_000), (11, 0)] {
            var place = LatePacketWait()
            let now = due.advanced(by: .milliseconds(late))
            #expect(place.wait(for: playout, 960, due: due, at: now) == wait, "late by \(late) ms")
        }
        // A frame of 10 ms waits for 5 at most.
        var place = LatePacketWait()
        #expect(place.wait(for: playout, 480, due: due, at: due.advanced(by: .milliseconds(6))) == 0)
    }

    @Test("Where the sender is silent nothing moves, and nothing is taken for lost")
    func silence() throws {
        var call = try Self.call(travel: .microseconds(16_900)) { $0.encoder.dtx = true }
        try call.run(seconds: 60)
        let (left, right) = call.reports
        #expect(left.peer.packetsSent < 1_000)
        #expect(right.call.framesRun == 60 * 50 && left.call.framesRun == 60 * 50)
        #expect(right.playout.samplesConcealed == 0 && left.playout.samplesConcealed == 0, "no pause is taken for loss")
    }

    @Test("Two devices that drive each other on do so seldom")
    func chase() throws {
        // There and back 38 ms: what the one gains the other loses.
        var call = try Self.call(travel: .milliseconds(19))
        call.jitter = Self.jitter()
        call.jitterBack = Self.jitter()
        try call.run(seconds: 300)
        let frames = [call.reports.left, call.reports.right].map(\.call.framesRun)
        #expect(frames.allSatisfy { $0 >= 300 * 50 - 9 }, "at most 34 waits of 5 ms")
    }
}
