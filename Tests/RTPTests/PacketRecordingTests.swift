import RTP
import TestSupport
import Testing

@Suite("Recordings of packets")
struct PacketRecordingTests {
    private static let payload: [UInt8] = [0x80, 111, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xAB]

    private func big(_ value: Int, _ size: Int) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    private func udp(_ payload: [UInt8]) -> [UInt8] {
        big(5_004, 2) + big(6_000, 2) + big(payload.count + 8, 2) + [0, 0] + payload
    }

    private func ip4(_ segment: [UInt8], fragment: Int = 0, options: Int = 0) -> [UInt8] {
        [UInt8(0x45 + options), 0] + big(20 + options * 4 + segment.count, 2) + [0, 0] + big(fragment, 2)
            + [64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1] + [UInt8](repeating: 1, count: options * 4) + segment
    }

    private func ip6(_ segment: [UInt8], extended: Bool = false) -> [UInt8] {
        let body = (extended ? [17, 0, 0, 0, 0, 0, 0, 0] : []) + segment
        return [0x60, 0, 0, 0] + big(body.count, 2) + [extended ? 0 : 17, 64] + [UInt8](repeating: 0, count: 32) + body
    }

    private func pcap(_ link: Int, _ frames: [[UInt8]], little: Bool = false, nanoseconds: Bool = false) -> [UInt8] {
        func word(_ value: Int) -> [UInt8] { little ? big(value, 4).reversed() : big(value, 4) }
        var file = word(nanoseconds ? 0xA1B2_3C4D : 0xA1B2_C3D4) + [UInt8](repeating: 0, count: 16) + word(link)
        for (index, frame) in frames.enumerated() {
            let fraction = index * (nanoseconds ? 20_000_000 : 20_000)
            file += word(1_000) + word(fraction) + word(frame.count) + word(frame.count) + frame
        }
        return file
    }

    @Test(
        "Packets are found behind every link layer, in IPv4 and IPv6",
        arguments: [
            (1, [UInt8](repeating: 0, count: 12) + [0x08, 0x00], [UInt8](repeating: 0, count: 12) + [0x86, 0xDD]),
            (
                1, [UInt8](repeating: 0, count: 12) + [0x81, 0, 0, 5, 0x08, 0x00],
                [UInt8](repeating: 0, count: 12) + [0x88, 0xA8, 0, 1, 0x81, 0, 0, 5, 0x86, 0xDD]
            ),
            (113, [UInt8](repeating: 0, count: 16), [UInt8](repeating: 0, count: 16)),
            (276, [UInt8](repeating: 0, count: 20), [UInt8](repeating: 0, count: 20)),
            (0, [2, 0, 0, 0], [10, 0, 0, 0]),
            (101, [], []),
        ] as [(Int, [UInt8], [UInt8])])
    func linkLayers(link: Int, before4: [UInt8], before6: [UInt8]) throws {
        let frames = [
            before4 + ip4(udp(Self.payload)), before4 + ip4(udp(Self.payload), options: 2),
            before6 + ip6(udp(Self.payload)), before6 + ip6(udp(Self.payload), extended: true),
        ]
        for (little, nanoseconds) in [(false, false), (true, false), (false, true), (true, true)] {
            let recording = try PacketRecording(
                parsing: pcap(link, frames, little: little, nanoseconds: nanoseconds))
            #expect(recording.packets.map(\.bytes) == Array(repeating: Self.payload, count: 4))
            #expect(recording.packets.map(\.offsetNanoseconds) == [0, 20_000_000, 40_000_000, 60_000_000])
            #expect(recording.packets.allSatisfy { $0.sourcePort == 5_004 && $0.destinationPort == 6_000 })
            #expect(recording.skipped == 0)
        }
    }

    @Test("Trailing bytes of short Ethernet frames are no part of the packet")
    func ethernetPadding() throws {
        let frame = [UInt8](repeating: 0, count: 12) + [8, 0] + ip4(udp([1, 2])) + [UInt8](repeating: 0, count: 16)
        #expect(try PacketRecording(parsing: pcap(1, [frame])).packets.map(\.bytes) == [[1, 2]])
    }

    @Test("What is no whole UDP datagram is counted and passed over")
    func skipped() throws {
        var tcp = ip4(udp(Self.payload))
        tcp[9] = 6
        let arp = [UInt8](repeating: 0, count: 12) + [8, 6] + [UInt8](repeating: 0, count: 28)
        #expect(try PacketRecording(parsing: pcap(1, [arp])).skipped == 1)
        let fragments = [ip4(udp(Self.payload), fragment: 0x2000), ip4(udp(Self.payload), fragment: 9), tcp, []]
        let recording = try PacketRecording(parsing: pcap(101, fragments))
        #expect(recording.packets.isEmpty)
        #expect(recording.skipped == 4)
    }

    @Test("rtpdump files that are written read back the same")
    func rtpdumpRoundTrip() throws {
        var file = RTPDumpWriter.header(unixMilliseconds: 1_700_000_000_123)
        for index in 0..<50 {
            file += try #require(
                RTPDumpWriter.record(
                    Self.payload + [UInt8(index)], offsetNanoseconds: Int64(index) * 20_000_000,
                    isRTCP: index % 10 == 9))
        }
        let recording = try PacketRecording(parsing: file)
        #expect(recording.packets.count == 50)
        #expect(recording.packets[7].bytes == Self.payload + [7])
        #expect(recording.packets[7].offsetNanoseconds == 140_000_000)
        #expect(!recording.isTruncated)
        #expect(RTPDumpWriter.record([], offsetNanoseconds: 0, isRTCP: false) == nil)
        #expect(
            RTPDumpWriter.record([UInt8](repeating: 0, count: 65_528), offsetNanoseconds: 0, isRTCP: false) == nil)
    }

    @Test("Records that hold a packet in part only are passed over")
    func headersOnly() throws {
        let file = RTPDumpWriter.header(unixMilliseconds: 0) + [0, 20, 0, 172, 0, 0, 0, 0] + Self.payload.prefix(12)
        let recording = try PacketRecording(parsing: file)
        #expect(recording.packets.isEmpty)
        #expect(recording.skipped == 1)
    }

    @Test(
        "Faults are reported with their place",
        arguments: [
            (Array("GIF89a".utf8), 0, "neither an rtpdump nor a pcap file"),
            ([0x0A, 0x0D, 0x0D, 0x0A, 0, 0], 0, "pcapng"),
            (Array("#!rtpplay1.0 ".utf8), 0, "first line"),
            (Array("#!rtpplay1.0 1.2.3.4/5\n".utf8) + [1, 2, 3], 23, "header"),
            (RTPDumpWriter.header(unixMilliseconds: 0) + [0, 7, 0, 0, 0, 0, 0, 0], 39, "7 bytes"),
            ([0xA1, 0xB2, 0xC3, 0xD4, 0, 0], 6, "cut off"),
            ([0xA1, 0xB2, 0xC3, 0xD4] + [UInt8](repeating: 0, count: 16) + [0, 0, 0, 147], 20, "link type 147"),
            (
                [0xA1, 0xB2, 0xC3, 0xD4] + [UInt8](repeating: 0, count: 19) + [1]
                    + [0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0, 0, 0, 0, 0, 0, 1], 32, "cannot be"
            ),
        ] as [([UInt8], Int, String)])
    func faults(file: [UInt8], offset: Int, message: String) {
        do {
            _ = try PacketRecording(parsing: file)
            Issue.record("read without an error")
        } catch {
            #expect(error.offset == offset)
            #expect(error.description.contains(message))
        }
    }

    @Test("A file cut at any length gives the whole records before the cut, and says that it is cut")
    func truncation() throws {
        let files = [
            (24, 16, pcap(101, [ip4(udp(Self.payload)), ip6(udp(Self.payload))])),
            (
                39, 8,
                RTPDumpWriter.header(unixMilliseconds: 0)
                    + (RTPDumpWriter.record(Self.payload, offsetNanoseconds: 0, isRTCP: false) ?? [])
            ),
        ]
        for (headerSize, _, file) in files {
            for length in 0..<file.count {
                let recording = try? PacketRecording(parsing: Array(file.prefix(length)))
                #expect((recording != nil) == (length >= headerSize))
                if let recording, length > headerSize, recording.packets.isEmpty { #expect(recording.isTruncated) }
            }
        }
    }

    @Test("Random changes never trap")
    func mutation() {
        var generator = SeededGenerator(seed: 6)
        let seeds = [
            pcap(1, [[UInt8](repeating: 0, count: 12) + [8, 0] + ip4(udp(Self.payload))]),
            pcap(101, [ip6(udp(Self.payload), extended: true)], little: true),
            RTPDumpWriter.header(unixMilliseconds: 0)
                + (RTPDumpWriter.record(Self.payload, offsetNanoseconds: 0, isRTCP: false) ?? []),
        ]
        for index in 0..<15_000 {
            var file = seeds[index % 3]
            for _ in 0..<Int.random(in: 1...5, using: &generator) {
                file[Int.random(in: 4..<file.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            if let recording = try? PacketRecording(parsing: file) {
                #expect(recording.packets.allSatisfy { $0.bytes.count < file.count })
            }
        }
    }
}
