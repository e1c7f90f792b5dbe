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
        let (days, milliseconds) = Self.split(unixMilliseconds, by: 86_400_000)
        let date = Self.date(daysSince1970: days)
        func digits(_ value: Int64, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let seconds = milliseconds / 1_000
        return digits(date.year, 4) + "-" + digits(date.month, 2) + "-" + digits(date.day, 2) + "T"
            + digits(seconds / 3_600, 2) + ":" + digits(seconds / 60 % 60, 2) + ":" + digits(seconds % 60, 2) + "."
            + digits(milliseconds % 1_000, 3) + "Z"
    }

    /// This time in the form of HTTP's `Date`, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
    public var httpDate: String {
        let (days, milliseconds) = Self.split(unixMilliseconds, by: 86_400_000)
        let date = Self.date(daysSince1970: days)
        let seconds = milliseconds / 1_000
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        // 1970-01-01 was a Thursday.
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][Int(Self.split(days, by: 7).remainder)]
        let month = RetryAfter.months[Int(date.month - 1)]
        return "\(weekday), \(two(date.day)) \(month) \(date.year) "
            + "\(two(seconds / 3_600)):\(two(seconds / 60 % 60)):\(two(seconds % 60)) GMT"
    }

    private static func split(_ value: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let remainder = (value % divisor + divisor) % divisor
        return ((value - remainder) / divisor, remainder)
    }

    /// The Gregorian date, by eras of 400 years that begin on a first of March.
    private static func date(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = split(days + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, day)
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
        guard parts.count == 6, parts[5] == "GMT", let day = Int64(parts[1]), (1...31).contains(day),
            let month = months.firstIndex(of: String(parts[2])), let year = Int64(parts[3]),
            (1970...9999).contains(year)
        else { return nil }
        let clock = parts[4].split(separator: ":").compactMap { Int64($0) }
        guard clock.count == 3, (0...23).contains(clock[0]), (0...59).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        let seconds = days(year: year, month: Int64(month) + 1, day: day) * 86_400
        return WallClock(unixMilliseconds: (seconds + clock[0] * 3_600 + clock[1] * 60 + clock[2]) * 1_000)
    }

    /// Days from 1970-01-01 in the Gregorian calendar, counting years from March so that leap days come last.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return 365 * year + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }
}
