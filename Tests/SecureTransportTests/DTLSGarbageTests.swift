import DTLSSupport
import SecureTransport
import TestSupport
import Testing
import Core

/// Whoever can send to our port can send anything. Forged plain records of a handshake that is going on are left out:
/// DTLS 1.2 has nothing against them.
@Suite("DTLS: bytes that are not the peer's")
struct DTLSGarbageTests {
    /// Noise; some of it with the head of an encrypted record, or of any record that is not all there.
    private func noise(_ count: Int, seed: UInt64) -> [[UInt8]] {
        var generator = SeededGenerator(seed: seed)
        func bytes(_ count: Int) -> [UInt8] {
            (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        }
        return (0..<count).map { index in
            let body = bytes(Int.random(in: 0..<300, using: &generator))
            let type = UInt8.random(in: 20...63, using: &generator)
            let (high, low) = (UInt8(body.count >> 8), UInt8(body.count & 0xFF))
            switch index % 5 {
            case 0: return body
            case 1: return [type] + body.map { $0 == 0xFE ? 0 : $0 }
            case 2:
                return [UInt8.random(in: 20...23, using: &generator), 0xFE, 0xFD, 0, 1] + bytes(6) + [high, low] + body
            case 3: return [22, 0xFE, 0xFD, 0, 0] + bytes(6) + [high, low &+ 1] + body
            default: return [type, 0xFE, 0xFD] + bytes(7) + body.prefix(2)
            }
        }
    }

    @Test("Noise before, during and after a handshake changes nothing", arguments: 0..<8)
    func noiseAnywhere(seed: Int) throws {
        var pair = try makePair(
            active: patient { $0.maximumDatagramBytes = 400 }, passive: patient { $0.maximumDatagramBytes = 400 })
        var count = UInt64(seed) << 32
        func inject(_ pair: inout HandshakePair<DTLSEndpoint>) {
            for datagram in noise(20, seed: count) { pair.feedBoth(.received(datagram)) }
            count += 1
        }
        inject(&pair)
        pair.feed(.passive, .start)
        inject(&pair)
        pair.feed(.active, .start)
        while !pair.toActive.isEmpty || !pair.toPassive.isEmpty {
            inject(&pair)
            if !pair.toPassive.isEmpty { pair.feed(.passive, .received(pair.toPassive.removeFirst())) }
            inject(&pair)
            if !pair.toActive.isEmpty { pair.feed(.active, .received(pair.toActive.removeFirst())) }
        }
        for _ in 0..<20 { inject(&pair) }
        let active = try #require(keys(pair.activeSaid))
        let passive = try #require(keys(pair.passiveSaid))
        #expect(active.send == passive.receive)
    }

    @Test("A message of a handshake that says it is longer than a record fails, before memory is set aside for it")
    func longMessage() throws {
        for (length, isRefused) in [(16_000, false), (20_000, true), (100_000, true)] {
            var pair = try makePair(active: patient { _ in }, passive: patient { _ in })
            pair.feed(.passive, .start)
            // A hello's first 100 bytes (RFC 6347 §4.1, §4.2.2).
            let says = [UInt8(length >> 16), UInt8(length >> 8 & 255), UInt8(length & 255)]
            let fragment: [UInt8] = [1] + says + [0, 0, 0, 0, 0, 0, 0, 100] + [UInt8](repeating: 3, count: 100)
            pair.feed(
                .passive, .received([22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(fragment.count)] + fragment))
            let hasFailed = pair.passiveSaid.contains { if case .failed = $0 { true } else { false } }
            #expect(hasFailed == isRefused, "\(length) bytes")
        }
    }

    @Test(
        "A datagram that comes cut short first, at any length, does no harm when it comes whole",
        arguments: [1200, 400])
    func truncation(limit: Int) throws {
        var pair = try makePair(
            active: patient { $0.maximumDatagramBytes = limit }, passive: patient { $0.maximumDatagramBytes = limit })
        pair.feedBoth(.start)
        func deliver(_ datagram: [UInt8], to role: DTLSRole, _ pair: inout HandshakePair<DTLSEndpoint>) {
            for length in 0..<datagram.count { pair.feed(role, .received(Array(datagram.prefix(length)))) }
            pair.feed(role, .received(datagram))
        }
        while !pair.toActive.isEmpty || !pair.toPassive.isEmpty {
            if !pair.toPassive.isEmpty { deliver(pair.toPassive.removeFirst(), to: .passive, &pair) }
            if !pair.toActive.isEmpty { deliver(pair.toActive.removeFirst(), to: .active, &pair) }
        }
        let active = try #require(keys(pair.activeSaid))
        let passive = try #require(keys(pair.passiveSaid))
        #expect(active.send == passive.receive)
    }

    @Test("After a handshake its own datagrams, sent again or with a bit changed, change nothing")
    func replay() throws {
        var pair = try makePair()
        pair.feedBoth(.start)
        pair.deliverAll()
        let recorded = pair.datagrams.map(\.bytes)
        for datagram in recorded {
            pair.feedBoth(.received(datagram))
            for index in datagram.indices {
                var changed = datagram
                changed[index] ^= 1 << UInt8(index % 8)
                pair.feedBoth(.received(changed))
            }
        }
        pair.toActive = []
        pair.toPassive = []
        #expect(keys(pair.activeSaid) != nil)
        #expect(keys(pair.passiveSaid) != nil)
        pair.feed(.active, .close)
        pair.deliverAll()
        #expect(pair.passiveSaid.last == .closed)
    }

    @Test("Records of every length that claim to be encrypted, in and after a handshake, do not end the association")
    func shortRecords() throws {
        var pair = try makePair()
        func inject(_ pair: inout HandshakePair<DTLSEndpoint>) {
            for type in 20...24 as ClosedRange<UInt8> {
                for length in 0...40 as ClosedRange<UInt8> {
                    let body = [UInt8](repeating: length, count: Int(length))
                    let header: [UInt8] = [type, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 1, length, 0, length]
                    pair.feedBoth(.received(header + body))
                }
            }
        }
        pair.feedBoth(.start)
        while !pair.toActive.isEmpty || !pair.toPassive.isEmpty {
            if !pair.toPassive.isEmpty { pair.feed(.passive, .received(pair.toPassive.removeFirst())) }
            inject(&pair)
            if !pair.toActive.isEmpty { pair.feed(.active, .received(pair.toActive.removeFirst())) }
            inject(&pair)
        }
        #expect(keys(pair.activeSaid) != nil && keys(pair.passiveSaid) != nil)
        pair.feed(.active, .close)
        pair.deliverAll()
        #expect(pair.passiveSaid.last == .closed && pair.activeSaid.count == 1)
    }

    @Test("A datagram of 64 KiB, or an empty one, does no harm")
    func sizes() throws {
        var pair = try makePair()
        pair.feedBoth(.start)
        for datagram in [[], [22], [22, 0xFE, 0xFD] + [UInt8](repeating: 0xFF, count: 65_532)] {
            pair.feedBoth(.received(datagram))
        }
        pair.deliverAll()
        #expect(keys(pair.activeSaid) != nil)
        #expect(keys(pair.passiveSaid) != nil)
    }

    @Test("Datagrams from before the start are lost, and no harm")
    func early() throws {
        var pair = try makePair()
        pair.feed(.active, .start)
        pair.deliverAll()
        #expect(pair.datagrams.count == 1)
        let hello = pair.datagrams[0].bytes
        pair.feed(.passive, .start)
        pair.feed(.passive, .received(hello))
        pair.deliverAll()
        #expect(keys(pair.activeSaid) != nil)
        #expect(keys(pair.passiveSaid) != nil)
    }

    @Test("An early goodbye or a fatal alert fails the handshake with the peer's reason")
    func alert() throws {
        var pair = try makePair()
        pair.feed(.active, .start)
        // Record: alert, DTLS 1.2, epoch 0, number 0, two bytes: fatal, handshake_failure.
        pair.feed(.active, .received([21, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 40]))
        #expect(failure(pair.activeSaid) == .refusedByPeer)
        guard case .failed(let error) = pair.activeSaid.first else { return }
        #expect(error.description.contains("handshake failure"))
    }

    @Test("A peer that never answers is given up after 30 s")
    func silence() throws {
        var pair = try makePair()
        pair.feedBoth(.start)
        pair.toPassive = []
        pair.now = Instant.zero.advanced(by: .milliseconds(29_999))
        pair.feedBoth(.timerFired)
        #expect(pair.activeSaid.isEmpty && pair.passiveSaid.isEmpty)
        let deadline = Instant.zero.advanced(by: .seconds(30))
        #expect(pair.nextDeadline == deadline)
        pair.now = deadline
        pair.feedBoth(.timerFired)
        #expect(failure(pair.activeSaid) == .timedOut)
        #expect(failure(pair.passiveSaid) == .timedOut)
    }
}
