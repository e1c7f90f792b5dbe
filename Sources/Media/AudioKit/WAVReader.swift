/// Reads a WAV file of any supported form as mono samples at 48 kHz, a piece at a time.
///
/// Channels are averaged. Blocks on the disk: for control and file threads.
public struct WAVReader: ~Copyable, Sendable {
    private var frames: WAVFrameReader
    /// `nil` where the file has 48 kHz already.
    private var resampler: Resampler?
    private var pending: Pending
    private var samplesProduced = 0

    /// Opens a file and reads its head.
    public init(path: String) throws(AudioFileError) {
        let frames = try WAVFrameReader(path: path)
        resampler = Self.resampler(from: frames.header.sampleRate)
        pending = Pending(capacity: resampler == nil ? 0 : 2_048)
        self.frames = frames
    }

    /// The file's header.
    public var header: WAVHeader { frames.header }

    /// Reads the next samples.
    ///
    /// - Returns: Samples written to the front of `samples`: as many as fit, fewer only at the end of the file.
    public mutating func read(into samples: inout MutableSpan<Int16>) throws(AudioFileError) -> Int {
        guard resampler != nil else { return try frames.read(into: &samples) }
        var produced = 0
        while produced < samples.count {
            if pending.isEmpty, try !refill() { break }
            produced += pending.resample(with: &resampler, into: &samples, at: produced)
        }
        if pending.isEnding {
            // The filter's tail is cut off: the output is as long as the file.
            let rate = frames.header.sampleRate
            let whole = (pending.framesRead * AudioFormat.sampleRate + rate - 1) / rate
            produced = min(produced, max(0, whole - samplesProduced))
        }
        samplesProduced += produced
        return produced
    }

    /// Goes back to the beginning.
    ///
    /// - Throws: ``AudioFileError`` where that is not possible, such as in a pipe.
    public mutating func rewind() throws(AudioFileError) {
        try frames.rewind()
        resampler = Self.resampler(from: frames.header.sampleRate)
        pending = Pending(capacity: pending.capacity)
        samplesProduced = 0
    }

    private static func resampler(from rate: Int) -> Resampler? {
        rate == AudioFormat.sampleRate ? nil : Resampler(from: rate, to: AudioFormat.sampleRate)
    }

    /// Gets the resampler more to work on; `false` once it has had everything.
    private mutating func refill() throws(AudioFileError) -> Bool {
        guard !pending.isEnding else { return false }
        try pending.fill(from: &frames)
        if pending.isEmpty { pending.end(withSilence: resampler?.flushSampleCount ?? 0) }
        return !pending.isEmpty
    }
}

/// Samples at a file's own rate on their way into the resampler.
private struct Pending {
    let capacity: Int
    private var samples: [Int16]
    /// Those at `start..<end` are still to go.
    private var start = 0
    private var end = 0
    /// Frames that came from the file so far.
    private(set) var framesRead = 0
    /// The file has ended, and silence flushes the filter.
    private(set) var isEnding = false

    init(capacity: Int) {
        self.capacity = capacity
        samples = [Int16](repeating: 0, count: capacity)
    }

    var isEmpty: Bool { start == end }

    mutating func fill(from frames: inout WAVFrameReader) throws(AudioFileError) {
        start = 0
        end = 0
        var room = samples.mutableSpan
        let count = try frames.read(into: &room)
        end = count
        framesRead += count
    }

    mutating func end(withSilence count: Int) {
        samples = [Int16](repeating: 0, count: count)
        start = 0
        end = count
        isEnding = true
    }

    /// - Returns: Samples written to `output` behind `offset`.
    mutating func resample(
        with resampler: inout Resampler?, into output: inout MutableSpan<Int16>, at offset: Int
    ) -> Int {
        let progress = resampler?.process(samples.span.extracting(start..<end), into: &output, at: offset)
        guard let progress, progress.consumed + progress.produced > 0 else {
            start = end
            return 0
        }
        start += progress.consumed
        return progress.produced
    }
}
