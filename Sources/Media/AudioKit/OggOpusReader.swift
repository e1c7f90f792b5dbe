internal import COpusFile
internal import Glibc

/// Reads an Ogg Opus file (RFC 7845) as mono samples at 48 kHz, a piece at a time, through libopusfile.
///
/// Channels are averaged. Blocks on the disk: for control and file threads.
@safe
public struct OggOpusReader: ~Copyable, @unchecked Sendable {
    // Sendable: the handle is reached only through this owner, which has one holder at a time.
    private let handle: OpaquePointer
    private let path: String
    /// Interleaved stereo samples decoded ahead; the frames at `start..<end` are still to be used.
    private var decoded: [Int16]
    private var start = 0
    private var end = 0

    /// The longest Opus packet, 120 ms.
    private static let maximumFrames = 5_760

    /// Opens a file and reads its headers.
    public init(path: String) throws(AudioFileError) {
        // Opened by ourselves, because libopusfile opens anything and does not say why a file cannot be opened.
        let descriptor = try PosixFile.reading(path).release()
        var callbacks = OpusFileCallbacks()
        guard let stream = unsafe op_fdopen(&callbacks, descriptor, "rb") else {
            close(descriptor)
            throw AudioFileError(.unreadable, .play, path: path, reason: "there is no memory for it")
        }
        var failure: Int32 = 0
        // Closes the stream with the handle.
        let opened = unsafe op_open_callbacks(stream, &callbacks, nil, 0, &failure)
        guard let opened = unsafe opened else {
            _ = unsafe callbacks.close?(stream)
            let isForeign = failure == OP_ENOTFORMAT
            throw AudioFileError(
                isForeign ? .notAudio : .damaged, .play, path: path,
                reason: isForeign ? "not an Ogg Opus file" : "an Ogg Opus file with damaged headers")
        }
        unsafe handle = opened
        self.path = path
        decoded = [Int16](repeating: 0, count: Self.maximumFrames * 2)
    }

    deinit { unsafe op_free(handle) }

    /// Reads the next samples.
    ///
    /// - Returns: Samples written to the front of `samples`: as many as fit, fewer only at the end of the file.
    public mutating func read(into samples: inout MutableSpan<Int16>) throws(AudioFileError) -> Int {
        var produced = 0
        while produced < samples.count {
            if start == end {
                end = try decodeMore()
                start = 0
                if end == 0 { break }
            }
            let count = min(end - start, samples.count - produced)
            for index in 0..<count {
                let frame = start + index
                let sum = Int(decoded[2 * frame]) + Int(decoded[2 * frame + 1])
                samples[produced + index] = Int16(clamping: sum / 2)
            }
            start += count
            produced += count
        }
        return produced
    }

    /// Goes back to the beginning.
    public mutating func rewind() throws(AudioFileError) {
        guard unsafe op_pcm_seek(handle, 0) == 0 else {
            throw AudioFileError(.unreadable, .play, path: path, reason: "it cannot be played from the start again")
        }
        start = 0
        end = 0
    }

    /// Decodes one more packet; 0 at the end of the file.
    private mutating func decodeMore() throws(AudioFileError) -> Int {
        while true {
            let frames = unsafe decoded.withUnsafeMutableBufferPointer { buffer in
                unsafe op_read_stereo(handle, buffer.baseAddress, Int32(buffer.count))
            }
            if frames >= 0 { return Int(frames) }
            // A hole is a stretch that was lost; what follows can be decoded.
            if frames == OP_HOLE { continue }
            throw AudioFileError(
                .damaged, .play, path: path, reason: "the Ogg Opus data cannot be decoded (libopusfile \(frames))")
        }
    }
}
