import DTLSSupport
import SecureTransport
import Testing
import Core

@Suite("DTLS: who the peer is")
struct DTLSPeerCheckTests {
    @Test("A certificate other than the promised one fails the handshake on both sides", arguments: DTLSRole.allCases)
    func wrongFingerprint(deceived: DTLSRole) throws {
        let stranger = try #require(Identities.stranger)
        var pair = try makePair()
        pair.feed(deceived, .expect([stranger.fingerprint(.sha256)]))
        pair.feedBoth(.start)
        pair.deliverAll()
        let (its, others) =
            deceived == .active ? (pair.activeSaid, pair.passiveSaid) : (pair.passiveSaid, pair.activeSaid)
        #expect(failure(its) == .fingerprintMismatch)
        #expect(failure(others) == .refusedByPeer)
        guard case .failed(let error) = its.first else { return }
        #expect(error.description.contains("fingerprint"))
    }

    @Test("No fingerprint at all matches no certificate", arguments: DTLSRole.allCases)
    func noFingerprint(deceived: DTLSRole) throws {
        var pair = try makePair()
        pair.feed(deceived, .expect([]))
        pair.feedBoth(.start)
        pair.deliverAll()
        #expect(failure(deceived == .active ? pair.activeSaid : pair.passiveSaid) == .fingerprintMismatch)
    }

    @Test(
        "Until the description comes no keys are given out; with the right one they are", arguments: DTLSRole.allCases)
    func lateDescription(waiting: DTLSRole) throws {
        let identities = (try #require(Identities.first), try #require(Identities.second))
        let (own, peer) = waiting == .active ? identities : (identities.1, identities.0)
        var pair = try makePair(knowing: false)
        pair.feed(waiting == .active ? .passive : .active, .expect([own.fingerprint(.sha256)]))
        pair.feedBoth(.start)
        pair.deliverAll()
        func said() -> [DTLSOutput] { waiting == .active ? pair.activeSaid : pair.passiveSaid }
        #expect(said().isEmpty)
        #expect(pair.nextDeadline == Instant.zero.advanced(by: .seconds(30)))
        pair.feed(waiting, .expect([peer.fingerprint(.sha256)]))
        let active = try #require(keys(pair.activeSaid))
        let passive = try #require(keys(pair.passiveSaid))
        #expect(active.send == passive.receive && active.receive == passive.send)
    }

    @Test("A description that comes late and promises another certificate fails the call", arguments: DTLSRole.allCases)
    func lateWrongDescription(waiting: DTLSRole) throws {
        let stranger = try #require(Identities.stranger)
        var pair = try makePair(knowing: false)
        pair.feedBoth(.start)
        pair.deliverAll()
        pair.feed(waiting, .expect([stranger.fingerprint(.sha256)]))
        pair.deliverAll()
        #expect(failure(waiting == .active ? pair.activeSaid : pair.passiveSaid) == .fingerprintMismatch)
        #expect(failure(waiting == .active ? pair.passiveSaid : pair.activeSaid) == .refusedByPeer)
    }

    @Test("A description that never comes ends the wait after 30 s")
    func noDescription() throws {
        var pair = try makePair(knowing: false)
        pair.feedBoth(.start)
        pair.deliverAll()
        pair.now = Instant.zero.advanced(by: .milliseconds(29_999))
        pair.feedBoth(.timerFired)
        #expect(pair.activeSaid.isEmpty && pair.passiveSaid.isEmpty)
        pair.now = Instant.zero.advanced(by: .seconds(30))
        pair.feedBoth(.timerFired)
        #expect(failure(pair.activeSaid) == .timedOut)
        #expect(failure(pair.passiveSaid) == .timedOut)
        #expect(pair.nextDeadline == nil)
    }

    @Test("Of several fingerprints one by the strongest function must fit; a weaker one that fits is not enough")
    func severalFingerprints() throws {
        let peer = try #require(Identities.second)
        let stranger = try #require(Identities.stranger)
        func outcome(_ expected: [DTLSFingerprint]) throws -> [DTLSOutput] {
            var pair = try makePair()
            pair.feed(.active, .expect(expected))
            pair.feedBoth(.start)
            pair.deliverAll()
            return pair.activeSaid
        }
        let both = [stranger.fingerprint(.sha256), peer.fingerprint(.sha256)]
        #expect(keys(try outcome(both)) != nil)
        #expect(keys(try outcome(both + [peer.fingerprint(.sha512)])) != nil)
        let downgraded = [peer.fingerprint(.sha256), stranger.fingerprint(.sha512)]
        #expect(failure(try outcome(downgraded)) == .fingerprintMismatch)
    }
}
