/// How a card writes its samples: the linear formats that cards and sound servers have.
public enum CardSampleFormat: UInt8, BitwiseCopyable, CaseIterable, Sendable {
    // In the order of preference: what needs no conversion first.
    /// 16 bits, little-endian.
    case s16LE
    /// 32 bits, little-endian.
    case s32LE
    /// 24 bits in three bytes, little-endian.
    case s24In3LE
    /// 24 bits in the lower three of four bytes, little-endian.
    case s24LE
    /// 32-bit floating point, −1…1, little-endian.
    case float32LE
    /// 16 bits, big-endian.
    case s16BE
    /// 32 bits, big-endian.
    case s32BE
    /// 8 bits, unsigned.
    case u8

    /// Bytes of one sample.
    public var bytes: Int {
        @_noAllocation @_noLocks get {
            switch self {
            case .s16LE, .s16BE: 2
            case .s32LE, .s24LE, .float32LE, .s32BE: 4
            case .s24In3LE: 3
            case .u8: 1
            }
        }
    }

    /// As ALSA names it.
    public var name: String {
        switch self {
        case .s16LE: "S16_LE"
        case .s32LE: "S32_LE"
        case .s24In3LE: "S24_3LE"
        case .s24LE: "S24_LE"
        case .float32LE: "FLOAT_LE"
        case .s16BE: "S16_BE"
        case .s32BE: "S32_BE"
        case .u8: "U8"
        }
    }
}

/// The memory in which frames are handed to the card and taken from it, in the card's format and channels.
@safe
struct CardFrames: ~Copyable, @unchecked Sendable {
    // Sendable: the memory is reached only through this owner, which has one holder at a time.
    let base: UnsafeMutableRawPointer
    let capacity: Int
    let format: CardSampleFormat
    let channels: Int

    /// Bytes of one frame.
    var frameBytes: Int {
        @_noAllocation @_noLocks get { format.bytes &* channels }
    }

    init(capacity: Int, format: CardSampleFormat, channels: Int) {
        self.capacity = capacity
        self.format = format
        self.channels = channels
        let bytes = capacity * format.bytes * channels
        unsafe base = .allocate(byteCount: bytes, alignment: 16)
        unsafe base.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
    }

    deinit { unsafe base.deallocate() }

    /// Puts `samples[start..<end]` into the front of the memory. They go to the first two channels, or to one of them;
    /// others, a card's surround or digital outputs, stay silent.
    @_noAllocation @_noLocks
    func encode(_ samples: Span<Int16>, from start: Int, to end: Int, on outputs: CardOutputs = .both) {
        let count = min(end - start, capacity)
        var (first, last) = (0, 1)
        switch outputs {
        case .both: break
        case .left: last = 0
        case .right: first = channels > 1 ? 1 : 0
        }
        for frame in 0..<max(0, count) {
            let sample = samples[start &+ frame]
            for channel in 0..<channels {
                store(
                    channel >= first && channel <= last ? sample : 0, at: (frame &* channels &+ channel) &* format.bytes
                )
            }
        }
    }

    /// Takes mono samples from the first `count` frames: the mean of the two channels of a stereo card, of which many
    /// fill only one; the first channel of a card with more, where arrays of microphones put the sound that is ready.
    @_noAllocation @_noLocks
    func decode(_ samples: inout MutableSpan<Int16>, count: Int) {
        for frame in 0..<min(count, min(capacity, samples.count)) {
            let first = load(at: frame &* frameBytes)
            if channels == 2 {
                let second = load(at: frame &* frameBytes &+ format.bytes)
                samples[frame] = Int16(truncatingIfNeeded: (Int32(first) &+ Int32(second)) >> 1)
            } else {
                samples[frame] = first
            }
        }
    }

    /// Takes the first two channels of the first `count` frames, one behind the other; the same twice of a card with one.
    @_noAllocation @_noLocks
    func decodePairs(_ samples: inout MutableSpan<Int16>, count: Int) {
        for frame in 0..<min(count, min(capacity, samples.count / 2)) {
            let first = load(at: frame &* frameBytes)
            samples[2 &* frame] = first
            samples[2 &* frame &+ 1] = channels > 1 ? load(at: frame &* frameBytes &+ format.bytes) : first
        }
    }

    @_noAllocation @_noLocks
    private func store(_ sample: Int16, at offset: Int) {
        let wide = Int32(sample)
        switch format {
        case .s16LE: unsafe base.storeBytes(of: sample.littleEndian, toByteOffset: offset, as: Int16.self)
        case .s16BE: unsafe base.storeBytes(of: sample.bigEndian, toByteOffset: offset, as: Int16.self)
        case .s32LE: unsafe base.storeBytes(of: (wide << 16).littleEndian, toByteOffset: offset, as: Int32.self)
        case .s32BE: unsafe base.storeBytes(of: (wide << 16).bigEndian, toByteOffset: offset, as: Int32.self)
        case .s24LE: unsafe base.storeBytes(of: (wide << 8).littleEndian, toByteOffset: offset, as: Int32.self)
        case .s24In3LE:
            unsafe base.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self)
            unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: wide), toByteOffset: offset &+ 1, as: UInt8.self)
            unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: wide >> 8), toByteOffset: offset &+ 2, as: UInt8.self)
        case .float32LE:
            let bits = (Float(sample) / 32_768).bitPattern.littleEndian
            unsafe base.storeBytes(of: bits, toByteOffset: offset, as: UInt32.self)
        case .u8:
            unsafe base.storeBytes(
                of: UInt8(truncatingIfNeeded: (wide >> 8) &+ 128), toByteOffset: offset, as: UInt8.self)
        }
    }

    @_noAllocation @_noLocks
    private func load(at offset: Int) -> Int16 {
        switch format {
        case .s16LE: return Int16(littleEndian: unsafe base.loadUnaligned(fromByteOffset: offset, as: Int16.self))
        case .s16BE: return Int16(bigEndian: unsafe base.loadUnaligned(fromByteOffset: offset, as: Int16.self))
        case .s32LE: return Self.narrow(Int32(littleEndian: word(at: offset)), by: 16)
        case .s32BE: return Self.narrow(Int32(bigEndian: word(at: offset)), by: 16)
        case .s24LE: return Self.narrow(Int32(littleEndian: word(at: offset)) << 8, by: 16)
        case .s24In3LE:
            let low = unsafe base.loadUnaligned(fromByteOffset: offset &+ 1, as: UInt8.self)
            let high = unsafe base.loadUnaligned(fromByteOffset: offset &+ 2, as: UInt8.self)
            return Int16(truncatingIfNeeded: Int32(high) << 8 | Int32(low))
        case .float32LE:
            let value = Float(bitPattern: UInt32(bitPattern: Int32(littleEndian: word(at: offset)))) * 32_768
            // Not a number: what a card in trouble may give. Compared so that it becomes silence.
            guard value > -32_768 else { return value <= -32_768 ? -32_768 : 0 }
            return value >= 32_767 ? 32_767 : Int16(value)
        case .u8:
            let value = unsafe base.loadUnaligned(fromByteOffset: offset, as: UInt8.self)
            return Int16(truncatingIfNeeded: (Int32(value) &- 128) << 8)
        }
    }

    @_noAllocation @_noLocks
    private func word(at offset: Int) -> Int32 { unsafe base.loadUnaligned(fromByteOffset: offset, as: Int32.self) }

    /// The upper half, rounded to nearest.
    @_noAllocation @_noLocks
    private static func narrow(_ value: Int32, by shift: Int32) -> Int16 {
        let rounded = value >> (shift &- 1)
        return rounded >= 65_534 ? 32_767 : Int16(truncatingIfNeeded: (rounded &+ 1) >> 1)
    }
}
