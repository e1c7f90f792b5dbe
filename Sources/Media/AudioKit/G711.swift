/// G.711: 8 000 samples a second in a byte each (ITU-T G.711, 1988).
///
/// Everything is arithmetic on one sample at a time, without allocations and tables.
public enum G711: Equatable, Hashable, Sendable {
    /// As in North America and Japan.
    case muLaw
    /// As everywhere else.
    case aLaw

    /// Samples per second, and bytes.
    public static var sampleRate: Int { @_noAllocation @_noLocks get { 8_000 } }

    /// The byte of silence.
    public var silence: UInt8 { @_noAllocation @_noLocks get { self == .muLaw ? 0xFF : 0xD5 } }

    /// Encodes as many samples as both hold. Real-time safe.
    ///
    /// - Returns: Bytes written.
    @_noAllocation @_noLocks
    public func encode(_ samples: Span<Int16>, into bytes: inout MutableSpan<UInt8>) -> Int {
        let count = min(samples.count, bytes.count)
        switch self {
        case .muLaw: for index in 0..<count { bytes[index] = Self.muLawByte(samples[index]) }
        case .aLaw: for index in 0..<count { bytes[index] = Self.aLawByte(samples[index]) }
        }
        return count
    }

    /// Decodes as many bytes as both hold. Real-time safe.
    ///
    /// - Returns: Samples written.
    @_noAllocation @_noLocks
    public func decode(_ bytes: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
        let count = min(samples.count, bytes.count)
        switch self {
        case .muLaw: for index in 0..<count { samples[index] = Self.muLawSample(bytes[index]) }
        case .aLaw: for index in 0..<count { samples[index] = Self.aLawSample(bytes[index]) }
        }
        return count
    }

    /// The byte of one sample of 16 bits.
    @_noAllocation @_noLocks
    func byte(_ sample: Int16) -> UInt8 {
        switch self {
        case .muLaw: Self.muLawByte(sample)
        case .aLaw: Self.aLawByte(sample)
        }
    }

    /// The sample of one byte.
    @_noAllocation @_noLocks
    public func sample(_ byte: UInt8) -> Int16 {
        switch self {
        case .muLaw: Self.muLawSample(byte)
        case .aLaw: Self.aLawSample(byte)
        }
    }

    /// The byte of one sample of 16 bits, of which µ-law has use for the upper 14.
    @_noAllocation @_noLocks
    public static func muLawByte(_ sample: Int16) -> UInt8 {
        // The steps are those of a magnitude of 14 bits to which 33 is added. As in ITU-T G.191, negative values are
        // inverted bit by bit, so that there are as many values below zero as above.
        let magnitude = min(Int(sample < 0 ? ~sample : sample) >> 2, 8_158) + 33
        let segment = magnitude.bitWidth - magnitude.leadingZeroBitCount - 6
        let step = magnitude >> (segment + 1) & 0x0F
        let code = UInt8(truncatingIfNeeded: segment << 4 | step)
        return ~(code | (sample < 0 ? 0x80 : 0))
    }

    /// The sample of one byte: the middle of its step.
    @_noAllocation @_noLocks
    public static func muLawSample(_ byte: UInt8) -> Int16 {
        let code = ~byte
        let segment = Int(code >> 4 & 7)
        let magnitude = ((Int(code & 0x0F) << 1 | 33) << segment - 33) << 2
        return Int16(truncatingIfNeeded: code & 0x80 == 0 ? magnitude : -magnitude)
    }

    /// The byte of one sample of 16 bits, of which A-law has use for the upper 13.
    @_noAllocation @_noLocks
    public static func aLawByte(_ sample: Int16) -> UInt8 {
        // Below zero the steps lie one lower, so that zero has a step on either side.
        let magnitude = Int(sample < 0 ? ~sample : sample) >> 4
        let width = magnitude.bitWidth - magnitude.leadingZeroBitCount
        let segment = max(0, width - 4)
        let step = magnitude >> max(0, segment - 1) & 0x0F
        let code = UInt8(truncatingIfNeeded: segment << 4 | step)
        return (code | (sample < 0 ? 0 : 0x80)) ^ 0x55
    }

    /// The sample of one byte: the middle of its step.
    @_noAllocation @_noLocks
    public static func aLawSample(_ byte: UInt8) -> Int16 {
        let code = byte ^ 0x55
        let segment = Int(code >> 4 & 7)
        let step = Int(code & 0x0F) << 1 | 1
        let magnitude = (segment == 0 ? step : (step + 32) << (segment - 1)) << 3
        return Int16(truncatingIfNeeded: code & 0x80 == 0 ? -magnitude : magnitude)
    }
}
