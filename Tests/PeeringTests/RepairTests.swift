import CallMedia
import RTP
import SecureTransport
import Testing
import Core

@Suite("Packets that are sent again")
struct RepairTests {
    private static func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    private static func pair(repairs: Bool = true) throws -> PeerPair {
        try PeerPair {
            $0.repairsLoss = repairs
            $0.usesReducedSizeRTCP = true
        }
    }

    /// A request of the right session's for packets of the left one, as it goes on the wire.
    private static func request(_ numbers: [UInt16], from pair: inout PeerPair, at now: Instant) -> [UInt8] {
        for number in numbers { _ = pair.right.ask(for: number, nanosecondsLeft: 1_000_000_000, at: now) }
        var packet = [UInt8](repeating: 0, count: 1_500)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        return Array(packet[..<pair.right.writeRequests(into: &span)])
    }

    private static func repair(of session: inout PeerSession, at now: Instant) -> [UInt8] {
        var packet = [UInt8](repeating: 0, count: 1_500)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        return Array(packet[..<session.writeRepair(at: now, into: &span)])
    }

    private static func number(_ packet: [UInt8]) -> UInt16 { UInt16(packet[2]) << 8 | UInt16(packet[3]) }

    /// Media and reports to and fro, until both know the round trip: 20 ms.
    private static func acquaint(_ pair: inout PeerPair) throws {
        for step in 0..<4 {
            let now = at(Int64(step) * 6_000)
            pair.now = now
            let (there, back) = (pair.leftMedia(), pair.rightMedia())
            try PeerPair.deliver(there, to: &pair.right, from: PeerPair.leftAddress, at: now)
            try PeerPair.deliver(back, to: &pair.left, from: PeerPair.rightAddress, at: now)
            let later = at(Int64(step) * 6_000 + 10)
            if let report = PeerPair.control(of: &pair.left, now) {
                try PeerPair.deliver(report, to: &pair.right, from: PeerPair.leftAddress, at: later)
            }
            if let report = PeerPair.control(of: &pair.right, later) {
                try PeerPair.deliver(
                    report, to: &pair.left, from: PeerPair.rightAddress, at: at(Int64(step) * 6_000 + 20))
            }
            if let report = PeerPair.control(of: &pair.left, at(Int64(step) * 6_000 + 3_000)) {
                try PeerPair.deliver(
                    report, to: &pair.right, from: PeerPair.leftAddress, at: at(Int64(step) * 6_000 + 3_010))
            }
        }
        let known = pair.right.roundTripNanoseconds != nil
        try #require(known)
    }

    @Test("What is lost is sent again byte for byte, and its protection taken off like the first")
    func sameBytes() throws {
        var pair = try Self.pair()
        try Self.acquaint(&pair)
        let now = Self.at(30_000)
        pair.now = now
        let lost = pair.leftMedia()
        let next = pair.leftMedia()
        try PeerPair.deliver(next, to: &pair.right, from: PeerPair.leftAddress, at: now)
        let request = Self.request([Self.number(lost)], from: &pair, at: now)
        try PeerPair.deliver(request, to: &pair.left, from: PeerPair.rightAddress, at: now)
        let again = Self.repair(of: &pair.left, at: now)
        #expect(again == lost)
        let (received, _) = try PeerPair.deliver(
            again, to: &pair.right, from: PeerPair.leftAddress, at: Self.at(30_025))
        guard case .media(let packet) = received else {
            Issue.record("expected media, got \(received)")
            return
        }
        let header = packet.header
        #expect(header.sequenceNumber == Self.number(lost))
        let more = Self.repair(of: &pair.left, at: now)
        #expect(more.isEmpty)
        let (left, right) = (pair.left.statistics.feedback, pair.right.statistics.feedback)
        #expect(left.missingPackets == 1 && left.packetsResent == 1 && left.packetsNotResent == 0)
        #expect(right.packetsRequested == 1 && right.packetsRepaired == 1)
    }

    @Test("Requests that come again and again are answered twice, and not at once")
    func repetition() throws {
        var pair = try PeerPair {
            $0.protection = .plain
            $0.repairsLoss = true
        }
        var resent: [Int64] = []
        let lost = pair.leftMedia()
        for time in stride(from: Int64(30_000), to: 30_200, by: 5) {
            // As an impolite peer writes them.
            var request = NegativeAcknowledgement(sender: 2, media: 1)
            request.append(Self.number(lost))
            try Self.deliver(request, to: &pair.left, at: Self.at(time))
            if !Self.repair(of: &pair.left, at: Self.at(time)).isEmpty { resent.append(time) }
        }
        #expect(resent.count == 2 && resent[1] - resent[0] >= 10)
        #expect(pair.left.statistics.feedback.packetsNotResent == 38)
    }

    /// A request that needs no protection: both sides of these pairs are plain.
    private static func deliver(
        _ request: NegativeAcknowledgement, to session: inout PeerSession, at now: Instant
    ) throws {
        var packet = [UInt8](repeating: 0, count: 200)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        let length = request.write(into: &span)
        try PeerPair.deliver(Array(packet[..<length]), to: &session, from: PeerPair.rightAddress, at: now)
    }

    @Test("A flood of requests gets no more than half again of what was sent, for any packets it asks for")
    func flood() throws {
        var pair = try PeerPair {
            $0.protection = .plain
            $0.repairsLoss = true
        }
        var resent = 0
        for step in Int64(0)..<1_000 {
            let now = Self.at(step * 20)
            let newest = Self.number(pair.leftMedia())
            var request = NegativeAcknowledgement(sender: 2, media: 1)
            for age in (0..<40).reversed() { request.append(newest &- UInt16(age)) }
            try Self.deliver(request, to: &pair.left, at: now)
            while !Self.repair(of: &pair.left, at: now).isEmpty { resent += 1 }
        }
        #expect((400...516).contains(resent))
    }

    @Test("Nothing is kept, asked for or sent again where it was not agreed on, or for another's stream")
    func notAgreed() throws {
        var bare = try Self.pair(repairs: false)
        try Self.acquaint(&bare)
        let asked = bare.right.ask(for: 1, nanosecondsLeft: 1_000_000_000, at: Self.at(30_000))
        #expect(!asked && bare.right.statistics.feedback.packetsRequested == 0)
        let waits = bare.right.repairNanoseconds(at: Self.at(30_000))
        #expect(waits == nil)
        var pair = try PeerPair {
            $0.protection = .plain
            $0.repairsLoss = true
        }
        let lost = pair.leftMedia()
        var request = NegativeAcknowledgement(sender: 2, media: 99)
        request.append(Self.number(lost))
        try Self.deliver(request, to: &pair.left, at: .zero)
        let again = Self.repair(of: &pair.left, at: .zero)
        #expect(again.isEmpty)
    }

    @Test("What was protected with keys of before is not sent again")
    func newKeys() throws {
        var pair = try Self.pair()
        try Self.acquaint(&pair)
        let lost = pair.leftMedia()
        let request = Self.request([Self.number(lost)], from: &pair, at: Self.at(30_000))
        try PeerPair.deliver(request, to: &pair.left, from: PeerPair.rightAddress, at: Self.at(30_000))
        var generator = SystemRandomNumberGenerator()
        var contexts = try SRTPPair(
            send: SRTPKey.random(.aeadAES128GCM, using: &generator),
            receive: SRTPKey.random(.aeadAES128GCM, using: &generator))
        pair.left.install(&contexts, at: Self.at(30_000))
        let again = Self.repair(of: &pair.left, at: Self.at(30_000))
        #expect(again.isEmpty && pair.left.statistics.feedback.packetsNotResent == 1)
    }
}
