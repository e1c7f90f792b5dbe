import Realtime
import Core
import CallMedia
import RTP
import SecureTransport
import TestSupport
import Testing

@Suite("Streams and addresses that change in a call without ICE")
struct SourceTests {
    enum Protection: CaseIterable { case plain, sdes }

    private static let here = SocketAddress(host: "192.0.2.1", port: 5_000)
    private static let moved = SocketAddress(host: "198.51.100.7", port: 40_000)
    private static let sibling = SocketAddress(host: "192.0.2.1", port: 7_000)

    private static func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    /// A session that receives, and two streams that its peer may send.
    private struct Call: ~Copyable {
        var session: PeerSession
        var first: PeerSession
        var second: PeerSession

        init(_ protection: Protection, signaling: SocketAddress? = nil) throws {
            var generator = SeededGenerator(seed: 1)
            let (there, back) = (
                SRTPKey.random(.aeadAES128GCM, using: &generator), SRTPKey.random(.aeadAES128GCM, using: &generator)
            )
            let isPlain = protection == .plain
            let to = SocketAddress(host: "192.0.2.2", port: 6_000)
            var ours = try PeerPair.plan(
                to: here, ssrc: 2, send: isPlain ? nil : back, receive: isPlain ? nil : there)
            ours.signalingSource = signaling
            let one = try PeerPair.plan(to: to, ssrc: 1, send: isPlain ? nil : there, receive: isPlain ? nil : back)
            let other = try PeerPair.plan(to: to, ssrc: 9, send: isPlain ? nil : there, receive: isPlain ? nil : back)
            let session = try PeerSession(ours, at: .zero)
            let first = try PeerSession(one, at: .zero)
            let second = try PeerSession(other, at: .zero)
            self.session = session
            self.first = first
            self.second = second
        }

        /// A packet of the peer's first stream.
        mutating func packet(_ milliseconds: Int64) -> [UInt8] {
            PeerPair.media(of: &first, Array(repeating: 7, count: 60), UInt32(milliseconds * 48), at(milliseconds))
        }

        /// And of its second.
        mutating func other(_ milliseconds: Int64) -> [UInt8] {
            PeerPair.media(of: &second, Array(repeating: 8, count: 60), UInt32(milliseconds * 48), at(milliseconds))
        }

        /// Brings a packet, which is heard or not.
        mutating func receives(
            _ packet: [UInt8], from source: SocketAddress?, _ milliseconds: Int64, heard: Bool = true,
            _ location: SourceLocation = #_sourceLocation
        ) throws {
            let (received, _) = try PeerPair.deliver(packet, to: &session, from: source, at: at(milliseconds))
            #expect((received != .dropped) == heard, sourceLocation: location)
        }

        var remote: SocketAddress? { session.path?.datagrams.remote }
    }

    @Test(
        "Late packets of an SSRC that has given way are dropped, and no statistics begin again",
        arguments: Protection.allCases)
    func lateStream(protection: Protection) throws {
        var call = try Call(protection)
        for step in Int64(0)..<50 {
            let packet = call.packet(step * 20)
            try call.receives(packet, from: Self.here, step * 20)
        }
        let late = (0..<6).map { call.packet(1_000 + $0 * 20) }
        for step in Int64(0)..<50 {
            let packet = call.other(1_000 + step * 20)
            try call.receives(packet, from: Self.here, 1_000 + step * 20)
            // The old stream's last packets have taken a longer way.
            guard step % 10 == 5 else { continue }
            try call.receives(late[Int(step / 10)], from: Self.here, 1_000 + step * 20, heard: false)
        }
        let (statistics, ssrc) = (call.session.statistics, call.session.remoteSSRC)
        #expect(ssrc == 9)
        #expect(statistics.packetsReceived == 100 && statistics.packetsLost == 0)
        #expect(statistics.dropped.ofOtherStream == 5 && statistics.dropped.total == 5)
    }

    @Test(
        "A protected packet from a new address moves the call, and a late one from the old address does not move it back"
    )
    func rebinding() throws {
        var call = try Call(.sdes)
        let (first, late, new) = (call.packet(0), call.packet(20), call.packet(40))
        try call.receives(first, from: Self.here, 0)
        try call.receives(new, from: Self.moved, 40)
        var remote = call.remote
        #expect(remote == Self.moved)
        try call.receives(late, from: Self.here, 50)
        remote = call.remote
        #expect(remote == Self.moved)
    }

    @Test(
        "A later description moves the call at once, and late packets from the old address do not move it back",
        arguments: Protection.allCases)
    func redirected(protection: Protection) throws {
        var call = try Call(protection)
        for step in Int64(0)..<10 {
            let packet = call.packet(step * 20)
            try call.receives(packet, from: Self.here, step * 20)
        }
        call.session.redirect(to: try #require(Self.moved), control: nil, at: Self.at(200))
        var (remote, control) = (call.remote, call.session.controlPath?.datagrams.remote)
        #expect(remote == Self.moved && control == Self.moved)
        let news = call.session.takeEvents()
        #expect(news.contains(.routeChanged))
        // What was on its way counts only if keys tell whose it is.
        let (late, new, later) = (call.packet(200), call.packet(220), call.packet(240))
        try call.receives(late, from: Self.here, 210, heard: protection == .sdes)
        remote = call.remote
        #expect(remote == Self.moved)
        try call.receives(new, from: Self.moved, 220)
        try call.receives(later, from: Self.here, 1_199, heard: protection == .sdes)
        remote = call.remote
        #expect(remote == Self.moved)
        // A peer that is still there after a second never moved.
        let last = call.packet(1_300)
        try call.receives(last, from: Self.here, 1_300)
        (remote, control) = (call.remote, call.session.controlPath?.datagrams.remote)
        #expect(remote == Self.here && control == Self.here)
    }

    @Test(
        "What comes from a host that only packets name shows without keys alone that the peer is still there",
        arguments: Protection.allCases)
    func guess(protection: Protection) throws {
        let call = try Call(protection)
        for (source, isNamed) in [(Self.here, true), (Self.sibling, true), (Self.moved, false)] {
            let isGuess = call.session.isGuess(try #require(source))
            #expect(isGuess == (protection == .plain && !isNamed))
        }
    }

    @Test("The same address in a later description leaves a peer behind a translator where its packets come from")
    func describedAgain() throws {
        var call = try Call(.plain)
        let first = call.packet(300)
        try call.receives(first, from: Self.moved, 300)
        call.session.redirect(to: try #require(Self.here), control: Self.sibling, at: Self.at(400))
        let (remote, control) = (call.remote, call.session.controlPath?.datagrams.remote)
        #expect(remote == Self.moved && control == Self.sibling)
    }

    @Test("A description moves no call that ICE connects")
    func redirectedWithICE() throws {
        let there = try #require(Self.here)
        var plan = try PeerPair.plan(to: there, ssrc: 1, send: nil, receive: nil)
        plan.transport = .connected
        var session = try PeerSession(plan, at: .zero)
        session.use(MediaPath(DatagramPath(to: there)))
        session.redirect(to: try #require(Self.moved), control: nil, at: .zero)
        let remote = session.path?.datagrams.remote
        #expect(remote == there)
    }

    @Test("A description moves a call with DTLS alone, which continues by its own socket")
    func redirectedAfterHandshake() throws {
        let (there, moved) = (try #require(Self.here), try #require(Self.moved))
        var plan = try PeerPair.plan(to: there, ssrc: 1, send: nil, receive: nil)
        plan.transport = .handshaken(hasControl: true)
        var session = try PeerSession(plan, at: .zero)
        session.use(MediaPath(DatagramPath(socket: 5, local: there, remote: there)))
        session.redirect(to: moved, control: nil, at: .zero)
        let (path, control) = (session.path?.datagrams, session.controlPath?.datagrams)
        #expect(path == DatagramPath(socket: 5, local: nil, remote: moved) && control == path)
    }

    /// Brings a packet that was sent to that local address.
    private static func deliver(
        _ packet: [UInt8], to session: inout PeerSession, from source: SocketAddress, at local: SocketAddress,
        _ milliseconds: Int64
    ) {
        var bytes = packet
        var elements = bytes.mutableSpan
        var span = elements.mutableBytes
        _ = session.receive(
            &span, isControl: false, from: DatagramPath(socket: 0, local: local, remote: source), at: at(milliseconds))
    }

    @Test("Packets leave from the address that the peer writes to now, and from any once the network has changed")
    func localAddress() throws {
        var call = try Call(.plain)
        let (there, old) = (try #require(Self.here), try #require(SocketAddress(host: "192.0.2.2", port: 6_000)))
        let new = try #require(SocketAddress(host: "192.0.2.3", port: 6_000))
        let (first, second) = (call.packet(0), call.packet(20))
        Self.deliver(first, to: &call.session, from: there, at: old, 0)
        var path = call.session.path?.datagrams
        #expect(path?.local == old)
        call.session.releaseLocalAddress()
        path = call.session.path?.datagrams
        #expect(path?.local == nil && path?.remote == there)
        Self.deliver(second, to: &call.session, from: there, at: new, 20)
        path = call.session.path?.datagrams
        #expect(path?.local == new && path?.remote == there)
    }

    @Test("Without protection a new address is taken only when the old one has been silent for a second")
    func plainRebinding() throws {
        var call = try Call(.plain)
        for step in Int64(0)..<10 {
            let packet = call.packet(step * 20)
            try call.receives(packet, from: Self.here, step * 20)
        }
        let (early, stranger, later) = (call.packet(200), call.other(1_300), call.packet(1_320))
        try call.receives(early, from: Self.moved, 200, heard: false)
        try call.receives(stranger, from: Self.moved, 1_300, heard: false)
        try call.receives(later, from: Self.moved, 1_320)
        let (remote, statistics) = (call.remote, call.session.statistics)
        #expect(remote == Self.moved)
        #expect(statistics.dropped.ofUnknownSource == 2)
    }

    @Test("At the start a call without protection hears a peer from another address than the announced one")
    func plainStart() throws {
        for (source, time) in [(Self.here, Int64(0)), (Self.sibling, 0), (Self.moved, 200)] {
            var call = try Call(.plain)
            let packet = call.packet(time)
            try call.receives(packet, from: source, time)
            let remote = call.remote
            #expect(remote == source)
        }
        var call = try Call(.plain)
        let stray = call.packet(100)
        try call.receives(stray, from: Self.moved, 100, heard: false)
    }

    @Test("The address that the peer announced replaces an earlier one")
    func told() throws {
        var call = try Call(.plain)
        let (stray, genuine, next) = (call.packet(300), call.other(320), call.packet(340))
        try call.receives(stray, from: Self.moved, 300)
        try call.receives(genuine, from: Self.here, 320)
        try call.receives(next, from: Self.moved, 340, heard: false)
        let (remote, ssrc) = (call.remote, call.session.remoteSSRC)
        #expect(remote == Self.here && ssrc == 9)
    }

    @Test(
        "A stranger's stream before the peer's own delays none of the peer's packets, regardless of its numbers and SSRC"
    )
    func strangerFirst() throws {
        var call = try Call(.plain)
        var ahead = try PeerSession(
            PeerPair.plan(to: SocketAddress(host: "192.0.2.2", port: 6_000), ssrc: 1, send: nil, receive: nil),
            at: .zero)
        var strangers: [[UInt8]] = []
        for step in 0..<60 { strangers.append(PeerPair.media(of: &ahead, [9, 9, 9], UInt32(step), Self.at(0))) }
        // Streams of two SSRCs, one of them the peer's own, 50 packets ahead of it.
        for step in Int64(0)..<5 {
            let other = call.other(300 + step * 20)
            for packet in [other, strangers[50 + Int(step)]] {
                _ = try PeerPair.deliver(packet, to: &call.session, from: Self.moved, at: Self.at(300 + step * 20))
            }
        }
        for step in Int64(0)..<50 {
            let (genuine, stranger) = (call.packet(400 + step * 20), call.other(400 + step * 20))
            try call.receives(genuine, from: Self.here, 400 + step * 20)
            try call.receives(stranger, from: Self.moved, 405 + step * 20, heard: false)
            let remote = call.remote
            #expect(remote == Self.here)
        }
    }

    @Test("A guess ends ten seconds after its last packet, so that a peer that only listens is heard again")
    func guessEnds() throws {
        var call = try Call(.plain)
        let stray = call.packet(300)
        try call.receives(stray, from: Self.moved, 300)
        _ = call.session.takeEvents()
        var hasEnded = call.session.endGuess(at: Self.at(10_299))
        var (remote, news) = (call.remote, call.session.takeEvents())
        #expect(!hasEnded && remote == Self.moved && !news.contains(.routeChanged))
        hasEnded = call.session.endGuess(at: Self.at(10_300))
        (remote, news) = (call.remote, call.session.takeEvents())
        #expect(hasEnded && remote == Self.here && news.contains(.routeChanged))
        // Another guess may follow, while nothing of the peer has been heard.
        let next = call.other(10_320)
        try call.receives(next, from: Self.moved, 10_320)
        remote = call.remote
        #expect(remote == Self.moved)
        // The host that was described is no guess.
        let near = call.packet(10_340)
        try call.receives(near, from: Self.sibling, 10_340)
        hasEnded = call.session.endGuess(at: Self.at(60_000))
        remote = call.remote
        #expect(!hasEnded && remote == Self.sibling)
    }

    @Test(
        "The likelier address takes over at once: the described one before its host and the signaling's, those before any"
    )
    func likelierAddresses() throws {
        let (anybody, proxy) = (Self.moved, try #require(SocketAddress(host: "203.0.113.5", port: 5_060)))
        let behindProxy = SocketAddress(host: "203.0.113.5", port: 31_000)
        var call = try Call(.plain, signaling: proxy)
        func step(_ source: SocketAddress?, _ milliseconds: Int64, taken: Bool, _ location: SourceLocation) throws {
            let packet = call.packet(milliseconds)
            try call.receives(packet, from: source, milliseconds, heard: taken, location)
            let remote = call.remote
            #expect((remote == source) == taken, sourceLocation: location)
        }
        try step(anybody, 300, taken: true, #_sourceLocation)
        try step(behindProxy, 320, taken: true, #_sourceLocation)
        try step(anybody, 340, taken: false, #_sourceLocation)
        try step(Self.sibling, 360, taken: false, #_sourceLocation)
        try step(Self.here, 380, taken: true, #_sourceLocation)
        try step(behindProxy, 400, taken: false, #_sourceLocation)
        try step(anybody, 420, taken: false, #_sourceLocation)
        // A second of silence, in which the peer may have lost its binding; the stream tells that it is the peer's.
        try step(anybody, 1_400, taken: true, #_sourceLocation)
        try step(behindProxy, 1_420, taken: true, #_sourceLocation)
        try step(Self.here, 1_440, taken: true, #_sourceLocation)
    }

    @Test("A telephone behind a translator is heard from its first packet on if its signaling comes from there")
    func translated() throws {
        let signaling = SocketAddress(host: "198.51.100.7", port: 5_060)
        var call = try Call(.plain, signaling: signaling)
        let packet = call.packet(0)
        try call.receives(packet, from: Self.moved, 0)
        let remote = call.remote
        #expect(remote == Self.moved)
    }

    @Test("Once the peer was heard, no other stream takes its place, however long it is silent")
    func silentPeer() throws {
        var call = try Call(.plain)
        let first = call.packet(0)
        try call.receives(first, from: Self.here, 0)
        for second in Int64(1)...60 {
            let stray = call.other(second * 1_000)
            try call.receives(stray, from: Self.moved, second * 1_000, heard: false)
            let hasEnded = call.session.endGuess(at: Self.at(second * 1_000))
            #expect(!hasEnded)
        }
        let remote = call.remote
        #expect(remote == Self.here)
    }

    @Test("Without protection RTCP is taken from the peer's host alone")
    func plainControl() throws {
        var call = try Call(.plain)
        let first = call.packet(0)
        try call.receives(first, from: Self.here, 0)
        let back = PeerPair.media(of: &call.session, [1, 2, 3], 0, .zero)
        _ = try PeerPair.deliver(back, to: &call.first, from: PeerPair.rightAddress, at: .zero)
        let report = try #require(PeerPair.control(of: &call.first, Self.at(20)))
        let (fromStranger, _) = try PeerPair.deliver(report, to: &call.session, from: Self.moved, at: Self.at(40))
        let (fromPeer, _) = try PeerPair.deliver(report, to: &call.session, from: Self.sibling, at: Self.at(40))
        #expect(fromStranger == .dropped && fromPeer == .control)
    }
}
