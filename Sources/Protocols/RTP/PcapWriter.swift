/// Makes a pcap file piece by piece: ``header`` once, then ``record(_:atNanoseconds:sourcePort:destinationPort:)`` for each
/// datagram. Times are kept to the nanosecond, and all addresses are 0.0.0.0. The caller does the writing.
public enum PcapWriter {
    /// The longest payload of a datagram.
    public static var maximumPayload: Int { 65_535 - 28 }

    /// The file's beginning: nanoseconds, and raw IP.
    public static var header: [UInt8] {
        var bytes: [UInt8] = []
        append(0xA1B2_3C4D, 4, to: &bytes)
        append(2, 2, to: &bytes)
        append(4, 2, to: &bytes)
        append(0, 4, to: &bytes)
        append(0, 4, to: &bytes)
        append(65_535, 4, to: &bytes)
        append(101, 4, to: &bytes)
        return bytes
    }

    /// One datagram; nil for a payload longer than ``maximumPayload``, or a time before zero.
    public static func record(
        _ payload: [UInt8], atNanoseconds time: Int64, sourcePort: UInt16, destinationPort: UInt16
    ) -> [UInt8]? {
        guard payload.count <= maximumPayload, time >= 0, let seconds = UInt32(exactly: time / 1_000_000_000) else {
            return nil
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(44 + payload.count)
        let length = UInt32(28 + payload.count)
        append(seconds, 4, to: &bytes)
        append(UInt32(time % 1_000_000_000), 4, to: &bytes)
        append(length, 4, to: &bytes)
        append(length, 4, to: &bytes)
        // IPv4 without options: length, no fragment, one hop, UDP, and a checksum over these alone, since addresses are zero.
        append(0x4500, 2, to: &bytes)
        append(length, 2, to: &bytes)
        append(0, 4, to: &bytes)
        append(0x0111, 2, to: &bytes)
        let sum = 0x4500 + length + 0x0111
        append(~((sum & 0xFFFF) + (sum >> 16)) & 0xFFFF, 2, to: &bytes)
        append(0, 8, to: &bytes)
        append(UInt32(sourcePort), 2, to: &bytes)
        append(UInt32(destinationPort), 2, to: &bytes)
        append(UInt32(8 + payload.count), 2, to: &bytes)
        // No checksum (RFC 768).
        append(0, 2, to: &bytes)
        bytes += payload
        return bytes
    }

    private static func append(_ value: UInt32, _ count: Int, to bytes: inout [UInt8]) {
        for index in (0..<count).reversed() {
            bytes.append(index < 4 ? UInt8(truncatingIfNeeded: value >> UInt32(8 * index)) : 0)
        }
    }
}
