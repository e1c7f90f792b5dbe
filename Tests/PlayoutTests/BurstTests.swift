import AudioKit
import Testing
import Core

@testable import Playout

/// Streams of µ-law of which seconds come at once: behind a pause of the path, or of this machine. More comes than the buffer holds.
@Suite struct BurstTests {
    /// One call in virtual time: three seconds of sound, the pause, what was sent meanwhile, and eight seconds more.
    struct BurstCall {
        var packetMilliseconds: Int
        var pauseMilliseconds: Int
        /// Packets came in time, and nothing was pulled.
        var isOwnStall = false
        /// Of what was sent in the pause one packet in so many does not come.
        var lostOneIn: Int?

        static let beforeMilliseconds = 3_000
        static let afterMilliseconds = 8_000
        private static let pullMilliseconds = 20

        struct Result {
            var statistics = PlayoutStatistics()
            /// Packets that were discarded until five seconds behind the pause, and samples concealed from one second behind it on.
            var discardedEarly = 0
            var concealed = 0
            /// Pulls from half a second behind the pause on, and those of them that were loud from their beginning to their end.
            var pulls = 0
            var loud = 0
            /// Delay of the last pulls, above the fastest path.
            var delayMilliseconds = 0.0
        }

        private var pauseEnd: Int { Self.beforeMilliseconds + pauseMilliseconds }

        /// When each packet comes, in nanoseconds; nil if it does not.
        private func arrivals() -> [Int64?] {
            (0..<(pauseEnd + Self.afterMilliseconds) / packetMilliseconds).map { index in
                let sent = (index + 1) * packetMilliseconds
                let isInPause = sent > Self.beforeMilliseconds && sent <= pauseEnd
                if isInPause, let lostOneIn, index % lostOneIn == 0 { return nil }
                return Int64((isInPause && !isOwnStall ? pauseEnd : sent) + 20) * 1_000_000
            }
        }

        func run() -> Result {
            // A square wave of 250 Hz: each 2 ms are loud.
            let payload = (0..<packetMilliseconds * 8).map { G711.muLawByte($0 / 16 % 2 == 0 ? 12_000 : -12_000) }
            let arrivals = arrivals()
            var buffer = PlayoutBuffer(
                configuration: PlayoutConfiguration(), stream: StreamDecoder(G711Decoder(.muLaw)))
            var (result, next, now) = (Result(), 0, Int64(7))
            var frame = [Int16](repeating: 0, count: Self.pullMilliseconds * 48)
            while now < pauseEnd + Self.afterMilliseconds {
                while next < arrivals.count, arrivals[next] ?? 0 <= now * 1_000_000 {
                    if let arrival = arrivals[next] {
                        buffer.insert(
                            payload: payload.span.bytes, number: Int64(next),
                            timestamp: UInt32(next * packetMilliseconds * 8), marker: false, ssrc: 1,
                            arrival: Instant(nanoseconds: arrival))
                    }
                    next += 1
                }
                let isStalled = isOwnStall && now > Self.beforeMilliseconds && now < pauseEnd
                now += Int64(Self.pullMilliseconds)
                if isStalled { continue }
                var room = frame.mutableSpan
                let pulled = buffer.pull(into: &room, at: Instant(nanoseconds: (now - 20) * 1_000_000))
                if now < pauseEnd + 5_000 { result.discardedEarly = buffer.statistics.packetsDiscarded }
                if now >= pauseEnd + 1_000 { result.concealed += pulled.concealedSamples }
                guard now >= pauseEnd + 500 else { continue }
                result.pulls += 1
                let isLoud = stride(from: 0, to: frame.count - 192, by: 192).allSatisfy { start in
                    frame[start..<start + 192].contains { abs(Int($0)) > 4_000 }
                }
                if isLoud { result.loud += 1 }
            }
            result.statistics = buffer.statistics
            result.delayMilliseconds = Double(buffer.statistics.playoutDelayNanoseconds) / 1e6
            return result
        }
    }

    @Test(
        "Behind a pause of any length, of the path or of this machine, sound is heard again within half a second",
        arguments: [10, 20, 60], [2_000, 3_200, 5_000, 12_000])
    func burst(packet: Int, pause: Int) {
        for isOwnStall in [false, true] {
            for lostOneIn in [nil, 7, 2] as [Int?] {
                var call = BurstCall(packetMilliseconds: packet, pauseMilliseconds: pause, isOwnStall: isOwnStall)
                call.lostOneIn = lostOneIn
                let result = call.run()
                let name: Comment = "own stall: \(isOwnStall), lost one in \(lostOneIn ?? 0)"
                #expect(result.loud >= result.pulls - 5, name)
                let discardedLate = result.statistics.packetsDiscarded - result.discardedEarly
                #expect(discardedLate * packet <= 500, name)
                #expect(result.concealed <= 48 * 100, name)
            }
        }
    }

    @Test(
        "A pause of the path that no delay could have bridged leaves no delay behind", arguments: [10, 20, 60],
        [1_500, 2_000, 5_000, 12_000])
    func longStall(packet: Int, pause: Int) {
        for lostOneIn in [nil, 7] as [Int?] {
            var call = BurstCall(packetMilliseconds: packet, pauseMilliseconds: pause)
            call.lostOneIn = lostOneIn
            let result = call.run()
            #expect(result.delayMilliseconds < 100, "\(result.delayMilliseconds) ms, lost one in \(lostOneIn ?? 0)")
        }
    }

    @Test("A stall of this machine leaves no delay behind", arguments: [20, 60], [1_000, 2_000, 5_000])
    func ownStall(packet: Int, pause: Int) {
        let result = BurstCall(packetMilliseconds: packet, pauseMilliseconds: pause, isOwnStall: true).run()
        #expect(result.delayMilliseconds < 80, "\(result.delayMilliseconds) ms")
    }
}
