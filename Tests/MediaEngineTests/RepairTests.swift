import AudioKit
import Playout
import Testing

@testable import CallMedia
@testable import MediaEngine

@Suite("Lost packets that are asked for again")
struct RepairTests {
    /// A minute of a call over a path of 30 ms there and back that loses one packet in 33 of those to the right.
    private static func lossyCall(
        repairs: Bool, travel: Duration = .milliseconds(15), seconds: Double = 60
    ) throws -> (left: MediaReport, right: MediaReport, concealed: Int) {
        var call = try VirtualCall { plan in
            plan.peer.repairsLoss = repairs
            plan.peer.usesReducedSizeRTCP = true
            plan.encoder.fec = false
        }
        call.travel = travel
        try call.run(seconds: 5)
        call.loss = 0.03
        // The jitter buffer learns what waiting is worth.
        try call.run(seconds: 15)
        let before = call.reports.right.playout.samplesConcealed
        try call.run(seconds: seconds)
        let (left, right) = call.reports
        return (left, right, right.playout.samplesConcealed - before)
    }

    @Test("At 3 % loss and 30 ms there and back, most of what was made up before is heard")
    func concealment() throws {
        let without = try Self.lossyCall(repairs: false)
        let with = try Self.lossyCall(repairs: true)
        let (before, after) = (without.concealed, with.concealed)
        #expect(before > 60 * 960, "of some 90 packets")
        #expect(after < before / 5)
        let (asked, answered) = (with.right.peer.feedback, with.left.peer.feedback)
        #expect(asked.packetsRepaired > 60 && asked.packetsRequested < 2 * asked.packetsRepaired)
        #expect(answered.packetsResent >= asked.packetsRepaired)
        #expect(without.right.peer.feedback.packetsRequested == 0)
        #expect(with.right.peer.dropped.total == 0)
    }

    @Test("Over a path too long for a packet to come in time, none is asked for")
    func longPath() throws {
        let report = try Self.lossyCall(repairs: true, travel: .milliseconds(400), seconds: 20)
        #expect(report.right.peer.feedback.packetsRequested == 0)
        #expect(report.right.playout.packetsLost > 10)
    }

    @Test("On a clean path nothing is asked for and nothing is sent twice")
    func cleanPath() throws {
        var call = try VirtualCall { $0.peer.repairsLoss = true }
        call.travel = .milliseconds(15)
        try call.run(seconds: 30)
        let (left, right) = call.reports
        #expect(left.peer.feedback.packetsResent == 0 && right.peer.feedback.packetsRequested == 0)
        #expect(right.playout.packetsReceived == left.peer.packetsSent || right.playout.packetsLost == 0)
    }
}
