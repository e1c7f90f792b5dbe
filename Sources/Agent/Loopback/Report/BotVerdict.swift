internal import AudioKit
internal import BotProbe

/// Whether a bot was good enough, and why not.
public struct BotVerdict: Equatable, Sendable {
    /// All checks, in the order of the thresholds.
    public let checks: [LoopbackVerdict.Check]

    /// Nothing failed.
    public var isPass: Bool { checks.allSatisfy { $0.outcome != .failed } }

    /// Holds a run against its thresholds.
    public init(_ run: BotRun) {
        let (measured, limits) = (run.measurement, run.thresholds)
        checks =
            ([Self.sound(measured)] + Self.turns(run, measured, limits) + Self.interruptions(run, measured, limits)
            + [Self.cut(run, measured, limits)] + Self.keys(measured, limits)).compactMap(\.self)
            + (run.baseline?.checks(run) ?? [])
    }

    private static func sound(_ measured: BotMeasurement) -> LoopbackVerdict.Check {
        LoopbackVerdict.Check(
            key: "sound", name: "The bot was heard", measured: measured.hasSound ? "yes" : "no", limit: "yes",
            outcome: measured.hasSound ? .passed : .failed,
            advice: measured.hasSound
                ? ""
                : "Nothing came. Does the bot's log show the call, and does it understand English? --say gives it other words."
        )
    }

    private static func turns(
        _ run: BotRun, _ measured: BotMeasurement, _ limits: BotThresholds
    ) -> [LoopbackVerdict.Check?] {
        guard !measured.turns.isEmpty || run.reason(.turns) != nil else { return [] }
        let times = measured.responses
        let reason = run.reason(.turns)
        let advice =
            "Recognition, model and synthesis take most of it; the bot's wait for the end of a turn comes before them."
        return [
            most(
                "response_p50", "Response, P50", percentile(50, times), limits.medianResponseMilliseconds, "ms", advice,
                reason: reason),
            most(
                "response_p95", "Response, P95", percentile(95, times), limits.responseMilliseconds, "ms", advice,
                reason: reason),
            most(
                "unanswered", "Questions without an answer",
                measured.turns.isEmpty ? nil : Double(measured.turns.count { $0 == .unanswered }),
                limits.unanswered.map(Double.init), "",
                "Does the bot recognise the words? --say gives it other ones, --patience more time.",
                reason: measured.turns.isEmpty ? reason : nil),
        ]
    }

    private static func interruptions(
        _ run: BotRun, _ measured: BotMeasurement, _ limits: BotThresholds
    ) -> [LoopbackVerdict.Check?] {
        guard !measured.interruptions.isEmpty || run.reason(.interruptions) != nil else { return [] }
        let times = measured.stops
        let reason = run.reason(.interruptions)
        let advice =
            "The bot's detector of speech decides first; then what it has sent ahead must be discarded (`clear` of its wire)."
        return [
            most(
                "barge_in_p95", "Barge-in, P95", percentile(95, times), limits.bargeInMilliseconds, "ms", advice,
                reason: reason),
            most(
                "talk_over", "Both talk, longest",
                measured.interruptionTalkOver.max().map { AudioFormat.milliseconds(samples: $0) },
                limits.talkOverMilliseconds, "ms", advice, reason: reason),
            most(
                "ignored", "Interruptions that the bot talked through",
                measured.interruptions.isEmpty
                    ? nil
                    : Double(
                        measured.interruptions.count { interruption in
                            if case .ignored = interruption { true } else { false }
                        }), limits.ignored.map(Double.init), "", advice,
                reason: measured.interruptions.isEmpty ? reason : nil),
        ]
    }

    private static func cut(
        _ run: BotRun, _ measured: BotMeasurement, _ limits: BotThresholds
    ) -> LoopbackVerdict.Check? {
        let reason = run.reason(.cut)
        guard measured.cut != nil || reason != nil else { return nil }
        return most(
            "cut", "Missing of the greeting, at either end",
            measured.cut.map { AudioFormat.milliseconds(samples: max($0.first, $0.last)) }, limits.cutMilliseconds,
            "ms",
            "The bot speaks before the call is established, or closes before the last of it is played.", reason: reason)
    }

    private static func keys(_ measured: BotMeasurement, _ limits: BotThresholds) -> [LoopbackVerdict.Check?] {
        var checks: [LoopbackVerdict.Check?] = []
        if !measured.presses.isEmpty, let limit = limits.keyMilliseconds {
            let times = measured.presses.map { $0.response.map { AudioFormat.milliseconds(samples: $0) } }
            let worst = times.contains(nil) ? nil : times.compactMap(\.self).max()
            let isGood = worst.map { $0 <= limit } ?? false
            let missing = measured.presses.filter { $0.response == nil }.map { String($0.key) }.joined()
            checks.append(
                LoopbackVerdict.Check(
                    key: "keys", name: "Keys are answered, within",
                    measured: worst.map { AudioText.number($0, "ms") } ?? "no answer to \(missing)",
                    limit: "at most \(AudioText.number(limit, "ms"))", outcome: isGood ? .passed : .failed,
                    advice: isGood ? "" : "Does the bot take keys? The wire's `dtmf` messages carry them."))
        }
        switch measured.hangUp {
        case .notAwaited, .early: break
        case .came(let time):
            checks.append(
                LoopbackVerdict.Check(
                    key: "hang_up", name: "The bot hung up",
                    measured: "after \(AudioText.number(AudioFormat.milliseconds(samples: time), "ms"))", limit: "yes",
                    outcome: .passed, advice: ""))
        case .missing:
            checks.append(
                LoopbackVerdict.Check(
                    key: "hang_up", name: "The bot hung up", measured: "no", limit: "yes", outcome: .failed,
                    advice: "The bot's pipeline must end, by the service's request or by closing the connection."))
        }
        return checks
    }

    private static func percentile(_ percent: Int, _ times: [Int]) -> Double? {
        BotMeasurement.percentile(percent, of: times).map { AudioFormat.milliseconds(samples: $0) }
    }

    private static func most(
        _ key: String, _ name: String, _ value: Double?, _ limit: Double?, _ unit: String, _ advice: String,
        reason: String?
    ) -> LoopbackVerdict.Check? {
        guard let limit else { return nil }
        let text = "at most \(AudioText.number(limit, unit))"
        if let reason {
            return LoopbackVerdict.Check(
                key: key, name: name, measured: "withheld", limit: text, outcome: .unmeasured,
                advice: "Withheld: \(reason). Measure again.")
        }
        guard let value else {
            return LoopbackVerdict.Check(
                key: key, name: name, measured: "not measured", limit: text, outcome: .unmeasured, advice: "")
        }
        let isGood = value <= limit
        return LoopbackVerdict.Check(
            key: key, name: name, measured: AudioText.number(value, unit), limit: text,
            outcome: isGood ? .passed : .failed, advice: isGood ? "" : advice)
    }
}
