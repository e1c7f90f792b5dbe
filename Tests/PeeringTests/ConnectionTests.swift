import DTLSSupport
import Realtime
import ICE
import Core
import CallMedia
import SecureTransport
import TestSupport
import Testing

@Suite("Connections, in virtual time")
struct ConnectionTests {
    private typealias Said = ConnectionPair.Said

    private static func keys(_ said: [Said]) -> (send: SRTPKey, receive: SRTPKey)? {
        for words in said {
            if case .keys(let send, let receive) = words { return (send, receive) }
        }
        return nil
    }

    @Test("A path is found, the handshake goes over it, and both sides have the same keys crosswise")
    func connects() throws {
        var pair = try ConnectionPair()
        pair.introduce()
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(2))
        let left = try #require(Self.keys(pair.left.said))
        let right = try #require(Self.keys(pair.right.said))
        #expect(left.send == right.receive && left.receive == right.send)
        #expect(pair.left.said.first == .path(true), "there is a path before there are keys")
    }

    @Test("CALL-1: A greeting that comes before our part in the handshake is known is kept for it")
    func greetingComesEarly() throws {
        var pair = try ConnectionPair()
        pair.introduce()
        pair.begin(1)
        pair.run(.milliseconds(200))
        let before = Self.keys(pair.left.said) == nil
        #expect(before)
        pair.begin(0)
        // Two more flights of 20 ms each, and no retransmission waited for.
        pair.run(.milliseconds(45))
        let after = Self.keys(pair.left.said) != nil
        #expect(after)
    }

    @Test("Early datagrams are bounded, and a flood of them loses nothing but itself")
    func earlyFlood() throws {
        var pair = try ConnectionPair()
        pair.introduce()
        let stranger = try #require(SocketAddress(host: "198.51.100.66", port: 666))
        for number in 0..<1_000 {
            let bytes = [22, 254, 253, UInt8(truncatingIfNeeded: number)]
            pair.feed(0, .handshake(bytes, from: DatagramPath(to: stranger)))
        }
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(5))
        let keys = Self.keys(pair.left.said) != nil
        #expect(keys)
    }

    @Test("A stranger's handshake and goodbye change nothing before, during and after the handshake, and are counted")
    func stranger() throws {
        var pair = try ConnectionPair()
        let stranger = DatagramPath(to: try #require(SocketAddress(host: "198.51.100.66", port: 666)))
        let records = try Self.otherHandshake()
        var count = 0
        func attack(_ pair: inout ConnectionPair) {
            count += records.count
            for side in 0...1 {
                for bytes in records { pair.feed(side, .handshake(bytes, from: stranger)) }
            }
        }
        attack(&pair)
        pair.introduce()
        attack(&pair)
        pair.begin(0)
        pair.begin(1)
        for _ in 0..<100 {
            attack(&pair)
            pair.run(.milliseconds(5))
        }
        let (left, right) = (pair.left.said.keys, pair.right.said.keys)
        try #require(left.count == 1 && right.count == 1)
        #expect(left[0].send == right[0].receive && left[0].receive == right[0].send)
        attack(&pair)
        pair.run(.seconds(5))
        let words = pair.left.said + pair.right.said
        #expect(
            !words.contains {
                switch $0 {
                case .path(false), .failed, .closed: true
                case .path, .direct, .keys: false
                }
            })
        let counts = [pair.left.connection.datagramsUnverified, pair.right.connection.datagramsUnverified]
        #expect(counts == [count, count])
    }

    @Test("Strangers' datagrams before and after an early greeting do not displace it", arguments: [8, 1_000])
    func strangersBesideGreeting(number: Int) throws {
        var pair = try ConnectionPair()
        let stranger = try #require(SocketAddress(host: "198.51.100.66", port: 1))
        func attack(_ pair: inout ConnectionPair) {
            for port in 1...number {
                let source = DatagramPath(to: stranger.withPort(UInt16(port)))
                pair.feed(0, .handshake([22, 254, 253, UInt8(truncatingIfNeeded: port)], from: source))
            }
        }
        pair.introduce()
        attack(&pair)
        // The greeting arrives once: only what was kept of it counts.
        var greetings = 0
        pair.arrives = { bytes, side in
            guard side == 0, bytes[0] == 22, bytes[5] == 1 else { return true }
            greetings += 1
            return greetings == 1
        }
        pair.begin(1)
        pair.run(.milliseconds(200))
        attack(&pair)
        pair.begin(0)
        pair.run(.milliseconds(45))
        let keys = pair.left.said.keys.count
        #expect(keys == 1)
    }

    @Test("A greeting that comes before any check has shown its source is used once one has")
    func greetingBeforeChecks() throws {
        var pair = try ConnectionPair()
        var active = ScriptedDTLS(.active, seed: 2)
        var outputs: [DTLSOutput] = []
        active.handle(.start, at: .zero, into: &outputs)
        guard case .transmit(let greeting)? = outputs.first else {
            Issue.record("no greeting")
            return
        }
        pair.arrives = { bytes, side in side == 1 || bytes[0] != 22 || bytes[5] != 1 }
        pair.feed(0, .handshake(greeting, from: DatagramPath(to: pair.right.address)))
        pair.introduce()
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(2))
        let (left, right) = (pair.left.said.keys, pair.right.said.keys)
        #expect(left.count == 1 && right.count == 1)
    }

    /// All flights of a handshake between two others, and a goodbye.
    private static func otherHandshake() throws -> [[UInt8]] {
        var active = ScriptedDTLS(.active, seed: 66)
        var passive = ScriptedDTLS(.passive, seed: 67)
        var outputs: [DTLSOutput] = []
        active.handle(.start, at: .zero, into: &outputs)
        passive.handle(.start, at: .zero, into: &outputs)
        var records: [[UInt8]] = []
        for flight in 1...4 {
            guard case .transmit(let bytes)? = outputs.last else { break }
            records.append(bytes)
            outputs = []
            if flight.isMultiple(of: 2) {
                active.handle(.received(bytes), at: .zero, into: &outputs)
            } else {
                passive.handle(.received(bytes), at: .zero, into: &outputs)
            }
        }
        try #require(records.count == 4)
        return records + [[21, 254, 253, 0]]
    }

    @Test("Each lost flight is sent again until there are keys", arguments: 1...20)
    func losses(seed: UInt64) throws {
        var pair = try ConnectionPair(seed: seed)
        var count: UInt64 = seed
        pair.arrives = { _, _ in
            count &+= 1
            return count % 3 != 0
        }
        pair.introduce()
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(20))
        let (left, right) = (Self.keys(pair.left.said) != nil, Self.keys(pair.right.said) != nil)
        #expect(left && right)
    }

    @Test("A certificate that was not promised gives a reason, and no keys")
    func wrongFingerprint() throws {
        var pair = try ConnectionPair()
        pair.introduce()
        pair.begin(0, promised: ScriptedDTLS(.active, seed: 99).fingerprint)
        pair.begin(1)
        pair.run(.seconds(5))
        let keys = Self.keys(pair.left.said)
        let failed = pair.left.said.contains { if case .failed = $0 { true } else { false } }
        #expect(keys == nil && failed)
    }

    @Test("A peer that cannot be reached is given up, but not before 39.5 s")
    func unreachable() throws {
        var pair = try ConnectionPair()
        pair.arrives = { _, _ in false }
        pair.introduce()
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(39))
        let early = pair.left.said
        #expect(early.isEmpty)
        pair.run(.seconds(10))
        let failed = pair.left.said.contains { if case .failed = $0 { true } else { false } }
        #expect(failed)
    }

    @Test("A peer that falls silent loses its path within 30 s, and sending stops")
    func silence() throws {
        var pair = try ConnectionPair()
        pair.introduce()
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(10))
        pair.arrives = { _, _ in false }
        pair.run(.seconds(40))
        let last = pair.left.said.last { if case .path = $0 { true } else { false } }
        #expect(last == .path(false))
    }

    @Test("The end is heard by the peer, and nothing is said after it")
    func end() throws {
        var pair = try ConnectionPair()
        pair.introduce()
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(2))
        pair.feed(0, .end)
        let said = pair.left.said.count
        pair.run(.seconds(60))
        let (closed, now) = (pair.right.said.contains(.closed), pair.left.said.count)
        #expect(closed && now == said)
    }

    @Test("Without ICE the handshake goes to the address in the description, and media goes there")
    func withoutICE() throws {
        var pair = try ConnectionPair()
        let (left, right) = (pair.left.address, pair.right.address)
        pair.introduceDirectly()
        pair.begin(0)
        pair.begin(1)
        pair.run(.milliseconds(100))
        let (said, others) = (pair.left.said, pair.right.said)
        let ours = try #require(Self.keys(said))
        let theirs = try #require(Self.keys(others))
        #expect(ours.send == theirs.receive && ours.receive == theirs.send)
        #expect(said.contains(.direct(right)) && others.contains(.direct(left)))
        pair.run(.seconds(120))
        let (later, othersLater) = (pair.left.said.count, pair.right.said.count)
        #expect(later == said.count && othersLater == others.count, "nothing runs out later")
        pair.feed(0, .end)
        pair.run(.seconds(1))
        let isClosed = pair.right.said.last == .closed
        #expect(isClosed)
    }

    @Test("Without ICE a peer behind a translator is answered, and sent media, where its handshake came from")
    func withoutICEBehindTranslator() throws {
        var pair = try ConnectionPair()
        let outside = try #require(SocketAddress(host: "198.51.100.7", port: 61_000))
        let stranger = try #require(SocketAddress(host: "198.51.100.66", port: 666))
        pair.translated = outside
        pair.introduceDirectly()
        pair.begin(0)
        pair.begin(1)
        pair.run(.milliseconds(30))
        // Its greeting is here, and what others send from now on is not the peer's.
        pair.feed(0, .handshake([22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], from: DatagramPath(to: stranger)))
        pair.run(.milliseconds(100))
        let said = pair.left.said
        #expect(said.contains(.direct(outside)) && Self.keys(said) != nil)
        let other = Self.keys(pair.right.said) != nil
        #expect(other)
    }

    @Test("Without ICE a stranger's datagram that begins no handshake, such as a former peer's goodbye, moves nothing")
    func withoutICEAfterStranger() throws {
        var pair = try ConnectionPair()
        let stranger = try #require(SocketAddress(host: "198.51.100.66", port: 666))
        let alert: [UInt8] = [21, 254, 253, 0, 1, 0, 0, 0, 0, 0, 1, 0, 26] + [UInt8](repeating: 7, count: 26)
        let encrypted: [UInt8] = [22, 254, 253, 0, 1, 0, 0, 0, 0, 0, 1, 0, 26] + [UInt8](repeating: 7, count: 26)
        pair.introduceDirectly()
        for side in 0...1 {
            for bytes in [alert, encrypted, [22]] {
                pair.feed(side, .handshake(bytes, from: DatagramPath(to: stranger)))
            }
            pair.begin(side)
            for bytes in [alert, encrypted, [22]] {
                pair.feed(side, .handshake(bytes, from: DatagramPath(to: stranger)))
            }
        }
        pair.run(.milliseconds(100))
        let (ours, theirs) = (Self.keys(pair.left.said), Self.keys(pair.right.said))
        #expect(ours != nil && theirs != nil)
        #expect(ours?.send == theirs?.receive)
    }

    @Test("An offer with ICE that is answered without gives up what was gathered, and shakes hands directly")
    func answeredWithoutICE() throws {
        var pair = try ConnectionPair()
        pair.feed(0, .ice(.start(localAddresses: [pair.left.address])))
        pair.introduceDirectly()
        pair.begin(1)
        pair.begin(0)
        pair.run(.milliseconds(200))
        let (keys, state) = (Self.keys(pair.left.said) != nil, pair.left.connection.ice.state)
        #expect(keys && state == .closed)
    }

    @Test(
        "A second DTLS association gives other keys, with the path of before or another, and no gap",
        arguments: [true, false])
    func anotherAssociation(restartsICE: Bool) throws {
        var pair = try ConnectionPair()
        pair.introduce()
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(10))
        let before = (pair.left.said.keys, pair.right.said.keys)
        try #require(before.0.count == 1 && before.1.count == 1)
        if restartsICE {
            var generator = SeededGenerator(seed: 77)
            let (first, second) = (ICECredentials(using: &generator), ICECredentials(using: &generator))
            pair.feed(0, .ice(.restart(first)))
            pair.feed(1, .ice(.restart(second)))
            let (ofLeft, ofRight) = (pair.left.connection.ice, pair.right.connection.ice)
            pair.feed(0, .ice(.remoteCredentials(ofRight.credentials, isLite: false)))
            for candidate in ofRight.localCandidates { pair.feed(0, .ice(.remoteCandidate(candidate))) }
            pair.feed(1, .ice(.remoteCredentials(ofLeft.credentials, isLite: false)))
            for candidate in ofLeft.localCandidates { pair.feed(1, .ice(.remoteCandidate(candidate))) }
        }
        // The side that is active begins first: its hello reaches the association of before, which passes over it.
        pair.begin(1, round: 1)
        pair.run(.milliseconds(45))
        let early = pair.left.said.keys.count
        #expect(early == 1, "the keys of before stay until there are others")
        pair.begin(0, round: 1)
        pair.run(.seconds(5))
        let (left, right) = (pair.left.said.keys, pair.right.said.keys)
        try #require(left.count == 2 && right.count == 2)
        #expect(left[1] != left[0])
        #expect(left[1].send == right[1].receive && left[1].receive == right[1].send)
        let words = pair.left.said + pair.right.said
        #expect(
            !words.contains {
                switch $0 {
                case .path(false), .failed, .closed: true
                case .path, .direct, .keys: false
                }
            })
    }

    @Test("A new association with a certificate that was not promised fails, and gives no keys")
    func strangerLater() throws {
        var pair = try ConnectionPair()
        pair.introduce()
        pair.begin(0)
        pair.begin(1)
        pair.run(.seconds(5))
        pair.begin(0, promised: ScriptedDTLS(.active, seed: 99).fingerprint, round: 1)
        pair.begin(1, round: 1)
        pair.run(.seconds(5))
        let (keys, failed) = (
            pair.left.said.keys.count, pair.left.said.contains { if case .failed = $0 { true } else { false } }
        )
        #expect(keys == 1 && failed)
    }
}

extension [ConnectionPair.Said] {
    fileprivate struct Keys: Equatable {
        var send: SRTPKey
        var receive: SRTPKey
    }

    fileprivate var keys: [Keys] {
        compactMap { if case .keys(let send, let receive) = $0 { Keys(send: send, receive: receive) } else { nil } }
    }
}
