/// A point on a monotonic clock, in nanoseconds from an origin that only the caller knows.
///
/// Cores are given instants and never read a clock, so that tests can run on virtual time.
@frozen
public struct Instant: Comparable, Hashable, Sendable {
    /// Nanoseconds since the clock's origin.
    public var nanoseconds: Int64

    /// The clock's origin.
    public static let zero = Instant(nanoseconds: 0)

    /// Makes the instant `nanoseconds` after the clock's origin.
    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Orders instants by time.
    @inlinable
    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}

extension Instant {
    /// This instant moved by `duration`, later if it is positive; the first or last instant there is if that is beyond them, because a
    /// duration may come from outside.
    public func advanced(by duration: Duration) -> Instant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.nanoseconds)
        return Instant(nanoseconds: overflow ? (nanoseconds < 0 ? .min : .max) : sum)
    }

    /// The time from this instant to `other`: positive if `other` is later. Clamped to what 64 bits of nanoseconds hold (292 years).
    public func duration(to other: Instant) -> Duration {
        let (difference, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        return .nanoseconds(overflow ? (nanoseconds < 0 ? .max : .min) : difference)
    }

    /// This instant moved by `nanoseconds`; for the media path, where `Duration` arithmetic is not allowed.
    @inlinable
    public func advanced(byNanoseconds nanoseconds: Int64) -> Instant {
        Instant(nanoseconds: self.nanoseconds &+ nanoseconds)
    }

    /// Nanoseconds from this instant to `other`; for the media path.
    @inlinable
    public func nanoseconds(to other: Instant) -> Int64 { other.nanoseconds &- nanoseconds }
}

extension Duration {
    /// The whole nanoseconds in this duration, clamped to what 64 bits hold (292 years).
    public var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isJustTooLong) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return isTooLong || isJustTooLong ? (seconds < 0 ? .min : .max) : sum
    }

    /// This duration as a number of milliseconds.
    public var milliseconds: Double { Double(nanoseconds) / 1e6 }

    /// This duration as a number of seconds.
    public var seconds: Double { Double(nanoseconds) / 1e9 }
}

extension Duration {
    /// This duration for people: `0.4 ms`, `79 ms`, `1.3 s`, `30 s`. Three digits or so; never `0.07939876563445597 seconds`.
    public var text: String {
        let size = abs(milliseconds)
        return switch size {
        case ..<0.05: "0 s"
        case ..<9.95: "\(Self.places(milliseconds, 1)) ms"
        case ..<999.5: "\(Self.places(milliseconds, 0)) ms"
        case ..<99_950: "\(Self.places(seconds, 1)) s"
        default: "\(Self.places(seconds, 0)) s"
        }
    }

    /// A number with at most that many decimal places, and none if it is whole.
    private static func places(_ value: Double, _ places: Int) -> String {
        let factor: Double = places == 0 ? 1 : 10
        let rounded = (value * factor).rounded() / factor
        return Int64(exactly: rounded).map(String.init) ?? "\(rounded)"
    }
}
