import AudioKit
import Core
import SecureTransport
import TestSupport
import Testing

@testable import CallMedia
@testable import MediaEngine

@Suite("When sound begins after a handshake")
struct HandshakeStartTests {
    /// Calls whose keys come from a handshake, of which left sends the last flight.
    private struct Bench: ~Copyable {
        var call: VirtualCall
        private let keys: (left: SRTPKey, right: SRTPKey)

        init() throws {
            var generator = SeededGenerator(seed: 3)
            keys = (
                SRTPKey.random(.aesCM128HMACSHA1, using: &generator),
                SRTPKey.random(.aesCM128HMACSHA1, using: &generator)
            )
            call = try VirtualCall { plan in
                plan.codec = .pcmu
                plan.peer.clockRate = 8_000
                plan.peer.sendPayloadType = 0
                plan.peer.receivePayloadType = 0
                plan.peer.protection = .handshake
                plan.start = .whenConnected
            }
            call.deliversControl = false
            call.travel = .milliseconds(10)
        }

        func finishLeft(sendsLastFlight: Bool) throws {
            var pair = try SRTPPair(send: keys.left, receive: keys.right, precedesPeer: sendsLastFlight)
            call.left.pointee.install(&pair, at: call.now)
        }

        func finishRight(sendsLastFlight: Bool = false) throws {
            var pair = try SRTPPair(send: keys.right, receive: keys.left, precedesPeer: sendsLastFlight)
            call.right.pointee.install(&pair, at: call.now)
        }

        var sent: [Int] { [call.reports.left.peer.packetsSent, call.reports.right.peer.packetsSent] }
    }

    @Test("The side that sends the last flight sends no sound until the peer's first packet shows that it has its keys")
    func waits() throws {
        var bench = try Bench()
        try bench.finishLeft(sendsLastFlight: true)
        let isReady = bench.call.left.pointee.takeEvents().contains(.ready)
        #expect(isReady, "CALL-2: the call can carry media, and does not wait for sound")
        try bench.call.run(seconds: 0.08)
        let before = bench.sent
        #expect(before == [0, 0])
        try bench.finishRight()
        try bench.call.run(seconds: 0.06)
        let after = bench.sent
        #expect(after[0] >= 1 && after[1] >= 3)
        try bench.call.run(seconds: 0.2)
        let reports = bench.call.reports
        #expect(reports.right.peer.dropped.total == 0 && reports.right.peer.packetsReceived >= 10)
    }

    @Test("A peer that stays silent delays the first packet by 0.2 s, and no longer", arguments: [false, true])
    func bounded(isMutual: Bool) throws {
        var bench = try Bench()
        bench.call.right.pointee.setDirection(sends: isMutual, receives: true)
        try bench.finishLeft(sendsLastFlight: true)
        try bench.finishRight(sendsLastFlight: isMutual)
        try bench.call.run(seconds: 0.2)
        let before = bench.sent
        #expect(before == [0, 0])
        try bench.call.run(seconds: 0.1)
        let after = bench.sent
        #expect(after[0] >= 4 && (after[1] >= 4) == isMutual)
    }

    @Test("The other side knows that its peer has keys, and sends at once")
    func atOnce() throws {
        var bench = try Bench()
        try bench.finishLeft(sendsLastFlight: false)
        try bench.finishRight(sendsLastFlight: true)
        try bench.call.run(seconds: 0.06)
        let sent = bench.sent
        #expect(sent[0] >= 3 && sent[1] >= 1)
    }
}
