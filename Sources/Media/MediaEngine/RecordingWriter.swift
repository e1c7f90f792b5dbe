internal import AudioKit
internal import Files

/// Writes a recording under another name, which it gets when it is whole (``PartFile``).
struct RecordingWriter: ~Copyable {
    private let path: String
    private var wav: WAVWriter?
    private var opus: OpusRecording?
    /// What had its name when it began, and is replaced.
    private var replaced: FileIdentity?

    /// - Parameters:
    ///   - keepsEarlier: A finished file of that name stays, and the recording gets a number behind its name.
    ///   - played: Files that must not be overwritten, under any name.
    init(
        path: String, _ format: RecordingFormat, keepsEarlier: Bool = false, sparing played: [FileIdentity]
    ) throws(AudioFileError) {
        self.path = path
        let earlier = try PartFile.check(path, sparing: played)
        replaced = keepsEarlier ? nil : earlier
        let part = PartFile.path(of: path)
        switch format.container {
        case .wav: wav = try WAVWriter(path: part, channels: format.channels, sparing: played)
        case .opus: opus = try OpusRecording(path: part, channels: format.channels, sparing: played)
        }
        isStereo = format.channels == 2
    }

    private let isStereo: Bool

    /// Appends what the peer said, and with two channels what this side said; the shorter is filled up with silence.
    mutating func append(heard: Span<Int16>, said: Span<Int16>) throws(AudioFileError) {
        if isStereo {
            try wav?.append(left: heard, right: said)
        } else {
            try wav?.append(heard)
        }
        try opus?.append(heard, said)
    }

    /// Writes what has been gathered, and gives the file its name.
    ///
    /// - Returns: The name.
    @discardableResult
    mutating func finish() throws(AudioFileError) -> String {
        try wav?.finish()
        try opus?.finish()
        return try PartFile.complete(path, replacing: replaced)
    }
}

extension Duration {
    /// The time of samples at 48 kHz.
    static func samples(_ count: Int) -> Duration { .nanoseconds(Int64(count) * 1_000_000 / 48) }
}

/// Encodes a recording, each channel by itself, so that nothing of one is heard in the other.
private struct OpusRecording: ~Copyable {
    private let path: String
    private var file: OggOpusWriter
    private var encoder: OpusEncoder
    private var saidEncoder: OpusEncoder?
    /// Samples that do not fill a packet yet.
    private var (heard, said): ([Int16], [Int16]) = ([], [])
    private var samples = 0
    private let preSkip: Int
    private var packet = [UInt8](repeating: 0, count: 1_275)

    init(path: String, channels: Int, sparing played: [FileIdentity]) throws(AudioFileError) {
        self.path = path
        var settings = EncoderSettings()
        settings.fec = false
        settings.bitrateBps = 32_000
        let encoder = try Self.makeEncoder(settings, path)
        let preSkip = encoder.lookaheadSamples
        var generator = SystemRandomNumberGenerator()
        let saidEncoder = try Self.makeEncoder(settings, path)
        file = try OggOpusWriter(
            path: path, channels: channels, preSkip: preSkip, serial: generator.next(), sparing: played)
        self.encoder = encoder
        if channels == 2 { self.saidEncoder = .some(saidEncoder) }
        self.preSkip = preSkip
    }

    private static func makeEncoder(
        _ settings: EncoderSettings, _ path: String
    ) throws(AudioFileError) -> OpusEncoder {
        do throws(OpusError) {
            return try OpusEncoder(settings: settings)
        } catch {
            throw AudioFileError(unencodable: path, reason: "\(error)")
        }
    }

    mutating func append(_ heard: Span<Int16>, _ said: Span<Int16>) throws(AudioFileError) {
        let count = max(heard.count, said.count)
        for index in 0..<count {
            self.heard.append(index < heard.count ? heard[index] : 0)
            self.said.append(index < said.count ? said[index] : 0)
        }
        samples += count
        try encodeWhole()
    }

    /// Encodes what is left, and the end of what the encoder holds.
    mutating func finish() throws(AudioFileError) {
        let wanted = max(1, samples + preSkip)
        let missing =
            (wanted + OggOpusWriter.packetSamples - 1) / OggOpusWriter.packetSamples
            * OggOpusWriter.packetSamples - samples
        heard += [Int16](repeating: 0, count: missing)
        said += [Int16](repeating: 0, count: missing)
        try encodeWhole()
        try file.finish(samples: samples)
    }

    private mutating func encodeWhole() throws(AudioFileError) {
        let size = OggOpusWriter.packetSamples
        var start = 0
        while heard.count - start >= size {
            var bytes = try Self.encode(heard, start, with: &encoder, &packet, path)
            if saidEncoder != nil {
                guard let delimited = OggOpusWriter.selfDelimited(bytes) else {
                    throw AudioFileError(unencodable: path, reason: "libopus made a packet of several frames")
                }
                bytes = try delimited + Self.encode(said, start, with: &saidEncoder, &packet, path)
            }
            try file.append(bytes)
            start += size
        }
        heard.removeFirst(start)
        said.removeFirst(start)
    }

    private static func encode(
        _ samples: [Int16], _ start: Int, with encoder: inout OpusEncoder?, _ packet: inout [UInt8], _ path: String
    ) throws(AudioFileError) -> [UInt8] {
        var room = packet.mutableSpan
        let count = encoder?.encode(samples.span.extracting(start..<start + OggOpusWriter.packetSamples), into: &room)
        return try taken(count ?? -1, of: packet, path)
    }

    private static func encode(
        _ samples: [Int16], _ start: Int, with encoder: inout OpusEncoder, _ packet: inout [UInt8], _ path: String
    ) throws(AudioFileError) -> [UInt8] {
        var room = packet.mutableSpan
        let count = encoder.encode(samples.span.extracting(start..<start + OggOpusWriter.packetSamples), into: &room)
        return try taken(count, of: packet, path)
    }

    private static func taken(_ count: Int, of packet: [UInt8], _ path: String) throws(AudioFileError) -> [UInt8] {
        guard count > 0 else { throw AudioFileError(unencodable: path, reason: "libopus failed with \(count)") }
        return Array(packet[..<count])
    }
}
