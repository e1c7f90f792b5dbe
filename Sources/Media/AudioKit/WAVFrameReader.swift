internal import Core
internal import Files

/// Reads the frames of a WAV file at the file's own rate, its channels averaged into one.
struct WAVFrameReader: ~Copyable, Sendable {
    let path: String
    let header: WAVHeader
    private let file: PosixFile
    /// Raw bytes read ahead; those at `start..<end` are still to be used.
    private var buffer: [UInt8]
    private var start: Int
    private var end: Int
    /// Bytes of sample data behind `start`, as far as the head says.
    private var remaining: Int

    /// A head longer than this is not read to its end.
    private static let maximumHeadBytes = 1 << 20
    /// Holds at least one frame of the largest size, 256 bytes.
    private static let bufferBytes = 32_768

    init(path: String) throws(AudioFileError) {
        let file = try PosixFile.reading(path)
        var buffer = [UInt8](repeating: 0, count: Self.bufferBytes)
        var end = 0
        let header = try Self.readHead(path, file, &buffer, &end)
        self.path = path
        self.header = header
        self.file = file
        self.buffer = buffer
        self.end = end
        start = header.dataOffset
        remaining = header.dataByteCount ?? .max
    }

    /// Decodes the next frames.
    ///
    /// - Returns: Samples written to the front of `samples`: as many as fit, fewer only at the end of the data. A last
    ///   frame that is cut short is left out.
    mutating func read(into samples: inout MutableSpan<Int16>) throws(AudioFileError) -> Int {
        let frameBytes = header.frameByteCount
        var produced = 0
        while produced < samples.count {
            if min(end - start, remaining) < frameBytes, try !refill(frameBytes) { break }
            let frames = min(min(end - start, remaining) / frameBytes, samples.count - produced)
            header.decode(frames, in: unsafe buffer.span.bytes, at: start, into: &samples, at: produced)
            produced += frames
            start += frames * frameBytes
            remaining -= frames * frameBytes
        }
        return produced
    }

    mutating func rewind() throws(AudioFileError) {
        guard file.seek(to: header.dataOffset) else {
            throw AudioFileError(.unreadable, .play, path: path, reason: "it cannot be played from the start again")
        }
        start = 0
        end = 0
        remaining = header.dataByteCount ?? .max
    }

    /// Moves what is left to the front of the buffer and reads on; `false` if less than one frame is left after that.
    private mutating func refill(_ frameBytes: Int) throws(AudioFileError) -> Bool {
        guard remaining >= frameBytes else { return false }
        let left = end - start
        for index in 0..<left { buffer[index] = buffer[start + index] }
        start = 0
        end = left
        while end < frameBytes {
            let count = try Self.read(path, file, &buffer, from: end)
            guard count > 0 else { return false }
            end += count
        }
        return true
    }

    private static func readHead(_ path: String, _ file: borrowing PosixFile, _ buffer: inout [UInt8], _ end: inout Int)
        throws(AudioFileError) -> WAVHeader
    {
        while true {
            let failure: WAVFormatError
            do throws(WAVFormatError) {
                return try WAVHeader(parsing: unsafe buffer.span.bytes.extracting(0..<end))
            } catch {
                failure = error
            }
            if let needed = failure.bytesNeeded, needed <= maximumHeadBytes {
                if needed > buffer.count {
                    buffer.append(contentsOf: repeatElement(0, count: needed - buffer.count))
                }
                let count = try read(path, file, &buffer, from: end)
                end += count
                if count > 0 { continue }
            }
            throw AudioFileError(
                failure.isForeign ? .notAudio : .unsupported, .play, path: path, reason: failure.reason)
        }
    }

    private static func read(_ path: String, _ file: borrowing PosixFile, _ buffer: inout [UInt8], from offset: Int)
        throws(AudioFileError) -> Int
    {
        do throws(SystemError) {
            return try file.read(into: &buffer, from: offset)
        } catch {
            throw AudioFileError(.unreadable, .play, path: path, reason: "\(error)", errno: error.code)
        }
    }
}

extension WAVHeader {
    /// Decodes `count` frames, which begin at `offset` of `bytes`, into `samples` behind `position`.
    func decode(
        _ count: Int, in bytes: RawSpan, at offset: Int, into samples: inout MutableSpan<Int16>, at position: Int
    ) {
        for frame in 0..<count {
            samples[position + frame] = monoSample(in: bytes, at: offset + frame * frameByteCount)
        }
    }

    /// The frame at `offset` as one sample: the mean of its channels, rounded, and limited to 16 bits.
    private func monoSample(in bytes: RawSpan, at offset: Int) -> Int16 {
        var sum: Float = 0
        for channel in 0..<channels {
            sum += sampleFormat.sample(in: bytes, at: offset + channel * sampleFormat.byteCount)
        }
        let mean = (sum / Float(channels)).rounded()
        // A float file can hold anything, NaN included.
        guard mean.isFinite else { return 0 }
        return Int16(max(-32_768, min(32_767, mean)))
    }
}

extension WAVHeader.SampleFormat {
    /// The sample at `offset`, scaled so that full scale is 32 768; 0 past the end.
    fileprivate func sample(in bytes: RawSpan, at offset: Int) -> Float {
        switch self {
        case .unsigned8:
            return Float(Int(bytes.uint8(at: offset) ?? 128) - 128) * 256
        case .signed16:
            return Float(Int16(bitPattern: bytes.littleUInt16(at: offset) ?? 0))
        case .signed24:
            let low = UInt32(bytes.uint8(at: offset) ?? 0)
            let high = UInt32(bytes.littleUInt16(at: offset + 1) ?? 0)
            return Float(Int32(bitPattern: high << 16 | low << 8)) / 65_536
        case .signed32:
            return Float(Int32(bitPattern: bytes.littleUInt32(at: offset) ?? 0)) / 65_536
        case .float32:
            return Float(bitPattern: bytes.littleUInt32(at: offset) ?? 0) * 32_768
        case .muLaw:
            return Float(G711.muLawSample(bytes.uint8(at: offset) ?? G711.muLaw.silence))
        case .aLaw:
            return Float(G711.aLawSample(bytes.uint8(at: offset) ?? G711.aLaw.silence))
        }
    }
}
