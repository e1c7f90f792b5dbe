public import Core

/// Rules that decide what happens to a call that comes in, of which the first that matches counts; a pure function of values.
///
/// Who may get through, and how many calls there may be, is decided by ``AnswerPolicy`` before it.
public struct AnswerTable: Hashable, Sendable {
    /// The most rules.
    public static let most = 200

    /// In the order of the file.
    public var rules: [AnswerRule]
    /// The clocks and holidays of the rules.
    public var calendar: AnswerCalendar

    /// Makes a table; empty by default, so that ``AnswerPolicy/manner`` decides.
    public init(_ rules: [AnswerRule] = [], calendar: AnswerCalendar = AnswerCalendar()) {
        self.rules = rules
        self.calendar = calendar
    }

    /// What the table knows of a call.
    public struct Call: Sendable {
        /// Who calls.
        public var caller: Callee
        /// The group that is called; nil if none is.
        public var group: GroupID?
        /// What was dialled, if the service says so.
        public var dialled: String?
        /// Calls of the device that have not ended, without this one.
        public var activeCalls: Int
        /// The most that there may be; nil if only the machine limits them.
        public var mostCalls: Int?

        /// Describes a call.
        public init(
            caller: Callee, group: GroupID? = nil, dialled: String? = nil, activeCalls: Int = 0, mostCalls: Int? = nil
        ) {
            self.caller = caller
            self.group = group
            self.dialled = dialled
            self.activeCalls = activeCalls
            self.mostCalls = mostCalls
        }

        /// Percent of the calls that there may be; nil if their number has no limit.
        public var load: Int? { mostCalls.map { $0 > 0 ? activeCalls * 100 / $0 : 100 } }

        /// The highest load of a call that is not refused: one of `most` calls is still free then.
        public static func highestLoad(of most: Int) -> Int { max(0, most - 1) * 100 / max(1, most) }
    }

    /// The rule that decides a call; nil if none matches.
    public func rule(for call: Call, at time: WallClock) -> AnswerRule? {
        let local = calendar.zone.local(at: time)
        return rules.first { $0.mismatch(with: call, at: local, calendar) == nil }
    }

    /// Why each rule before the one that decides does not match, and that one, which is the last; without one that matches, all rules.
    public func trial(of call: Call, at time: WallClock) -> [(rule: AnswerRule, mismatch: AnswerRule.Mismatch?)] {
        let local = calendar.zone.local(at: time)
        var tried: [(rule: AnswerRule, mismatch: AnswerRule.Mismatch?)] = []
        for rule in rules {
            let mismatch = rule.mismatch(with: call, at: local, calendar)
            tried.append((rule, mismatch))
            if mismatch == nil { break }
        }
        return tried
    }
}

/// The clocks of a place, and its holidays, by which a table decides.
public struct AnswerCalendar: Hashable, Sendable {
    /// The place, such as `Europe/Berlin`.
    public var zoneName: String
    /// Its clocks.
    public var zone: ZoneRules
    /// Its holidays.
    public var holidays: HolidayList

    /// Makes a calendar; in UTC without holidays by default.
    public init(zoneName: String = "UTC", zone: ZoneRules = .utc, holidays: HolidayList = HolidayList()) {
        self.zoneName = zoneName
        self.zone = zone
        self.holidays = holidays
    }
}

/// One rule: conditions, all of which a call must meet, and what happens then.
public struct AnswerRule: Hashable, Sendable, CustomStringConvertible {
    /// How a call is refused. The names are those of configurations.
    public enum Refusal: String, CaseIterable, Hashable, Sendable {
        case busy
        case doNotDisturb = "do_not_disturb"
        case overload

        /// What the caller receives.
        public var reason: RejectReason {
            switch self {
            case .busy, .overload: .busy
            case .doNotDisturb: .declined
            }
        }

        /// The cause that the caller receives beside the reason.
        public var cause: CallFailureCause? { self == .overload ? .deviceFull : nil }
    }

    /// What happens to a call.
    public enum Action: Hashable, Sendable {
        /// It is answered by itself after ringing for this time.
        case answer(after: Duration)
        /// It rings until the user or the program decides; with a sequel not for longer than that says.
        case ring(then: Sequel? = nil)
        case reject(Refusal)
    }

    /// What follows for a call that rings and that no user takes.
    public struct Sequel: Hashable, Sendable, CustomStringConvertible {
        /// How long it rings.
        public var delay: Duration
        /// The behaviour that answers it then; empty for that of the section `behaviour`.
        public var behaviour: String

        /// Makes a sequel.
        public init(after delay: Duration, behaviour: String) {
            self.delay = delay
            self.behaviour = behaviour
        }

        /// `after 20 s the behaviour messages`.
        public var description: String {
            "after \(delay.text) \(AnswerRule.text(behaviour: behaviour))"
        }
    }

    /// What follows from a rule.
    public struct Outcome: Hashable, Sendable {
        /// What happens to the call.
        public var action: Action
        /// The behaviour of the call; empty for that of the section `behaviour`.
        public var behaviour: String
        /// The longest time for which it is established; nil as its behaviour has it.
        public var maximumDuration: Duration?
        /// Why, for the log.
        public var reason: String?

        /// What follows if the call rings and no user takes it; nil if it ends.
        public var sequel: Sequel? { if case .ring(let sequel) = action { sequel } else { nil } }

        /// The behaviours of all calls that follow, by their names.
        public var behaviours: [String] { [behaviour] + (sequel.map { [$0.behaviour] } ?? []) }

        /// Makes an outcome; by default the call is answered at once.
        public init(
            _ action: Action = .answer(after: .zero), behaviour: String = "",
            maximumDuration: Duration? = nil, reason: String? = nil
        ) {
            self.action = action
            self.behaviour = behaviour
            self.maximumDuration = maximumDuration
            self.reason = reason
        }
    }

    /// Counts from 1.
    public var number: Int
    /// The line on which it begins; 0 if it comes from no file.
    public var line: Int
    /// What the owner calls it.
    public var name: String?
    /// Who calls; nil for all.
    public var callers: CalleeList?
    /// Which group is called; nil for any, and none.
    public var groups: Set<GroupID>?
    /// What was dialled; nil for anything.
    public var dialled: CalleeList?
    /// On which days of the week; nil for all.
    public var weekdays: Set<Weekday>?
    /// At which times of day; nil for all.
    public var hours: [DayHours]?
    /// Whether only on holidays, or only on other days; nil for both.
    public var holiday: Bool?
    /// Percent of the calls that there may be, from which the rule matches; nil for any.
    public var load: Int?
    /// What follows.
    public var outcome: Outcome

    /// Makes a rule without conditions.
    public init(number: Int, line: Int = 0, name: String? = nil, outcome: Outcome = Outcome()) {
        self.number = number
        self.line = line
        self.name = name
        self.outcome = outcome
    }

    /// `answer.rules[2] "office" (line 14)`.
    public var description: String {
        "answer.rules[\(number)]" + (name.map { " \"\($0)\"" } ?? "") + (line > 0 ? " (line \(line))" : "")
    }

    /// A behaviour in a sentence, by its name.
    public static func text(behaviour: String) -> String {
        behaviour.isEmpty ? "the section behaviour" : "the behaviour \(behaviour)"
    }

    /// Whether every call meets its conditions.
    public var isUnconditional: Bool {
        callers == nil && groups == nil && dialled == nil && weekdays == nil && hours == nil && holiday == nil
            && load == nil
    }

    /// Whether it depends on the time.
    public var tellsTime: Bool { weekdays != nil || hours != nil || holiday != nil }

    /// A condition that a call does not meet.
    public enum Mismatch: Hashable, Sendable, CustomStringConvertible {
        case caller(String)
        case group(String?)
        case dialled(String?)
        /// The day that counts; with hours that cross midnight it may be the day before.
        case weekday(CivilDate)
        case hours(LocalTime)
        case holiday(CivilDate, isOne: Bool)
        /// Percent; nil if the number of calls has no limit.
        case load(Int?)

        /// The key, and why it does not match.
        public var description: String {
            switch self {
            case .caller(let caller): "callers: \(caller) is none of them"
            case .group(let group?): "groups: \(group) is none of them"
            case .group(nil): "groups: no group is called"
            case .dialled(let number?): "dialled: \(number) is none of them"
            case .dialled(nil): "dialled: it is not known what was dialled"
            case .weekday(let date): "weekdays: \(date) is a \(date.weekday.rawValue)"
            case .hours(let time): "hours: it is \(time)"
            case .holiday(let date, let isOne): "holiday: \(date) is \(isOne ? "a" : "no") holiday"
            case .load(let load?): "load_percent: it is \(load)"
            case .load(nil): "load_percent: the number of calls has no limit"
            }
        }
    }

    /// The first condition that a call does not meet; nil if the rule matches.
    func mismatch(with call: AnswerTable.Call, at time: LocalTime, _ calendar: AnswerCalendar) -> Mismatch? {
        if let callers, !callers.admits(call.caller) { return .caller("\(call.caller)") }
        if let groups, call.group.map(groups.contains) != true { return .group(call.group?.text) }
        if let dialled, call.dialled.map({ dialled.admits(Callee($0)) }) != true { return .dialled(call.dialled) }
        if let mismatch = mismatch(at: time, calendar) { return mismatch }
        guard let load else { return nil }
        return (call.load ?? -1) < load ? .load(call.load) : nil
    }

    /// A span of hours belongs to the day on which it begins, so that `fri, 22:00-06:00` ends on Saturday morning.
    private func mismatch(at time: LocalTime, _ calendar: AnswerCalendar) -> Mismatch? {
        guard let hours else { return mismatch(on: time.date, calendar) }
        let days = Set(hours.compactMap { $0.beginning(of: time) }).sorted()
        guard let first = days.last else { return .hours(time) }
        let mismatches = days.map { mismatch(on: $0, calendar) }
        return mismatches.contains(nil) ? nil : mismatch(on: first, calendar)
    }

    private func mismatch(on date: CivilDate, _ calendar: AnswerCalendar) -> Mismatch? {
        if let weekdays, !weekdays.contains(date.weekday) { return .weekday(date) }
        guard let holiday else { return nil }
        let isOne = calendar.holidays.contains(date)
        return holiday == isOne ? nil : .holiday(date, isOne: isOne)
    }
}

/// A span of a day, by minutes since midnight; past midnight it continues on the next day.
public struct DayHours: Hashable, Sendable, CustomStringConvertible {
    /// The first minute: 0…1,439.
    public let start: Int
    /// The first minute that is no part of it: 1…1,440.
    public let end: Int

    /// Reads `HH:MM-HH:MM`; `24:00` is the end of a day. Nil for anything else, and for an empty span.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let start = Self.minute(parts[0]), let end = Self.minute(parts[1]), start < 1_440,
            start != end, end > 0 || start > 0
        else { return nil }
        self.start = start
        self.end = end == 0 ? 1_440 : end
    }

    private static func minute(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 2, parts[1].utf8.count == 2,
            parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }), let hour = Int(parts[0]),
            let minute = Int(parts[1]), hour < 24 && minute < 60 || hour == 24 && minute == 0
        else { return nil }
        return hour * 60 + minute
    }

    /// The day on which the span that has this time begins; nil if the time is no part of it.
    func beginning(of time: LocalTime) -> CivilDate? {
        if start < end { return (start..<end).contains(time.minute) ? time.date : nil }
        if time.minute >= start { return time.date }
        return time.minute < end ? time.date.previous : nil
    }

    /// As it is written.
    public var description: String {
        func clock(_ minute: Int) -> String {
            "\(minute / 60 < 10 ? "0" : "")\(minute / 60):\(minute % 60 < 10 ? "0" : "")\(minute % 60)"
        }
        return "\(clock(start))-\(clock(end))"
    }
}

/// Holidays: days of one year, and days of every year.
public struct HolidayList: Hashable, Sendable {
    /// The most lines of a file.
    public static let mostLines = 10_000

    private struct Yearly: Hashable {
        let month: Int
        let day: Int
    }

    private var dates: Set<CivilDate> = []
    private var yearly: Set<Yearly> = []

    /// Makes an empty list.
    public init() {}

    /// Lines that are no holidays.
    public struct Faults: Error, Sendable {
        /// At least one, in the order of the file, by line from 1.
        public let faults: [(line: Int, message: String)]
    }

    /// Reads a text with a holiday on each line: `2026-04-03`, or `12-25` for every year. What follows `#` is a comment.
    public init(parsing text: String) throws(Faults) {
        var faults: [(line: Int, message: String)] = []
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        if lines.count > Self.mostLines + 1 {
            throw Faults(faults: [(Self.mostLines + 1, "is one line too many; \(Self.mostLines) are allowed")])
        }
        for (index, line) in lines.enumerated() {
            let date = line.prefix { $0 != "#" }.filter { !$0.isWhitespace }
            if date.isEmpty || insert(date) { continue }
            faults.append(
                (
                    index + 1,
                    "must be a day as 2026-04-03, or 12-25 for every year, and one that the calendar has, not \"\(date.prefix(40))\""
                ))
        }
        if !faults.isEmpty { throw Faults(faults: faults) }
    }

    private mutating func insert(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else {
            return false
        }
        let numbers = parts.compactMap { Int($0) }
        switch (numbers.count, parts.map(\.utf8.count)) {
        case (3, [4, 2, 2]):
            guard let date = CivilDate(year: numbers[0], month: numbers[1], day: numbers[2]) else { return false }
            dates.insert(date)
        case (2, [2, 2]):
            // Of a leap year, which has every day.
            guard CivilDate(year: 2_000, month: numbers[0], day: numbers[1]) != nil else { return false }
            yearly.insert(Yearly(month: numbers[0], day: numbers[1]))
        default: return false
        }
        return true
    }

    /// Whether a day is one.
    public func contains(_ date: CivilDate) -> Bool {
        let (_, month, day) = date.numbers
        return dates.contains(date) || yearly.contains(Yearly(month: month, day: day))
    }

    /// Whether there are none.
    public var isEmpty: Bool { dates.isEmpty && yearly.isEmpty }
}
