/// A time of day, as whole milliseconds since 1970-01-01 00:00 UTC: for records and tokens, never for measuring.
@frozen
public struct WallClock: Comparable, Hashable, Sendable {
    /// Milliseconds since 1970-01-01 00:00 UTC, leap seconds not counted.
    public var unixMilliseconds: Int64

    /// Makes a time of day.
    @inlinable
    public init(unixMilliseconds: Int64) { self.unixMilliseconds = unixMilliseconds }

    /// Seconds since 1970-01-01 00:00 UTC.
    public var seconds: Double { Double(unixMilliseconds) / 1_000 }

    /// Orders times of day.
    @inlinable
    public static func < (left: Self, right: Self) -> Bool { left.unixMilliseconds < right.unixMilliseconds }
}

extension WallClock {
    /// This time in UTC, such as `2026-02-28T23:59:59.123Z` (RFC 3339 §5.6).
    public var rfc3339: String {
        let (days, milliseconds) = CivilDate.split(unixMilliseconds, by: 86_400_000)
        func digits(_ value: Int64, _ count: Int) -> String { CivilDate.digits(Int(value), count) }
        let seconds = milliseconds / 1_000
        return "\(CivilDate(daysSince1970: days))T" + digits(seconds / 3_600, 2) + ":" + digits(seconds / 60 % 60, 2)
            + ":" + digits(seconds % 60, 2) + "." + digits(milliseconds % 1_000, 3) + "Z"
    }

    /// This time in the form of HTTP's `Date`, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
    public var httpDate: String {
        let (days, milliseconds) = CivilDate.split(unixMilliseconds, by: 86_400_000)
        let date = CivilDate(daysSince1970: days)
        let (year, number, day) = date.numbers
        let seconds = milliseconds / 1_000
        func two(_ value: Int64) -> String { CivilDate.digits(Int(value), 2) }
        let weekday = date.weekday.rawValue
        let month = RetryAfter.months[number - 1]
        return "\(weekday.prefix(1).uppercased())\(weekday.dropFirst()), \(two(Int64(day))) \(month) \(year) "
            + "\(two(seconds / 3_600)):\(two(seconds / 60 % 60)):\(two(seconds % 60)) GMT"
    }
}

/// The `Retry-After` header: seconds, or a date (RFC 9110 §10.2.3).
public enum RetryAfter {
    /// Longer waits are limited to this.
    public static let longest: Duration = .seconds(3_600)

    fileprivate static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// How long to wait, from zero to ``longest``; `nil` if the text has neither form.
    public static func parse(_ text: String, now: WallClock) -> Duration? {
        if let seconds = Int64(text), seconds >= 0 { return .seconds(min(seconds, 3_600)) }
        guard let date = date(text) else { return nil }
        return min(max(.milliseconds(date.unixMilliseconds - now.unixMilliseconds), .zero), longest)
    }

    /// Reads the preferred form, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
    public static func date(_ text: String) -> WallClock? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let day = Int(parts[1]),
            let month = months.firstIndex(of: String(parts[2])), let year = Int(parts[3]), year >= 1970,
            let date = CivilDate(year: year, month: month + 1, day: day)
        else { return nil }
        let clock = parts[4].split(separator: ":").compactMap { Int64($0) }
        guard clock.count == 3, (0...23).contains(clock[0]), (0...59).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        let seconds = date.daysSince1970 * 86_400
        return WallClock(unixMilliseconds: (seconds + clock[0] * 3_600 + clock[1] * 60 + clock[2]) * 1_000)
    }
}
