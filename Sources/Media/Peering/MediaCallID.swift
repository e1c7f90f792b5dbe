/// Names one call of a media engine; never used again for another.
public struct MediaCallID: Hashable, Sendable, BitwiseCopyable {
    /// Counts from 1.
    package let rawValue: UInt64

    /// Names the call of this number.
    package init(rawValue: UInt64) { self.rawValue = rawValue }
}
