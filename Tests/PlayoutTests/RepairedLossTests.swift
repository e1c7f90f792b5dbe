import AudioKit
import Playout
import TestSupport
import Testing
import Core

@Suite("What waiting for lost packets is worth")
struct RepairedLossTests {
    private static func delay(repair milliseconds: Int64?, expectedLoss: Int, loss: Double) throws -> Double {
        var call = SimulatedCall()
        call.network.loss = .independent(share: loss)
        call.expectedLossPercent = expectedLoss
        call.repairNanoseconds = milliseconds.map { $0 * 1_000_000 }
        return try call.run(seconds: 30).statistics.playoutDelayMilliseconds
    }

    @Test("The delay makes room for packets that are asked for again, if enough are lost and it does not take too long")
    func worth() throws {
        let without = try Self.delay(repair: nil, expectedLoss: 0, loss: 0.03)
        let soon = try Self.delay(repair: 50, expectedLoss: 0, loss: 0.03)
        let late = try Self.delay(repair: 300, expectedLoss: 0, loss: 0.03)
        let seldom = try Self.delay(repair: 50, expectedLoss: 0, loss: 0.001)
        #expect(without < 25)
        #expect(soon > 65 && soon < 95, "20 ms until the gap shows, and 50 for the repair")
        #expect(late < 25 && seldom < 25)
    }

    @Test("Where forward error correction restores most of what is lost, the rest is not worth more delay")
    func correction() throws {
        let without = try Self.delay(repair: nil, expectedLoss: 10, loss: 0.03)
        let with = try Self.delay(repair: 100, expectedLoss: 10, loss: 0.03)
        #expect(abs(with - without) < 5)
    }

    @Test("Missing packets are reported once a later one is there, with the pull that needs them")
    func missing() throws {
        let packets = try SimulatedCall().packets()
        var buffer = PlayoutBuffer(configuration: PlayoutConfiguration(), decoder: try .init())
        var frame = [Int16](repeating: 0, count: 960)
        for index in 0..<12 where ![6, 9, 10].contains(index) {
            let packet = packets[index]
            buffer.insert(
                payload: packet.span.bytes, number: Int64(65_530 + index),
                timestamp: UInt32(index * 960), marker: false, ssrc: 1, arrival: Instant(nanoseconds: 0))
        }
        var found: [(UInt16, Int64)] = []
        for pull in Int64(0)..<4 {
            var room = frame.mutableSpan
            _ = buffer.pull(into: &room, at: Instant(nanoseconds: pull * 20_000_000))
        }
        let next = Instant(nanoseconds: 80_000_000)
        var number = Int64.min
        while let packet = buffer.nextMissing(from: number, nextPull: next, frameSamples: 960, at: next) {
            found.append((packet.sequenceNumber, packet.dueAt.nanoseconds / 1_000_000))
            number = packet.number + 1
        }
        #expect(found.map(\.0) == [0, 3, 4])
        #expect(found.count == 3 && found[1].1 - found[0].1 == 60 && found[2].1 - found[1].1 == 20)
    }
}
