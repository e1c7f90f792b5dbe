import DTLSSupport
import SecureTransport
import TestSupport
import Testing
import Core

@Suite("The scripted handshake")
struct ScriptedDTLSTests {
    private func makePair(knowing: Bool = true) -> HandshakePair<ScriptedDTLS> {
        let active = ScriptedDTLS(.active, seed: 1)
        let passive = ScriptedDTLS(.passive, seed: 2)
        let fingerprints = (active.fingerprint, passive.fingerprint)
        var pair = HandshakePair(active: active, passive: passive)
        if knowing {
            pair.feed(.active, .expect([fingerprints.1]))
            pair.feed(.passive, .expect([fingerprints.0]))
        }
        return pair
    }

    @Test("Through heavy loss both sides come to the same keys, on virtual time", arguments: 0..<50)
    func loss(seed: UInt64) throws {
        var pair = makePair()
        var generator = SeededGenerator(seed: seed)
        pair.wire = { _, _, datagrams in datagrams.filter { _ in Int.random(in: 0..<10, using: &generator) >= 4 } }
        pair.feedBoth(.start)
        pair.run { $0 }
        let active = try #require(keys(pair.activeSaid))
        let passive = try #require(keys(pair.passiveSaid))
        #expect(active.send == passive.receive && active.receive == passive.send)
    }

    @Test("A lost flight costs 50 ms, a peer that is not there 30 s")
    func timers() {
        var pair = makePair()
        pair.wire = { from, burst, datagrams in from == .active && burst == 0 ? [] : datagrams }
        pair.feedBoth(.start)
        pair.run { $0 }
        #expect(keys(pair.activeSaid) != nil)
        #expect(pair.now == Instant.zero.advanced(by: .milliseconds(50)))

        var alone = makePair()
        alone.wire = { _, _, _ in [] }
        alone.feedBoth(.start)
        alone.run { $0 }
        #expect(failure(alone.activeSaid) == .timedOut)
        #expect(failure(alone.passiveSaid) == .timedOut)
        #expect(alone.now == Instant.zero.advanced(by: .seconds(30)))
    }

    @Test("Keys wait for the description, and a wrong one fails")
    func description() {
        var pair = makePair(knowing: false)
        pair.feedBoth(.start)
        pair.deliverAll()
        #expect(pair.activeSaid.isEmpty && pair.passiveSaid.isEmpty)
        let (first, second) = (pair.active.fingerprint, pair.passive.fingerprint)
        pair.feed(.passive, .expect([first]))
        pair.feed(.active, .expect([first]))
        #expect(keys(pair.passiveSaid) != nil)
        #expect(failure(pair.activeSaid) == .fingerprintMismatch)
        #expect(first != second)
    }

    @Test("A goodbye is heard")
    func closing() {
        var pair = makePair()
        pair.feedBoth(.start)
        pair.deliverAll()
        pair.feed(.active, .close)
        pair.deliverAll()
        #expect(pair.passiveSaid.last == .closed)
        #expect(pair.nextDeadline == nil)
    }
}
