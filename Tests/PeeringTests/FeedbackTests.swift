import CallMedia
import RTP
import Testing
import Core

@Suite("Header extensions and feedback between peers")
struct FeedbackTests {
    private static func extensions(_ plan: inout PeerPlan) {
        plan.headerExtensions.audioLevelIdentifier = 1
        plan.headerExtensions.transportSequenceIdentifier = 3
        plan.headerExtensions.remoteTransportSequenceIdentifier = 3
        plan.headerExtensions.midIdentifier = 4
        plan.headerExtensions.mid = "audio"
    }

    private static func plain(_ plan: inout PeerPlan) {
        extensions(&plan)
        plan.protection = .plain
        plan.usesReducedSizeRTCP = true
    }

    private static func feedback(of session: inout PeerSession, at now: Instant) -> [UInt8]? {
        guard session.isFeedbackDue(at: now) else { return nil }
        var packet = [UInt8](repeating: 0, count: 1_500)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        let length = session.writeFeedback(at: now, into: &span)
        return length > 0 ? Array(packet[..<length]) : nil
    }

    @Test("Packets carry the section's name, how loud they are, and a number that rises")
    func headers() throws {
        var pair = try PeerPair { Self.extensions(&$0) }
        var sizes: Set<Int> = []
        for index in 0..<UInt16(3) {
            var packet = [UInt8](repeating: 0, count: pair.left.mediaHeaderBytes) + [7, 8, 9]
            packet += Array(repeating: 0, count: 40)
            var elements = packet.mutableSpan
            var span = elements.mutableBytes
            let length = pair.left.writeMedia(
                payloadBytes: 3, timestamp: 960, marker: false, level: AudioLevel(attenuation: 30, isVoice: true),
                at: .zero, into: &span)
            sizes.insert(length)
            let (received, plain) = try PeerPair.deliver(
                Array(packet[..<length]), to: &pair.right, from: PeerPair.leftAddress, at: .zero)
            guard case .media(let accepted) = received else {
                Issue.record("expected media, got \(received)")
                return
            }
            let header = accepted.header
            let bytes = plain.span.bytes
            #expect(Array(plain[header.payload]) == [7, 8, 9])
            #expect(AudioLevel(1, of: header, in: bytes) == AudioLevel(attenuation: 30, isVoice: true))
            #expect(header.transportSequenceNumber(3, in: bytes) == index)
            let element = header.headerExtension?.element(4, in: bytes)
            let mid = try #require(element)
            #expect(Array(plain[mid.data]) == Array("audio".utf8))
        }
        #expect(sizes.count == 1)
        let bare = try PeerPair()
        let size = bare.left.mediaHeaderBytes
        #expect(size == 12, "without extensions there is nothing but the fixed header")
    }

    @Test("The sender learns ten times a second when its packets came and which did not", arguments: [true, false])
    func arrivals(reducedSize: Bool) throws {
        var pair = try PeerPair {
            Self.plain(&$0)
            $0.usesReducedSizeRTCP = reducedSize
        }
        var told: [UInt16: Bool] = [:]
        var packets = 0
        for index in 0..<100 {
            let now = Instant(nanoseconds: Int64(index) * 20_000_000)
            pair.now = now
            let wire = pair.leftMedia()
            if index != 42 { try PeerPair.deliver(wire, to: &pair.right, from: PeerPair.leftAddress, at: now) }
            guard let feedback = Self.feedback(of: &pair.right, at: now) else { continue }
            packets += 1
            #expect((feedback[1] == 205) == reducedSize, "else a report goes in front (RFC 5506)")
            Self.read(feedback, into: &told)
            let (received, _) = try PeerPair.deliver(
                feedback, to: &pair.left, from: PeerPair.rightAddress, at: now)
            #expect(received == .control)
        }
        #expect(packets == 19 || packets == 20)
        #expect(told[0] == true && told[41] == true && told[42] == false && told[90] == true)
        let (sent, heard) = (pair.right.statistics.feedback.sent, pair.left.statistics.feedback.transportWide)
        #expect(sent == packets && heard == packets)
    }

    private static func read(_ datagram: [UInt8], into told: inout [UInt16: Bool]) {
        let bytes = datagram.span.bytes
        guard var reader = try? RTCPReader(validating: bytes) else {
            Issue.record("no RTCP")
            return
        }
        while let packet = reader.next(in: bytes) {
            guard case .other(let type, let body) = packet,
                case .transportWide(let feedback)? = RTCPFeedback(type: type, body: body, in: bytes)
            else { continue }
            var cursor = TransportFeedback.Cursor(feedback)
            while let status = cursor.next(in: bytes) {
                told[status.sequenceNumber] = status.arrivalQuarterMilliseconds != nil
            }
        }
    }

    @Test("Nothing is reported to a peer whose packets are not counted")
    func nothingToTell() throws {
        var pair = try PeerPair()
        for index in 0..<20 {
            let now = Instant(nanoseconds: Int64(index) * 20_000_000)
            let wire = pair.leftMedia()
            try PeerPair.deliver(wire, to: &pair.right, from: PeerPair.leftAddress, at: now)
            let isDue = pair.right.isFeedbackDue(at: now)
            #expect(!isDue)
        }
    }

    @Test("Feedback that comes without a report is counted, and does nothing else")
    func reducedSize() throws {
        var pair = try PeerPair { Self.plain(&$0) }
        let nack: [UInt8] = [0x81, 205, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 9, 0, 3]
        let pictureLoss: [UInt8] = [0x81, 206, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1]
        let limit: [UInt8] =
            [0x8F, 206, 0, 5, 0, 0, 0, 2, 0, 0, 0, 0] + Array("REMB".utf8) + [1, 0, 0x10, 0, 0, 0, 0, 1]
        for packet in [nack, pictureLoss, limit, nack + pictureLoss] {
            let (received, _) = try PeerPair.deliver(packet, to: &pair.left, from: PeerPair.rightAddress, at: .zero)
            #expect(received == .control)
        }
        let statistics = pair.left.statistics
        #expect(statistics.feedback.missingPackets == 6)
        #expect(statistics.feedback.pictureRequests == 2)
        #expect(statistics.feedback.bitrateLimits == 1)
        #expect(statistics.controlPacketsReceived == 4 && statistics.dropped.total == 0)
        let news = pair.left.takeEvents()
        #expect(news == [.ready])
    }

    @Test("A peer that only receives gets its reference time back with the next report, once")
    func roundTripOfReceiver() throws {
        var pair = try PeerPair { Self.plain(&$0) }
        let first = try PeerPair.deliver(
            pair.rightMedia(), to: &pair.left, from: PeerPair.rightAddress, at: .zero)
        #expect(first.0 != .dropped)
        let reference = NTPTimestamp(unixNanoseconds: 1_700_000_000_250_000_000)
        var question = ExtendedReport()
        question.referenceTime = reference
        var packet = [UInt8](repeating: 0, count: 100)
        var elements = packet.mutableSpan
        var span = elements.mutableBytes
        let length = question.write(sender: 2, into: &span)
        try PeerPair.deliver(Array(packet[..<length]), to: &pair.left, from: PeerPair.rightAddress, at: .zero)

        let later = Instant(nanoseconds: 500_000_000)
        let report = try #require(PeerPair.control(of: &pair.left, later))
        let answer = try #require(Self.answer(in: report))
        #expect(answer.lastReference == reference.middle)
        #expect(answer.delaySinceLastReference == 32_768)
        let next = try #require(PeerPair.control(of: &pair.left, Instant(nanoseconds: 30_000_000_000)))
        #expect(Self.answer(in: next) == nil)
    }

    private static func answer(in datagram: [UInt8]) -> ExtendedReport? {
        let bytes = datagram.span.bytes
        guard var reader = try? RTCPReader(validating: bytes) else { return nil }
        while let packet = reader.next(in: bytes) {
            if case .other(let type, let body) = packet {
                return ExtendedReport(type: type, body: body, answering: 2, in: bytes)
            }
        }
        return nil
    }
}
