/// Names one call of a media engine; never used again for another.
public struct MediaCallID: Hashable, Sendable, BitwiseCopyable {
    /// Counts from 1, in the lower 48 bits; above them is ``owner``.
    package let rawValue: UInt64

    /// Whose call it is, of those who share the engine; 0 for the only one.
    public var owner: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 48) }

    /// Names the call of this number.
    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Names the call of this number and owner.
    package init(number: UInt64, owner: UInt16) {
        rawValue = UInt64(owner) << 48 | (number & 0xFFFF_FFFF_FFFF)
    }
}
