internal import Core
public import Files

/// Reads a WAV or Ogg Opus file as mono samples at 48 kHz, whichever it is by its content, once or over and over.
///
/// Blocks on the disk: for control and file threads.
public struct AudioFileReader: ~Copyable, Sendable {
    private var wav: WAVReader?
    private var opus: OggOpusReader?
    private let loops: Bool
    /// Which file it is.
    public private(set) var identity: FileIdentity?

    /// Opens a file and reads its head.
    ///
    /// - Parameter loops: Whether to begin again at the end.
    public init(path: String, loops: Bool = false) throws(AudioFileError) {
        self.loops = loops
        let (magic, identity) = try Self.magic(path)
        self.identity = identity
        if magic == FourCC.ogg {
            opus = try OggOpusReader(path: path)
        } else if let magic, magic != FourCC.riff, magic != FourCC.rf64 {
            throw AudioFileError(
                .notAudio, .play, path: path,
                reason: "not a WAV: it begins with \(FourCC.text(magic)) instead of \"RIFF\"; nor is it Ogg Opus")
        } else {
            wav = try WAVReader(path: path)
        }
    }

    /// Reads the next samples.
    ///
    /// - Returns: Samples written to the front of `samples`: as many as fit, fewer only at the end of a file that does
    ///   not loop, or that holds no samples at all.
    public mutating func read(into samples: inout MutableSpan<Int16>) throws(AudioFileError) -> Int {
        var produced = try readOnce(into: &samples)
        guard loops, produced < samples.count else { return produced }
        var scratch = [Int16](repeating: 0, count: samples.count - produced)
        var cameToNothing = produced == 0
        while produced < samples.count {
            try rewind()
            var room = scratch.mutableSpan
            let count = try readOnce(into: &room)
            if count == 0 && cameToNothing { break }
            cameToNothing = count == 0
            for index in 0..<min(count, samples.count - produced) { samples[produced + index] = room[index] }
            produced += count
        }
        return produced
    }

    /// Reads a whole file.
    ///
    /// - Parameter maximumSamples: Reading ends here; ten minutes if not given.
    public static func samples(ofFile path: String, maximumSamples: Int = 600 * AudioFormat.sampleRate)
        throws(AudioFileError) -> [Int16]
    {
        var reader = try AudioFileReader(path: path)
        var all: [Int16] = []
        var block = [Int16](repeating: 0, count: 8_192)
        while all.count < maximumSamples {
            var room = block.mutableSpan
            let count = try reader.read(into: &room)
            if count == 0 { break }
            all.append(contentsOf: block[0..<min(count, maximumSamples - all.count)])
        }
        return all
    }

    private mutating func readOnce(into samples: inout MutableSpan<Int16>) throws(AudioFileError) -> Int {
        if wav != nil { return try wav?.read(into: &samples) ?? 0 }
        return try opus?.read(into: &samples) ?? 0
    }

    private mutating func rewind() throws(AudioFileError) {
        try wav?.rewind()
        try opus?.rewind()
    }

    /// The first four bytes, `nil` if there are fewer, and which file they are in.
    private static func magic(_ path: String) throws(AudioFileError) -> (UInt32?, FileIdentity?) {
        let file = try PosixFile.reading(path)
        var head = [UInt8](repeating: 0, count: 4)
        do throws(SystemError) {
            let count = try file.read(into: &head, from: 0)
            return (count < 4 ? nil : unsafe head.span.bytes.uint32(at: 0), file.identity)
        } catch {
            throw AudioFileError(.unreadable, .play, path: path, reason: "\(error)", errno: error.code)
        }
    }
}
