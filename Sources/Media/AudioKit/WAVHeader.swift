internal import Core

/// The header of a WAV file: the format of its samples, and their position.
///
/// Source: Microsoft "Multimedia Programming Interface and Data Specifications 1.0" (RIFF WAVE);
/// WAVEFORMATEXTENSIBLE; EBU Tech 3306 (RF64).
public struct WAVHeader: Equatable, Sendable {
    /// How one sample is stored, always little-endian.
    public enum SampleFormat: Equatable, Sendable {
        /// 8 bits, unsigned, 128 is silence.
        case unsigned8
        /// 16 bits, signed.
        case signed16
        /// 24 bits, signed.
        case signed24
        /// 32 bits, signed.
        case signed32
        /// IEEE 754 single precision, full scale at ±1.
        case float32
        /// µ-law, 8 bits (ITU-T G.711).
        case muLaw
        /// A-law, 8 bits (ITU-T G.711).
        case aLaw

        /// Bytes that one sample takes.
        public var byteCount: Int {
            switch self {
            case .unsigned8, .muLaw, .aLaw: 1
            case .signed16: 2
            case .signed24: 3
            case .signed32, .float32: 4
            }
        }
    }

    /// How one sample is stored.
    public var sampleFormat: SampleFormat
    /// 1…``maximumChannels``.
    public var channels: Int
    /// Frames a second, within ``sampleRates``.
    public var sampleRate: Int
    /// Offset of the first sample from the beginning of the file.
    public var dataOffset: Int
    /// Bytes of sample data; `nil` where the writer did not know (0 or −1 of a streaming writer): up to the file's end.
    public var dataByteCount: Int?

    /// More channels than this are refused.
    public static let maximumChannels = 64
    /// Rates outside of this range are refused.
    public static let sampleRates = 1_000...768_000

    /// Bytes that one frame, a sample for each channel, takes.
    public var frameByteCount: Int { sampleFormat.byteCount * channels }
}

/// Bytes are not the head of a WAV file that can be played.
public struct WAVFormatError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was found, in words.
    public let reason: String
    /// Whether it is no WAV at all, as opposed to one of a form that is not supported.
    public let isForeign: Bool
    /// Set when nothing is wrong so far and this many bytes from the beginning of the file are needed to continue.
    public let bytesNeeded: Int?

    /// The reason.
    public var description: String { reason }

    static func foreign(_ reason: String) -> WAVFormatError {
        WAVFormatError(reason: "not a WAV: \(reason)", isForeign: true, bytesNeeded: nil)
    }

    static func unsupported(_ reason: String) -> WAVFormatError {
        WAVFormatError(reason: "a WAV that cannot be used: \(reason)", isForeign: false, bytesNeeded: nil)
    }

    static func incomplete(_ bytes: Int) -> WAVFormatError {
        WAVFormatError(reason: "not a WAV: it ends before its samples begin", isForeign: true, bytesNeeded: bytes)
    }
}

extension WAVHeader {
    /// Parses the head of a file, up to where its samples begin.
    ///
    /// Unknown chunks are skipped, with or without the pad byte that follows an odd one.
    ///
    /// - Parameter file: The first bytes of a file. Any length, any bytes.
    /// - Throws: ``WAVFormatError``; with `bytesNeeded` if the head continues behind the end of `file`.
    /// - Complexity: O(chunks); allocates nothing unless it throws.
    public init(parsing file: RawSpan) throws(WAVFormatError) {
        guard let magic = file.uint32(at: 0) else { throw .incomplete(12) }
        guard magic == FourCC.riff || magic == FourCC.rf64 else {
            throw .foreign("it begins with \(FourCC.text(magic)) instead of \"RIFF\"")
        }
        guard let kind = file.uint32(at: 8) else { throw .incomplete(12) }
        guard kind == FourCC.wave else {
            throw .foreign("it is a RIFF file of the kind \(FourCC.text(kind)) instead of \"WAVE\"")
        }
        var format: Format?
        var longDataSize: UInt64?
        var offset = 12
        while true {
            guard let id = file.uint32(at: offset), let size = file.littleUInt32(at: offset + 4) else {
                throw .incomplete(offset + 8)
            }
            let body = offset + 8
            switch id {
            case FourCC.format:
                format = try Format(file, at: body, size: Int(size))
            case FourCC.ds64:
                longDataSize = file.littleUInt64(at: body + 8)
            case FourCC.data:
                guard let format else { throw .foreign("its samples come before their format") }
                self.init(
                    sampleFormat: format.sampleFormat, channels: format.channels, sampleRate: format.sampleRate,
                    dataOffset: body, dataByteCount: Self.dataByteCount(size, longDataSize))
                return
            default:
                break
            }
            offset = body + Int(size)
            if size % 2 == 1 {
                guard let pad = file.uint8(at: offset) else { throw .incomplete(offset + 9) }
                if pad == 0 { offset += 1 }
            }
        }
    }

    private static func dataByteCount(_ size: UInt32, _ longSize: UInt64?) -> Int? {
        if size == .max, let longSize, longSize > 0 { return Int(exactly: longSize) }
        return size == 0 || size == .max ? nil : Int(size)
    }

    /// The body of a format chunk.
    private struct Format {
        let sampleFormat: SampleFormat
        let channels: Int
        let sampleRate: Int

        init(_ file: RawSpan, at offset: Int, size: Int) throws(WAVFormatError) {
            guard size >= 16 else { throw .foreign("its format chunk has \(size) bytes instead of at least 16") }
            guard
                var tag = file.littleUInt16(at: offset), let channels = file.littleUInt16(at: offset + 2),
                let rate = file.littleUInt32(at: offset + 4), let block = file.littleUInt16(at: offset + 12),
                let bits = file.littleUInt16(at: offset + 14)
            else { throw .incomplete(offset + min(size, 40)) }
            if tag == 0xFFFE, size >= 26 {
                // WAVEFORMATEXTENSIBLE: the tag proper is the first field of the sub-format's identifier.
                guard let subFormat = file.littleUInt16(at: offset + 24) else { throw .incomplete(offset + 40) }
                tag = subFormat
            }
            guard (1...WAVHeader.maximumChannels).contains(Int(channels)) else {
                throw .unsupported("it has \(channels) channels; 1 to \(WAVHeader.maximumChannels) are allowed")
            }
            guard WAVHeader.sampleRates.contains(Int(rate)) else {
                throw .unsupported("its sample rate is \(rate) Hz")
            }
            self.sampleFormat = try Self.sampleFormat(tag: tag, bits: Int(bits))
            guard Int(block) == sampleFormat.byteCount * Int(channels) else {
                throw .unsupported("its frames have \(block) bytes, which \(channels) × \(bits) bits do not fill")
            }
            self.channels = Int(channels)
            self.sampleRate = Int(rate)
        }

        private static func sampleFormat(tag: UInt16, bits: Int) throws(WAVFormatError) -> SampleFormat {
            switch (tag, bits) {
            case (1, 1...8): return .unsigned8
            case (1, 9...16): return .signed16
            case (1, 17...24): return .signed24
            case (1, 25...32): return .signed32
            case (3, 32): return .float32
            case (6, 8): return .aLaw
            case (7, 8): return .muLaw
            default:
                throw .unsupported(
                    "its samples have \(bits) bits of format \(tag); PCM of 8, 16, 24 or 32 bits, 32-bit float, and µ-law and "
                        + "A-law of 8 bits work")
            }
        }
    }
}

/// The four-letter names in a RIFF file, as big-endian numbers.
enum FourCC {
    static let riff: UInt32 = 0x5249_4646
    static let rf64: UInt32 = 0x5246_3634
    static let wave: UInt32 = 0x5741_5645
    static let format: UInt32 = 0x666D_7420
    static let data: UInt32 = 0x6461_7461
    static let ds64: UInt32 = 0x6473_3634
    static let ogg: UInt32 = 0x4F67_6753

    /// A name for a message: in quotes if it is text, as a number if not.
    static func text(_ name: UInt32) -> String {
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: name >> UInt32(24 - 8 * $0)) }
        guard bytes.allSatisfy({ (0x20...0x7E).contains($0) }) else { return "0x" + String(name, radix: 16) }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }
}

extension RawSpan {
    /// The two bytes at `offset`, least significant first.
    func littleUInt16(at offset: Int) -> UInt16? { uint16(at: offset)?.byteSwapped }

    /// The four bytes at `offset`, least significant first.
    func littleUInt32(at offset: Int) -> UInt32? { uint32(at: offset)?.byteSwapped }

    /// The eight bytes at `offset`, least significant first.
    func littleUInt64(at offset: Int) -> UInt64? { uint64(at: offset)?.byteSwapped }
}
