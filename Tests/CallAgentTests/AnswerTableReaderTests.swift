import CallControl
import ConfigReader
import Core
import Foundation
import Testing

@testable import CallAgent

/// Rules for answering as configurations have them: `answer` is on the second line.
@Suite("Rules for answering, read from a configuration")
struct AnswerTableReaderTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-rules-\(UUID())").path()

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }

    private func write(_ text: String, to name: String) throws {
        try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
    }

    /// Reads a configuration with these lines of `answer`, and sections behind it.
    private func read(_ answer: String, _ sections: String = "") throws -> DeviceConfiguration {
        try write("account: { anonymous: a }\nanswer: { \(answer) }\n\(sections)\n", to: "device.yaml")
        return try DeviceConfiguration.read(path: "\(folder)/device.yaml")
    }

    /// What is said of a configuration: the key of each problem, its line, its message, and whether it is a warning.
    private func problems(_ answer: String, _ sections: String = "") throws -> [ConfigProblem] {
        do {
            return try read(answer, sections).warnings
        } catch let error as ConfigError {
            return error.problems
        }
    }

    private func problem(_ answer: String, _ sections: String = "") throws -> ConfigProblem {
        let all = try problems(answer, sections)
        #expect(all.count == 1, "\(all)")
        return try #require(all.first)
    }

    private static let closed = "behaviours: [ { name: closed, source: silence } ]"

    @Test("A table has its rules in the order of the file, with their lines, by the clocks of its zone")
    func table() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try write("2026-12-25\n", to: "days.txt")
        let table = try read(
            """
            max_calls: 10, time_zone: Europe/Berlin, holidays_file: days.txt, rules: [
                { name: days, holiday: true, action: reject, reject_as: do_not_disturb },
                { weekdays: [mon-fri], hours: ['09:00-17:00', '16:00-20:00'], delay_ms: 2000 },
                { load_percent: 90, behaviour: closed, max_call_seconds: 60 } ]
            """, Self.closed
        ).answer.table
        #expect(
            table.rules.map(\.description) == [
                "answer.rules[1] \"days\" (line 3)", "answer.rules[2] (line 4)", "answer.rules[3] (line 5)",
            ])
        #expect(table.rules[0].outcome.action == .reject(.doNotDisturb))
        #expect(table.rules[1].outcome.action == .answer(after: .seconds(2)))
        #expect(table.rules[2].outcome.behaviour == "closed" && table.rules[2].outcome.maximumDuration == .seconds(60))
        func rule(_ day: Int, _ hour: Int, calls: Int = 0) throws -> Int? {
            let date = try #require(CivilDate(year: 2026, month: 12, day: day))
            let time = WallClock(unixMilliseconds: (date.daysSince1970 * 86_400 + Int64(hour * 3_600)) * 1_000)
            let call = AnswerTable.Call(caller: Callee("alice"), activeCalls: calls, mostCalls: 10)
            return table.rule(for: call, at: time)?.number
        }
        // A Friday that is a holiday, a Thursday in Berlin, which is an hour ahead, and hours that overlap.
        #expect(try rule(25, 12) == 1 && rule(24, 8) == 2 && rule(24, 7) == nil)
        #expect(try rule(24, 15) == 2 && rule(24, 18) == 2 && rule(24, 19) == nil && rule(24, 19, calls: 9) == 3)
    }

    @Test("An unknown zone, behaviour, weekday, hour and patterns of callers are refused with their lines and keys")
    func refused() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let zone = try problem("time_zone: Europe/Nowhere, rules: [ { hours: ['09:00-17:00'] } ]")
        #expect(zone.key == "answer.time_zone" && zone.line == 2 && zone.message.contains("tzdata"))
        for name in ["../../../etc/passwd", "/etc/passwd", "Europe/", ".."] {
            #expect(try problem("time_zone: '\(name)'").message.contains("is no time zone"), "\(name)")
        }
        let none = try problem("rules: [ { weekdays: [mon] } ]")
        #expect(none.key == "answer.time_zone" && none.message.contains("answer.rules[1] (line 2) depends on the time"))
        let unknown = try problem("rules: [ { callers: [a], behaviour: close }, { behaviour: closed } ]", Self.closed)
        #expect(unknown.key == "answer.rules[1].behaviour" && unknown.message.contains("there are closed"))
        #expect(try problem("rules: [ { behaviour: x } ]").message.contains("behaviours lists none"))
        #expect(try problem("time_zone: UTC, rules: [ { weekdays: [monday] } ]").key == "answer.rules[1].weekdays")
        #expect(try problem("time_zone: UTC, rules: [ { hours: ['9-17'] } ]").key == "answer.rules[1].hours")
        #expect(try problem("rules: [ { callers: ['a*b'] } ]").key == "answer.rules[1].callers")
        #expect(try problem("rules: [ { load_percent: 50 } ]").message.contains("which is auto"))
    }

    @Test("Keys of another action are refused, and so is what waits longer than calls ring")
    func idle() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (rule, key) in [
            ("action: ring, delay_ms: 5", "delay_ms"), ("reject_as: busy", "reject_as"),
            ("action: ring, reason: x", "reason"), ("action: reject, behaviour: closed", "behaviour"),
            ("action: reject, max_call_seconds: 5", "max_call_seconds"), ("ring_seconds: 5", "ring_seconds"),
            ("then: closed", "then"), ("action: ring, ring_seconds: 5", "ring_seconds"),
            ("action: ring, then: closed", "then"),
        ] {
            let all = try problems("rules: [ { callers: [a], \(rule) }, { behaviour: closed } ]", Self.closed)
            #expect(all.map(\.key) == ["answer.rules[1].\(key)"], "\(rule): \(all)")
        }
        let late = try problem("ring_seconds: 5, rules: [ { delay_ms: 5001 } ]")
        #expect(late.key == "answer.rules[1].delay_ms")
    }

    @Test(
        "A call that rings is passed on to another behaviour, before the longest ringing ends, and not to the same one")
    func sequels() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func ring(_ seconds: Int, _ more: String, of limit: Int = 60) -> String {
            "ring_seconds: \(limit), rules: [ { action: ring, ring_seconds: \(seconds), \(more) } ]"
        }
        let good = try read(ring(59, "then: closed"), Self.closed)
        #expect(good.warnings.isEmpty, "\(good.warnings)")
        let outcome = try #require(good.answer.table.rules.first).outcome
        #expect(outcome.sequel == AnswerRule.Sequel(after: .seconds(59), behaviour: "closed"))
        let late = try problem(ring(60, "then: closed"), Self.closed)
        #expect(late.key == "answer.rules[1].ring_seconds" && late.message.contains("(60 s)"))
        #expect(try problem(ring(5, "then: nowhere")).key == "answer.rules[1].then")
        let same = try problem(ring(5, "then: closed, behaviour: closed"), Self.closed)
        #expect(same.key == "answer.rules[1].then" && same.message.contains("delay_ms"))
        let back = try read(
            ring(5, "behaviour: closed, then: main"), "behaviour: { name: main, source: echo }\n" + Self.closed)
        #expect(back.answer.table.rules.first?.outcome.sequel?.behaviour == "", "that of the section `behaviour`")
    }

    @Test("A rule that can never match is named, and a behaviour that no rule names")
    func warnings() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let after = try problem("rules: [ { delay_ms: 1 }, { callers: [a] } ]")
        #expect(after.isWarning && after.key == "answer.rules[2].name" && after.message.contains("answer.rules[1]"))
        let unused = try problem("mode: auto", Self.closed)
        #expect(unused.isWarning && unused.key == "behaviours[1].name")
        for (most, highest) in [(10, 90), (3, 66), (2, 50), (200, 99)] {
            func rule(_ load: Int) -> String { "max_calls: \(most), rules: [ { load_percent: \(load) } ]" }
            #expect(try problems(rule(highest)).isEmpty)
            let beyond = try problem(rule(highest + 1))
            #expect(beyond.isWarning && beyond.key == "answer.rules[1].load_percent")
            #expect(
                beyond.message.contains("\(highest) % in use at most") && beyond.message.contains("give \(highest)"))
        }
        #expect(try problem("max_calls: 1, rules: [ { load_percent: 1 } ]").message.contains("allow more calls"))
        for (holiday, effect) in [(true, "never matches"), (false, "matches on all days")] {
            let found = try problem("time_zone: UTC, rules: [ { holiday: \(holiday) } ]")
            #expect(found.isWarning && found.key == "answer.rules[1].holiday" && found.message.hasPrefix(effect))
        }
    }

    @Test("200 rules and 16 behaviours are taken, and one more of each is refused")
    func limits() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func rules(_ count: Int) -> String {
            "rules: [ " + (1...count).map { "{ callers: [a\($0)] }" }.joined(separator: ", ") + " ]"
        }
        #expect(try problems(rules(200)).isEmpty)
        #expect(try problem(rules(201)).message == "has 201 rules; 200 are allowed")
        func behaviours(_ count: Int) -> (String, String) {
            let names = (1...count).map { "b\($0)" }
            return (
                "rules: [ " + names.prefix(16).map { "{ callers: [\($0)], behaviour: \($0) }" }.joined(separator: ", ")
                    + " ]",
                "behaviours: [ " + names.map { "{ name: \($0) }" }.joined(separator: ", ") + " ]"
            )
        }
        let (most, more) = (behaviours(16), behaviours(17))
        #expect(try problems(most.0, most.1).isEmpty)
        #expect(try problems(more.0, more.1).contains { $0.message.contains("16 are allowed") && !$0.isWarning })
    }

    @Test("Recordings of one folder are kept by one rule: other limits of a second behaviour are refused")
    func folders() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func behaviours(_ first: String, _ second: String, folder: String = "kept") -> String {
            """
            behaviour: { record_folder: kept\(first) }
            behaviours: [ { name: closed, record_folder: \(folder)\(second) } ]
            """
        }
        let rule = "rules: [ { behaviour: closed } ]"
        #expect(try problems(rule, behaviours("", "")).isEmpty)
        #expect(try problems(rule, behaviours(", record_days: 3", ", record_days: 3")).isEmpty)
        #expect(try problems(rule, behaviours(", record_days: 3", "", folder: "other")).isEmpty)
        for folder in ["kept", "./kept", "\(folder)/kept"] {
            try FileManager.default.createDirectory(
                atPath: "\(self.folder)/kept", withIntermediateDirectories: true)
            let found = try problem(rule, behaviours(", record_days: 3", ", record_days: 90", folder: folder))
            #expect(!found.isWarning && found.key == "behaviours[1].record_folder", "\(found)")
            #expect(found.message.contains("is the folder of the section behaviour too"))
        }
    }

    @Test("Two accounts do not share a folder of recordings, also where only their named behaviours have one")
    func foldersOfAccounts() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func account(_ name: String) -> String {
            """
              - name: \(name)
                account: { anonymous: \(name) }
                answer: { rules: [ { behaviour: closed } ] }
                behaviours: [ { name: closed, record_folder: kept } ]

            """
        }
        try write("accounts:\n" + account("a") + account("b"), to: "device.yaml")
        do {
            _ = try AccountsConfiguration.read(path: "\(folder)/device.yaml")
            Issue.record("it was taken")
        } catch {
            #expect(error.problems.map(\.key) == ["accounts[2].behaviours[1].record_folder"], "\(error)")
        }
    }

    @Test("Holidays that cannot be read are named by file and line")
    func holidays() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let rule = "time_zone: UTC, holidays_file: days.txt, rules: [ { holiday: true } ]"
        #expect(try problem(rule).key == "answer.holidays_file")
        try write("12-25\nEaster\n", to: "days.txt")
        let wrong = try problem(rule)
        #expect(wrong.file.hasSuffix("days.txt") && wrong.line == 2 && wrong.message.contains("\"Easter\""))
        try write(String(repeating: "#", count: (1 << 18) + 1), to: "days.txt")
        #expect(try problem(rule).message.contains("262144 bytes at most"))
    }

    @Test("Reloads take holidays, zone and rules together, and none of them while a behaviour waits for the next start")
    func reloads() throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func answer(_ zone: String, _ rule: String, _ more: String = "") -> String {
            "time_zone: \(zone), holidays_file: days.txt, \(more)rules: [ { holiday: true, \(rule) } ]"
        }
        try write("12-25\n", to: "days.txt")
        var running = try read(answer("UTC", "behaviour: closed"), Self.closed)
        let first = running.answer.table
        // The file of holidays alone has changed.
        try write("12-26\n", to: "days.txt")
        let other = try read(answer("UTC", "behaviour: closed"), Self.closed)
        let isFirstTaken = running.adopt(other)
        #expect(isFirstTaken && running.answer.table == other.answer.table && other.answer.table != first)
        // A behaviour that is new and needs a start of its own: zone, rules and holidays wait for it, and the mode does not.
        try write("12-27\n", to: "days.txt")
        let waiting = try read(
            answer("Europe/Berlin", "behaviour: program", "mode: reject, "),
            "behaviours: [ { name: program, source: exec, command: [cat] } ]")
        for _ in 1...2 {
            let isTaken = running.adopt(waiting)
            #expect(!isTaken && running.answer.table == other.answer.table && running.answer.manner == .reject)
            #expect(running.behaviours.keys.sorted() == ["closed"])
        }
        let last = try read(answer("Europe/Berlin", "behaviour: closed, delay_ms: 5"), Self.closed)
        let isLastTaken = running.adopt(last)
        #expect(isLastTaken && running.answer.table == last.answer.table)
    }

    @Test("What a reload reports as taken is what calls go by from then on")
    func takenKeys() {
        func taken(_ key: String) -> [Bool] {
            [true, false].map { DeviceConfiguration.takes(key, isBehaviourTaken: $0) }
        }
        for key in [
            "answer.rules", "answer.time_zone", "answer.holidays_file", "behaviour", "behaviour.source", "behaviours",
            "answer",
        ] {
            #expect(taken(key) == [true, false], "\(key)")
        }
        for key in ["answer.mode", "answer.max_calls", "invites", "invites.ttl_s"] {
            #expect(taken(key) == [true, true], "\(key)")
        }
        for key in ["device.name", "account.server", "answers", "media.port"] {
            #expect(taken(key) == [false, false], "\(key)")
        }
    }
}
