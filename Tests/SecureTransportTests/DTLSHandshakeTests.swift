import DTLSSupport
import SecureTransport
import TestSupport
import Testing
import Core

@Suite("DTLS handshakes")
struct DTLSHandshakeTests {
    @Test("Both sides get the same keys, crosswise, and a packet protected by one is read by the other")
    func keysMatch() throws {
        var pair = try makePair()
        pair.feedBoth(.start)
        pair.deliverAll()
        let active = try #require(keys(pair.activeSaid))
        let passive = try #require(keys(pair.passiveSaid))
        #expect(active.send == passive.receive)
        #expect(active.receive == passive.send)
        #expect(active.send != active.receive)
        #expect(active.send.suite == .aeadAES128GCM)
        try expectMedia(from: active.send, to: passive.receive)
        try expectMedia(from: passive.send, to: active.receive)
        #expect(pair.nextDeadline == nil)
    }

    @Test("A side that offers one suite gets that one, whichever side it is", arguments: DTLSConfiguration().suites)
    func suites(only: SRTPSuite) throws {
        for role in DTLSRole.allCases {
            let narrow = patient { $0.suites = [only] }
            var pair = try makePair(
                active: role == .active ? narrow : patient(), passive: role == .passive ? narrow : patient())
            pair.feedBoth(.start)
            pair.deliverAll()
            let active = try #require(keys(pair.activeSaid))
            let passive = try #require(keys(pair.passiveSaid))
            #expect(active.send.suite == only)
            #expect(active.send == passive.receive && active.receive == passive.send)
            try expectMedia(from: active.send, to: passive.receive)
        }
    }

    @Test("With no common SRTP profile both sides fail and say why")
    func noCommonProfile() throws {
        var pair = try makePair(
            active: patient { $0.suites = [.aeadAES128GCM] }, passive: patient { $0.suites = [.aesCM128HMACSHA1] })
        pair.feedBoth(.start)
        pair.deliverAll()
        #expect(failure(pair.activeSaid) == .noCommonProfile)
        #expect(failure(pair.passiveSaid) == .noCommonProfile)
        #expect(pair.nextDeadline == nil)
    }

    @Test("No datagram is larger than asked for, and small ones make more of them", arguments: [1200, 576, 400, 256])
    func datagramSize(limit: Int) throws {
        let configuration = patient { $0.maximumDatagramBytes = limit }
        var pair = try makePair(active: configuration, passive: configuration)
        pair.feedBoth(.start)
        pair.deliverAll()
        _ = try #require(keys(pair.activeSaid))
        _ = try #require(keys(pair.passiveSaid))
        #expect(pair.datagrams.allSatisfy { $0.bytes.count <= limit })
        #expect(limit == 1200 ? pair.datagrams.count == 4 : pair.datagrams.count > 4)
    }

    @Test("One identity serves many handshakes at once, and a new one takes over while they last")
    func sharedIdentity() throws {
        let old = try DTLSIdentity(at: newYear)
        let new = try DTLSIdentity(at: newYear)
        let peer = try #require(Identities.second)
        func pair(_ identity: DTLSIdentity) throws -> HandshakePair<DTLSEndpoint> {
            var pair = HandshakePair(
                active: try DTLSEndpoint(.active, identity: identity, configuration: patient()),
                passive: try DTLSEndpoint(.passive, identity: peer, configuration: patient()))
            pair.feed(.active, .expect([peer.fingerprint(.sha384)]))
            pair.feed(.passive, .expect([identity.fingerprint(.sha512)]))
            pair.feedBoth(.start)
            return pair
        }
        var first = try pair(old)
        var second = try pair(old)
        var third = try pair(new)
        third.deliverAll()
        second.deliverAll()
        first.deliverAll()
        let all = [try #require(keys(first.activeSaid)), try #require(keys(second.activeSaid))]
        let last = try #require(keys(third.activeSaid))
        #expect(all[0].send != all[1].send)
        #expect(all[0].send != last.send)
    }

    @Test("Identities may be used by several threads at once")
    func threads() async throws {
        let agreed = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var agreed = 0
                    for _ in 0..<10 {
                        var pair = try makePair()
                        pair.feedBoth(.start)
                        pair.deliverAll()
                        if let key = keys(pair.activeSaid)?.send, key == keys(pair.passiveSaid)?.receive { agreed += 1 }
                    }
                    return agreed
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(agreed == 40)
    }

    @Test("An endpoint keeps its identity alive")
    func identityLifetime() throws {
        func endpoint() throws -> (DTLSEndpointBox, DTLSFingerprint) {
            let identity = try DTLSIdentity(at: newYear)
            let box = DTLSEndpointBox(try DTLSEndpoint(.active, identity: identity, configuration: patient()))
            return (box, identity.fingerprint(.sha256))
        }
        let (box, fingerprint) = try endpoint()
        let peer = try #require(Identities.second)
        var passive = try DTLSEndpoint(.passive, identity: peer, configuration: patient())
        var (outbox, said): ([DTLSOutput], [DTLSOutput]) = ([], [])
        passive.handle(.expect([fingerprint]), at: .zero, into: &outbox)
        passive.handle(.start, at: .zero, into: &outbox)
        box.endpoint.handle(.start, at: .zero, into: &outbox)
        while !outbox.isEmpty {
            var answers: [DTLSOutput] = []
            for case .transmit(let datagram) in outbox {
                passive.handle(.received(datagram), at: .zero, into: &answers)
            }
            outbox = []
            for answer in answers {
                if case .transmit(let datagram) = answer {
                    box.endpoint.handle(.received(datagram), at: .zero, into: &outbox)
                } else {
                    said.append(answer)
                }
            }
        }
        #expect(keys(said) != nil)
    }

    @Test("Closing notifies the peer, once, and both are done", arguments: DTLSRole.allCases)
    func closing(role: DTLSRole) throws {
        var pair = try makePair()
        pair.feedBoth(.start)
        pair.deliverAll()
        pair.feed(role, .close)
        pair.deliverAll()
        let (closer, other) =
            role == .active ? (pair.activeSaid, pair.passiveSaid) : (pair.passiveSaid, pair.activeSaid)
        #expect(closer.count == 1)
        #expect(other.count == 2)
        #expect(other.last == .closed)
        let before = pair.datagrams.count
        for input in [DTLSInput.close, .start, .timerFired, .expect([]), .received([22, 0xFE, 0xFD])] {
            pair.feedBoth(input)
        }
        #expect(pair.datagrams.count == before)
        #expect(pair.activeSaid.count + pair.passiveSaid.count == 3)
    }

    private func expectMedia(from sender: SRTPKey, to receiver: SRTPKey) throws {
        var outbound = try SRTPContext(sender, .outbound)
        var inbound = try SRTPContext(receiver, .inbound)
        let plain: [UInt8] = [0x80, 111, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4] + Array(repeating: 7, count: 60)
        var packet = plain + Array(repeating: 0, count: SRTPSuite.maximumOverheadBytes)
        var elements = packet.mutableSpan
        var bytes = elements.mutableBytes
        let length = try #require(outbound.protect(&bytes, length: plain.count))
        var received = Array(packet.prefix(length))
        var receivedElements = received.mutableSpan
        var receivedBytes = receivedElements.mutableBytes
        let plainLength = try inbound.unprotect(&receivedBytes)
        #expect(Array(received.prefix(plainLength)) == plain)
    }
}

/// Takes an endpoint out of the function that made it.
private final class DTLSEndpointBox {
    var endpoint: DTLSEndpoint

    init(_ endpoint: consuming DTLSEndpoint) { self.endpoint = endpoint }
}
