import Core

/// The rtpdump format of the rtptools: a line of text, a header, and records of length, time and packet.
enum RTPDump {
    static let magic = Array("#!rtpplay1.0 ".utf8)
    /// Start time (8), source address (4), source port (2), padding (2).
    static let headerSize = 16
    /// Length of the record (2), of the packet (2; zero for RTCP), milliseconds since the start (4).
    static let recordHeaderSize = 8

    static func read(_ file: [UInt8]) throws(PacketRecordingError) -> PacketRecording {
        guard let lineEnd = file.prefix(200).firstIndex(of: 10) else {
            throw PacketRecordingError(offset: 0, message: "the first line has no end")
        }
        var recording = PacketRecording()
        var offset = lineEnd + 1 + headerSize
        guard offset <= file.count else {
            throw PacketRecordingError(offset: lineEnd + 1, message: "the header of 16 bytes is cut off")
        }
        let port = file.uint16(at: lineEnd + 13) ?? 0
        while offset < file.count {
            guard let length = file.uint16(at: offset), let plain = file.uint16(at: offset + 2),
                let milliseconds = file.uint32(at: offset + 4)
            else {
                recording.isTruncated = true
                break
            }
            guard Int(length) >= recordHeaderSize else {
                throw PacketRecordingError(
                    offset: offset, message: "a record of \(length) bytes is shorter than its own header")
            }
            let end = offset + Int(length)
            guard end <= file.count else {
                recording.isTruncated = true
                break
            }
            let packet = file[(offset + recordHeaderSize)..<end]
            offset = end
            // Records made with `-F header` have less of the packet than it had on the wire.
            guard packet.count >= Int(plain), !packet.isEmpty else {
                recording.skipped += 1
                continue
            }
            recording.packets.append(
                .init(
                    offsetNanoseconds: Int64(milliseconds) * 1_000_000, bytes: Array(packet), sourcePort: port
                ))
        }
        return recording
    }
}

/// Makes an rtpdump file piece by piece: ``header(unixMilliseconds:)`` once, then ``record(_:offsetNanoseconds:isRTCP:)`` for
/// each packet. The caller does the writing.
public enum RTPDumpWriter {
    /// The longest packet that the format holds, in bytes.
    public static var maximumPacketSize: Int { 65_535 - 8 }

    /// The file's beginning.
    ///
    /// - Parameter unixMilliseconds: When the recording begins, since 1970.
    public static func header(unixMilliseconds: Int64) -> [UInt8] {
        var bytes = Array("#!rtpplay1.0 0.0.0.0/0\n".utf8)
        let milliseconds = max(0, unixMilliseconds)
        append(UInt32(truncatingIfNeeded: milliseconds / 1_000), to: &bytes)
        append(UInt32(milliseconds % 1_000 * 1_000), to: &bytes)
        bytes += [UInt8](repeating: 0, count: 8)
        return bytes
    }

    /// One packet's record; `nil` for a packet that is empty or longer than ``maximumPacketSize``.
    ///
    /// - Parameter offsetNanoseconds: Time since the recording began; kept in whole milliseconds, up to 49 days.
    public static func record(_ packet: [UInt8], offsetNanoseconds: Int64, isRTCP: Bool) -> [UInt8]? {
        guard !packet.isEmpty, packet.count <= maximumPacketSize else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(packet.count + RTPDump.recordHeaderSize)
        let length = UInt32(packet.count + RTPDump.recordHeaderSize)
        append(length << 16 | (isRTCP ? 0 : UInt32(packet.count)), to: &bytes)
        append(UInt32(clamping: offsetNanoseconds / 1_000_000), to: &bytes)
        return bytes + packet
    }

    private static func append(_ value: UInt32, to bytes: inout [UInt8]) {
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(shift))) }
    }
}
