import CallMedia
import RTP
import Testing
import Core

@Suite("Formats that change in a session")
struct FormatChangeTests {
    private static func plan(_ edit: (inout PeerPlan) -> Void) throws -> PeerPlan {
        var plan = try PeerPair.plan(to: PeerPair.rightAddress, ssrc: 1, send: nil, receive: nil)
        edit(&plan)
        return plan
    }

    @Test("Packets under the numbers of before and the new ones are taken, each as its own, and no others")
    func overlap() throws {
        var pair = try PeerPair {
            $0.telephoneEvents = [.init(clockRate: 48_000, sendPayloadType: 110, receivePayloadType: 110)]
        }
        let old = pair.leftMedia()
        var change = PeerChange(
            try Self.plan {
                $0.sendPayloadType = 96
                $0.receivePayloadType = 96
                $0.telephoneEvents = [.init(clockRate: 48_000, sendPayloadType: 97, receivePayloadType: 97)]
            })
        let early = pair.leftMedia()
        pair.right.expect(change, decoder: 3)
        pair.left.send(by: &change)
        let new = pair.leftMedia()
        #expect(new[1] & 0x7F == 96 && early[1] & 0x7F == 111)
        for (wire, format) in [(old, UInt8(0)), (new, 3), (early, 0)] {
            let (received, _) = try PeerPair.deliver(wire, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
            guard case .media(let packet) = received else {
                Issue.record("expected media, got \(received)")
                return
            }
            #expect(packet.format == format)
        }
        let formats = pair.right.received
        #expect(formats.format(ofBlock: 96) == 3 && formats.format(ofBlock: 111) == 0)
        #expect(formats.format(ofBlock: 97) == nil && formats.format(ofBlock: 12) == nil)
        let dropped = pair.right.statistics.dropped.total
        #expect(dropped == 0)
    }

    @Test(
        "A peer that sends with this side's own number of the codec is heard, regardless of the last agreement"
    )
    func ownNumber() throws {
        var pair = try PeerPair()
        for number in [107, 108, 109] as [UInt8] {
            let change = PeerChange(
                try Self.plan {
                    $0.receivePayloadType = number
                    $0.otherReceivePayloadType = 111
                })
            pair.right.expect(change, decoder: 0)
        }
        let (received, _) = try PeerPair.deliver(
            pair.leftMedia(), to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        guard case .media = received else {
            Issue.record("expected media, got \(received)")
            return
        }
    }

    @Test("Sound that comes under a number which a server has given the other side alone is heard after four packets")
    func foreignNumber() throws {
        var pair = try PeerPair {
            $0.telephoneEvents = [.init(clockRate: 8_000, sendPayloadType: 101, receivePayloadType: 101)]
        }
        var change = PeerChange(
            try Self.plan {
                $0.sendPayloadType = 107
                $0.receivePayloadType = 107
                $0.telephoneEvents = [.init(clockRate: 8_000, sendPayloadType: 102, receivePayloadType: 102)]
            })
        pair.left.send(by: &change)
        func heard(_ payload: [UInt8], _ time: UInt32) throws -> Bool {
            let wire = PeerPair.media(of: &pair.left, payload, time, .zero)
            let (received, _) = try PeerPair.deliver(wire, to: &pair.right, from: PeerPair.leftAddress, at: .zero)
            if case .media = received { return true }
            return false
        }
        // What is as short as a telephone event shows nothing.
        for index in 0..<20 { #expect(try !heard([1, 2, 3, 4], UInt32(index) * 960)) }
        let sound = [UInt8](repeating: 7, count: 60)
        let answers = try (20..<30).map { try heard(sound, UInt32($0) * 960) }
        #expect(answers == [Bool](repeating: false, count: 4) + [Bool](repeating: true, count: 6))
        #expect(try heard([1, 2, 3], 30 * 960), "it is the sound's number from now on")
    }

    @Test("A number that has been given another meaning has the new one")
    func reused() throws {
        var pair = try PeerPair {
            $0.telephoneEvents = [.init(clockRate: 48_000, sendPayloadType: 96, receivePayloadType: 96)]
        }
        var change = PeerChange(
            try Self.plan {
                $0.sendPayloadType = 96
                $0.receivePayloadType = 96
            })
        pair.right.expect(change, decoder: 0)
        pair.left.send(by: &change)
        let (received, _) = try PeerPair.deliver(
            pair.leftMedia(), to: &pair.right, from: PeerPair.leftAddress, at: .zero)
        guard case .media = received else {
            Issue.record("expected media, got \(received)")
            return
        }
    }

    @Test("Header extensions come and go with the agreement, and the transport's packets are counted on")
    func extensions() throws {
        var pair = try PeerPair { $0.headerExtensions.transportSequenceIdentifier = 3 }
        let first = try RTPHeader(parsing: pair.leftMedia().span.bytes)
        var change = PeerChange(
            try Self.plan {
                $0.headerExtensions.transportSequenceIdentifier = 5
                $0.headerExtensions.audioLevelIdentifier = 2
            })
        pair.left.send(by: &change)
        let tells = pair.left.sendsAudioLevel
        #expect(tells)
        let packet = pair.leftMedia()
        let second = try RTPHeader(parsing: packet.span.bytes)
        #expect(second.sequenceNumber == first.sequenceNumber &+ 1)
        #expect(second.transportSequenceNumber(5, in: packet.span.bytes) == 1)
    }
}
