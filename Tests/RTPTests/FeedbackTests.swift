import RTP
import TestSupport
import Testing
import Core

@Suite("Feedback in RTCP")
struct FeedbackTests {
    private func feedback(_ bytes: [UInt8]) -> RTCPFeedback? {
        guard let packets = try? RTCPReaderTests.packets(bytes), packets.count == 1,
            case .other(let type, let body) = packets[0]
        else { return nil }
        return RTCPFeedback(type: type, body: body, in: bytes)
    }

    private func missing(_ bytes: [UInt8]) -> [UInt16]? {
        guard case .nack(_, var packets)? = feedback(bytes) else { return nil }
        var found: [UInt16] = []
        while let number = packets.next(in: bytes) { found.append(number) }
        return found
    }

    @Test("Missing packets are asked for in groups of seventeen, across the wrap, and read back")
    func nack() throws {
        var packet = NegativeAcknowledgement(sender: 1, media: 2)
        let numbers: [UInt16] = [65_534, 65_535, 0, 14, 15, 100, 116, 117]
        #expect(packet.isEmpty)
        for number in numbers {
            let fits = packet.append(number)
            #expect(fits)
        }
        var bytes = [UInt8](repeating: 0, count: 100)
        let size = bytes.withMutableRawSpan { packet.write(into: &$0) }
        bytes = Array(bytes.prefix(size))
        #expect(size == 12 + 4 * 4)
        #expect(bytes.prefix(12) == [0x81, 205, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2])
        #expect(missing(bytes) == numbers)
        for number in 0..<16 { packet.append(UInt16(1_000 + number * 20)) }
        let fits = packet.append(9_000)
        #expect(!fits)
        var small = [UInt8](repeating: 0, count: 20)
        let cut = small.withMutableRawSpan { packet.write(into: &$0) }
        #expect(cut == 0)
        let empty = NegativeAcknowledgement(sender: 1, media: 2)
        let none = bytes.withMutableRawSpan { empty.write(into: &$0) }
        #expect(none == 0)
    }

    @Test(
        "Requests for pictures and bitrates are distinguished, other feedback is ignored, and short packets are none")
    func others() {
        #expect(feedback([0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]) == .pictureRequest)
        #expect(feedback([0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 7, 0, 0, 0]) == .pictureRequest)
        let remb: [UInt8] = [0x8F, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0x52, 0x45, 0x4D, 0x42, 1, 0x0B, 0xD0, 0x90]
        #expect(feedback(remb + [0, 0, 0, 2]) == .maximumBitrate(0x3D090 << 2))
        #expect(feedback(remb) == nil)
        var huge = remb + [0, 0, 0, 2]
        huge[17] = 0xFF
        #expect(feedback(huge) == .maximumBitrate(.max))
        #expect(feedback([0x83, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]) == .other(type: 205, format: 3))
        #expect(feedback([0x8F, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4]) == .other(type: 206, format: 15))
        #expect(feedback([0x81, 205, 0, 1, 0, 0, 0, 1]) == nil)
        #expect(feedback([0x80, 204, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]) == nil)
    }

    private func statuses(_ bytes: [UInt8]) -> [TransportFeedback.Status]? {
        guard case .transportWide(let packet)? = feedback(bytes) else { return nil }
        var cursor = TransportFeedback.Cursor(packet)
        var found: [TransportFeedback.Status] = []
        while let status = cursor.next(in: bytes) { found.append(status) }
        return found
    }

    @Test("A vector of two-bit symbols is read with small and large deltas, and its padding left out")
    func example() throws {
        var bytes: [UInt8] = [0xAF, 205, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2, 0, 5, 0, 7, 0, 0, 2, 9]
        // Symbols 1 0 2 1 0 0 1.
        bytes += [0b1101_0010, 0b0100_0001, 4, 0xFF, 0xFC, 8, 1, 1]
        let found = try #require(statuses(bytes))
        #expect(found.map(\.sequenceNumber) == [5, 6, 7, 8, 9, 10, 11])
        #expect(found.map(\.arrivalQuarterMilliseconds) == [516, nil, 512, 520, nil, nil, 521])
        guard case .transportWide(let packet)? = feedback(bytes) else { return }
        #expect(packet.feedbackCount == 9 && packet.referenceTime == 2 && packet.count == 7)
    }

    @Test("Runs and vectors of one-bit symbols are read; a reference below zero too")
    func runs() throws {
        // Reference -1; a run of three small ones, then a vector of fourteen of which the first and last came.
        var bytes: [UInt8] = [0x8F, 205, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0xFF, 0xFF, 0, 17, 0xFF, 0xFF, 0xFF, 0]
        bytes += [0x20, 3, 0b1010_0000, 0b0000_0001, 1, 1, 1, 2, 3, 0, 0, 0]
        let found = try #require(statuses(bytes))
        #expect(found.count == 17 && found[1].sequenceNumber == 0)
        #expect(found.compactMap(\.arrivalQuarterMilliseconds) == [-255, -254, -253, -251, -248])
        #expect(found[3].arrivalQuarterMilliseconds == -251 && found[16].arrivalQuarterMilliseconds == -248)
    }

    @Test("Feedback cut short, with fewer deltas than symbols, or of no packet is none")
    func faults() {
        let head: [UInt8] = [0x8F, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 5]
        #expect(statuses(head + [0, 2, 0, 0, 0, 0, 0x20, 2, 1, 1]) != nil)
        #expect(statuses(head + [0, 3, 0, 0, 0, 0, 0x20, 3, 1, 1]) == nil)
        #expect(statuses(head + [0, 9, 0, 0, 0, 0, 0x20, 2, 0, 1]) == nil)
        #expect(statuses(head + [0, 0, 0, 0, 0, 0, 0x20, 2, 1, 1]) == nil)
        #expect(statuses([0x8F, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 5, 0, 1]) == nil)
    }

    private func told(_ writer: inout TransportFeedbackWriter, room: Int = 600) -> [TransportFeedback.Status] {
        var bytes = [UInt8](repeating: 0xEE, count: room)
        let size = bytes.withMutableRawSpan { writer.write(media: 2, into: &$0) }
        guard size > 0 else { return [] }
        #expect(size % 4 == 0)
        let found = statuses(Array(bytes.prefix(size)))
        #expect(found != nil)
        return found ?? []
    }

    @Test(
        "What is written is read back the same, with losses, bursts, reordering and wraps of the number",
        arguments: 0..<20)
    func roundTrip(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var writer = TransportFeedbackWriter(sender: 1)
        var expected: [UInt16: Int64] = [:]
        var times: [Int64] = []
        var now: Int64 = 1_000_000_000
        let first = 65_000
        var numbers = Array(first..<(first + 1_200))
        for index in stride(from: 7, to: numbers.count - 1, by: 7) { numbers.swapAt(index, index + 1) }
        var all: [TransportFeedback.Status] = []
        for (index, number) in numbers.enumerated() {
            now += Int64.random(in: 0...25_000_000, using: &generator)
            if number != first, Int.random(in: 0..<10, using: &generator) < seed % 5 { continue }
            let wire = UInt16(truncatingIfNeeded: number)
            writer.received(wire, at: Instant(nanoseconds: now))
            writer.received(wire, at: Instant(nanoseconds: now + 9_000_000))
            expected[wire] = now / 250_000
            times.append(now)
            if index % 90 == 89 { all += told(&writer) }
        }
        while writer.pending > 0 {
            let more = told(&writer)
            if more.isEmpty { break }
            all += more
        }
        // What a swap brings in after its neighbour was told of is told of again.
        var last: [UInt16: Int64?] = [:]
        for status in all { last[status.sequenceNumber] = .some(status.arrivalQuarterMilliseconds) }
        let isTold = last.compactMapValues(\.self) == expected
        #expect(isTold)
        let newest = all.last?.sequenceNumber ?? 0
        #expect(last.count == Int(newest &- UInt16(first)) + 1, "losses between two feedbacks are told, too")
    }

    @Test("Nothing is reported twice or without need; pauses and jumps beyond all bounds are reported in parts")
    func bounds() {
        var writer = TransportFeedbackWriter(sender: 1)
        #expect(told(&writer).isEmpty && writer.pending == 0)
        writer.received(10, at: .zero)
        #expect(told(&writer).map(\.sequenceNumber) == [10])
        #expect(told(&writer).isEmpty)
        writer.received(9, at: .zero)
        #expect(writer.pending == 0)
        // A pause of a minute does not fit 16 bits of 250 µs: a second packet with a reference of its own.
        writer.received(11, at: Instant(nanoseconds: 1_000_000_000))
        writer.received(12, at: Instant(nanoseconds: 61_000_000_000))
        #expect(told(&writer).map(\.arrivalQuarterMilliseconds) == [4_000])
        #expect(told(&writer).map(\.arrivalQuarterMilliseconds) == [244_000])
        // Ten thousand numbers further: only the window counts.
        writer.received(10_012, at: Instant(nanoseconds: 62_000_000_000))
        #expect(writer.pending == 512)
        let (lost, rest) = (told(&writer), told(&writer))
        #expect(lost.count == 256 && lost.allSatisfy { $0.arrivalQuarterMilliseconds == nil })
        #expect(rest.count == 256 && rest.last?.sequenceNumber == 10_012)
        // No room: told the next time.
        writer.received(10_013, at: Instant(nanoseconds: 62_000_000_000))
        #expect(told(&writer, room: 20).isEmpty)
        #expect(told(&writer).map(\.sequenceNumber) == [10_013])
    }

    @Test("The worst case of 256 numbers fits 600 bytes")
    func worstCase() {
        var writer = TransportFeedbackWriter(sender: 1)
        for number in 0..<256 {
            // All deltas are large, and every other is below zero.
            let time = Int64(number) * 500_000_000 - (number % 2 == 0 ? 0 : 900_000_000)
            writer.received(UInt16(number), at: Instant(nanoseconds: 10_000_000_000 + time))
        }
        #expect(told(&writer).count == 256)
    }

    @Test("Random feedback never traps, and reports as many packets as it announces")
    func randomBytes() {
        var generator = SeededGenerator(seed: 6)
        var taken = 0
        for _ in 0..<20_000 {
            let words = Int.random(in: 2...20, using: &generator)
            var bytes = (0..<(words * 4 + 4)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            bytes[0] = 0x80 | [1, 15].randomElement(using: &generator)!
            bytes[1] = 205
            bytes[2] = 0
            bytes[3] = UInt8(words)
            if bytes.count > 14 { bytes[14] = 0 }
            _ = missing(bytes)
            guard case .transportWide(let packet)? = feedback(bytes) else { continue }
            taken += 1
            #expect(statuses(bytes)?.count == packet.count)
        }
        #expect(taken > 500)
    }

    @Test("Every kind of feedback and extended report, cut at any length, is none or lies within what is left")
    func truncation() {
        let whole: [[UInt8]] = [
            [0x81, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 10, 0xFF, 0xFF, 0, 90, 0, 1],
            [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2],
            [0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 7, 0, 0, 0],
            [0x8F, 206, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0x52, 0x45, 0x4D, 0x42, 1, 0x0B, 0xD0, 0x90, 0, 0, 0, 2],
            [0x80, 207, 0, 5, 0, 0, 0, 1, 5, 0, 0, 3, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8],
        ]
        for packet in whole {
            for length in 0..<packet.count {
                // As it is, and with a length that fits what is left.
                var cut = Array(packet.prefix(length))
                #expect(feedback(cut) == nil)
                guard length >= 4, length % 4 == 0 else { continue }
                cut[3] = UInt8(length / 4 - 1)
                if case .nack(_, var numbers)? = feedback(cut) {
                    var count = 0
                    while numbers.next(in: cut) != nil { count += 1 }
                    #expect(count <= (length - 12) / 4 * 17)
                }
                _ = ExtendedReport(type: 207, body: 4..<length, answering: 9, in: cut)
                var session = RTCPSession(configuration: .init(ssrc: 2, canonicalName: "us"), at: .zero)
                _ = try? session.received(cut, at: .zero)
                #expect(session.roundTripNanoseconds == nil && session.reportOnUs == nil)
            }
        }
    }

    @Test("Extended reports carry a receiver's time there and back, and report the round trip")
    func extendedReports() throws {
        var report = ExtendedReport()
        var bytes = [UInt8](repeating: 0, count: 64)
        let none = bytes.withMutableRawSpan { report.write(sender: 1, into: &$0) }
        #expect(none == 0)
        let sent = NTPTimestamp(rawValue: 0x0001_0002_8000_0000)
        report.referenceTime = sent
        report.addressee = 9
        report.lastReference = 0x1234_5678
        report.delaySinceLastReference = 65_536
        let size = bytes.withMutableRawSpan { report.write(sender: 1, into: &$0) }
        #expect(size == 8 + 12 + 16)
        let packet = Array(bytes.prefix(size))
        guard case .other(let type, let body) = try #require(RTCPReaderTests.packets(packet).first) else { return }
        let read = try #require(ExtendedReport(type: type, body: body, answering: 9, in: packet))
        #expect(read == report)
        #expect(ExtendedReport(type: type, body: body, answering: 8, in: packet)?.lastReference == nil)
        #expect(ExtendedReport(type: 206, body: body, answering: 9, in: packet) == nil)
        for cut in stride(from: body.lowerBound + 8, to: body.upperBound, by: 4) where cut != 20 {
            #expect(ExtendedReport(type: 207, body: body.lowerBound..<cut, answering: 9, in: packet) == nil)
        }
        let middle = UInt64(0x1234_5678 + 65_536 + 6_554)
        let trip = try #require(read.roundTripNanoseconds(arrival: NTPTimestamp(rawValue: middle << 16)))
        #expect(abs(trip - 100_000_000) < 100_000)
        #expect(report.roundTripNanoseconds(arrival: NTPTimestamp(rawValue: 0x1234_5678 << 16)) == nil)
        #expect(ExtendedReport().roundTripNanoseconds(arrival: sent) == nil)
    }
}
