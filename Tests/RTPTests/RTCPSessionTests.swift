import TestSupport
import Testing
import Core

@testable import RTP

@Suite("RTCP of a call between two")
struct RTCPSessionTests {
    /// One end, with the wall clock offset that its NTP times have.
    private struct End {
        var session: RTCPSession
        var wallNanoseconds: Int64
        var generator: SeededGenerator

        init(ssrc: UInt32, wallNanoseconds: Int64) {
            session = RTCPSession(configuration: .init(ssrc: ssrc, canonicalName: "end-\(ssrc)"), at: .zero)
            self.wallNanoseconds = wallNanoseconds
            generator = SeededGenerator(seed: UInt64(ssrc))
        }

        mutating func report(at now: Instant) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: CompoundReport.maximumSize)
            let ntp = NTPTimestamp(unixNanoseconds: wallNanoseconds + now.nanoseconds)
            let random = generator.next()
            let size = bytes.withMutableRawSpan { span in
                session.writeReport(at: now, ntp: ntp, random: random, into: &span)
            }
            return Array(bytes.prefix(size))
        }

        mutating func send(_ index: Int, at now: Instant) {
            session.sentMedia(payloadOctets: 80, timestamp: UInt32(index * 960), at: now)
        }

        mutating func receive(_ index: Int, from ssrc: UInt32, at now: Instant) {
            let header = RTPHeader(
                payloadType: 111, sequenceNumber: UInt16(truncatingIfNeeded: index), timestamp: UInt32(index * 960),
                ssrc: ssrc)
            _ = session.receivedMedia(header, at: now)
        }
    }

    private func instant(milliseconds: Int) -> Instant { Instant(nanoseconds: Int64(milliseconds) * 1_000_000) }

    /// A call with 30 ms each way. Every tenth packet of A is lost.
    private func call(seconds: Int) -> (a: End, b: End) {
        var a = End(ssrc: 1, wallNanoseconds: 1_700_000_000_000_000_000)
        var b = End(ssrc: 2, wallNanoseconds: 1_700_000_500_123_456_789)
        var toA: [(at: Int, bytes: [UInt8])] = []
        var toB: [(at: Int, bytes: [UInt8])] = []
        for millisecond in 0..<(seconds * 1_000) {
            let now = instant(milliseconds: millisecond)
            if millisecond % 20 == 0 {
                a.send(millisecond / 20, at: now)
                b.send(millisecond / 20, at: now)
            }
            if millisecond % 20 == 10, millisecond > 30 {
                let index = (millisecond - 30) / 20
                if index % 10 != 5 { b.receive(index, from: 1, at: now) }
                a.receive(index, from: 2, at: now)
            }
            let fromA = a.report(at: now)
            if !fromA.isEmpty { toB.append((millisecond + 30, fromA)) }
            let fromB = b.report(at: now)
            if !fromB.isEmpty { toA.append((millisecond + 30, fromB)) }
            for datagram in toA where datagram.at == millisecond {
                _ = try? a.session.received(datagram.bytes, at: now)
            }
            for datagram in toB where datagram.at == millisecond {
                _ = try? b.session.received(datagram.bytes, at: now)
            }
        }
        return (a, b)
    }

    @Test("Both ends measure the round trip to 1 ms, though their clocks disagree")
    func roundTrip() throws {
        let (a, b) = call(seconds: 30)
        for end in [a, b] {
            let roundTrip = try #require(end.session.roundTripNanoseconds)
            #expect(abs(roundTrip - 60_000_000) < 1_000_000)
        }
    }

    @Test("The sender learns of its loss from the peer's report, and both learn the other's name")
    func lossIsToldBack() throws {
        let (a, b) = call(seconds: 60)
        let report = try #require(a.session.reportOnUs)
        #expect((20...32).contains(report.fractionLost))
        #expect(report.cumulativeLost > 200)
        #expect(try #require(b.session.reportOnUs).cumulativeLost == 0)
        #expect(a.session.remoteCanonicalName.string == "end-2")
        #expect(b.session.remoteCanonicalName.string == "end-1")
    }

    @Test("A sender report carries counts, and the RTP timestamp of its own moment")
    func senderReport() throws {
        var end = End(ssrc: 1, wallNanoseconds: 1_700_000_000_000_000_000)
        for index in 0..<3 { end.send(index, at: instant(milliseconds: index * 20)) }
        let bytes = end.report(at: instant(milliseconds: 45))
        guard case .senderReport(1, let info, let blocks) = try RTCPReaderTests.packets(bytes)[0] else {
            Issue.record("no sender report")
            return
        }
        #expect(blocks.count == 0)
        #expect(info.packetCount == 3)
        #expect(info.octetCount == 240)
        #expect(info.rtpTimestamp == 2 * 960 + 240)
        #expect(info.ntp.rawValue >> 32 == 1_700_000_000 + 2_208_988_800)
    }

    @Test("One that sends nothing writes receiver reports, and no goodbye before any report (RFC 3550 §6.3.7)")
    func receiverReport() throws {
        var end = End(ssrc: 1, wallNanoseconds: 0)
        var bytes = [UInt8](repeating: 0, count: 600)
        let none = bytes.withMutableRawSpan { span in
            end.session.writeGoodbye(reason: ShortText(), at: .zero, ntp: .init(rawValue: 0), into: &span)
        }
        #expect(none == 0)
        let report = end.report(at: .zero)
        guard case .receiverReport(1, _) = try RTCPReaderTests.packets(report)[0] else {
            Issue.record("no receiver report")
            return
        }
        let size = bytes.withMutableRawSpan { span in
            end.session.writeGoodbye(reason: ShortText("done"), at: .zero, ntp: .init(rawValue: 0), into: &span)
        }
        guard case .goodbye(let goodbye) = try RTCPReaderTests.packets(Array(bytes.prefix(size)))[2] else {
            Issue.record("no goodbye")
            return
        }
        #expect(goodbye.names(1, in: bytes))
    }

    @Test("A goodbye counts only for the stream that is received")
    func goodbye() throws {
        var end = End(ssrc: 1, wallNanoseconds: 0)
        end.receive(0, from: 2, at: .zero)
        for (ssrc, expected): (UInt8, Bool) in [(3, false), (2, true)] {
            let bytes: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, ssrc, 0x81, 203, 0, 1, 0, 0, 0, ssrc]
            #expect(try end.session.received(bytes, at: .zero).saidGoodbye == expected)
        }
    }

    @Test("Another SSRC takes the stream's place and its count starts again; the local one is recognised")
    func sourceChange() {
        var end = End(ssrc: 1, wallNanoseconds: 0)
        for index in 0..<5 { end.receive(index, from: 2, at: .zero) }
        let other = RTPHeader(payloadType: 111, sequenceNumber: 40_000, timestamp: 5, ssrc: 9)
        #expect(
            end.session.receivedMedia(other, at: .zero)
                == .newSource(.init(.counted, number: Int64(other.sequenceNumber))))
        #expect(end.session.remoteSSRC == 9)
        #expect(end.session.reception?.packetsReceived == 1)
        #expect(end.session.sourceChanges == 1)
        let own = RTPHeader(payloadType: 111, sequenceNumber: 1, timestamp: 5, ssrc: 1)
        #expect(end.session.receivedMedia(own, at: .zero) == .ownSource)
    }

    @Test("A report that names a sender report we never wrote gives no round trip")
    func forgedReport() throws {
        var end = End(ssrc: 1, wallNanoseconds: 1_000_000_000)
        end.send(0, at: .zero)
        _ = end.report(at: .zero)
        let forged: [UInt8] =
            [0x81, 201, 0, 7, 0, 0, 0, 2, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 12)
            + [1, 2, 3, 4, 0, 0, 0, 0]
        let feedback = try end.session.received(forged, at: instant(milliseconds: 50))
        #expect(feedback.reportOnUs?.ssrc == 1)
        #expect(feedback.roundTripNanoseconds == nil)
    }

    @Test("A broken datagram changes nothing")
    func brokenDatagram() {
        var end = End(ssrc: 1, wallNanoseconds: 0)
        end.receive(0, from: 2, at: .zero)
        let bytes: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, 2, 0x81, 203, 0, 9, 0, 0, 0, 2]
        #expect(throws: RTCPParseError.self) { try end.session.received(bytes, at: .zero) }
        #expect(end.session.reportOnUs == nil)
    }
}
