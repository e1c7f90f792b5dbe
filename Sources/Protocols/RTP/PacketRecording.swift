/// Datagrams with the times they came at, read from a file that another tool, or we, recorded.
public struct PacketRecording: Equatable, Sendable {
    /// One UDP payload.
    public struct Packet: Equatable, Sendable {
        /// Nanoseconds since the recording began.
        public var offsetNanoseconds: Int64
        /// The datagram, from its RTP or RTCP header on.
        public var bytes: [UInt8]
        /// Source UDP port; zero if the format does not record it.
        public var sourcePort: UInt16
        /// Destination UDP port; zero if the format does not record it.
        public var destinationPort: UInt16

        /// Makes a packet.
        public init(
            offsetNanoseconds: Int64, bytes: [UInt8], sourcePort: UInt16 = 0, destinationPort: UInt16 = 0
        ) {
            self.offsetNanoseconds = offsetNanoseconds
            self.bytes = bytes
            self.sourcePort = sourcePort
            self.destinationPort = destinationPort
        }
    }

    /// The datagrams, in the file's order.
    public internal(set) var packets: [Packet] = []
    /// Records passed over: not UDP over IP, a fragment, or recorded in part only.
    public internal(set) var skipped = 0
    /// The file ends in the middle of a record, as after a recorder that was killed; what came before is here.
    public internal(set) var isTruncated = false

    /// Reads an rtpdump or a classic pcap file, distinguished by their first bytes.
    ///
    /// - Throws: ``PacketRecordingError`` with the offset. Any bytes may come.
    public init(parsing file: [UInt8]) throws(PacketRecordingError) {
        if file.starts(with: RTPDump.magic) {
            self = try RTPDump.read(file)
        } else if let capture = try PcapReader(file) {
            self = try capture.read()
        } else if file.starts(with: [0x0A, 0x0D, 0x0D, 0x0A]) {
            throw PacketRecordingError(
                offset: 0,
                message: "this is a pcapng file; `editcap -F pcap IN OUT` makes a pcap file of it")
        } else {
            throw PacketRecordingError(offset: 0, message: "neither an rtpdump nor a pcap file")
        }
    }

    init() {}
}

/// A file is not a recording, or is broken.
public struct PacketRecordingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Byte offset in the file.
    public let offset: Int
    /// What was found or expected there.
    public let message: String

    /// The message and its position.
    public var description: String { "cannot read the recording at byte \(offset): \(message)" }
}
