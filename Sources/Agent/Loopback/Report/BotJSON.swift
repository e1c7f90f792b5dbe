internal import AudioKit
internal import BotProbe
internal import FoundationEssentials
public import JSON

extension BotRun {
    /// The report for a program: docs/loopback.md says what each member means. Members are added over time; none changes
    /// its meaning without a new `schema`.
    public var json: JSONValue {
        let verdict = BotVerdict(self)
        var object = measuredMembers
        object["passed"] = .bool(verdict.isPass)
        object["checks"] = verdict.checks.json
        object["baseline"] = baseline.map { ["started_at": .string($0.startedAt)] }
        return .object(object)
    }

    /// All that does not depend on thresholds or on an earlier report.
    var measuredMembers: [String: JSONValue] {
        var object: [String: JSONValue] = [
            "schema": .string(Self.schema), "mode": "bot", "started_at": .string(startedAt),
            "facts": .array(facts.map { ["label": .string($0.label), "value": .string($0.value)] }),
            "own_delays": .array(ownDelays.map { ["name": .string($0.name), "ms": Self.rounded($0.milliseconds)] }),
            "call_s": .number((Double(measurement.samples) / Double(AudioFormat.sampleRate) * 1_000).rounded() / 1_000),
            "noise_dbfs": .integer(Int64(measurement.noiseDBFS)), "heard": .bool(measurement.hasSound),
            "greeting_after_ms": Self.milliseconds(measurement.greetingStart), "response": response,
            "barge_in": bargeIn, "talk_over": talkOver,
            "withheld": .array(
                measurement.withheld.map {
                    ["figure": .string($0.figure.rawValue), "text": .string(Self.text($0.reason))]
                }),
        ]
        object["cut"] = measurement.cut.map {
            ["first_ms": Self.milliseconds($0.first), "last_ms": Self.milliseconds($0.last)]
        }
        object["keys"] = .array(
            measurement.presses.map { ["key": .string(String($0.key)), "response_ms": Self.milliseconds($0.response)] })
        object["hang_up"] = hangUp
        if let origin {
            object["handset"] = .string(origin.version)
            object["host"] = ["name": .string(origin.host), "system": .string(origin.system)]
        }
        return object
    }

    /// ``json`` as text, its members sorted.
    public var jsonText: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(json) else { return "{}" }
        return String(decoding: data, as: UTF8.self)
    }

    private static func rounded(_ milliseconds: Double) -> JSONValue {
        milliseconds.isFinite ? .number((milliseconds * 10).rounded() / 10) : .null
    }

    private static func milliseconds(_ samples: Int?) -> JSONValue {
        samples.map { rounded(AudioFormat.milliseconds(samples: $0)) } ?? .null
    }

    /// Percentiles are `null` if some of the turns are withheld.
    private func spread(_ times: [Int], isWithheld: Bool) -> [String: JSONValue] {
        func percentile(_ percent: Int) -> JSONValue {
            isWithheld ? .null : Self.milliseconds(BotMeasurement.percentile(percent, of: times))
        }
        return ["p50_ms": percentile(50), "p95_ms": percentile(95), "count": .integer(Int64(times.count))]
    }

    private var response: JSONValue {
        var object = spread(measurement.responses, isWithheld: reason(.turns) != nil)
        object["turns"] = .array(
            measurement.turns.map { turn in
                switch turn {
                case .answered(let time): ["outcome": "answered", "ms": Self.milliseconds(time)]
                case .overlapped: ["outcome": "overlapped", "ms": .null]
                case .unanswered: ["outcome": "unanswered", "ms": .null]
                case .doubtful: ["outcome": "withheld", "ms": .null]
                }
            })
        return .object(object)
    }

    private var bargeIn: JSONValue {
        var object = spread(measurement.stops, isWithheld: reason(.interruptions) != nil)
        object["interruptions"] = .array(
            measurement.interruptions.map { interruption in
                switch interruption {
                case .stopped(let time): ["outcome": "stopped", "ms": Self.milliseconds(time)]
                case .ignored(let time): ["outcome": "ignored", "ms": Self.milliseconds(time)]
                case .missed: ["outcome": "missed", "ms": .null]
                case .doubtful: ["outcome": "withheld", "ms": .null]
                }
            })
        return .object(object)
    }

    private var talkOver: JSONValue {
        [
            "interruptions_ms": .array(measurement.interruptionTalkOver.map { Self.milliseconds($0) }),
            "questions_ms": Self.milliseconds(measurement.questionTalkOver),
        ]
    }

    private var hangUp: JSONValue {
        switch measurement.hangUp {
        case .notAwaited: .null
        case .early: ["outcome": "early", "ms": .null]
        case .came(let time): ["outcome": "came", "ms": Self.milliseconds(time)]
        case .missing: ["outcome": "missing", "ms": .null]
        }
    }
}

extension [LoopbackVerdict.Check] {
    /// The checks as all reports have them.
    var json: JSONValue {
        .array(
            map {
                [
                    "key": .string($0.key), "name": .string($0.name), "outcome": .string($0.outcome.rawValue),
                    "measured": .string($0.measured), "limit": .string($0.limit), "advice": .string($0.advice),
                ]
            })
    }
}
