import AudioKit
import Playout
import TestSupport
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

/// Calls between two Handset devices, over paths that lose packets by seeded chains, in virtual time.
@Suite("Calls over paths that lose packets")
struct LossyCallTests {
    /// As two Handset devices agree with each other over WebRTC.
    private static func likeHandset(_ plan: inout MediaCallPlan) {
        plan.peer.repairsLoss = true
        plan.peer.usesReducedSizeRTCP = true
        plan.peer.redundancy = RedundancyFormat(sendPayloadType: 63, receivePayloadType: 63)
        plan.peer.headerExtensions.transportSequenceIdentifier = 3
        plan.peer.headerExtensions.remoteTransportSequenceIdentifier = 3
        plan.encoder.bitrateBps = 40_000
    }

    private static func call(
        over path: VirtualPath, _ change: (inout MediaCallPlan) -> Void = { _ in }
    ) throws -> VirtualCall {
        let voice = SyntheticVoice.samples(48_000 * 80)
        var call = try VirtualCall(voice: voice) { plan in
            likeHandset(&plan)
            change(&plan)
        }
        call.path = path.arrival
        call.readsLikeWorker = true
        call.turn = .milliseconds(1)
        return call
    }

    /// The share of sound that is made up, from the tenth second on.
    private static func concealed(_ seed: UInt64, _ change: (inout MediaCallPlan) -> Void) throws -> Double {
        let path = VirtualPath(.bursts(share: 0.1, meanLength: 3), seed: seed)
        var call = try call(over: path, change)
        try call.run(seconds: 10)
        let before = call.reports.right.playout
        try call.run(seconds: 30)
        let after = call.reports.right.playout
        return Double(after.samplesConcealed - before.samplesConcealed)
            / Double(after.samplesPlayed - before.samplesPlayed)
    }

    @Test("At 10 % loss in bursts frames are sent again where the peer has them in time, and else sent twice")
    func repairsOrCopies() throws {
        for seed in UInt64(1)...3 {
            #expect(try Self.concealed(seed) { _ in } < 0.03)
        }
        for (delay, depth) in [(Duration.milliseconds(30), 0), (.milliseconds(100), 1)] {
            var call = try Self.call(over: VirtualPath(.bursts(share: 0.1, meanLength: 3), seed: 4, delay: delay))
            try call.run(seconds: 20)
            #expect(call.left.pointee.control.redundancyDepth == 1)
            #expect(call.left.pointee.chooseCopies() == depth)
        }
    }

    @Test("Five minutes of 10 % random loss leave at least 36 of 40 kb/s")
    func bitrate() throws {
        let path = VirtualPath(.independent(share: 0.1), seed: 4)
        var call = try VirtualCall { Self.likeHandset(&$0) }
        call.path = path.arrival
        var least = 40_000
        for minute in 0..<5 {
            try call.run(seconds: 60)
            if minute > 0 { least = min(least, call.left.pointee.control.bitrateBps) }
        }
        #expect(call.left.pointee.control.bitrateBps >= 36_000 && least >= 36_000)
        #expect(call.left.pointee.control.redundancyDepth == 1)
    }

    @Test("A path that carries only 64 kb/s is relieved within 2 s of its first loss or delay, and stays so")
    func narrow() throws {
        let path = VirtualPath(.none, seed: 5)
        var call = try VirtualCall {
            Self.likeHandset(&$0)
            $0.encoder.bitrateBps = 64_000
        }
        call.path = path.arrival
        try call.run(seconds: 5)
        path.bottleneckBps = 64_000
        try call.run(seconds: 2)
        #expect(call.left.pointee.control.bitrateBps <= 38_000)
        let before = (path.sent, path.lost)
        try call.run(seconds: 30)
        let (sent, lost) = (path.sent - before.0, path.lost - before.1)
        #expect(Double(lost) / Double(sent) < 0.02, "\(lost) of \(sent)")
        path.bottleneckBps = nil
        try call.run(seconds: 90)
        #expect(call.left.pointee.control.bitrateBps == 64_000)
    }

    @Test("Loss steers the sender within half a second, from the first second on")
    func soon() throws {
        let path = VirtualPath(.independent(share: 0.3), seed: 6)
        var call = try VirtualCall { Self.likeHandset(&$0) }
        call.path = path.arrival
        try call.run(seconds: 0.8)
        #expect(call.left.pointee.control.expectedLossPercent >= 10)
    }

    @Test("Requests for missing packets steer the sender of a peer that reports no arrivals")
    func requestsSteer() throws {
        let path = VirtualPath(.independent(share: 0.1), seed: 7)
        var call = try VirtualCall {
            Self.likeHandset(&$0)
            $0.peer.headerExtensions.transportSequenceIdentifier = nil
            $0.peer.headerExtensions.remoteTransportSequenceIdentifier = nil
        }
        call.left.pointee.use(call.left.pointee.path, roundTripNanoseconds: 60_000_000, at: call.now)
        call.right.pointee.use(call.right.pointee.path, roundTripNanoseconds: 60_000_000, at: call.now)
        call.path = path.arrival
        call.readsLikeWorker = true
        call.turn = .milliseconds(1)
        try call.run(seconds: 4)
        let report = call.reports.left.peer
        #expect(report.feedback.missingPackets > 0)
        #expect(call.left.pointee.control.expectedLossPercent >= 7)
    }

    @Test("Packets are asked for from the first second on, by the round trip that ICE has measured")
    func earlyRepairs() throws {
        let path = VirtualPath(.independent(share: 0.1), seed: 8, delay: .milliseconds(15))
        var call = try VirtualCall {
            Self.likeHandset(&$0)
            $0.peer.redundancy = nil
            $0.peer.headerExtensions.remoteTransportSequenceIdentifier = nil
        }
        call.right.pointee.use(call.right.pointee.path, roundTripNanoseconds: 30_000_000, at: call.now)
        call.path = path.arrival
        call.readsLikeWorker = true
        call.turn = .milliseconds(1)
        try call.run(seconds: 1.5)
        #expect(call.reports.right.peer.feedback.packetsRequested > 0)
    }

    @Test(
        "While packets are lost, neither requests nor answers wait for frames; without loss a call sleeps between them")
    func wakeups() throws {
        let clean = VirtualPath(.none, seed: 9)
        var quiet = try Self.call(over: clean)
        try quiet.run(seconds: 2)
        let before = quiet.extraWakeups
        try quiet.run(seconds: 20)
        #expect(quiet.extraWakeups == before)

        let lossy = VirtualPath(.bursts(share: 0.05, meanLength: 2), seed: 9, delay: .milliseconds(10))
        var busy = try Self.call(over: lossy) { $0.peer.redundancy = nil }
        try busy.run(seconds: 20)
        #expect(busy.extraWakeups > 200)
        let repair = busy.right.pointee.repairNanoseconds(at: busy.now)
        let answer = try #require(repair)
        #expect(answer < 32_000_000, "20 ms there and back, and not two frames on top: \(answer)")
        // Without losses that ends.
        busy.path = clean.arrival
        try busy.run(seconds: 3)
        let calm = busy.extraWakeups
        try busy.run(seconds: 10)
        #expect(busy.extraWakeups == calm)
    }
}
