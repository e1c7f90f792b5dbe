import DTLSSupport
import Glibc
import SecureTransport
import TestSupport
import Testing
import Core

/// The only tests of this module that wait for the machine's clock: OpenSSL's timer reads it, and so must they.
@Suite("DTLS on the machine's clock", .witnessed, .serialized)
struct DTLSRealTimeTests {
    /// The machine's monotonic clock.
    static var now: Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Waits until the machine's clock has come to `instant`.
    static func wait(until instant: Instant) -> Instant {
        var time = timespec(
            tv_sec: Int(instant.nanoseconds / 1_000_000_000), tv_nsec: Int(instant.nanoseconds % 1_000_000_000))
        while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
        return now
    }

    /// A flight of the handshake, and how often it is lost.
    struct Loss: Sendable, CustomTestStringConvertible {
        var from: DTLSRole
        var bursts: Set<Int>

        var testDescription: String { "\(from) \(bursts.sorted())" }
    }

    private func makeFastPair(limit: Int = 1200) throws -> HandshakePair<DTLSEndpoint> {
        var configuration = DTLSConfiguration()
        configuration.firstRetransmission = .milliseconds(20)
        configuration.maximumDatagramBytes = limit
        var pair = try makePair(active: configuration, passive: configuration)
        pair.now = Self.now
        return pair
    }

    private func expectKeys(_ pair: borrowing HandshakePair<DTLSEndpoint>) throws {
        let active = try #require(keys(pair.activeSaid))
        let passive = try #require(keys(pair.passiveSaid))
        #expect(active.send == passive.receive && active.receive == passive.send)
    }

    @Test(
        "A flight that is lost, once or twice, is sent again, whichever it is",
        arguments: [
            Loss(from: .active, bursts: [0]), Loss(from: .passive, bursts: [0]), Loss(from: .active, bursts: [1]),
            Loss(from: .passive, bursts: [1]), Loss(from: .active, bursts: [0, 1]),
            Loss(from: .active, bursts: [1, 2]), Loss(from: .passive, bursts: [1, 2]),
        ])
    func lostFlight(loss: Loss) throws {
        var pair = try makeFastPair()
        let start = pair.now
        pair.wire = { from, burst, datagrams in
            from == loss.from && loss.bursts.contains(burst) ? [] : datagrams
        }
        pair.feedBoth(.start)
        pair.run(until: Self.wait)
        try expectKeys(pair)
        #expect(pair.datagrams.count > 4)
        #expect(start.duration(to: pair.now) >= .milliseconds(5))
    }

    @Test(
        "Through loss, doubling and reordering, in small datagrams, both sides come to the same keys", arguments: 0..<8
    )
    func badWire(seed: UInt64) throws {
        var pair = try makeFastPair(limit: 400)
        var generator = SeededGenerator(seed: seed)
        var late: [DTLSRole: [[UInt8]]] = [:]
        pair.wire = { from, _, datagrams in
            var arriving = late[from, default: []]
            late[from] = []
            for datagram in datagrams {
                switch Int.random(in: 0..<10, using: &generator) {
                case 0, 1: break
                case 2: arriving += [datagram, datagram]
                case 3: late[from, default: []].append(datagram)
                default: arriving.append(datagram)
                }
            }
            return arriving.shuffled(using: &generator)
        }
        pair.feedBoth(.start)
        pair.run(until: Self.wait)
        try expectKeys(pair)
        #expect(pair.datagrams.allSatisfy { $0.bytes.count <= 400 })
    }

    @Test("A flight without an answer is sent again after twice the time, each time")
    func doubling() throws {
        var pair = try makeFastPair()
        pair.wire = { _, _, _ in [] }
        let start = pair.now
        pair.feed(.active, .start)
        while pair.datagrams.count < 4, let deadline = pair.nextDeadline {
            pair.now = Self.wait(until: deadline)
            pair.feed(.active, .timerFired)
        }
        #expect(pair.datagrams.count == 4)
        // 20, 40 and 80 ms, each at most 15 ms early: OpenSSL takes that for a clock's inaccuracy.
        #expect(start.duration(to: Self.now) >= .milliseconds(95))
    }
}
