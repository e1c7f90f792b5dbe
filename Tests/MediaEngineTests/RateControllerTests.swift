import AudioKit
import Playout
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

@Suite("What reports make of a call's sending")
struct RateControllerTests {
    @Test("A steady call sends as it is set up to, however long it lasts")
    func steady() throws {
        var call = try VirtualCall { $0.encoder.expectedLossPercent = 10 }
        try call.run(seconds: 60)
        let control = call.left.pointee.control
        #expect(control.bitrateBps == 32_000 && !control.isStopped)
        #expect(call.reports.left.peer.controlPacketsReceived >= 8, "reports came and changed nothing")
    }

    @Test("Sending stops 15 s after the last that was heard of the peer, and continues when it is heard again")
    func outage() throws {
        var call = try VirtualCall()
        try call.run(seconds: 20)
        call.isConnected = false
        try call.run(seconds: 14)
        #expect(call.left.pointee.control.stop == nil)
        try call.run(seconds: 8)
        #expect(call.left.pointee.control.stop == .peerSilent)
        let stopped = call.reports.left.peer.packetsSent
        try call.run(seconds: 5)
        #expect(call.reports.left.peer.packetsSent == stopped)
        guard case .stopped(.peerSilent)? = call.left.pointee.takeSendingChange() else {
            Issue.record("the stop is told")
            return
        }
        call.isConnected = true
        try call.run(seconds: 10)
        #expect(call.left.pointee.control.stop == nil)
        #expect(call.reports.left.peer.packetsSent > stopped)
        guard case .resumed? = call.left.pointee.takeSendingChange() else {
            Issue.record("that it goes on is told")
            return
        }
    }

    @Test("A peer whose reports stop but whose media comes is sent to all the same")
    func withoutReports() throws {
        var call = try VirtualCall()
        try call.run(seconds: 20)
        call.deliversControl = false
        try call.run(seconds: 40)
        #expect(call.left.pointee.control.stop == nil)
    }

    @Test(
        "CALL-4: A report has the arrival of the peer's newest packet, also if that is RTCP of a peer that sends no sound"
    )
    func newestArrival() throws {
        var call = try VirtualCall()
        #expect(call.reports.left.newestArrival == nil)
        try call.run(seconds: 20)
        call.right.pointee.setDirection(sends: false, receives: true)
        let muted = try #require(call.reports.left.newestArrival)
        try call.run(seconds: 30)
        let alive = try #require(call.reports.left.newestArrival)
        #expect(muted.duration(to: alive) >= .seconds(20), "its reports come")
        call.isConnected = false
        try call.run(seconds: 1)
        let last = try #require(call.reports.left.newestArrival)
        try call.run(seconds: 30)
        #expect(call.reports.left.newestArrival == last)
    }

    @Test("Sending stops for good when reports show that nothing arrives")
    func notArriving() throws {
        var call = try VirtualCall()
        try call.run(seconds: 20)
        call.loss = 1
        try call.run(seconds: 60)
        #expect(call.left.pointee.control.stop == .mediaNotArriving)
        let stopped = call.reports.left.peer.packetsSent
        call.loss = 0
        try call.run(seconds: 20)
        #expect(call.reports.left.peer.packetsSent == stopped)
        #expect(call.reports.left.peer.packetsReceived > 4_500, "and the call goes on to hear")
    }

    @Test("A silence of the peer's is reported when it has lasted 200 ms, and twice a second from then on")
    func silence() {
        var control = RateController(bitrateBps: 32_000, packetNanoseconds: 20_000_000)
        let start = Instant.zero.advanced(by: .seconds(5))
        func silence(_ milliseconds: Int) -> Bool {
            control.takeSilence(at: start.advanced(by: .milliseconds(milliseconds)))
        }
        #expect(!silence(10_000), "nothing has come yet")
        control.heard(at: start)
        #expect(!silence(199))
        #expect(silence(200))
        #expect(!silence(220) && !silence(699))
        #expect(silence(700))
        control.heard(at: start.advanced(by: .milliseconds(720)))
        #expect(!silence(1_199), "what comes in between is no reason to tell more often")
        #expect(silence(1_200))
        control.heard(at: start.advanced(by: .milliseconds(5_000)))
        #expect(!silence(5_199) && silence(5_200))
    }

    @Test("On hold no report need come")
    func hold() throws {
        var call = try VirtualCall()
        try call.run(seconds: 20)
        call.left.pointee.setDirection(sends: false, receives: false)
        try call.run(seconds: 1)
        call.isConnected = false
        try call.run(seconds: 30)
        #expect(call.left.pointee.control.stop == nil)
    }
}
