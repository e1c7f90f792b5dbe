public import Files

/// Records 16-bit samples into a WAV file that is valid at every moment, even if the process is killed.
///
/// Samples are gathered for a quarter of a second. Then they are written, and after them the header that counts them;
/// so the header never counts missing samples. Blocks on the disk: for control and file threads.
///
/// The first failure is thrown, once. Afterwards nothing is written, and earlier data stays as it is.
public struct WAVWriter: ~Copyable, Sendable {
    private let path: String
    private let file: PosixFile
    private let channels: Int
    private let sampleRate: Int
    private var buffer: [UInt8] = []
    private let flushBytes: Int
    /// Bytes of samples that the file holds and its head counts.
    private var savedBytes = 0
    private var state: State = .recording

    private enum State {
        case recording, failed, finished
    }

    private static let headBytes = 44
    /// The largest length that the 32-bit sizes of a WAV can express, in whole frames of any channel count.
    private static let maximumDataBytes = Int(UInt32.max) - 64

    /// Creates the file, readable only by its owner (mode 0600), or overwrites an existing one.
    ///
    /// A symbolic link is not followed, and anything that is not a regular file is refused. After an error an existing
    /// file is unchanged.
    /// - Parameters:
    ///   - channels: 1, or 2 for left and right.
    ///   - sampleRate: Samples a second for each channel.
    ///   - played: Files that must not be overwritten, under any name.
    public init(
        path: String, channels: Int = 1, sampleRate: Int = AudioFormat.sampleRate, sparing played: [FileIdentity] = []
    ) throws(AudioFileError) {
        precondition((1...2).contains(channels), "a recording has one channel or two")
        let head = Self.head(channels: channels, sampleRate: sampleRate, dataBytes: 0)
        file = try Self.file(path, beginningWith: head, sparing: played)
        self.path = path
        self.channels = channels
        self.sampleRate = sampleRate
        flushBytes = max(1, sampleRate / 4) * channels * 2
        buffer.reserveCapacity(flushBytes)
    }

    /// Opens the file and writes its head. On a full disk no empty file is left behind.
    private static func file(
        _ path: String, beginningWith head: [UInt8], sparing played: [FileIdentity]
    ) throws(AudioFileError) -> PosixFile {
        let recording = try PosixFile.recording(path, sparing: played)
        // The new header replaces the old one before the old samples are removed.
        if let error = recording.file.write(head, at: 0).error {
            if recording.isNew { PosixFile.remove(path) }
            throw Self.error(error, path)
        }
        recording.file.truncate(to: head.count)
        return recording.takeFile()
    }

    /// Checks whether a recording could begin at `path` now. Changes nothing there.
    ///
    /// - Parameter played: Files that must not be overwritten, under any name.
    public static func check(path: String, sparing played: [FileIdentity] = []) throws(AudioFileError) {
        let head = Self.head(channels: 1, sampleRate: AudioFormat.sampleRate, dataBytes: 0)
        try PosixFile.checkRecording(path, writing: head, sparing: played)
    }

    deinit {
        if state == .recording { _ = writeOut() }
    }

    /// How much the file holds.
    public var savedMilliseconds: Double { Double(savedBytes / (2 * channels)) * 1_000 / Double(sampleRate) }

    /// Appends samples; with two channels, left and right alternate.
    public mutating func append(_ samples: Span<Int16>) throws(AudioFileError) {
        guard state == .recording else { return }
        for index in samples.indices { put(samples[index]) }
        try flushIfDue()
    }

    /// Appends to both channels of a recording with two; the shorter side is filled up with silence.
    public mutating func append(left: Span<Int16>, right: Span<Int16>) throws(AudioFileError) {
        precondition(channels == 2, "left and right need a recording with two channels")
        guard state == .recording else { return }
        for index in 0..<max(left.count, right.count) {
            put(index < left.count ? left[index] : 0)
            put(index < right.count ? right[index] : 0)
        }
        try flushIfDue()
    }

    /// Writes what has been gathered.
    public mutating func flush() throws(AudioFileError) {
        guard state == .recording else { return }
        let result = writeOut()
        savedBytes = result.savedBytes
        buffer.removeAll(keepingCapacity: true)
        if let error = result.error {
            state = .failed
            throw error
        }
    }

    /// Writes the gathered samples and syncs the file to the disk. Later appends do nothing.
    public mutating func finish() throws(AudioFileError) {
        guard state == .recording else { return }
        try flush()
        state = .finished
        if let error = file.synchronise() { throw Self.error(error, path) }
    }

    private mutating func put(_ sample: Int16) {
        buffer.append(UInt8(truncatingIfNeeded: sample))
        buffer.append(UInt8(truncatingIfNeeded: sample >> 8))
    }

    private mutating func flushIfDue() throws(AudioFileError) {
        if buffer.count >= flushBytes { try flush() }
    }

    /// Puts the buffer behind what is saved, then a head that counts it. After a failure the whole frames that did get
    /// through are counted, and the rest of them cut off.
    private borrowing func writeOut() -> (savedBytes: Int, error: AudioFileError?) {
        guard !buffer.isEmpty else { return (savedBytes, nil) }
        guard savedBytes + buffer.count <= Self.maximumDataBytes else {
            return (
                savedBytes, AudioFileError(.full, .record, path: path, reason: "a WAV cannot be longer than 4 GiB")
            )
        }
        let result = file.write(buffer, at: Self.headBytes + savedBytes)
        let frameBytes = 2 * channels
        let saved = savedBytes + result.written / frameBytes * frameBytes
        if result.error != nil { file.truncate(to: Self.headBytes + saved) }
        // The head's block exists already, so that this succeeds on a full disk, too.
        let head = Self.head(channels: channels, sampleRate: sampleRate, dataBytes: saved)
        let headError = file.write(head, at: 0).error
        return (headError == nil ? saved : savedBytes, (result.error ?? headError).map { Self.error($0, path) })
    }

    private static func error(_ error: SystemError, _ path: String) -> AudioFileError {
        AudioFileError(
            PosixFile.recordingCode(error.code), .record, path: path, reason: "\(error)", errno: error.code)
    }

    /// The 44 bytes before the samples; written whole and in one call, so that no reader sees half of it.
    private static func head(channels: Int, sampleRate: Int, dataBytes: Int) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(headBytes)
        func put(_ text: String) { head.append(contentsOf: text.utf8) }
        func put16(_ value: Int) {
            for shift in [0, 8] { head.append(UInt8(truncatingIfNeeded: value >> shift)) }
        }
        func put32(_ value: Int) {
            for shift in [0, 8, 16, 24] { head.append(UInt8(truncatingIfNeeded: value >> shift)) }
        }
        put("RIFF")
        put32(headBytes - 8 + dataBytes)
        put("WAVEfmt ")
        put32(16)
        put16(1)
        put16(channels)
        put32(sampleRate)
        put32(sampleRate * channels * 2)
        put16(channels * 2)
        put16(16)
        put("data")
        put32(dataBytes)
        return head
    }
}
