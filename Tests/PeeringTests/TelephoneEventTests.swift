import CallMedia
import RTP
import Testing
import Core

@Suite("Telephone events between peers")
struct TelephoneEventTests {
    private static let formats = [
        TelephoneEventFormat(clockRate: 48_000, sendPayloadType: 110, receivePayloadType: 110),
        TelephoneEventFormat(clockRate: 8_000, sendPayloadType: 126, receivePayloadType: 126),
    ]

    /// What the left session sends for the key 5, held from media time 96,000 on.
    private static func event(of session: inout PeerSession, mediaTime: UInt32) throws -> [UInt8] {
        let clockRate = session.telephoneEventClockRate
        var sender = TelephoneEventSender(.init(clockRate: try #require(clockRate)))
        sender.press(TelephoneEvent(code: 5))
        let next = sender.next(at: 96_000)
        let event = try #require(next)
        var packet = [UInt8](repeating: 0, count: 200)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        let length = session.writeTelephoneEvent(event, mediaTime: mediaTime, at: .zero, into: &span)
        return Array(packet[..<length])
    }

    @Test("An event crosses with its clock's rate", arguments: [0, 1])
    func crosses(first: Int) throws {
        var pair = try PeerPair { plan in
            plan.telephoneEvents = [Self.formats[first], Self.formats[1 - first]]
        }
        let wire = try Self.event(of: &pair.left, mediaTime: 96_000)
        let (received, plain) = try PeerPair.deliver(wire, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        guard case .telephoneEvent(let packet, let clockRate) = received else {
            Issue.record("expected an event, got \(received)")
            return
        }
        #expect(clockRate == Self.formats[first].clockRate)
        #expect(packet.header.marker && packet.header.timestamp == 96_000)
        #expect(TelephoneEventPayload(packet.header.payload, of: plain.span.bytes)?.event.code == 5)
    }

    @Test("An event that was not agreed on is neither sent nor taken")
    func notAgreed() throws {
        var pair = try PeerPair()
        let rate = pair.left.telephoneEventClockRate
        #expect(rate == nil)
        var other = try PeerPair { $0.telephoneEvents = Self.formats }
        let wire = try Self.event(of: &other.left, mediaTime: 0)
        let (received, _) = try PeerPair.deliver(wire, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        #expect(received == .dropped)
        let dropped = pair.right.statistics.dropped.unknownPayloadType
        #expect(dropped == 1)
    }

    @Test("Timestamps of events, which do not advance, do not count as jitter; their numbers count as packets")
    func statistics() throws {
        var pair = try PeerPair { $0.telephoneEvents = Self.formats }
        var now = Instant.zero
        for index in 0..<100 {
            let wire =
                index.isMultiple(of: 2)
                ? PeerPair.media(of: &pair.left, [7, 7, 7], UInt32(index) * 960, now)
                : try Self.event(of: &pair.left, mediaTime: UInt32(index) * 960)
            try PeerPair.deliver(wire, to: &pair.right, from: PeerPair.leftAddress, at: now)
            now = now.advanced(by: .milliseconds(20))
        }
        let statistics = pair.right.statistics
        #expect(statistics.packetsReceived == 100 && statistics.packetsLost == 0)
        #expect(statistics.jitterNanoseconds == 0)
    }
}
