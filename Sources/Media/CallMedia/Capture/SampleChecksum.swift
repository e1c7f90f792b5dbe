internal import Core

/// A checksum of decoded sound (FNV-1a, 64 bits): equal if all samples are equal, and otherwise with a chance of one in
/// 2⁶⁴.
public struct SampleChecksum: Equatable, Sendable, BitwiseCopyable, CustomStringConvertible {
    /// The checksum so far.
    public private(set) var value: UInt64

    /// That of no samples.
    public init() { value = 0xCBF2_9CE4_8422_2325 }

    /// One that was kept.
    init(value: UInt64) { self.value = value }

    /// Adds `samples`. O(samples); allocates nothing.
    @_noAllocation @_noLocks
    public mutating func add(_ samples: Span<Int16>) {
        var sum = value
        for index in 0..<samples.count {
            let sample = UInt16(bitPattern: samples[index])
            sum = (sum ^ UInt64(sample & 0xFF)) &* 0x0000_0100_0000_01B3
            sum = (sum ^ UInt64(sample >> 8)) &* 0x0000_0100_0000_01B3
        }
        value = sum
    }

    /// Sixteen hexadecimal digits.
    public var description: String { Hexadecimal.text(of: value) }
}
