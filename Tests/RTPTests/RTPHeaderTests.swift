import RTP
import TestSupport
import Testing

@Suite("RTP headers")
struct RTPHeaderTests {
    /// Two CSRCs, an extension of one word, a payload of five bytes and three of padding.
    private static let full: [UInt8] = [
        0xB2, 0xEF, 0x12, 0x34, 0x00, 0x01, 0x02, 0x03, 0xDE, 0xAD, 0xBE, 0xEF,
        0, 0, 0, 1, 0, 0, 0, 2, 0xBE, 0xDE, 0x00, 0x01, 0x10, 0x85, 0x00, 0x00,
        1, 2, 3, 4, 5, 0, 0, 3,
    ]

    @Test("A packet with sources, extension and padding is taken apart where RFC 3550 §5.1 says")
    func fullPacket() throws {
        let header = try RTPHeader(parsing: Self.full)
        #expect(header.payloadType == 111)
        #expect(header.marker)
        #expect(header.sequenceNumber == 0x1234)
        #expect(header.timestamp == 0x0001_0203)
        #expect(header.ssrc == 0xDEAD_BEEF)
        #expect(header.payload == 28..<33)
        #expect(header.headerExtension == HeaderExtension(profile: 0xBEDE, data: 24..<28))
    }

    @Test("A header that is written reads back the same, and refuses a space that is too small")
    func roundTrip() throws {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<1_000 {
            let header = RTPHeader(
                payloadType: .random(in: 0...127, using: &generator),
                sequenceNumber: .random(in: 0...UInt16.max, using: &generator),
                timestamp: .random(in: 0...UInt32.max, using: &generator),
                ssrc: .random(in: 0...UInt32.max, using: &generator), marker: .random(using: &generator))
            var bytes = [UInt8](repeating: 0xAA, count: 12)
            #expect(write(header, into: &bytes) == 12)
            #expect(try RTPHeader(parsing: bytes) == header)
        }
        var small = [UInt8](repeating: 0, count: 11)
        let header = RTPHeader(payloadType: 0, sequenceNumber: 0, timestamp: 0, ssrc: 0)
        #expect(write(header, into: &small) == 0)
        #expect(small.allSatisfy { $0 == 0 })
    }

    private func write(_ header: RTPHeader, into bytes: inout [UInt8]) -> Int {
        var span = bytes.mutableSpan
        var raw = span.mutableBytes
        return header.write(into: &raw)
    }

    @Test(
        "Each fault is reported by its name",
        arguments: [
            ([UInt8](repeating: 0x80, count: 11), RTPParseError.Code.tooShort),
            ([0x40] + [UInt8](repeating: 0, count: 11), .wrongVersion),
            ([0x81] + [UInt8](repeating: 0, count: 14), .truncatedSources),
            ([0x90] + [UInt8](repeating: 0, count: 14), .truncatedExtension),
            ([0x90] + [UInt8](repeating: 0, count: 11) + [0, 0, 0, 2, 0, 0, 0, 0], .truncatedExtension),
            ([0xA0] + [UInt8](repeating: 0, count: 12), .badPadding),
            ([0xA0] + [UInt8](repeating: 0, count: 12) + [3], .badPadding),
            ([0xA0] + [UInt8](repeating: 0, count: 11), .badPadding),
        ])
    func faults(bytes: [UInt8], code: RTPParseError.Code) {
        do {
            _ = try RTPHeader(parsing: bytes)
            Issue.record("taken for a packet")
        } catch {
            #expect(error.code == code)
        }
    }

    @Test("A packet cut at any length is refused or has its payload inside of what is left")
    func truncation() {
        for length in 0...Self.full.count {
            let cut = Array(Self.full.prefix(length))
            guard let header = try? RTPHeader(parsing: cut) else { continue }
            #expect(header.payload.upperBound <= length)
        }
    }

    @Test("Random bytes never trap, and what is taken lies inside of the packet")
    func randomBytes() {
        var generator = SeededGenerator(seed: 2)
        var taken = 0
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...80, using: &generator)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            if count > 0 { bytes[0] = 0x80 | bytes[0] & 0x3F }
            guard let header = try? RTPHeader(parsing: bytes) else { continue }
            taken += 1
            #expect(header.payload.lowerBound >= 12 && header.payload.upperBound <= count)
            guard let headerExtension = header.headerExtension else { continue }
            var cursor = HeaderExtension.Cursor(headerExtension)
            while let element = cursor.next(in: bytes) {
                #expect(element.data.upperBound <= headerExtension.data.upperBound)
            }
        }
        #expect(taken > 1_000)
    }
}

@Suite("Header extensions")
struct HeaderExtensionTests {
    private func elements(_ profile: UInt16, _ bytes: [UInt8]) -> [[UInt8]] {
        var cursor = HeaderExtension.Cursor(HeaderExtension(profile: profile, data: 0..<bytes.count))
        var found: [[UInt8]] = []
        while let element = cursor.next(in: bytes) {
            found.append([element.identifier] + Array(bytes[element.data]))
        }
        return found
    }

    @Test("One-byte elements are found between padding, as in RFC 8285 §4.2")
    func oneByte() {
        #expect(elements(0xBEDE, [0x10, 0xAA, 0, 0, 0x32, 1, 2, 3]) == [[1, 0xAA], [3, 1, 2, 3]])
    }

    @Test("Identifier 15 ends the walk (RFC 8285 §4.2)")
    func reservedIdentifier() {
        #expect(elements(0xBEDE, [0x10, 0xAA, 0xF0, 1, 0x20, 2]) == [[1, 0xAA]])
    }

    @Test("Two-byte elements may be empty, as in RFC 8285 §4.3")
    func twoByte() {
        #expect(elements(0x1005, [7, 0, 0, 9, 2, 1, 2, 0]) == [[7], [9, 1, 2]])
    }

    @Test("An element that runs past the end is not returned, and neither is one of an unknown profile")
    func overrun() {
        #expect(elements(0xBEDE, [0x1F, 1, 2]).isEmpty)
        #expect(elements(0x1000, [1, 9, 2]).isEmpty)
        #expect(elements(0x1000, [1]).isEmpty)
        #expect(elements(0x1234, [0x10, 1]).isEmpty)
    }
}

@Suite("Datagrams on a media socket")
struct DatagramKindTests {
    @Test("The first byte decides the protocol (RFC 7983 §7), the second RTP or RTCP (RFC 5761 §4)")
    func classification() {
        for first in 0...255 {
            let kind = DatagramKind(of: [UInt8(first), 111])
            let expected: DatagramKind =
                switch first {
                case 0...3: .stun
                case 20...63: .dtls
                case 64...79: .turnChannel
                case 128...191: .rtp
                default: .unknown
                }
            #expect(kind == expected)
        }
        for second in 0...255 {
            let kind = DatagramKind(of: [0x80, UInt8(second)])
            #expect(kind == ((192...223).contains(second) ? .rtcp : .rtp))
        }
        #expect(DatagramKind(of: ([] as [UInt8])) == .unknown)
        #expect(DatagramKind(of: ([0x80] as [UInt8])) == .unknown)
    }
}
