import RTP
import TestSupport
import Testing

@Suite("Header extensions of packets that are sent")
struct HeaderExtensionSetTests {
    private func packet(_ extensions: HeaderExtensionSet, payload: [UInt8] = [1, 2, 3]) -> [UInt8] {
        let header = RTPHeader(payloadType: 111, sequenceNumber: 7, timestamp: 8, ssrc: 9, marker: true)
        var bytes = [UInt8](repeating: 0xEE, count: 200)
        let count = bytes.write { header.write(extensions, into: &$0) }
        return Array(bytes.prefix(count)) + payload
    }

    private func elements(_ bytes: [UInt8]) throws -> [[UInt8]] {
        let header = try RTPHeader(parsing: bytes)
        guard let headerExtension = header.headerExtension else { return [] }
        var cursor = HeaderExtension.Cursor(headerExtension)
        var found: [[UInt8]] = []
        while let element = cursor.next(in: bytes) { found.append([element.identifier] + bytes[element.data]) }
        return found
    }

    @Test("A level, a number, a time and a name are written as RFC 8285 §4.2 has it, and read back")
    func oneByteForm() throws {
        var extensions = HeaderExtensionSet()
        #expect(extensions.isEmpty && extensions.wireSize == 0)
        extensions.append(1, AudioLevel(attenuation: 45, isVoice: true).byte)
        extensions.append(3, 0xABCD as UInt16)
        extensions.appendUInt24(2, 0xFF01_0203)
        extensions.append(4, ShortText("0"))
        let bytes = packet(extensions)
        #expect(
            Array(bytes[12..<(12 + extensions.wireSize)]) == [
                0xBE, 0xDE, 0, 3, 0x10, 0xAD, 0x31, 0xAB, 0xCD, 0x22, 1, 2, 3, 0x40, 0x30, 0,
            ])
        let header = try RTPHeader(parsing: bytes)
        #expect(header.marker && header.payloadType == 111 && Array(bytes[header.payload]) == [1, 2, 3])
        #expect(AudioLevel(1, of: header, in: bytes) == AudioLevel(attenuation: 45, isVoice: true))
        #expect(header.transportSequenceNumber(3, in: bytes) == 0xABCD)
        #expect(header.transportSequenceNumber(1, in: bytes) == nil && AudioLevel(9, of: header, in: bytes) == nil)
    }

    @Test("Large identifiers, long values and empty ones take the two-byte form")
    func twoByteForm() throws {
        var large = HeaderExtensionSet()
        large.append(200, 7 as UInt8)
        large.append(1, 8 as UInt8)
        #expect(packet(large)[12...13] == [0x10, 0x00])
        #expect(try elements(packet(large)) == [[200, 7], [1, 8]])
        var long = HeaderExtensionSet()
        long.append(4, ShortText("seventeen-letters"))
        long.append(5, ShortText(""))
        #expect(try elements(packet(long)) == [[4] + Array("seventeen-letters".utf8), [5]])
    }

    @Test("Without elements there is no extension, and what does not fit is refused whole")
    func limits() throws {
        #expect(packet(HeaderExtensionSet()).count == 15)
        var extensions = HeaderExtensionSet()
        let reserved = [extensions.append(0, 1 as UInt8), extensions.append(15, 1 as UInt8)]
        #expect(reserved == [false, false])
        let refused = extensions.append(4, ShortText(String(repeating: "x", count: 63)))
        #expect(!refused && extensions.isEmpty)
        let taken = (0..<17).map { _ in extensions.append(1, 0xAAAA as UInt16) }
        #expect(taken == [Bool](repeating: true, count: 16) + [false])
        #expect(try elements(packet(extensions)).count == 16)
    }

    @Test("Any set reads back as it was written", arguments: 0..<50)
    func roundTrip(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        var extensions = HeaderExtensionSet()
        var expected: [[UInt8]] = []
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            let identifier = UInt8.random(in: 1...(seed % 2 == 0 ? 14 : 255), using: &generator)
            let value = UInt16.random(in: 0...UInt16.max, using: &generator)
            if extensions.append(identifier, value) {
                expected.append([identifier, UInt8(value >> 8), UInt8(value & 0xFF)])
            }
        }
        #expect(try elements(packet(extensions)) == expected)
        #expect(extensions.wireSize % 4 == 0)
    }

    @Test(
        "Levels are decibels below overload, rounded, from full scale to silence",
        arguments: [
            (32_767.0, 0), (32_767 / 2.0.squareRoot(), 3), (3_276.7, 20), (327.67, 40), (1, 90), (0.01, 127), (0, 127),
        ])
    func levels(rms: Double, attenuation: Int) {
        #expect(Int(AudioLevel(meanSquare: rms * rms, isVoice: false).attenuation) == attenuation)
        for byte in 0...255 { #expect(AudioLevel(byte: UInt8(byte)).byte == UInt8(byte)) }
        #expect(AudioLevel(attenuation: 200, isVoice: false).byte == 127)
    }
}
