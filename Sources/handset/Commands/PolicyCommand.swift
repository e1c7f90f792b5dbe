internal import ArgumentParser
internal import CallAgent
internal import CallControl
internal import ConfigReader
internal import Core
internal import Realtime

/// `handset policy`: the rules that decide about calls.
struct PolicyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy", abstract: "Try the rules that decide about calls, which docs/policy.md explains.",
        subcommands: [PolicyTryCommand.self])
}

/// `handset policy try`.
struct PolicyTryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "try",
        abstract: "Say what would happen to a call, which rule decides, and why those before it do not.",
        discussion: """
            It decides as the device would that has read this file, by the same code, without a call. The sound card, the machine's \
            load and a device that is drained are left out.
            """)

    @Option(help: "The device's configuration file.", completion: .file())
    var config: String

    @Option(help: "Which of several accounts in it.")
    var account: String?

    @Option(help: "The caller, as the device's log names it.", transform: UserID.argument)
    var from: UserID

    @Option(
        help:
            "The trunk's account, for a call that it brings from a telephone network, where --from calls. answer.allow and answer.deny look at this account, and callers at --from.",
        transform: UserID.argument)
    var trunk: UserID?

    @Option(help: "What was dialled, where a telephone network says so.")
    var to: String?

    @Option(help: "The group that is called.")
    var group: String?

    @Option(
        help: "When: 2026-12-24T18:00 by the clocks of answer.time_zone, or with Z in UTC. Now, if it is not given.")
    var at: String?

    @Option(help: "Calls that the device has already.")
    var calls = 0

    func validate() throws {
        guard (0...1_000_000).contains(calls) else {
            throw ValidationError("--calls \(calls) is not a number of calls: 0 to 1000000.")
        }
    }

    func run() throws {
        try ConfigurationCheck.expect("run", path: config)
        let configuration = try DeviceConfiguration.read(path: config, fileChecks: .inputs, account: account)
        for warning in configuration.warnings { Terminal.printError("\(warning)") }
        let answer = configuration.answer
        let calendar = answer.table.calendar
        let time = try time(in: calendar)
        if trunk != nil, configuration.account.sip != nil {
            throw ValidationError("--trunk is for an account at an exchange; calls at a SIP server come from no trunk.")
        }
        let trunkText = trunk.map { ", by the trunk \($0)," } ?? ""
        Terminal.print(
            "\(from) calls\(trunkText) at \(calendar.zone.local(at: time)) in \(calendar.zoneName), \(time.rfc3339)")
        let status = AnswerPolicy.Status(caller: configuration.account.callerName(trunk ?? from), activeCalls: calls)
        let call = try self.call(configuration)
        let trial = answer.table.trial(of: call, at: time)
        let rule = trial.last.flatMap { $0.mismatch == nil ? $0.rule : nil }
        if let refusal = answer.refusal(of: status, isRuled: rule != nil) {
            Terminal.print("refused as \(refusal.reason.rawValue) by \(refusal)")
            return
        }
        for (rule, mismatch) in trial {
            if let mismatch { Terminal.print("\(rule) does not match: \(mismatch)") }
        }
        if let rule {
            Terminal.print("\(rule) decides: \(Self.text(rule.outcome))")
        } else {
            Terminal.print("answer.mode decides: \(Self.text(answer.manner))")
        }
    }

    private func call(_ configuration: DeviceConfiguration) throws -> AnswerTable.Call {
        var limit: Int?
        if case .calls(let most) = configuration.answer.callLimit { limit = most }
        let group = try group.map { text in
            guard let group = try? GroupID(text) else { throw ValidationError("--group is no name of a group.") }
            return group
        }
        return AnswerTable.Call(
            caller: configuration.account.caller(trunk ?? from, outside: trunk.map { _ in from.text }), group: group,
            dialled: to, activeCalls: calls, mostCalls: limit)
    }

    private func time(in calendar: AnswerCalendar) throws -> WallClock {
        guard let at else { return MonotonicClock.wallTime }
        let isUTC = at.hasSuffix("Z")
        guard let local = Self.local(isUTC ? String(at.dropLast()) : at) else {
            throw ValidationError("--at must be such as 2026-12-24T18:00 or 2026-12-24T17:00Z, not \"\(at)\".")
        }
        let times = (isUTC ? ZoneRules.utc : calendar.zone).times(of: local)
        guard let first = times.first else {
            throw ValidationError("--at \(at) is no time in \(calendar.zoneName): clocks are put forward over it.")
        }
        if times.count > 1 {
            Terminal.print(
                "clocks show this twice, because they are put back; taken is the first time. Give a time with Z for the second"
            )
        }
        return first
    }

    private static func local(_ text: String) -> LocalTime? {
        let parts = text.split(separator: "T", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let day = parts[0].split(separator: "-").compactMap { Int($0) }
        let clock = parts[1].split(separator: ":").compactMap { Int($0) }
        guard day.count == 3, clock.count == 2, let date = CivilDate(year: day[0], month: day[1], day: day[2]),
            (0...23).contains(clock[0]), (0...59).contains(clock[1])
        else { return nil }
        return LocalTime(date: date, second: clock[0] * 3_600 + clock[1] * 60)
    }

    private static func text(_ outcome: AnswerRule.Outcome) -> String {
        let behaviour = AnswerRule.text(behaviour: outcome.behaviour)
        let longest = outcome.maximumDuration.map { ", for \($0.text) at most" } ?? ""
        switch outcome.action {
        case .answer(.zero): return "\(behaviour) answers at once\(longest)"
        case .answer(let delay): return "\(behaviour) answers after \(delay.text)\(longest)"
        case .ring(let sequel):
            let next = sequel.map { "; \($0) answers" } ?? ""
            return "it rings until a user or program answers with \(behaviour)\(next)\(longest)"
        case .reject(let how):
            return "it is rejected as \(how.rawValue)" + (outcome.reason.map { ": \($0)" } ?? "")
        }
    }

    private static func text(_ manner: AnswerPolicy.Manner) -> String {
        switch manner {
        case .answer(let delay): text(AnswerRule.Outcome(.answer(after: delay)))
        case .ring: text(AnswerRule.Outcome(.ring()))
        case .reject: "it is rejected"
        }
    }
}
