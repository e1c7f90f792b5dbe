/// How far the clocks of a place are ahead of UTC, and when that changes: the contents of a file of the tz database, as a value.
public struct ZoneRules: Hashable, Sendable {
    /// Longer files are refused.
    public static let longest = 65_536

    /// Why bytes are no rules.
    public struct Fault: Error, Hashable, Sendable {
        /// What is wrong with the file.
        public let message: String
    }

    /// A place on UTC all year.
    public static let utc = ZoneRules(first: 0, changes: [], later: nil)

    private struct Change: Hashable {
        /// Seconds since 1970 in UTC.
        let at: Int64
        /// Seconds that are added to UTC from then on.
        let offset: Int
    }

    /// Before the first change.
    private let first: Int
    /// In order of time.
    private let changes: [Change]
    /// After the last change; nil if nothing follows it.
    private let later: YearlyRule?

    private init(first: Int, changes: [Change], later: YearlyRule?) {
        self.first = first
        self.changes = changes
        self.later = later
    }

    // MARK: Clocks

    /// Seconds that the place's clocks are ahead of UTC.
    public func offset(at time: WallClock) -> Int {
        offset(atSecond: CivilDate.split(time.unixMilliseconds, by: 1_000).quotient)
    }

    private func offset(atSecond second: Int64) -> Int {
        guard let last = changes.last, second < last.at else {
            return later?.offset(at: second) ?? changes.last?.offset ?? first
        }
        // The first change that is still to come.
        let next = changes.sortedIndex(behind: { $0.at > second })
        return next == 0 ? first : changes[next - 1].offset
    }

    /// What the place's clocks show.
    public func local(at time: WallClock) -> LocalTime {
        let second = CivilDate.split(time.unixMilliseconds, by: 1_000).quotient
        let (days, rest) = CivilDate.split(second + Int64(offset(atSecond: second)), by: 86_400)
        return LocalTime(date: CivilDate(daysSince1970: days), second: Int(rest))
    }

    /// When the place's clocks show a time: once; never, if they skip it when they are put forward; or twice, if they are put back.
    ///
    /// - Returns: In order of time.
    public func times(of local: LocalTime) -> [WallClock] {
        let second = local.date.daysSince1970 * 86_400 + Int64(local.second)
        // Clocks change at most once within a day on either side.
        let offsets = Set([-86_400, 86_400].map { offset(atSecond: second + $0) })
        return offsets.map { second - Int64($0) }.filter { Int64(offset(atSecond: $0)) == second - $0 }.sorted()
            .map { WallClock(unixMilliseconds: $0 * 1_000) }
    }

    // MARK: Reading

    /// Reads a file of the tz database (RFC 9636 §3).
    ///
    /// - Parameter bytes: Any bytes; nothing in them can trap.
    public init(parsing bytes: [UInt8]) throws(Fault) {
        guard bytes.count <= Self.longest else {
            throw Fault(message: "it is longer than the \(Self.longest) bytes allowed")
        }
        let reader = ZoneReader(bytes)
        guard let header = reader.header(at: 0) else { throw Fault(message: "it is no file of the tz database") }
        // A first part with times of 32 bits is for old programs.
        let start = header.version == 0 ? 0 : ZoneHeader.bytes + header.length(timeBytes: 4)
        guard let used = reader.header(at: start) else { throw Fault(message: "it is cut off") }
        let timeBytes = header.version == 0 ? 4 : 8
        guard let parsed = reader.contents(used, at: start + ZoneHeader.bytes, timeBytes: timeBytes) else {
            throw Fault(message: "it is cut off, or names kinds of time that it does not have")
        }
        var later: YearlyRule?
        if timeBytes == 8 {
            let rest = bytes.dropFirst(start + ZoneHeader.bytes + used.length(timeBytes: 8))
            guard let text = ZoneReader.footer(rest) else { throw Fault(message: "it is cut off") }
            if !text.isEmpty {
                guard let rule = YearlyRule(text) else {
                    throw Fault(message: "its rule for later years cannot be read")
                }
                later = rule
            }
        }
        var last = Int64.min
        for change in parsed.changes {
            guard change.at > last || last == .min else { throw Fault(message: "its changes are not in order") }
            last = change.at
        }
        self.init(
            first: parsed.first, changes: parsed.changes.map { Change(at: $0.at, offset: $0.offset) }, later: later)
    }
}

/// The counts at the beginning of a part of a file.
private struct ZoneHeader {
    static let bytes = 44
    let version: UInt8
    let utIndicators: Int
    let standardIndicators: Int
    let leaps: Int
    let times: Int
    let types: Int
    let characters: Int

    /// Bytes of the part behind the header.
    func length(timeBytes: Int) -> Int {
        times * (timeBytes + 1) + types * 6 + characters + leaps * (timeBytes + 4) + standardIndicators + utIndicators
    }
}

private struct ZoneReader {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The caller has checked the bounds.
    private func integer(_ count: Int, at start: Int) -> UInt64 {
        bytes[start..<start + count].reduce(0) { $0 << 8 | UInt64($1) }
    }

    func header(at start: Int) -> ZoneHeader? {
        guard start + ZoneHeader.bytes <= bytes.count, Array(bytes[start..<start + 4]) == Array("TZif".utf8) else {
            return nil
        }
        let counts = (0..<6).map { Int(integer(4, at: start + 20 + 4 * $0)) }
        // More than a file can have.
        guard counts.allSatisfy({ $0 <= ZoneRules.longest }) else { return nil }
        return ZoneHeader(
            version: bytes[start + 4], utIndicators: counts[0], standardIndicators: counts[1], leaps: counts[2],
            times: counts[3], types: counts[4], characters: counts[5])
    }

    func contents(
        _ header: ZoneHeader, at start: Int, timeBytes: Int
    ) -> (first: Int, changes: [(at: Int64, offset: Int)])? {
        guard header.types > 0, start + header.length(timeBytes: timeBytes) <= bytes.count else { return nil }
        let kinds = start + header.times * timeBytes
        let types = kinds + header.times
        func offset(_ type: Int) -> Int? {
            guard type < header.types else { return nil }
            return Int(Int32(truncatingIfNeeded: integer(4, at: types + 6 * type)))
        }
        guard let first = offset(0), abs(first) < YearlyRule.mostSeconds else { return nil }
        var changes: [(at: Int64, offset: Int)] = []
        for index in 0..<header.times {
            let place = start + index * timeBytes
            let time =
                timeBytes == 8
                ? Int64(bitPattern: integer(8, at: place)) : Int64(Int32(truncatingIfNeeded: integer(4, at: place)))
            guard let new = offset(Int(bytes[kinds + index])), abs(new) < YearlyRule.mostSeconds else {
                return nil
            }
            changes.append((time, new))
        }
        return (first, changes)
    }

    /// The line at a file's end; nil if there is none.
    static func footer(_ rest: ArraySlice<UInt8>) -> String? {
        guard rest.first == UInt8(ascii: "\n"), let end = rest.dropFirst().firstIndex(of: UInt8(ascii: "\n")) else {
            return nil
        }
        return String(decoding: rest[rest.startIndex + 1..<end], as: UTF8.self)
    }
}

/// How a place's clocks change in each year, such as `CET-1CEST,M3.5.0,M10.5.0/3` (RFC 9636 §3.3, POSIX `TZ`).
private struct YearlyRule: Hashable {
    /// No offset from UTC is as large.
    static let mostSeconds = 26 * 3_600

    private struct Summer: Hashable {
        let offset: Int
        let begin: Day
        let end: Day
    }

    /// When in a year clocks change.
    private struct Day: Hashable {
        enum Kind: Hashable {
            /// 1…365, of which none is February 29.
            case number(Int)
            /// 0…365.
            case index(Int)
            /// Month, week of it (5 is the last), and weekday from Sunday.
            case weekday(month: Int, week: Int, weekday: Int)
        }

        let kind: Kind
        /// Seconds since midnight by the clocks before the change: ±167 hours.
        let second: Int

        /// By the clocks before the change.
        func second(in year: Int) -> Int64? {
            guard let first = CivilDate(year: year, month: 1, day: 1) else { return nil }
            let days: Int64
            switch kind {
            case .number(let number):
                let isLeap = CivilDate(year: year, month: 2, day: 29) != nil
                days = first.daysSince1970 + Int64(number - 1 + (isLeap && number > 59 ? 1 : 0))
            case .index(let index): days = first.daysSince1970 + Int64(index)
            case .weekday(let month, let week, let weekday):
                guard let start = CivilDate(year: year, month: month, day: 1) else { return nil }
                let wanted = (weekday + 6) % 7
                let is0 = Weekday.allCases.firstIndex(of: start.weekday) ?? 0
                var day = 1 + (wanted - is0 + 7) % 7 + (week - 1) * 7
                while CivilDate(year: year, month: month, day: day) == nil, day > 7 { day -= 7 }
                days = start.daysSince1970 + Int64(day - 1)
            }
            return days * 86_400 + Int64(second)
        }
    }

    private let offset: Int
    private let summer: Summer?

    func offset(at second: Int64) -> Int {
        guard let summer else { return offset }
        let days = CivilDate.split(second + Int64(offset), by: 86_400).quotient
        let year = CivilDate(daysSince1970: days).numbers.year
        guard let begin = summer.begin.second(in: year), let end = summer.end.second(in: year) else { return offset }
        let (from, until) = (begin - Int64(offset), end - Int64(summer.offset))
        let isSummer =
            from < until ? (from..<until).contains(second) : !(until..<from).contains(second)
        return isSummer ? summer.offset : offset
    }

    init?(_ text: String) {
        var rest = Substring(text)
        guard Self.skipName(&rest), let standard = Self.time(&rest, most: 24) else { return nil }
        offset = -standard
        guard !rest.isEmpty else {
            summer = nil
            return
        }
        guard Self.skipName(&rest) else { return nil }
        var other = offset + 3_600
        if let next = rest.first, next != "," {
            guard let time = Self.time(&rest, most: 24) else { return nil }
            other = -time
        }
        guard let begin = Self.day(&rest), let end = Self.day(&rest), rest.isEmpty else { return nil }
        summer = Summer(offset: other, begin: begin, end: end)
    }

    /// The name of a kind of time: letters, or anything in angle brackets.
    private static func skipName(_ rest: inout Substring) -> Bool {
        if rest.first == "<" {
            guard let end = rest.firstIndex(of: ">") else { return false }
            rest = rest[rest.index(after: end)...]
            return true
        }
        let name = rest.prefix { $0.isASCII && $0.isLetter }
        rest = rest.dropFirst(name.count)
        return name.count >= 3
    }

    /// `[+-]hh[:mm[:ss]]`, in seconds.
    private static func time(_ rest: inout Substring, most hours: Int) -> Int? {
        let sign = rest.first == "-" ? -1 : 1
        if rest.first == "-" || rest.first == "+" { rest = rest.dropFirst() }
        guard let hour = number(&rest, 0...hours) else { return nil }
        var seconds = hour * 3_600
        for unit in [60, 1] where rest.first == ":" {
            rest = rest.dropFirst()
            guard let value = number(&rest, 0...59) else { return nil }
            seconds += value * unit
        }
        return sign * seconds
    }

    private static func number(_ rest: inout Substring, _ range: ClosedRange<Int>) -> Int? {
        let digits = rest.prefix { ("0"..."9").contains($0) }
        guard !digits.isEmpty, digits.count <= 3, let value = Int(digits), range.contains(value) else { return nil }
        rest = rest.dropFirst(digits.count)
        return value
    }

    /// `,Mm.w.d[/time]`, `,Jn[/time]` or `,n[/time]`.
    private static func day(_ rest: inout Substring) -> Day? {
        guard rest.first == "," else { return nil }
        rest = rest.dropFirst()
        let kind: Day.Kind
        switch rest.first {
        case "M":
            rest = rest.dropFirst()
            guard let month = number(&rest, 1...12), dot(&rest), let week = number(&rest, 1...5), dot(&rest),
                let weekday = number(&rest, 0...6)
            else { return nil }
            kind = .weekday(month: month, week: week, weekday: weekday)
        case "J":
            rest = rest.dropFirst()
            guard let day = number(&rest, 1...365) else { return nil }
            kind = .number(day)
        default:
            guard let day = number(&rest, 0...365) else { return nil }
            kind = .index(day)
        }
        guard rest.first == "/" else { return Day(kind: kind, second: 7_200) }
        rest = rest.dropFirst()
        return time(&rest, most: 167).map { Day(kind: kind, second: $0) }
    }

    private static func dot(_ rest: inout Substring) -> Bool {
        guard rest.first == "." else { return false }
        rest = rest.dropFirst()
        return true
    }
}
