import RTP
import TestSupport
import Testing

@Suite("Compound RTCP packets")
struct RTCPReaderTests {
    /// SR with one block, SDES with a CNAME, BYE with a reason.
    static let compound: [UInt8] =
        [
            0x81, 200, 0, 12, 0, 0, 0, 1, 0xE0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 5, 0, 0, 1, 0,
            0, 0, 0, 2, 64, 0xFF, 0xFF, 0xFE, 0, 1, 0, 9, 0, 0, 0, 77, 0x12, 0x34, 0x56, 0x78, 0, 1, 0, 0,
        ] + [0x81, 202, 0, 3, 0, 0, 0, 1, 1, 4] + Array("a@bc".utf8) + [0, 0]
        + [0x81, 203, 0, 2, 0, 0, 0, 1, 3] + Array("bye".utf8)

    static func packets(_ bytes: [UInt8]) throws(RTCPParseError) -> [RTCPPacket] {
        var reader = try RTCPReader(validating: bytes.span.bytes)
        var packets: [RTCPPacket] = []
        while let packet = reader.next(in: bytes.span.bytes) { packets.append(packet) }
        return packets
    }

    @Test("Sender report, description and goodbye are read field by field")
    func wholeCompound() throws {
        let bytes = Self.compound
        let packets = try Self.packets(bytes)
        #expect(packets.count == 3)
        guard case .senderReport(1, let info, let blocks) = packets[0],
            case .sourceDescription(let description) = packets[1], case .goodbye(let goodbye) = packets[2]
        else {
            Issue.record("other packets than written")
            return
        }
        #expect(info.ntp.middle == 0x0000_8000)
        #expect(info.rtpTimestamp == 0x1000)
        #expect(info.packetCount == 5)
        #expect(info.octetCount == 256)
        #expect(
            blocks.block(on: 2, in: bytes)
                == ReportBlock(
                    ssrc: 2, fractionLost: 64, cumulativeLost: -2, extendedHighestSequence: 65_545, jitterTicks: 77,
                    lastSenderReport: 0x1234_5678, delaySinceLastSenderReport: 65_536))
        #expect(blocks.block(on: 3, in: bytes) == nil)
        #expect(blocks.block(at: 1, in: bytes) == nil)
        let name = try #require(description.canonicalName(of: 1, in: bytes))
        #expect(String(decoding: bytes[name], as: UTF8.self) == "a@bc")
        #expect(description.canonicalName(of: 2, in: bytes) == nil)
        #expect(goodbye.names(1, in: bytes))
        #expect(!goodbye.names(2, in: bytes))
        #expect(goodbye.reason.map { String(decoding: bytes[$0], as: UTF8.self) } == "bye")
    }

    @Test("A lone feedback packet is accepted (RFC 5506), and what it is not asked for is passed over")
    func reducedSize() throws {
        let packets = try Self.packets([0x81, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2])
        #expect(packets == [.other(type: 205, body: 4..<12)])
    }

    @Test("The name of the second source is found behind the first one's items")
    func secondChunk() throws {
        let bytes: [UInt8] =
            [0x82, 202, 0, 6, 0, 0, 0, 1, 2, 2, 65, 66, 1, 1, 67, 0, 0, 0, 0, 9, 1, 3, 68, 69, 70, 0, 0, 0]
        guard case .sourceDescription(let description) = try Self.packets(bytes)[0] else {
            Issue.record("no description")
            return
        }
        #expect(description.canonicalName(of: 9, in: bytes).map { Array(bytes[$0]) } == [68, 69, 70])
        #expect(description.canonicalName(of: 1, in: bytes).map { Array(bytes[$0]) } == [67])
    }

    @Test(
        "Each fault is reported by its name",
        arguments: [
            ([0x80, 201, 0], RTCPParseError.Code.tooShort),
            ([0x40, 201, 0, 1, 0, 0, 0, 1], .wrongVersion),
            ([0x80, 96, 0, 1, 0, 0, 0, 1], .wrongType),
            ([0x80, 201, 0, 2, 0, 0, 0, 1], .wrongLength),
            ([0x80, 201, 0, 1, 0, 0, 0, 1, 0x80, 203], .wrongLength),
            ([0x81, 201, 0, 1, 0, 0, 0, 1], .truncatedBody),
            ([0x80, 200, 0, 1, 0, 0, 0, 1], .truncatedBody),
            ([0x82, 203, 0, 1, 0, 0, 0, 1], .truncatedBody),
            ([0x81, 203, 0, 2, 0, 0, 0, 1, 9, 65, 66, 67], .truncatedBody),
            ([0xA0, 201, 0, 1, 0, 0, 0, 1, 0x80, 203, 0, 0], .badPadding),
            ([0xA0, 201, 0, 1, 0, 0, 0, 8], .badPadding),
            ([0xA0, 201, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0], .badPadding),
        ] as [([UInt8], RTCPParseError.Code)])
    func faults(bytes: [UInt8], code: RTCPParseError.Code) {
        do {
            let packets = try Self.packets(bytes)
            Issue.record("taken for \(packets)")
        } catch {
            #expect(error.code == code)
        }
    }

    @Test("Cut at any length, only whole packets are returned, and none where one is cut")
    func truncation() {
        for length in 0..<Self.compound.count {
            let packets = try? Self.packets(Array(Self.compound.prefix(length)))
            let expected: Int? = [52: 1, 68: 2][length]
            #expect(packets?.count == expected)
        }
    }

    @Test("Random changes never trap, and all that is returned is inside of the datagram")
    func mutation() {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<20_000 {
            var bytes = Self.compound
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            guard let packets = try? Self.packets(bytes) else { continue }
            for packet in packets {
                switch packet {
                case .senderReport(_, _, let blocks), .receiverReport(_, let blocks):
                    for index in 0..<blocks.count { #expect(blocks.block(at: index, in: bytes) != nil) }
                case .sourceDescription(let description):
                    if let range = description.canonicalName(of: 1, in: bytes) {
                        #expect(range.upperBound <= bytes.count)
                    }
                case .goodbye(let goodbye):
                    if let range = goodbye.reason { #expect(range.upperBound <= bytes.count) }
                case .other(_, let body):
                    #expect(body.upperBound <= bytes.count)
                }
            }
        }
    }

    @Test("A compound packet that is written reads back the same, for names of every length to 255")
    func roundTrip() throws {
        for length in 0...255 {
            let name = String(repeating: "n", count: length)
            let reason = String(repeating: "r", count: 255 - length)
            let block = ReportBlock(ssrc: 8, fractionLost: 3, cumulativeLost: -5, jitterTicks: 9)
            let info = SenderInfo(ntp: NTPTimestamp(rawValue: 99), rtpTimestamp: 1, packetCount: 2, octetCount: 3)
            let report = CompoundReport(
                ssrc: 6, sender: length % 2 == 0 ? info : nil, block: length % 3 == 0 ? block : nil,
                canonicalName: ShortText(name), goodbye: ShortText(reason))
            var bytes = [UInt8](repeating: 0xEE, count: CompoundReport.maximumSize)
            let size = report.write(into: &bytes)
            bytes.removeLast(bytes.count - size)
            let packets = try Self.packets(bytes)
            #expect(packets.count == 3)
            guard case .sourceDescription(let description) = packets[1], case .goodbye(let goodbye) = packets[2] else {
                Issue.record("other packets than written")
                return
            }
            #expect(description.canonicalName(of: 6, in: bytes)?.count == length)
            #expect((goodbye.reason?.count ?? 0) == 255 - length)
            switch packets[0] {
            case .senderReport(6, let read, let blocks):
                #expect(read == info)
                #expect(blocks.block(at: 0, in: bytes) == (length % 3 == 0 ? block : nil))
            case .receiverReport(6, let blocks):
                #expect(length % 2 == 1)
                #expect(blocks.count == (length % 3 == 0 ? 1 : 0))
            default:
                Issue.record("no report")
            }
        }
    }

    @Test("A space that is too small gets nothing")
    func noRoom() {
        let report = CompoundReport(ssrc: 6, sender: nil, block: nil, canonicalName: ShortText("name"))
        for room in 0..<24 {
            var bytes = [UInt8](repeating: 0, count: room)
            #expect(report.write(into: &bytes) == 0)
        }
    }
}
