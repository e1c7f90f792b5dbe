import Realtime
import Core
import CallMedia
import RTP
import SecureTransport
import Testing

@Suite("Peer sessions")
struct PeerSessionTests {
    @Test("A packet crosses with its payload, for every suite", arguments: SRTPSuite.allCases)
    func media(suite: SRTPSuite) throws {
        var pair = try PeerPair(suite: suite, rightReceivesUnder: 1)
        let payload = Array(UInt8(0)..<50)
        let wire = pair.leftMedia(payload: payload)
        let (received, plain) = try PeerPair.deliver(wire, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        guard case .media(let packet) = received else {
            Issue.record("expected media, got \(received)")
            return
        }
        let header = packet.header
        #expect(Array(plain[header.payload]) == payload)
        #expect(header.ssrc == 1 && header.payloadType == 111)
        let (ssrc, count) = (pair.right.remoteSSRC, pair.right.statistics.packetsReceived)
        #expect(ssrc == 1 && count == 1)
    }

    @Test("CALL-2: Media is reported to flow both ways once the peer is heard and reports that it hears us, not before")
    func flowing() throws {
        var pair = try PeerPair()
        let toRight = pair.leftMedia()
        try PeerPair.deliver(toRight, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        let toLeft = pair.rightMedia()
        try PeerPair.deliver(toLeft, to: &pair.left, from: PeerPair.rightAddress, at: .zero)
        var both = (pair.left.isFlowing, pair.right.isFlowing)
        #expect(both == (false, false), "neither knows yet that it is heard")

        let report = try #require(PeerPair.control(of: &pair.right, .zero), "the first report goes out at once")
        try PeerPair.deliver(report, to: &pair.left, from: PeerPair.rightAddress, at: .zero)
        both = (pair.left.isFlowing, pair.right.isFlowing)
        #expect(both == (true, false))
        let news = pair.left.takeEvents()
        #expect(news.contains(.flowing) && news.contains(.mediaReceived))

        let answer = try #require(PeerPair.control(of: &pair.left, .zero))
        try PeerPair.deliver(answer, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        let right = pair.right.isFlowing
        #expect(right)
    }

    @Test("CALL-2: A call to a described address is ready at once, and again when another one answers")
    func readyAtOnce() throws {
        var pair = try PeerPair()
        var news = pair.left.takeEvents()
        #expect(news.contains(.ready))
        news = pair.left.takeEvents()
        #expect(!news.contains(.ready))
        pair.left.beginFlow()
        news = pair.left.takeEvents()
        #expect(news.contains(.ready))
    }

    @Test("CALL-2: A peer that sends media but never a report is taken to hear us after three seconds")
    func silentReporter() throws {
        var pair = try PeerPair()
        var flowing: [Int64: Bool] = [:]
        for milliseconds in stride(from: Int64(0), through: 3_100, by: 20) {
            pair.now = Instant(nanoseconds: milliseconds * 1_000_000)
            let packet = pair.rightMedia()
            try PeerPair.deliver(packet, to: &pair.left, from: PeerPair.rightAddress, at: pair.now)
            _ = pair.leftMedia()
            flowing[milliseconds] = pair.left.isFlowing
        }
        #expect(flowing[2_980] == false)
        #expect(flowing[3_020] == true)
    }

    @Test("Where media is to flow one way only, that way alone is waited for")
    func oneWay() throws {
        var pair = try PeerPair()
        pair.left.setDirection(sends: false, receives: true)
        pair.right.setDirection(sends: true, receives: false)
        let packet = pair.rightMedia()
        try PeerPair.deliver(packet, to: &pair.left, from: PeerPair.rightAddress, at: .zero)
        var both = (pair.left.isFlowing, pair.right.isFlowing)
        #expect(both == (true, false), "the sender does not know yet that it is heard")
        let news = pair.left.takeEvents()
        #expect(news.contains(.flowing))

        let report = try #require(PeerPair.control(of: &pair.left, .zero))
        try PeerPair.deliver(report, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        both.1 = pair.right.isFlowing
        #expect(both.1)
    }

    @Test("A sender whose listener never reports takes it to listen after three seconds")
    func silentListener() throws {
        var pair = try PeerPair()
        pair.right.setDirection(sends: true, receives: false)
        var flowing: [Int64: Bool] = [:]
        for milliseconds in stride(from: Int64(0), through: 3_100, by: 20) {
            pair.now = Instant(nanoseconds: milliseconds * 1_000_000)
            _ = pair.rightMedia()
            flowing[milliseconds] = pair.right.isFlowing
        }
        #expect(flowing[2_980] == false)
        #expect(flowing[3_000] == true)
    }

    @Test("A report waits for media to report on, and then does not wait")
    func firstReport() throws {
        var pair = try PeerPair()
        let early = pair.left.isControlDue(at: Instant(nanoseconds: 1_000_000_000))
        #expect(!early)
        let packet = pair.rightMedia()
        let later = Instant(nanoseconds: 1_000_000_001)
        try PeerPair.deliver(packet, to: &pair.left, from: PeerPair.rightAddress, at: later)
        let due = pair.left.isControlDue(at: later)
        #expect(due)
    }

    @Test("Packets under another key, replayed, cut or of an unknown payload type are counted and change nothing")
    func dropped() throws {
        var strangers = try PeerPair(rightReceivesUnder: 9)
        let wire = strangers.leftMedia()
        try PeerPair.deliver(wire, to: &strangers.right, from: PeerPair.leftAddress, at: .zero)
        let unauthenticated = strangers.right.statistics.dropped.unauthenticated
        #expect(unauthenticated == 1)

        var pair = try PeerPair()
        let packet = pair.leftMedia()
        for length in 0..<packet.count {
            let (received, _) = try PeerPair.deliver(
                Array(packet[..<length]), to: &pair.right, from: PeerPair.leftAddress, at: .zero)
            #expect(received == .dropped)
        }
        try PeerPair.deliver(packet, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        let (again, _) = try PeerPair.deliver(packet, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        #expect(again == .dropped)
        let statistics = pair.right.statistics
        #expect(statistics.dropped.replayed == 1)
        #expect(statistics.dropped.total == packet.count + 1)
        #expect(statistics.packetsReceived == 1)
        let news = pair.right.takeEvents()
        #expect(!news.contains(.goodbyeReceived) && !news.contains(.flowing))
    }

    @Test("Our packets follow only an authenticated packet's address")
    func addressFollows() throws {
        var pair = try PeerPair()
        let moved = try #require(SocketAddress(host: "198.51.100.7", port: 999))
        let forged = Array(pair.leftMedia().dropLast()) + [0]
        try PeerPair.deliver(forged, to: &pair.right, from: moved, at: .zero)
        let unmoved = pair.right.path?.datagrams.remote
        #expect(unmoved == PeerPair.leftAddress)
        let genuine = pair.leftMedia()
        try PeerPair.deliver(genuine, to: &pair.right, from: moved, at: .zero)
        let (address, news) = (pair.right.path?.datagrams.remote, pair.right.takeEvents())
        #expect(address == moved && news.contains(.routeChanged))
    }

    @Test("A goodbye is heard, and only an authenticated one")
    func goodbye() throws {
        var pair = try PeerPair()
        let packet = pair.leftMedia()
        try PeerPair.deliver(packet, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        let goodbye = PeerPair.goodbye(of: &pair.left, .zero)
        var forged = goodbye
        forged[forged.count - 1] ^= 1
        try PeerPair.deliver(forged, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        let before = pair.right.takeEvents()
        try PeerPair.deliver(goodbye, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        let after = pair.right.takeEvents()
        #expect(!before.contains(.goodbyeReceived) && after.contains(.goodbyeReceived))
    }

    @Test("Random bytes of any length, on either side of the RTCP line, never disturb a session")
    func randomBytes() throws {
        var pair = try PeerPair()
        var generator = SystemRandomNumberGenerator()
        for length in 0..<300 {
            var bytes = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            if length > 1 {
                bytes[0] = 0x80
                bytes[1] = length.isMultiple(of: 2) ? 200 : 111
            }
            let (received, _) = try PeerPair.deliver(bytes, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
            #expect(received == .dropped)
        }
    }
}
