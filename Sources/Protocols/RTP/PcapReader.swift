import Core

/// Takes the UDP payloads out of a classic pcap file.
struct PcapReader {
    private let file: [UInt8]
    private let isBigEndian: Bool
    private let nanosecondsPerFraction: Int64
    private let link: LinkLayer

    private static let fileHeaderSize = 24
    private static let recordHeaderSize = 16
    /// Above any snapshot length that tools set; a longer record is a broken file.
    private static let maximumRecordSize = 1 << 20

    /// Reads the file's header; `nil` if it is none of pcap's.
    init?(_ file: [UInt8]) throws(PacketRecordingError) {
        switch file.uint32(at: 0) {
        case 0xA1B2_C3D4: (isBigEndian, nanosecondsPerFraction) = (true, 1_000)
        case 0xA1B2_3C4D: (isBigEndian, nanosecondsPerFraction) = (true, 1)
        case 0xD4C3_B2A1: (isBigEndian, nanosecondsPerFraction) = (false, 1_000)
        case 0x4D3C_B2A1: (isBigEndian, nanosecondsPerFraction) = (false, 1)
        default: return nil
        }
        guard file.count >= Self.fileHeaderSize, let number = Self.uint32(file, at: 20, isBigEndian)
        else {
            throw PacketRecordingError(offset: file.count, message: "the header of 24 bytes is cut off")
        }
        // The upper bits describe frame check sequences, which follow the packet and can be ignored.
        guard let link = LinkLayer(number: number & 0xFFFF) else {
            throw PacketRecordingError(
                offset: 20,
                message: "link type \(number & 0xFFFF) is not Ethernet, Linux cooked, loopback or raw IP")
        }
        self.file = file
        self.link = link
    }

    func read() throws(PacketRecordingError) -> PacketRecording {
        var recording = PacketRecording()
        var offset = Self.fileHeaderSize
        var start: Int64?
        while offset < file.count {
            guard let seconds = uint32(at: offset), let fraction = uint32(at: offset + 4),
                let captured = uint32(at: offset + 8), let original = uint32(at: offset + 12)
            else {
                recording.isTruncated = true
                break
            }
            guard captured <= Self.maximumRecordSize else {
                throw PacketRecordingError(
                    offset: offset + 8, message: "a record of \(captured) bytes cannot be")
            }
            let begin = offset + Self.recordHeaderSize
            offset = begin + Int(captured)
            guard offset <= file.count else {
                recording.isTruncated = true
                break
            }
            let time = Int64(seconds) * 1_000_000_000 + Int64(fraction) * nanosecondsPerFraction
            guard captured >= original, let datagram = datagram(in: begin..<offset) else {
                recording.skipped += 1
                continue
            }
            let first = start ?? time
            start = first
            recording.packets.append(
                .init(
                    offsetNanoseconds: time - first, bytes: Array(file[datagram.payload]),
                    sourcePort: datagram.source, destinationPort: datagram.destination))
        }
        return recording
    }

    private func uint32(at offset: Int) -> UInt32? { Self.uint32(file, at: offset, isBigEndian) }

    private static func uint32(_ file: [UInt8], at offset: Int, _ isBigEndian: Bool) -> UInt32? {
        let value = file.uint32(at: offset)
        return isBigEndian ? value : value?.byteSwapped
    }
}

// MARK: Layers

extension PcapReader {
    /// The bytes before the IP header.
    private enum LinkLayer {
        case ethernet
        case linuxCooked
        case linuxCooked2
        case loopback
        case raw

        init?(number: UInt32) {
            switch number {
            case 0, 108: self = .loopback
            case 1: self = .ethernet
            case 12, 14, 101, 228, 229: self = .raw
            case 113: self = .linuxCooked
            case 276: self = .linuxCooked2
            default: return nil
            }
        }
    }

    private struct Datagram {
        var payload: Range<Int>
        var source: UInt16
        var destination: UInt16
    }

    /// The UDP datagram in one record, if there is a whole one.
    private func datagram(in record: Range<Int>) -> Datagram? {
        guard let start = networkLayer(in: record), let version = file.uint8(at: start)
        else { return nil }
        switch version >> 4 {
        case 4: return fourth(start..<record.upperBound)
        case 6: return sixth(start..<record.upperBound)
        default: return nil
        }
    }

    /// Offset of the IP header. Only the size of the bytes before it matters: the IP header has its own version.
    private func networkLayer(in record: Range<Int>) -> Int? {
        var offset = record.lowerBound
        switch link {
        case .raw: break
        case .loopback: offset += 4
        case .linuxCooked: offset += 16
        case .linuxCooked2: offset += 20
        case .ethernet:
            offset += 14
            // Each VLAN tag moves the type back by four bytes.
            while offset <= record.upperBound, let type = file.uint16(at: offset - 2),
                type == 0x8100 || type == 0x88A8
            {
                offset += 4
            }
            guard let type = file.uint16(at: offset - 2), type == 0x0800 || type == 0x86DD
            else {
                return nil
            }
        }
        return offset < record.upperBound ? offset : nil
    }

    private func fourth(_ packet: Range<Int>) -> Datagram? {
        guard packet.count >= 20, let first = file.uint8(at: packet.lowerBound),
            let length = file.uint16(at: packet.lowerBound + 2),
            let fragment = file.uint16(at: packet.lowerBound + 6),
            let next = file.uint8(at: packet.lowerBound + 9)
        else { return nil }
        let headerSize = Int(first & 0x0F) * 4
        // More-fragments flag or an offset: one of several fragments, which are not reassembled here.
        guard headerSize >= 20, fragment & 0x3FFF == 0, next == 17, Int(length) >= headerSize,
            Int(length) <= packet.count
        else { return nil }
        return udp((packet.lowerBound + headerSize)..<(packet.lowerBound + Int(length)))
    }

    private func sixth(_ packet: Range<Int>) -> Datagram? {
        guard packet.count >= 40, let length = file.uint16(at: packet.lowerBound + 4),
            var next = file.uint8(at: packet.lowerBound + 6), 40 + Int(length) <= packet.count
        else { return nil }
        let end = packet.lowerBound + 40 + Int(length)
        var offset = packet.lowerBound + 40
        // Hop-by-hop, routing and destination options may precede UDP (RFC 8200 §4).
        while offset < end, next == 0 || next == 43 || next == 60 {
            guard let following = file.uint8(at: offset), let size = file.uint8(at: offset + 1) else {
                return nil
            }
            next = following
            offset += (Int(size) + 1) * 8
        }
        return next == 17 && offset <= end ? udp(offset..<end) : nil
    }

    private func udp(_ segment: Range<Int>) -> Datagram? {
        guard segment.count >= 8, let source = file.uint16(at: segment.lowerBound),
            let destination = file.uint16(at: segment.lowerBound + 2),
            let length = file.uint16(at: segment.lowerBound + 4),
            (8...segment.count).contains(Int(length))
        else { return nil }
        let payload = (segment.lowerBound + 8)..<(segment.lowerBound + Int(length))
        return Datagram(payload: payload, source: source, destination: destination)
    }
}
