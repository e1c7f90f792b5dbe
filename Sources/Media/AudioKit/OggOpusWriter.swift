public import Files

/// Writes Opus packets to an Ogg Opus file (RFC 7845) that can be played at every moment, even if the process is killed: it
/// then ends with its last page, which are half a second apart.
///
/// A packet holds 20 ms. With two channels it consists of two mono packets (channel mapping family 1), so that nothing of one
/// channel is heard in the other; the first has the self-delimiting form (``selfDelimited(_:)``). Blocks on the disk: for
/// control and file threads. The first failure is thrown, once; afterwards nothing is written, and whole pages stay.
public struct OggOpusWriter: ~Copyable, Sendable {
    /// Samples at 48 kHz in a packet.
    public static let packetSamples = 960

    private let path: String
    private let file: PosixFile
    private let preSkip: Int
    private var pages: OggPages
    private var writtenBytes: Int
    private var packets = 0
    private var packetsOfPage = 0
    private var isClosed = false

    private static let packetsInPage = 25

    /// Creates the file for its owner alone, or overwrites the regular file that exists.
    ///
    /// - Parameters:
    ///   - channels: 1, or 2 for left and right.
    ///   - preSkip: Samples at the beginning that readers leave out: the encoder's delay.
    ///   - serial: Any number.
    ///   - played: Files that must not be overwritten, under any name.
    public init(
        path: String, channels: Int, preSkip: Int, serial: UInt32, sparing played: [FileIdentity] = []
    ) throws(AudioFileError) {
        precondition((1...2).contains(channels), "a recording has one channel or two")
        self.path = path
        self.preSkip = preSkip
        var pages = OggPages(serial: serial)
        pages.add(Self.head(channels: channels, preSkip: preSkip), granule: 0)
        var start = pages.takePage(.first)
        pages.add(Self.tags, granule: 0)
        start += pages.takePage()
        let recording = try PosixFile.recording(path, sparing: played)
        if let error = recording.file.write(start, at: 0).error {
            if recording.isNew { PosixFile.remove(path) }
            throw Self.error(error, path)
        }
        recording.file.truncate(to: start.count)
        file = recording.takeFile()
        self.pages = pages
        writtenBytes = start.count
    }

    /// Appends a packet of 20 ms.
    public mutating func append(_ packet: [UInt8]) throws(AudioFileError) {
        guard !isClosed else { return }
        // The page before the last packet's is written now, so that the last page of all is known to be it.
        if packetsOfPage >= Self.packetsInPage || !pages.hasRoom(for: packet.count) { try flush(.none) }
        packets += 1
        packetsOfPage += 1
        pages.add(packet, granule: UInt64(packets * Self.packetSamples))
    }

    /// Writes the last page and syncs the file to the disk.
    ///
    /// - Parameter samples: Samples that were encoded, without what filled up the last packet.
    public mutating func finish(samples: Int) throws(AudioFileError) {
        guard !isClosed else { return }
        pages.setGranule(UInt64(min(packets * Self.packetSamples, samples + preSkip)))
        try flush(.last)
        isClosed = true
        if let error = file.synchronise() { throw Self.error(error, path) }
    }

    /// A packet in self-delimiting form (RFC 6716 appendix B); nil if it is not one frame.
    public static func selfDelimited(_ packet: [UInt8]) -> [UInt8]? {
        guard let first = packet.first, first & 3 == 0, packet.count <= 1_276 else { return nil }
        let length = packet.count - 1
        let size =
            length < 252 ? [UInt8(length)] : [UInt8(252 + (length & 3)), UInt8((length - 252 - (length & 3)) / 4)]
        return [first] + size + packet.dropFirst()
    }

    private mutating func flush(_ flags: OggPages.Flags) throws(AudioFileError) {
        let page = pages.takePage(flags)
        packetsOfPage = 0
        if let error = file.write(page, at: writtenBytes).error {
            isClosed = true
            file.truncate(to: writtenBytes)
            throw Self.error(error, path)
        }
        writtenBytes += page.count
    }

    private static func error(_ error: SystemError, _ path: String) -> AudioFileError {
        AudioFileError(
            PosixFile.recordingCode(error.code), .record, path: path, reason: "\(error)", errno: error.code)
    }

    /// RFC 7845 §5.1.
    private static func head(channels: Int, preSkip: Int) -> [UInt8] {
        var head = Array("OpusHead".utf8) + [1, UInt8(channels)]
        head.append(little: UInt64(preSkip), bytes: 2)
        head.append(little: 48_000, bytes: 4)
        // No gain. Two streams, none of them coupled.
        head += channels == 1 ? [0, 0, 0] : [0, 0, 1, 2, 0, 0, 1]
        return head
    }

    /// RFC 7845 §5.2: who wrote it, and no comments.
    private static let tags: [UInt8] = {
        let vendor = Array("Handset".utf8)
        var tags = Array("OpusTags".utf8)
        tags.append(little: UInt64(vendor.count), bytes: 4)
        tags += vendor
        tags.append(little: 0, bytes: 4)
        return tags
    }()
}
