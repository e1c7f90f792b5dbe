internal import CallControl
internal import CallVoicemail
internal import ConfigReader
internal import Core
internal import Glibc

/// The keys of one of `answer.rules`.
struct AnswerRuleKeys: ConfigKeys {
    /// What a rule does with a call, by the names of `action`.
    enum Action: String, CaseIterable {
        case answer, ring, reject
    }

    let name = ConfigKey.string("name", "what the log and records call the rule")
    let callers = ConfigKey<[CalleePattern]>.callerPatterns(
        "callers", "who calls: names, beginnings of names with `*`, or patterns of numbers such as `+4930*`"
    ).unset("all")
    let groups = ConfigKey<[GroupID]>.names("groups", of: "a group's name", "which group is called").unset(
        "any, or none")
    let dialled = ConfigKey<[CalleePattern]>.callerPatterns(
        "dialled", "what was dialled, where a telephone network says so"
    ).unset("anything")
    let weekdays = ConfigKey<[WeekdaySpan]>.list(
        "weekdays", of: "weekdays",
        "days such as `mon` or `mon-fri`. With `hours` that cross midnight the day on which they begin counts"
    ) { text throws(ConfigValueFault) in
        if let span = WeekdaySpan(text) { return span }
        throw ConfigValueFault("has \"\(text.prefix(40))\"; days are mon, tue, wed, thu, fri, sat and sun, or mon-fri")
    }.unset("all days")
    let hours = ConfigKey<[DayHours]>.list(
        "hours", of: "spans", "times of day, such as `09:00-17:30`, or `22:00-06:00` until the next morning"
    ) { text throws(ConfigValueFault) in
        if let hours = DayHours(text) { return hours }
        throw ConfigValueFault(
            "has \"\(text.prefix(40))\"; a span is HH:MM-HH:MM, such as 09:00-17:30, and not empty; 00:00-24:00 is the whole day"
        )
    }.unset("all day")
    let holiday = ConfigKey.bool("holiday", "only on days of `holidays_file`, or only on others").unset("all days")
    let load = ConfigKey.integer(
        "load_percent", in: 1...100, unit: "%", "from this share of `max_calls` on, which must be a number then"
    ).unset("any")
    let action = ConfigKey.choice(
        "action", of: Action.self, "answer, ring until a user or program decides, or reject"
    ).defaulting(to: .answer)
    let behaviour = ConfigKey.string("behaviour", "the name of the call's behaviour").unset("that of `behaviour`")
    let delay = ConfigKey.milliseconds("delay_ms", in: 0...600_000, "with `action: answer`: how long to ring before")
        .defaulting(to: .zero)
    let ringTime = ConfigKey.seconds(
        "ring_seconds", in: 1...600,
        "with `action: ring` and `then`: how long to ring; less than `answer.ring_seconds`, after which no call rings"
    ).unset("as long as `answer.ring_seconds`")
    let sequel = ConfigKey.string(
        "then",
        "with `action: ring` and `ring_seconds`: the name of the behaviour that answers a call that no user has taken"
    ).unset("none: the caller gets no answer")
    let longest = ConfigKey.seconds("max_call_seconds", in: 1...604_800, "longest call").unset("that of its behaviour")
    let refusal = ConfigKey.choice(
        "reject_as", of: AnswerRule.Refusal.self,
        "with `action: reject`: what the caller receives; `overload` is busy, with the cause `deviceFull`"
    ).defaulting(to: .busy)
    let reason = ConfigKey.string("reason", "with `action: reject`: why, for the log and the record").unset("none")
}

/// A weekday, or several in turn.
struct WeekdaySpan: Sendable, CustomStringConvertible {
    let days: Set<Weekday>
    let description: String

    init?(_ text: String) {
        let ends = text.lowercased().split(separator: "-", omittingEmptySubsequences: false).map {
            Weekday(rawValue: String($0))
        }
        let all = Weekday.allCases
        guard (1...2).contains(ends.count), let first = ends.first ?? nil, let last = ends.last ?? nil,
            let start = all.firstIndex(of: first), let end = all.firstIndex(of: last)
        else { return nil }
        // From Saturday to Monday runs across the end of the week.
        days = Set((0...(end - start + 7) % 7).map { all[(start + $0) % 7] })
        description = text
    }
}

/// Reads the table of an account's section `answer`.
struct AnswerTableReader {
    private let account: AccountConfiguration
    private let behaviours: [String: BehaviourConfiguration]
    private let ownName: String?

    /// Where the tz database is.
    static let zoneFolder = "/usr/share/zoneinfo"
    /// Longer files of holidays are refused.
    static let mostHolidayBytes = 1 << 18

    /// - Parameter ownName: The name of the section `behaviour`, if it has one.
    init(_ account: AccountConfiguration, behaviours: [String: BehaviourConfiguration], ownName: String?) {
        self.account = account
        self.behaviours = behaviours
        self.ownName = ownName
    }

    func table(
        _ section: KeyedSection<AnswerPolicy.Keys>, _ policy: AnswerPolicy, _ problems: inout [ConfigProblem]
    ) -> AnswerTable {
        var table = AnswerTable(calendar: calendar(section, &problems))
        let sections = section.value(\.rules, &problems) ?? []
        if sections.count > AnswerTable.most {
            problems.append(
                section.problem(\.rules, "has \(sections.count) rules; \(AnswerTable.most) are allowed"))
        }
        let hasHolidays = section.has(\.holidays)
        var last: AnswerRule?
        for (index, section) in sections.prefix(AnswerTable.most).enumerated() {
            let rule = rule(section, number: index + 1, policy, hasHolidays: hasHolidays, &problems)
            if let last {
                problems.append(section.warning(\.name, "the rule never matches: \(last) matches all calls before it"))
            } else if rule.isUnconditional {
                last = rule
            }
            table.rules.append(rule)
        }
        if !section.has(\.timeZone), let rule = table.rules.first(where: \.tellsTime) {
            problems.append(
                section.problem(
                    \.timeZone,
                    "is required, because \(rule) depends on the time; give a name of the tz database, such as Europe/Berlin"
                ))
        }
        return table
    }

    private func rule(
        _ section: KeyedSection<AnswerRuleKeys>, number: Int, _ policy: AnswerPolicy, hasHolidays: Bool,
        _ problems: inout [ConfigProblem]
    ) -> AnswerRule {
        var rule = AnswerRule(number: number, line: section.line, name: section.value(\.name, &problems))
        rule.callers = section.value(\.callers, &problems).map(account.callerList)
        rule.groups = section.value(\.groups, &problems).map { Set($0) }
        rule.dialled = section.value(\.dialled, &problems).map { CalleeList($0) }
        rule.weekdays = section.value(\.weekdays, &problems).map { Set($0.flatMap(\.days)) }
        rule.hours = section.value(\.hours, &problems)
        rule.holiday = section.value(\.holiday, &problems)
        rule.load = section.value(\.load, &problems)
        if let load = rule.load { judge(load, section, policy, &problems) }
        if rule.holiday != nil, !hasHolidays {
            let effect = rule.holiday == true ? "never matches" : "matches on all days"
            problems.append(section.warning(\.holiday, "\(effect), because answer.holidays_file is missing; add that"))
        }
        rule.outcome = outcome(section, policy, &problems)
        return rule
    }

    /// A share of the calls must be one that a call can find.
    private func judge(
        _ load: Int, _ section: KeyedSection<AnswerRuleKeys>, _ policy: AnswerPolicy, _ problems: inout [ConfigProblem]
    ) {
        guard case .calls(let most) = policy.callLimit else {
            return problems.append(
                section.problem(\.load, "is a share of answer.max_calls, which is auto; give a number of calls there"))
        }
        let highest = AnswerTable.Call.highestLoad(of: most)
        guard load > highest else { return }
        let remedy =
            highest > 0 ? "give \(highest) at most, or remove the rule" : "allow more calls, or remove the rule"
        problems.append(
            section.warning(
                \.load,
                "never matches: with answer.max_calls: \(most) a call finds \(highest) % in use at most, and with all calls in use it "
                    + "is refused before; \(remedy)"))
    }

    private func outcome(
        _ section: KeyedSection<AnswerRuleKeys>, _ policy: AnswerPolicy, _ problems: inout [ConfigProblem]
    ) -> AnswerRule.Outcome {
        let action = section.value(\.action, &problems)
        let delay = section.value(\.delay, &problems)
        let refusal = section.value(\.refusal, &problems)
        var outcome = AnswerRule.Outcome()
        outcome.reason = section.value(\.reason, &problems)
        outcome.maximumDuration = section.value(\.longest, &problems)
        outcome.behaviour =
            section.value(\.behaviour, &problems).map { behaviour($0, \.behaviour, section, &problems) } ?? ""
        switch action {
        case .answer: outcome.action = .answer(after: delay)
        case .ring: outcome.action = .ring(then: sequel(section, outcome.behaviour, policy, &problems))
        case .reject: outcome.action = .reject(refusal)
        }
        func idle(_ needed: AnswerRuleKeys.Action) -> String {
            "is for action: \(needed.rawValue), and the action is \(action.rawValue); change it, or remove this key"
        }
        if action != .answer { section.rejectIdle(\.delay, idle(.answer), &problems) }
        if action != .ring {
            section.rejectIdle(\.ringTime, idle(.ring), &problems)
            section.rejectIdle(\.sequel, idle(.ring), &problems)
        }
        if action != .reject {
            section.rejectIdle(\.refusal, idle(.reject), &problems)
            section.rejectIdle(\.reason, idle(.reject), &problems)
        } else {
            section.rejectIdle(\.behaviour, idle(.answer), &problems)
            section.rejectIdle(\.longest, idle(.answer), &problems)
        }
        if delay > policy.ringLimit {
            problems.append(section.problem(\.delay, "is longer than answer.ring_seconds, after which no call rings"))
        }
        return outcome
    }

    /// What follows for calls that ring and that no user takes.
    private func sequel(
        _ section: KeyedSection<AnswerRuleKeys>, _ first: String, _ policy: AnswerPolicy,
        _ problems: inout [ConfigProblem]
    ) -> AnswerRule.Sequel? {
        let time = section.value(\.ringTime, &problems)
        let name = section.value(\.sequel, &problems)
        guard let time, let name else {
            if time != nil { problems.append(section.problem(\.ringTime, "is for then, which is missing; add that")) }
            if name != nil {
                problems.append(section.problem(\.sequel, "is for ring_seconds, which is missing; add that"))
            }
            return nil
        }
        let count = problems.count
        let second = behaviour(name, \.sequel, section, &problems)
        if second == first, problems.count == count {
            problems.append(
                section.problem(
                    \.sequel, "is the behaviour that rings; name another one, or use action: answer with delay_ms"))
        }
        if time >= policy.ringLimit {
            problems.append(
                section.problem(
                    \.ringTime,
                    "must be less than answer.ring_seconds (\(policy.ringLimit.text)), after which no call rings"))
        }
        return AnswerRule.Sequel(after: time, behaviour: second)
    }

    private func behaviour(
        _ name: String, _ key: KeyPath<AnswerRuleKeys, ConfigKey<String>>, _ section: KeyedSection<AnswerRuleKeys>,
        _ problems: inout [ConfigProblem]
    ) -> String {
        if name == ownName { return "" }
        if behaviours[name] != nil { return name }
        let known = (behaviours.keys.sorted() + (ownName.map { [$0] } ?? [])).joined(separator: ", ")
        problems.append(
            section.problem(
                key,
                "names no behaviour, \"\(name.prefix(40))\"; "
                    + (known.isEmpty ? "behaviours lists none" : "there are \(known)")))
        return ""
    }

    /// Warns of behaviours that no rule names.
    static func warnOfUnused(
        _ sections: [KeyedSection<BehaviourConfiguration.Keys>], _ table: AnswerTable,
        _ problems: inout [ConfigProblem]
    ) {
        var ignored: [ConfigProblem] = []  // Reported where the sections are read.
        let named = Set(table.rules.flatMap(\.outcome.behaviours))
        for section in sections {
            guard let name = section.value(\.name, &ignored), !named.contains(name) else { continue }
            problems.append(section.warning(\.name, "no rule of answer.rules names this behaviour"))
        }
    }

    // MARK: Time

    private func calendar(
        _ section: KeyedSection<AnswerPolicy.Keys>, _ problems: inout [ConfigProblem]
    ) -> AnswerCalendar {
        var calendar = AnswerCalendar()
        if let name = section.value(\.timeZone, &problems) {
            calendar.zoneName = name
            if section.fileChecks != .none {
                do throws(ConfigValueFault) {
                    calendar.zone = try Self.zone(name)
                } catch {
                    problems.append(section.problem(\.timeZone, error.message))
                }
            }
        }
        guard let path = section.value(\.holidays, &problems), section.fileChecks != .none else { return calendar }
        guard case .success(let text) = SmallFile.read(path: path, maximumBytes: Self.mostHolidayBytes) else {
            problems.append(
                section.problem(
                    \.holidays, "\"\(path)\" must be UTF-8 text of \(Self.mostHolidayBytes) bytes at most"))
            return calendar
        }
        do throws(HolidayList.Faults) {
            calendar.holidays = try HolidayList(parsing: text)
        } catch {
            for fault in error.faults {
                problems.append(
                    ConfigProblem(file: path, line: fault.line, key: "holidays", message: fault.message))
            }
        }
        return calendar
    }

    private static func zone(_ name: String) throws(ConfigValueFault) -> ZoneRules {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        let letters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-")
        let unknown = ConfigValueFault(
            "\"\(name.prefix(40))\" is no time zone in \(zoneFolder); names are such as Europe/Berlin, and the package tzdata has them"
        )
        guard parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(letters.contains) }),
            case .success(let bytes) = SmallFile.bytes(path: "\(zoneFolder)/\(name)", maximumBytes: ZoneRules.longest)
        else { throw unknown }
        do throws(ZoneRules.Fault) {
            return try ZoneRules(parsing: bytes)
        } catch {
            throw ConfigValueFault("\"\(zoneFolder)/\(name)\" cannot be read: \(error.message)")
        }
    }
}

extension BehaviourConfiguration {
    /// The most behaviours that rules may name.
    static let mostNamed = 16

    /// Reads the section `behaviours`.
    ///
    /// - Parameters:
    ///   - main: The section `behaviour`, if there is one.
    ///   - own: What it says.
    static func named(
        _ sections: [KeyedSection<Keys>], besides main: KeyedSection<Keys>?, _ own: BehaviourConfiguration,
        _ problems: inout [ConfigProblem]
    ) -> [String: BehaviourConfiguration] {
        var ignored: [ConfigProblem] = []  // Reported where the section is read.
        let ownName = main?.value(\.name, &ignored)
        var hasBot = own.participation?.bot != nil
        var named: [String: BehaviourConfiguration] = [:]
        for (index, section) in sections.enumerated() {
            if index == mostNamed {
                problems.append(section.problem(\.name, "is one behaviour too many; \(mostNamed) are allowed"))
                break
            }
            section.require(\.name, &problems)
            section.rejectIdle(
                \.attach, "is for the section behaviour, whose program or bot can be attached", &problems)
            let behaviour = BehaviourConfiguration(section, &problems)
            guard let name = section.value(\.name, &problems) else { continue }
            if name == ownName || named[name] != nil {
                problems.append(section.problem(\.name, "is the name of an earlier behaviour; give each its own"))
            }
            let earlier = [(name: "", behaviour: own)] + named.map { (name: $0.key, behaviour: $0.value) }
            section.judgeFolder(of: behaviour, beside: earlier, &problems)
            if behaviour.participation?.bot != nil {
                if hasBot {
                    problems.append(
                        section.problem(\.source, "is bot, and another behaviour has a bot; a device has one"))
                }
                hasBot = true
            }
            named[name] = behaviour
        }
        return named
    }
}

extension KeyedSection<BehaviourConfiguration.Keys> {
    /// Recordings of one folder are kept by one rule: otherwise those of one behaviour were removed by the limits of another one.
    fileprivate func judgeFolder(
        of behaviour: BehaviourConfiguration, beside others: [(name: String, behaviour: BehaviourConfiguration)],
        _ problems: inout [ConfigProblem]
    ) {
        judgeMailbox(of: behaviour, beside: others, &problems)
        guard let folder = behaviour.recordingFolder else { return }
        let other = others.first { _, other in
            guard let shared = other.recordingFolder, other.recordingLimits != behaviour.recordingLimits else {
                return false
            }
            return DeviceConfiguration.areSame(folder, shared, fileChecks)
        }
        guard let other else { return }
        problems.append(
            problem(
                \.recordFolder,
                "is the folder of \(AnswerRule.text(behaviour: other.name)) too, with other limits; give both the same record_days and record_megabytes, or each a "
                    + "folder of its own"))
    }

    /// Limits of recordings would remove messages.
    private func judgeMailbox(
        of behaviour: BehaviourConfiguration, beside others: [(name: String, behaviour: BehaviourConfiguration)],
        _ problems: inout [ConfigProblem]
    ) {
        func isOne(_ folder: String?, _ other: String?) -> Bool {
            guard let folder, let other else { return false }
            return DeviceConfiguration.areSame(folder, other, fileChecks)
        }
        for (name, other) in others {
            let text = AnswerRule.text(behaviour: name)
            if isOne(behaviour.source.mailbox?.folder, other.recordingFolder) {
                problems.append(
                    problem(
                        \.voicemail, "has the record_folder of \(text) as its folder; give each a folder of its own"))
            }
            if isOne(behaviour.recordingFolder, other.source.mailbox?.folder) {
                problems.append(
                    problem(\.recordFolder, "is the folder of the voicemail of \(text); give each a folder of its own"))
            }
        }
    }
}
