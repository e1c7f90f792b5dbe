import Realtime
import Core
import CallMedia
import RTP
import SecureTransport
import TestSupport
import Testing

@Suite("Keys that change in a call")
struct KeyChangeTests {
    private static func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    /// New contexts for both sides.
    private static func contexts(_ suite: SRTPSuite, seed: UInt64) throws -> (
        left: (SRTPKey, SRTPKey), right: (SRTPKey, SRTPKey)
    ) {
        var generator = SeededGenerator(seed: seed)
        let (there, back) = (SRTPKey.random(suite, using: &generator), SRTPKey.random(suite, using: &generator))
        return ((there, back), (back, there))
    }

    @Test(
        "Packets with the keys of before are taken for three seconds, those with the new ones at once",
        arguments: SRTPSuite.allCases, SRTPSuite.allCases)
    func overlap(before: SRTPSuite, after: SRTPSuite) throws {
        var pair = try PeerPair(suite: before)
        let (old, late, tooLate) = (pair.leftMedia(), pair.leftMedia(), pair.leftMedia())
        let first = try PeerPair.deliver(old, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        #expect(first.0 != .dropped)
        let keys = try Self.contexts(after, seed: 5)
        var ofLeft = try SRTPPair(send: keys.left.0, receive: keys.left.1)
        var ofRight = try SRTPPair(send: keys.right.0, receive: keys.right.1)
        pair.right.install(&ofRight, at: Self.at(1_000))
        // The other side goes on with the old keys until it has the new ones too.
        let lateOne = try PeerPair.deliver(late, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(1_020))
        #expect(lateOne.0 != .dropped)
        pair.left.install(&ofLeft, at: Self.at(1_040))
        let new = pair.leftMedia(payload: [1, 2, 3, 4])
        let (received, plain) = try PeerPair.deliver(
            new, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(1_060))
        guard case .media(let packet) = received else {
            Issue.record("expected media, got \(received)")
            return
        }
        let header = packet.header
        #expect(Array(plain[header.payload]) == [1, 2, 3, 4])
        let again = try PeerPair.deliver(late, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(1_080))
        #expect(again.0 == .dropped && pair.right.statistics.dropped.replayed == 1)
        let expired = try PeerPair.deliver(tooLate, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(4_000))
        #expect(expired.0 == .dropped && pair.right.statistics.dropped.unauthenticated == 1)
        let report = try #require(PeerPair.control(of: &pair.left, Self.at(8_000)))
        let control = try PeerPair.deliver(report, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(8_000))
        #expect(control.0 == .control)
    }

    @Test("A key that stays keeps its count of packets, whichever side has another one", arguments: [true, false])
    func keptKey(ofSender: Bool) throws {
        var generator = SeededGenerator(seed: 9)
        var pair = try PeerPair()
        // The sequence numbers begin again, and with them the count that only the contexts know.
        for index in 0..<66_000 {
            let (there, back) = (pair.leftMedia(payload: [7]), pair.rightMedia(payload: [9]))
            guard index % 1_000 == 0 || index > 65_900 else { continue }
            try PeerPair.deliver(there, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
            try PeerPair.deliver(back, to: &pair.left, from: PeerPair.rightAddress, at: .zero)
        }
        let other = SRTPKey.random(.aeadAES128GCM, using: &generator)
        // The right side has another key, and the left one goes on with its own.
        var ofRight = try SRTPPair(send: other, receive: nil)
        var ofLeft = try SRTPPair(send: nil, receive: other)
        pair.right.install(&ofRight, at: Self.at(1_000))
        pair.left.install(&ofLeft, at: Self.at(1_000))
        for milliseconds in [1_020, 10_000] as [Int64] {
            let packet = ofSender ? pair.rightMedia() : pair.leftMedia()
            let received =
                ofSender
                ? try PeerPair.deliver(packet, to: &pair.left, from: PeerPair.rightAddress, at: Self.at(milliseconds))
                : try PeerPair.deliver(packet, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(milliseconds))
            #expect(received.0 != .dropped, "after \(milliseconds) ms")
        }
    }

    @Test("After a change of the remote party, packets with the former key are dropped at once")
    func another() throws {
        var pair = try PeerPair()
        let (first, late) = (pair.leftMedia(), pair.leftMedia())
        let early = try PeerPair.deliver(first, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        #expect(early.0 != .dropped)
        let keys = try Self.contexts(.aeadAES128GCM, seed: 5)
        var ofRight = try SRTPPair(send: nil, receive: keys.right.1, endsFormer: true)
        let there = try #require(SocketAddress(host: "192.0.2.3", port: 7_000))
        pair.right.redirect(to: there, control: nil, at: Self.at(1_000))
        pair.right.install(&ofRight, at: Self.at(1_000))
        for milliseconds in [1_020, 2_500] as [Int64] {
            let again = try PeerPair.deliver(
                late, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(milliseconds))
            #expect(again.0 == .dropped)
        }
        let remote = pair.right.path?.datagrams.remote
        #expect(remote?.isSame(as: there) == true)
    }

    @Test("Media of the one that was heard before does not count as that of the one that answers")
    func begin() throws {
        var pair = try PeerPair()
        let (first, second) = (pair.leftMedia(), pair.leftMedia())
        _ = pair.rightMedia()
        try PeerPair.deliver(first, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        pair.now = Self.at(4_000)
        _ = pair.rightMedia()
        var isFlowing = pair.right.isFlowing
        #expect(isFlowing)
        _ = pair.right.takeEvents()
        pair.right.beginFlow()
        _ = pair.rightMedia()
        isFlowing = pair.right.isFlowing
        var news = pair.right.takeEvents()
        #expect(!isFlowing && !news.contains(.flowing))
        try PeerPair.deliver(second, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(4_020))
        pair.now = Self.at(8_000)
        _ = pair.rightMedia()
        news = pair.right.takeEvents()
        #expect(news.contains(.flowing))
    }
}
