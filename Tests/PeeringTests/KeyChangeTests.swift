import Peering
import RTP
import SecureTransport
import TestSupport
import Testing
import Timekeeping

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
}
