internal import AudioKit
internal import FoundationEssentials
public import JSON
internal import LoopbackAnalysis

extension LoopbackRun {
    /// The report for a program: docs/loopback.md says what each member means. Members are added over time; none changes
    /// its meaning without a new `schema`.
    public var json: JSONValue {
        let verdict = LoopbackVerdict(self)
        var object = measuredMembers
        object["passed"] = .bool(verdict.isPass)
        object["verdict"] = .string(verdict.sentence)
        object["faults"] = .array(
            verdict.faults.map {
                [
                    "name": .string($0.name.rawValue), "text": .string($0.text), "advice": .string($0.advice),
                    "fails": .bool($0.isFailure),
                ]
            })
        object["checks"] = verdict.checks.json
        object["baseline"] = baseline.map { ["started_at": .string($0.startedAt)] }
        return .object(object)
    }

    /// The whole report except the verdict.
    var measuredMembers: [String: JSONValue] {
        var object: [String: JSONValue] = [
            "schema": "handset-loopback/1", "mode": .string(mode.rawValue), "started_at": .string(startedAt),
            "facts": .array(facts.map { ["label": .string($0.label), "value": .string($0.value)] }),
            "stages": .array(stages.map { ["name": .string($0.name), "ms": Self.number($0.milliseconds, 3)] }),
            "captured_s": Self.number(Double(measurement.capturedSamples) / Double(AudioFormat.sampleRate), 3),
            "timing": timing, "level": level, "worst_moments": .array(momentFiles.map(JSONValue.string)),
        ]
        if mode == .soak { object["minutes"] = .array(minutes.map(Self.minute)) }
        if let origin {
            object["handset"] = .string(origin.version)
            object["host"] = ["name": .string(origin.host), "system": .string(origin.system)]
        }
        if let recurrence {
            let cause = cause(of: recurrence)
            object["recurrence"] = [
                "period_samples": Self.number(recurrence.periodSamples, 1),
                "events": .integer(Int64(recurrence.events)), "cause": (cause?.0.name).map(JSONValue.string) ?? .null,
                "frames": cause.map { .integer(Int64($0.0.frames * $0.times)) } ?? .null,
                "text": recurrenceText.map(JSONValue.string) ?? .null,
            ]
        }
        object["card"] = trouble.map(Self.trouble)
        object["noise"] = noise
        object["response"] = response
        object["tone"] = measurement.tone.map(Self.tone)
        object["tones"] = .array(measurement.tones.map(Self.tone))
        object["unheard_tones_hz"] = .array(measurement.unheardTonesHz.map { Self.number($0, 1) })
        object["channels"] = measurement.channels.map(Self.channels)
        object["withheld"] = .array(measurement.withheld.map(Self.withheld))
        object["speech"] = speechObject
        return object
    }

    private static func trouble(_ trouble: CardTrouble) -> JSONValue {
        [
            "playback_xruns": .integer(Int64(trouble.playbackXruns)),
            "capture_xruns": .integer(Int64(trouble.captureXruns)), "own_xruns": .integer(Int64(trouble.ownXruns)),
            "longest_hold_up_ms": number(trouble.longestHoldUpMilliseconds, 1),
            "late_frames": .integer(Int64(trouble.lateFrames)), "priority_refused": .bool(trouble.isPriorityRefused),
            "ahead_ms": number(trouble.aheadMilliseconds, 1),
            "extra_ahead_ms": number(trouble.extraAheadMilliseconds, 1),
        ]
    }

    private var speechObject: JSONValue? {
        guard speech != nil || quality != nil else { return nil }
        var object: [String: JSONValue] = [:]
        if let speech {
            object["likeness"] = Self.number(speech.likeness, 4)
            object["likeness_p10"] = Self.number(speech.tenthPercentile, 4)
            object["delay_ms"] = Self.number(speech.delayMilliseconds, 2)
            object["windows"] = .integer(Int64(speech.speechWindows))
            object["windows_found"] = .integer(Int64(speech.foundWindows))
        }
        object["quality"] = Self.number(quality?.score, 2)
        if let quality {
            object["quality_worst"] = Self.number(quality.worstScore, 2)
            object["quality_s"] = Self.number(quality.seconds, 2)
            object["delay_changes"] = .integer(Int64(quality.delayChanges))
        }
        return .object(object)
    }

    /// ``json`` as text, its members sorted.
    public var jsonText: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Numbers that JSON does not have never get into it, see `number`.
        guard let data = try? encoder.encode(json) else { return "{}" }
        return String(decoding: data, as: UTF8.self)
    }

    private static func number(_ value: Double?, _ places: Int) -> JSONValue {
        guard let value, value.isFinite else { return .null }
        var factor = 1.0
        for _ in 0..<places { factor *= 10 }
        return .number((value * factor).rounded() / factor)
    }

    private static func milliseconds(_ samples: Double?) -> JSONValue {
        number(samples.map(AudioText.milliseconds), 3)
    }

    private var timing: JSONValue {
        let timing = measurement.timing
        let counts = LoopbackEvent.Kind.allCases.map { ($0.rawValue, JSONValue.integer(Int64(timing.counts[$0] ?? 0))) }
        return [
            "found": .bool(timing.isFound),
            "delay_ms": [
                "mean": Self.milliseconds(timing.meanDelay), "first": Self.milliseconds(timing.firstDelay),
                "last": Self.milliseconds(timing.lastDelay),
                "least": Self.milliseconds(timing.delayRange?.lowerBound),
                "greatest": Self.milliseconds(timing.delayRange?.upperBound),
            ],
            "drift_ppm": Self.number(timing.driftPPM?.value, 3),
            "drift_error_ppm": Self.number(timing.driftPPM?.error, 3),
            "likeness_median": Self.number(timing.likeness(quantile: 0.5), 3),
            "likeness_p10": Self.number(timing.likeness(quantile: 0.1), 3),
            "events": .integer(Int64(timing.eventCount)),
            "events_by_kind": .object(Dictionary(uniqueKeysWithValues: counts)),
            "unseen_changes": .array(
                measurement.unseenChanges.map {
                    [
                        "from_s": Self.number(Double($0.positions.lowerBound) / Double(AudioFormat.sampleRate), 3),
                        "to_s": Self.number(Double($0.positions.upperBound) / Double(AudioFormat.sampleRate), 3),
                        "change_ms": Self.milliseconds($0.samples),
                    ]
                }),
            "disturbed_ms": Self.milliseconds(Double(timing.disturbedSamples)),
            "heard_s": Self.number(Double(timing.heardSamples) / Double(AudioFormat.sampleRate), 3),
            "event_list": .array(timing.events.map(Self.event)),
            "length_histogram": [
                "upper_ms": .array(TimingSummary.lengthBounds.map(JSONValue.number)),
                "counts": .array(timing.lengths.map { .integer(Int64($0)) }),
            ],
            "delay_track": .array(
                timing.history.points.map {
                    .array([
                        Self.number(Double($0.position) / Double(AudioFormat.sampleRate), 2),
                        Self.milliseconds($0.least), Self.milliseconds($0.mean), Self.milliseconds($0.greatest),
                        Self.number($0.meanGainDB, 2),
                    ])
                }),
        ]
    }

    private static func event(_ event: LoopbackEvent) -> JSONValue {
        [
            "kind": .string(event.kind.rawValue), "at_sample": .integer(Int64(event.position)),
            "at_s": number(event.seconds, 6), "hole_samples": .integer(Int64(event.holeSamples)),
            "missing_samples": .integer(Int64(event.missingSamples)),
            "delay_before_ms": milliseconds(event.delayBefore), "delay_after_ms": milliseconds(event.delayAfter),
        ]
    }

    private static func minute(_ minute: SoakMonitor.Minute) -> JSONValue {
        [
            "minute": .integer(Int64(minute.number)), "delay_least_ms": milliseconds(minute.delay?.least),
            "delay_mean_ms": milliseconds(minute.delay?.mean),
            "delay_greatest_ms": milliseconds(minute.delay?.greatest),
            "drift_ppm": number(minute.driftPPM, 3), "events": .integer(Int64(minute.events)),
            "disturbed_ms": milliseconds(Double(minute.disturbedSamples)), "level_dbfs": number(minute.levelDBFS, 2),
            "likeness": number(minute.likeness, 3),
        ]
    }

    private var level: JSONValue {
        [
            "gain_db": Self.number(measurement.timing.gainDB, 2), "rms_dbfs": Self.number(measurement.levelDBFS, 2),
            "peak_dbfs": Self.number(measurement.peakDBFS, 2),
            "clipped_samples": .integer(Int64(measurement.clipping.samples)),
            "inverted": .bool(measurement.timing.isInverted),
            "signal_to_noise_db": Self.number(measurement.signalToNoiseDB, 2),
            "offset_percent": Self.number(measurement.evidence.offsetPercent, 3),
        ]
    }

    private var noise: JSONValue? {
        measurement.noise.map { noise in
            [
                "rms_dbfs": Self.number(noise.levelDBFS, 2), "a_weighted_dbfs": Self.number(noise.weightedDBFS, 2),
                "third_octaves": .array(
                    noise.thirds.map {
                        .array([Self.number($0.frequencyHz, 1), Self.number($0.levelDBFS, 2)])
                    }),
            ]
        }
    }

    private var response: JSONValue? {
        measurement.response.map { response in
            [
                "band_low_hz": Self.number(response.bandHz.lowerBound, 1),
                "band_high_hz": Self.number(response.bandHz.upperBound, 1),
                "edge_low_hz": Self.number(response.edgesHz.lowerBound, 1),
                "edge_high_hz": Self.number(response.edgesHz.upperBound, 1),
                "speech_ripple_db": Self.number(response.speechRippleDB, 2),
                "delay_change_samples": Self.number(measurement.delayChangeAtEnd, 3),
                "points": .array(
                    response.points.map {
                        .array([
                            Self.number($0.frequencyHz, 1), Self.number($0.gainDB, 2),
                            Self.number($0.distortionPercent, 4),
                        ])
                    }),
            ]
        }
    }

    private static func tone(_ tone: ToneAnalysis) -> JSONValue {
        [
            "played_hz": number(tone.playedHz, 1), "frequency_hz": number(tone.frequencyHz, 4),
            "level_dbfs": number(tone.levelDBFS, 2), "thd_percent": number(tone.thdPercent, 4),
            "thd_n_percent": number(tone.thdPlusNoisePercent, 4), "thd_n_db": number(tone.thdPlusNoiseDB, 2),
        ]
    }

    private static func channels(_ figures: ChannelFigures) -> JSONValue {
        func path(_ path: ChannelFigures.Path) -> JSONValue {
            [
                "played": .string(path.played.rawValue), "heard": .string(path.heard.rawValue),
                "is_heard": .bool(path.isHeard), "gain_db": number(path.gainDB, 2),
                "level_dbfs": number(figures.playedDBFS + path.gainDB, 2),
                "inverted": path.isInverted.map(JSONValue.bool) ?? .null, "likeness": number(path.likeness, 3),
            ]
        }
        var object: [String: JSONValue] = [
            "outputs": .integer(Int64(figures.outputs)), "inputs": .integer(Int64(figures.inputs)),
            "heard": .integer(Int64(figures.heardCount)), "paths": .array(figures.paths.map(path)),
            "swapped": figures.isSwapped.map(JSONValue.bool) ?? .null,
            "opposite_polarity": figures.hasOppositePolarity.map(JSONValue.bool) ?? .null,
            "crosstalk_db": number(figures.crosstalk.flatMap { $0.isBound ? nil : $0.decibels }, 2),
            "crosstalk_at_most_db": number(figures.crosstalk?.decibels, 2),
            "text": .string(figures.verdict),
        ]
        if figures.inputs == 2 {
            for input in SoundChannel.allCases {
                object[input.rawValue] = figures.loudest(heardOn: input).map(path) ?? .null
            }
        }
        return .object(object)
    }

    private static func withheld(_ withheld: Withheld) -> JSONValue {
        var object: [String: JSONValue] = [
            "figure": .string(withheld.keys.figure), "reason": .string(withheld.keys.reason),
            "text": .string("\(withheld.name): \(withheld.reasonText)"),
        ]
        if case .tone(let frequency) = withheld.figure { object["played_hz"] = number(frequency, 1) }
        return .object(object)
    }
}
