/// A time of day, as whole milliseconds since 1970-01-01 00:00 UTC: for records and tokens, never for measuring.
@frozen
public struct WallClock: Comparable, Hashable, Sendable {
    /// Milliseconds since 1970-01-01 00:00 UTC, leap seconds not counted.
    public var unixMilliseconds: Int64

    /// Makes a time of day.
    @inlinable
    public init(unixMilliseconds: Int64) { self.unixMilliseconds = unixMilliseconds }

    /// Orders times of day.
    @inlinable
    public static func < (left: Self, right: Self) -> Bool { left.unixMilliseconds < right.unixMilliseconds }
}
