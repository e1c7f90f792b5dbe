/// A day of the Gregorian calendar, without a time zone.
public struct CivilDate: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// Days since 1970-01-01, before which they are negative.
    public let daysSince1970: Int64

    /// The day at this distance from 1970-01-01.
    public init(daysSince1970: Int64) { self.daysSince1970 = daysSince1970 }

    /// A day by its numbers; nil if there is none, such as February 29 of a common year.
    ///
    /// - Parameter year: 1…9999.
    public init?(year: Int, month: Int, day: Int) {
        guard (1...9_999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        self.init(daysSince1970: Self.days(year: Int64(year), month: Int64(month), day: Int64(day)))
        guard numbers == (year, month, day) else { return nil }
    }

    /// Year, month (1…12) and day of the month (1…31).
    public var numbers: (year: Int, month: Int, day: Int) {
        // By eras of 400 years that begin on a first of March.
        let (era, dayOfEra) = Self.split(daysSince1970 + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (Int(era * 400 + yearOfEra + (month <= 2 ? 1 : 0)), Int(month), Int(day))
    }

    /// The day of the week.
    public var weekday: Weekday {
        // 1970-01-01 was a Thursday.
        Weekday.allCases[Int(Self.split(daysSince1970 + 3, by: 7).remainder)]
    }

    /// The day before.
    public var previous: CivilDate { CivilDate(daysSince1970: daysSince1970 - 1) }

    /// `2026-02-28`.
    public var description: String {
        let (year, month, day) = numbers
        return Self.digits(year, 4) + "-" + Self.digits(month, 2) + "-" + Self.digits(day, 2)
    }

    /// Orders days.
    public static func < (left: Self, right: Self) -> Bool { left.daysSince1970 < right.daysSince1970 }

    static func digits(_ value: Int, _ count: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }

    static func split(_ value: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    /// Days from 1970-01-01, counting years from March so that leap days come last.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return 365 * year + split(year, by: 4).quotient - split(year, by: 100).quotient
            + split(year, by: 400).quotient + dayOfYear - 719_468
    }
}

/// A day of the week, in the order of ISO 8601.
public enum Weekday: String, CaseIterable, Hashable, Sendable {
    case monday = "mon"
    case tuesday = "tue"
    case wednesday = "wed"
    case thursday = "thu"
    case friday = "fri"
    case saturday = "sat"
    case sunday = "sun"
}

/// What a clock on the wall of some place shows.
public struct LocalTime: Hashable, Sendable, CustomStringConvertible {
    /// The day.
    public let date: CivilDate
    /// Seconds since its midnight by that clock: 0…86,399.
    public let second: Int

    /// Makes a time.
    public init(date: CivilDate, second: Int) {
        self.date = date
        self.second = second
    }

    /// Minutes since midnight: 0…1,439.
    public var minute: Int { second / 60 }

    /// `2026-02-28 23:59`.
    public var description: String {
        "\(date) \(CivilDate.digits(minute / 60, 2)):\(CivilDate.digits(minute % 60, 2))"
    }
}
