package import Playout
internal import RTP
internal import Core

/// An entry of a capture's file between the packets, in a datagram to port 9 ("discard"): a line of text, followed by a
/// payload if there is one.
///
/// A file of captures is a pcap whose times are those of the device's monotonic clock. Packets of sound and noise are RTP to
/// ``mediaPort``; their source port gives their format and kind.
package enum CaptureNote: Equatable {
    /// The first: how the call is played out, and what with.
    case start(codec: SoundCodec, PlayoutConfiguration, baseNanoseconds: Int64, decoder: String)
    case pull(count: Int, SampleChecksum)
    case advance(nanoseconds: Int64)
    case patience(nanoseconds: Int64)
    case repair(nanoseconds: Int64?)
    case request(number: Int64)
    case passOver(sequenceNumber: UInt16, ssrc: UInt32)
    case change(SoundCodec)
    case copy(
        timestampOffset: UInt32, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32, format: UInt8,
        payload: [UInt8])
    /// The number of records that found no room.
    case lost(Int)

    package static let port: UInt16 = 9
    static let mediaPort: UInt16 = 5_004

    /// The port that a packet comes from.
    static func sourcePort(format: UInt8, isNoise: Bool) -> UInt16 {
        mediaPort + UInt16(format) * 2 + (isNoise ? 1 : 0)
    }

    /// The format and kind that a port denotes.
    static func format(ofPort port: UInt16) -> (format: UInt8, isNoise: Bool)? {
        guard port >= mediaPort, let format = UInt8(exactly: (port - mediaPort) / 2) else { return nil }
        return (format, (port - mediaPort) % 2 == 1)
    }

    /// What goes into the datagram.
    package var bytes: [UInt8] {
        switch self {
        case .start(let codec, let playout, let base, let decoder):
            Array(
                """
                handset-capture 1 \(codec.rawValue) \(playout.minimumDelayMilliseconds) \
                \(playout.maximumDelayMilliseconds) \(playout.initialDelayMilliseconds) \
                \(playout.millisecondsPerLatePercent) \(playout.memoryMilliseconds) \(base) \(decoder)
                """.utf8)
        case .pull(let count, let checksum): Array("pull \(count) \(checksum)".utf8)
        case .advance(let nanoseconds): Array("advance \(nanoseconds)".utf8)
        case .patience(let nanoseconds): Array("patience \(nanoseconds)".utf8)
        case .repair(let nanoseconds): Array("repair \(nanoseconds ?? -1)".utf8)
        case .request(let number): Array("request \(number)".utf8)
        case .passOver(let number, let ssrc): Array("pass \(number) \(ssrc)".utf8)
        case .change(let codec): Array("change \(codec.rawValue)".utf8)
        case .copy(let offset, let number, let timestamp, let ssrc, let format, let payload):
            Array("copy \(offset) \(number) \(timestamp) \(ssrc) \(format)\n".utf8) + payload
        case .lost(let count): Array("lost \(count)".utf8)
        }
    }

    /// Reads a datagram. Any bytes may be given.
    init?(parsing bytes: [UInt8]) {
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
        guard line.count <= 300 else { return nil }
        let words = String(decoding: line, as: UTF8.self).split(separator: " ", maxSplits: 9).map(String.init)
        func number<Value: FixedWidthInteger>(_ index: Int) -> Value? {
            index < words.count ? Value(words[index]) : nil
        }
        switch words.first {
        case "handset-capture":
            guard words.count == 10, words[1] == "1", let codec = SoundCodec(rawValue: words[2]),
                let base: Int64 = number(8), let playout = Self.playout(words[3..<8].compactMap { Int($0) })
            else { return nil }
            self = .start(codec: codec, playout, baseNanoseconds: base, decoder: words[9])
        case "pull":
            guard let count: Int = number(1), (1...2_880).contains(count), words.count == 3,
                let value = UInt64(words[2], radix: 16)
            else { return nil }
            self = .pull(count: count, SampleChecksum(value: value))
        case "advance":
            guard let value: Int64 = number(1), (-1_000_000_000...1_000_000_000).contains(value) else { return nil }
            self = .advance(nanoseconds: value)
        case "patience":
            guard let value: Int64 = number(1), (0...1_000_000_000).contains(value) else { return nil }
            self = .patience(nanoseconds: value)
        case "repair":
            guard let value: Int64 = number(1), (-1...3_600_000_000_000).contains(value) else { return nil }
            self = .repair(nanoseconds: value < 0 ? nil : value)
        case "request":
            guard let value: Int64 = number(1), (0...1 << 48).contains(value) else { return nil }
            self = .request(number: value)
        case "pass":
            guard let sequence: UInt16 = number(1), let ssrc: UInt32 = number(2) else { return nil }
            self = .passOver(sequenceNumber: sequence, ssrc: ssrc)
        case "change":
            guard words.count == 2, let codec = SoundCodec(rawValue: words[1]) else { return nil }
            self = .change(codec)
        case "copy":
            guard let offset: UInt32 = number(1), let sequence: UInt16 = number(2), let timestamp: UInt32 = number(3),
                let ssrc: UInt32 = number(4), let format: UInt8 = number(5)
            else { return nil }
            self = .copy(
                timestampOffset: offset, sequenceNumber: sequence, timestamp: timestamp, ssrc: ssrc, format: format,
                payload: Array(bytes.dropFirst(line.count + 1)))
        case "lost":
            guard let count: Int = number(1), count > 0 else { return nil }
            self = .lost(count)
        default: return nil
        }
    }

    private static func playout(_ numbers: [Int]) -> PlayoutConfiguration? {
        guard numbers.count == 5, numbers.allSatisfy({ (0...60_000).contains($0) }), numbers[4] >= 1_000 else {
            return nil
        }
        var playout = PlayoutConfiguration()
        playout.minimumDelayMilliseconds = numbers[0]
        playout.maximumDelayMilliseconds = numbers[1]
        playout.initialDelayMilliseconds = numbers[2]
        playout.millisecondsPerLatePercent = numbers[3]
        playout.memoryMilliseconds = numbers[4]
        return playout
    }
}

extension CaptureRecord {
    /// The datagrams that represent it in a file.
    package var datagrams: [(bytes: [UInt8], source: UInt16, destination: UInt16)] {
        var notes: [CaptureNote] = []
        if lostBefore > 0 { notes.append(.lost(Int(lostBefore))) }
        var packet: [(bytes: [UInt8], source: UInt16, destination: UInt16)] = []
        switch kind {
        case .packet, .noise:
            let isNoise = if case .noise = kind { true } else { false }
            let source = CaptureNote.sourcePort(format: format, isNoise: isNoise)
            packet = [(rtp, source, CaptureNote.mediaPort)]
        case .copy:
            notes.append(
                .copy(
                    timestampOffset: timestampOffset, sequenceNumber: sequenceNumber, timestamp: timestamp, ssrc: ssrc,
                    format: format, payload: payloadCopy))
        case .passOver: notes.append(.passOver(sequenceNumber: sequenceNumber, ssrc: ssrc))
        case .pull: notes.append(.pull(count: Int(count), SampleChecksum(value: UInt64(bitPattern: value))))
        case .advance: notes.append(.advance(nanoseconds: value))
        case .patience: notes.append(.patience(nanoseconds: value))
        case .repair: notes.append(.repair(nanoseconds: value < 0 ? nil : value))
        case .request: notes.append(.request(number: value))
        case .change: notes.append(.change(SoundCodec.allCases[Int(value)]))
        }
        return notes.map { ($0.bytes, CaptureNote.port, CaptureNote.port) } + packet
    }

    private var payloadCopy: [UInt8] { (0..<Int(payloadBytes)).map { payload[$0] } }

    /// The header's 12 bytes (RFC 3550 §5.1), and the payload.
    private var rtp: [UInt8] {
        var bytes: [UInt8] = [0x80, (marker ? 0x80 : 0) | payloadType & 0x7F]
        for shift in [8, 0] as [UInt16] { bytes.append(UInt8(truncatingIfNeeded: sequenceNumber >> shift)) }
        for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: timestamp >> shift)) }
        for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: ssrc >> shift)) }
        return bytes + payloadCopy
    }
}

/// A checksum of decoded sound (FNV-1a, 64 bits): equal if all samples are equal, and otherwise with a chance of one in
/// 2⁶⁴.
public struct SampleChecksum: Equatable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// The checksum so far.
    public private(set) var value: UInt64

    /// That of no samples.
    public init() { value = 0xCBF2_9CE4_8422_2325 }

    /// One that was kept.
    init(value: UInt64) { self.value = value }

    /// Adds `samples`. O(samples); allocates nothing.
    @_noAllocation @_noLocks
    public mutating func add(_ samples: Span<Int16>) {
        var sum = value
        for index in 0..<samples.count {
            let sample = UInt16(bitPattern: samples[index])
            sum = (sum ^ UInt64(sample & 0xFF)) &* 0x0000_0100_0000_01B3
            sum = (sum ^ UInt64(sample >> 8)) &* 0x0000_0100_0000_01B3
        }
        value = sum
    }

    /// Sixteen hexadecimal digits.
    public var description: String { Hexadecimal.text(of: value) }
}
