import CallAgent
import Foundation
import TestSupport
import Testing

/// Rules for answering, by the real command.
@Suite("Rules for answering by the command", .witnessed(slack: .seconds(1)), .serialized, .timeLimit(.minutes(3)))
struct PolicyCommandTests {
    /// Puts rules, and sections behind those that it has, into a device's configuration.
    private func write(_ rules: String, answer: String = "", behaviours: String = "", in site: Site, _ plain: String)
        throws
    {
        let text = plain.replacing(
            "mode: auto",
            with: "mode: auto\n  max_calls: 10\n  time_zone: Europe/Berlin\n  holidays_file: days.txt\n  "
                + answer + "\n  rules:\n    - " + rules.split(separator: "\n").joined(separator: "\n    - ")
        ).replacing(
            "behaviour:\n", with: "behaviours:\n  - { name: closed, source: tone }\n  \(behaviours)\nbehaviour:\n")
        try text.write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
    }

    private func plain(_ site: Site) throws -> String {
        try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
            + "\ndevice:\n  call_records: calls.jsonl\n"
    }

    private func write(holidays: String, in site: Site) throws {
        try holidays.write(toFile: site.path("days.txt"), atomically: true, encoding: .utf8)
    }

    private func run(_ arguments: String...) async throws -> (code: Int32, output: String, errors: String) {
        let process = try HandsetProcess(arguments)
        let code = await process.ending()
        return (code, process.outputText, process.errorText)
    }

    private static let rules = """
        { name: nuisance, callers: ["+49900*"], action: reject, reject_as: do_not_disturb, reason: advertising }
        { name: full, load_percent: 80, action: reject, reject_as: overload }
        { name: closed, holiday: true, behaviour: closed, max_call_seconds: 60 }
        { name: office, weekdays: [mon-fri], hours: ["09:00-17:00"], action: ring, ring_seconds: 20, then: closed }
        """

    @Test("`handset policy try` names the rule that decides, why those before it do not, and each step that follows")
    func tries() async throws {
        let site = try Site()
        defer { site.remove() }
        try write(holidays: "12-25\n", in: site)
        try write(Self.rules, in: site, try plain(site))
        func tried(_ time: String, _ arguments: String...) async throws -> [Substring] {
            let process = try HandsetProcess(
                ["policy", "try", "--config", site.deviceConfiguration, "--at", time] + arguments)
            #expect(await process.ending() == 0, "\(process.errorText)")
            return process.outputText.split(separator: "\n")
        }
        let office = try await tried("2026-11-30T10:00", "--from", "alice")
        #expect(office.first == "alice calls at 2026-11-30 10:00 in Europe/Berlin, 2026-11-30T09:00:00.000Z")
        #expect(office.count == 5 && office[2].hasSuffix("does not match: load_percent: it is 0"), "\(office)")
        #expect(
            office[4].hasSuffix(
                "decides: it rings until a user or program answers with the section behaviour; after 20 s the behaviour closed answers"
            ), "\(office)")
        let holiday = try await tried("2026-12-25T10:00", "--from", "alice")
        #expect(holiday.last?.hasSuffix("decides: the behaviour closed answers at once, for 60 s at most") == true)
        #expect(try await tried("2026-11-28T10:00", "--from", "alice").last?.hasPrefix("answer.mode decides") == true)
        let full = try await tried("2026-11-30T10:00", "--from", "alice", "--calls", "8")
        #expect(full.last?.hasSuffix("decides: it is rejected as overload") == true)
        #expect(
            try await tried("2026-11-30T10:00", "--from", "alice", "--calls", "10").last
                == "refused as busy by answer.max_calls: 10")
        // Clocks are put back: the time by UTC says which of the two hours it is.
        #expect(
            try await tried("2026-10-25T02:30", "--from", "alice").first?.hasPrefix("clocks show this twice") == true)
        let second = try await tried("2026-10-25T01:30Z", "--from", "alice")
        #expect(second.first?.contains("02:30 in Europe/Berlin") == true, "\(second)")
    }

    @Test("Of a trunk's call the lists look at the trunk, and the rules at who calls there")
    func trunk() async throws {
        let site = try Site()
        defer { site.remove() }
        try write(holidays: "", in: site)
        try write(Self.rules, answer: "allow: [lines]", in: site, try plain(site))
        func last(_ arguments: String...) async throws -> Substring? {
            let process = try HandsetProcess(
                ["policy", "try", "--config", site.deviceConfiguration, "--at", "2026-11-30T10:00"] + arguments)
            #expect(await process.ending() == 0, "\(process.errorText)")
            return process.outputText.split(separator: "\n").last
        }
        #expect(
            try await last("--from", "+499001234", "--trunk", "lines")?.hasSuffix("as do_not_disturb: advertising")
                == true)
        #expect(try await last("--from", "+49301234", "--trunk", "lines")?.contains("it rings") == true)
        #expect(try await last("--from", "+49301234") == "refused as declined by answer.allow: does not list +49301234")
        #expect(
            try await last("--from", "lines", "--trunk", "other")
                == "refused as declined by answer.allow: does not list other")
    }

    @Test("A time that no clock shows, a wrong one, a wrong number of calls and a file that is wrong are refused")
    func refused() async throws {
        let site = try Site()
        defer { site.remove() }
        try write(holidays: "", in: site)
        let plain = try plain(site)
        try write(Self.rules, in: site, plain)
        let file = site.deviceConfiguration
        for (time, message) in [
            ("2026-03-29T02:30", "clocks are put forward over it"), ("2026-02-30T10:00", "must be such as"),
            ("10:00", "must be such as"), ("2026-11-30T24:00", "must be such as"),
        ] {
            let result = try await run("policy", "try", "--config", file, "--from", "alice", "--at", time)
            #expect(result.code == 2 && result.errors.contains(message), "\(result)")
        }
        #expect(try await run("policy", "try", "--config", file, "--from", "alice", "--calls", "-1").code == 2)
        #expect(try await run("policy", "try", "--config", file).code == 2)
        try write("{ behaviour: unknown }", in: site, plain)
        let wrong = try await run("policy", "try", "--config", file, "--from", "alice")
        #expect(wrong.code == 3 && wrong.errors.contains("answer.rules[1].behaviour: names no behaviour"), "\(wrong)")
    }

    @Test(
        "SIGHUP reads rules and holidays again, reports what waits with a behaviour, and `handset explain` names the rule of each call"
    )
    func reloads() async throws {
        let site = try Site()
        defer { site.remove() }
        let plain = try plain(site)
        try write(holidays: "", in: site)
        let all = "{ name: one, hours: ['00:00-24:00'], behaviour: closed }"
        try write(all, in: site, plain)
        let running = try await RunningSite(site)
        func reload(_ rules: String, answer: String = "", behaviours: String = "") async throws -> String {
            try write(rules, answer: answer, behaviours: behaviours, in: site, plain)
            running.device.send(SIGHUP)
            return try await running.device.line(containing: "The configuration was read again")
        }
        var count = 0
        /// What decided about a call that is made now.
        func decided() async throws -> String {
            let call = try running.call(["--play", Site.speech])
            _ = await call.ending()
            count += 1
            try await until { [count] in
                try CallJournal.records(in: site.path("calls.jsonl")).count { $0.facts != nil } == count
            }
            let explained = try await run("explain", "--config", site.deviceConfiguration)
            return String(explained.output.split(separator: "\n").first { $0.hasPrefix("Decided by") } ?? "")
        }
        #expect(try await decided().hasPrefix(#"Decided by answer.rules[1] "one" (line "#))
        let taken = try await reload("{ name: days, holiday: true, action: reject }\n" + all)
        #expect(
            taken.contains(#""changed":"answer.rules""#) && taken.contains(#""at_next_start":"nothing""#), "\(taken)")
        #expect(try await decided().hasPrefix(#"Decided by answer.rules[2] "one""#))
        // The file of holidays alone has changed: today is one, by the clocks of any place.
        let days = [-86_400.0, 0, 86_400].map {
            Date(timeIntervalSinceNow: $0).formatted(.iso8601.year().month().day())
        }
        try write(holidays: days.joined(separator: "\n"), in: site)
        running.device.send(SIGHUP)
        let other = try await running.device.line(containing: "The configuration was read again")
        #expect(other.contains(#""changed":"answer.holidays_file""#), "\(other)")
        #expect(try await decided().hasPrefix(#"Decided by answer.rules[1] "days""#))
        // A program that is new waits for the next start, and with it rules, zone and holidays.
        try write(holidays: "", in: site)
        let waiting = try await reload(
            "{ name: late, behaviour: program }", answer: "transfers: refuse",
            behaviours: "- { name: program, source: exec, command: [cat] }")
        #expect(
            waiting.contains(#""changed":"answer.transfers, answer.rules, behaviours, answer.holidays_file""#),
            "\(waiting)")
        #expect(waiting.contains(#""at_next_start":"answer.rules, behaviours, answer.holidays_file""#), "\(waiting)")
        #expect(try await decided().hasPrefix(#"Decided by answer.rules[1] "days""#))
        let again = try await reload("{ name: last, behaviour: closed }")
        #expect(again.contains(#""at_next_start":"nothing""#), "\(again)")
        #expect(try await decided().hasPrefix(#"Decided by answer.rules[1] "last""#))
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
    }
}
