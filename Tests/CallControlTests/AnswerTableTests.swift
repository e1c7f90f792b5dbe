import CallControl
import Core
import Testing

@Suite("The table of answer rules")
struct AnswerTableTests {
    private func time(_ day: String, _ hour: Int, _ minute: Int = 0) throws -> WallClock {
        let parts = day.split(separator: "-").compactMap { Int($0) }
        let date = try #require(CivilDate(year: parts[0], month: parts[1], day: parts[2]))
        return WallClock(unixMilliseconds: (date.daysSince1970 * 86_400 + Int64(hour * 3_600 + minute * 60)) * 1_000)
    }

    private func rule(_ number: Int = 1, _ change: (inout AnswerRule) -> Void = { _ in }) -> AnswerRule {
        var rule = AnswerRule(number: number)
        change(&rule)
        return rule
    }

    private func matches(
        _ rule: AnswerRule, _ call: AnswerTable.Call = .init(caller: Callee("alice")), at time: WallClock
    )
        -> Bool
    { AnswerTable([rule]).rule(for: call, at: time) != nil }

    @Test("The first rule that matches decides, and a trial says why those before it do not")
    func first() throws {
        let pattern = try #require(CalleePattern("+4930*"))
        let table = AnswerTable([
            rule(1) { $0.callers = CalleeList([pattern]) }, rule(2) { $0.weekdays = [.sunday] }, rule(3), rule(4),
        ])
        let call = AnswerTable.Call(caller: Callee("alice"))
        // A Monday.
        let monday = try time("2026-11-30", 12)
        #expect(table.rule(for: call, at: monday)?.number == 3)
        let trial = table.trial(of: call, at: monday)
        #expect(
            trial.map { $0.mismatch?.description } == [
                "callers: alice is none of them", "weekdays: 2026-11-30 is a mon", nil,
            ])
        #expect(table.rule(for: .init(caller: Callee("+49301234")), at: monday)?.number == 1)
        #expect(AnswerTable([rule { $0.weekdays = [.sunday] }]).rule(for: call, at: monday) == nil)
        #expect(AnswerTable().rule(for: call, at: monday) == nil)
    }

    @Test("Hours include their first minute and not their last, and midnight belongs to the new day")
    func hours() throws {
        let span = try #require(DayHours("09:00-17:00"))
        let office = rule { $0.hours = [span] }
        #expect(
            try !matches(office, at: try time("2026-11-30", 8, 59)) && matches(office, at: try time("2026-11-30", 9)))
        #expect(
            try matches(office, at: try time("2026-11-30", 16, 59)) && !matches(office, at: try time("2026-11-30", 17)))
        let day = try #require(DayHours("00:00-24:00"))
        let monday = rule { ($0.hours, $0.weekdays) = ([day], [.monday]) }
        #expect(
            try matches(monday, at: try time("2026-11-30", 0)) && matches(monday, at: try time("2026-11-30", 23, 59)))
        #expect(try !matches(monday, at: try time("2026-12-01", 0)))
        for text in ["9:00-17:00", "09:00", "09:00-09:00", "25:00-26:00", "24:00-06:00", "09:60-10:00", "a", ""] {
            #expect(DayHours(text) == nil, "\(text)")
        }
        #expect(try #require(DayHours("22:00-00:00")).description == "22:00-24:00")
    }

    @Test("Hours that cross midnight belong to the day on which they begin")
    func crossMidnight() throws {
        let night = try #require(DayHours("22:00-06:00"))
        let friday = rule { ($0.hours, $0.weekdays) = ([night], [.friday]) }
        #expect(
            try matches(friday, at: try time("2026-11-27", 22)) && matches(friday, at: try time("2026-11-28", 5, 59)))
        #expect(try !matches(friday, at: try time("2026-11-27", 5)) && !matches(friday, at: try time("2026-11-28", 22)))
        #expect(try !matches(friday, at: try time("2026-11-28", 6)))
    }

    @Test("Holidays are single days, or days of every year, of which February 29 comes in leap years alone")
    func holidays() throws {
        let list = try HolidayList(parsing: "# ours\r\n2026-04-03  # Good Friday\r\n\n12-25\r\n02-29\r\n")
        func isOne(_ year: Int, _ month: Int, _ day: Int) -> Bool {
            CivilDate(year: year, month: month, day: day).map(list.contains) ?? false
        }
        #expect(isOne(2026, 4, 3) && !isOne(2027, 4, 3) && isOne(2027, 12, 25) && isOne(2031, 12, 25))
        #expect(isOne(2028, 2, 29) && !isOne(2027, 2, 28) && !isOne(2027, 3, 1))
        let calendar = AnswerCalendar(holidays: list)
        let table = AnswerTable([rule { $0.holiday = true }, rule(2) { $0.holiday = false }], calendar: calendar)
        let call = AnswerTable.Call(caller: Callee("alice"))
        #expect(table.rule(for: call, at: try time("2026-04-03", 12))?.number == 1)
        #expect(table.rule(for: call, at: try time("2026-04-04", 0))?.number == 2)
        do {
            _ = try HolidayList(parsing: "12-25\n2027-02-29\nEaster\n1-1")
            Issue.record("it was taken")
        } catch {
            #expect(error.faults.map(\.line) == [2, 3, 4])
        }
        #expect(throws: HolidayList.Faults.self) {
            try HolidayList(parsing: String(repeating: "12-25\n", count: HolidayList.mostLines + 1))
        }
        #expect(throws: Never.self) {
            try HolidayList(parsing: String(repeating: "12-25\n", count: HolidayList.mostLines))
        }
    }

    @Test("Load is a share of the calls that there may be, and groups and dialled numbers must be known to match")
    func others() throws {
        let noon = try time("2026-11-30", 12)
        func call(_ active: Int, of most: Int?) -> AnswerTable.Call {
            .init(caller: Callee("alice"), group: "sales", dialled: "4711", activeCalls: active, mostCalls: most)
        }
        let busy = rule { $0.load = 75 }
        #expect(try !matches(busy, call(2, of: 4), at: noon) && matches(busy, call(3, of: 4), at: noon))
        #expect(try !matches(busy, call(300, of: nil), at: noon))
        let sales = rule { $0.groups = ["sales"] }
        #expect(try matches(sales, call(0, of: 1), at: noon) && !matches(sales, at: noon))
        let number = try #require(CalleePattern("47??"))
        let dialled = rule { $0.dialled = CalleeList([number]) }
        #expect(try matches(dialled, call(0, of: 1), at: noon) && !matches(dialled, at: noon))
    }

    @Test("A rule counts in place of the mode, but not of the lists, the limit and a drained device")
    func precedence() {
        var policy = AnswerPolicy(manner: .reject, callLimit: .calls(1), callers: .everybodyBut(["mallory"]))
        policy.table = AnswerTable([rule()])
        #expect(policy.refusal(of: .init(caller: "alice", activeCalls: 0)) == .rejectsAll)
        #expect(policy.refusal(of: .init(caller: "alice", activeCalls: 0), isRuled: true) == nil)
        #expect(policy.refusal(of: .init(caller: "alice", activeCalls: 1), isRuled: true) == .callLimit(1))
        #expect(policy.refusal(of: .init(caller: "mallory", activeCalls: 0), isRuled: true) == .denied("mallory"))
        #expect(
            policy.refusal(of: .init(caller: "alice", activeCalls: 0, isDraining: true), isRuled: true) == .draining)
    }
}
