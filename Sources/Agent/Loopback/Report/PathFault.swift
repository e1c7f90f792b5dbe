internal import AudioKit
internal import Glibc
internal import LoopbackAnalysis

/// What is wrong with a path, by name, with the evidence.
public struct PathFault: Equatable, Sendable {
    /// The names of faults. They stay the same between versions, for programs.
    public enum Name: String, CaseIterable, Sendable {
        case noSound = "no_sound"
        case wrongSpeed = "wrong_speed"
        case otherSound = "other_sound"
        case oppositePolarity = "opposite_polarity"
        case swapped, inverted, crosstalk
        case deadChannel = "dead_channel"
        case clipping, offset, quiet
        case coarse
        case levelStep = "level_step"
        case gainControl = "gain_control"
        case noiseSuppression = "noise_suppression"
        case unsteadyLevel = "unsteady_level"
        case band, echo, hum, whistle, noise
        case soundNoise = "sound_noise"
        case distortion, uneven
        case jitter, drift
        case staleBlocks = "stale_blocks"
        case lostSamples = "lost_samples"
        case repeatedSamples = "repeated_samples"
        case gaps, clicks, delay
    }

    /// Its name.
    public let name: Name
    /// What is wrong, with the figures that say so: a sentence without its full stop.
    public let text: String
    /// Where it may come from, and what to try; empty if a check says so.
    public let advice: String
    /// Whether no other check looks at it, so that it counts against ``LoopbackThresholds/faults``.
    public let isUnchecked: Bool
    /// Whether it makes the run fail.
    public let isFailure: Bool
}

/// Names what is wrong, by the evidence of a measurement and by the checks that failed, causes before their effects.
struct PathDiagnosis {
    private let measured: LoopbackMeasurement
    private let limits: LoopbackThresholds
    private let failed: Set<String>
    private(set) var faults: [PathFault] = []

    /// Softer hum and whistles are those of a good card.
    private static let leastLineDBFS = -66.0
    /// A greater share of the noise's power in one line is what it sounds like.
    private static let leastShare = 0.5
    /// A path whose level changes by less is steady.
    private static let steadyDB = 1.5
    /// Steps of as many values are not those of 16 bits.
    private static let coarseStep = 10.0
    /// Crosstalk between these is of wires: less is usual, and more is a mixture that is meant.
    private static let crosstalkDB = (least: -30.0, most: -6.0)
    /// A delay that wanders by more, in samples, is no clean clock's.
    private static let steadySamples = 0.25
    /// As many disturbances, two in each of two carriers, come where an echo begins.
    private static let echoesBegin = 4

    /// - Parameter failed: Keys of the checks that failed.
    init(_ run: LoopbackRun, failed: Set<String>) {
        (measured, limits, self.failed) = (run.measurement, run.thresholds, failed)
        guard measured.timing.isFound else {
            nameSilence()
            return
        }
        nameChannels()
        nameLevel()
        // What a narrow band leaves of the carrier looks disturbed.
        nameBand()
        nameTiming(run)
        nameSound()
        if faults.isEmpty { nameDelay() }
    }

    private func has(_ names: PathFault.Name...) -> Bool { faults.contains { names.contains($0.name) } }

    /// - Parameter check: The key of the check that looks at it; nil if none does.
    private mutating func add(_ name: PathFault.Name, _ text: String, _ advice: String = "", check: String? = nil) {
        faults.append(
            PathFault(
                name: name, text: text, advice: advice, isUnchecked: check == nil,
                isFailure: check.map(failed.contains) ?? (limits.faults.map { $0 == 0 } ?? false)))
    }

    // MARK: - Nothing came back

    private mutating func nameSilence() {
        if measured.channels?.hasOppositePolarity == true {
            add(
                .oppositePolarity, "One channel is inverted and the other is not: together they cancel each other",
                LoopbackVerdict.channelAdvice(measured.channels), check: "signal")
        } else if let speed = measured.evidence.speed {
            let percent = AudioText.number(abs(speed - 1) * 100, "%")
            let rates = Self.rates(speed).map { ", as \($0) does" } ?? ""
            add(
                .wrongSpeed, "The signal comes back \(percent) too \(speed > 1 ? "fast" : "slow")\(rates)",
                "One side of the path takes samples of one rate for samples of another: compare the rates of the card, of "
                    + "the sound server and of the program.", check: "signal")
        } else if measured.levelDBFS < -80 {
            add(.noSound, "Nothing came back", check: "signal")
        } else {
            add(.otherSound, "Something came back that is not the test signal", check: "signal")
        }
    }

    /// Two usual rates that make such a speed.
    private static func rates(_ speed: Double) -> String? {
        let rates = [48.0, 44.1, 8, 16, 32, 24, 22.05, 11.025, 12, 96, 88.2, 192]
        for from in rates {
            for to in rates where abs(to / from / speed - 1) < 3e-3 {
                return "\(kilohertz(from)) taken for \(kilohertz(to))"
            }
        }
        return nil
    }

    private static func kilohertz(_ rate: Double) -> String {
        let tenths = AudioText.fixed(rate, 3)
        let text = tenths.replacing(/0+$/, with: "")
        return (text.hasSuffix(".") ? String(text.dropLast()) : String(text)) + "\u{202F}kHz"
    }

    // MARK: - Channels and level

    private mutating func nameChannels() {
        let channels = measured.channels
        if channels?.isSwapped == true {
            add(.swapped, "Left and right are swapped", check: "channel_faults")
        }
        if channels?.hasOppositePolarity == true {
            let turned = SoundChannel.allCases.first { channel in
                channels?.loudest(heardOn: channel)?.isInverted == true
            }
            add(
                .oppositePolarity,
                "One channel is inverted and the other is not" + (turned.map { ": the \($0.rawValue) one" } ?? ""),
                check: "channel_faults")
        } else if channels?.faults.contains(.inverted) == true {
            add(.inverted, "The signal is inverted, on all channels", check: "channel_faults")
        } else if measured.timing.isInverted {
            add(.inverted, "The signal is inverted", "Two wires are swapped, or an amplifier inverts.")
        }
        guard let channels else { return }
        let dead = channels.heardCount > 0 ? channels.unheardOutputs + channels.deafInputs : []
        if channels.outputs == 2 || channels.inputs == 2, let first = dead.first {
            add(.deadChannel, "The \(first.rawValue) channel carries no sound", check: "channels")
        }
        if let crosstalk = channels.crosstalk, !crosstalk.isBound || failed.contains("crosstalk") {
            let isUsual = crosstalk.decibels < Self.crosstalkDB.least || crosstalk.decibels > Self.crosstalkDB.most
            let text = "Crosstalk of \(AudioText.number(crosstalk.decibels, "dB")) between the channels"
            if limits.crosstalkDB != nil {
                if failed.contains("crosstalk") { add(.crosstalk, text, check: "crosstalk") }
            } else if !isUsual {
                add(.crosstalk, text, "Look at the cable's ground, and at a mixer that adds the channels.")
            }
        }
    }

    private mutating func nameLevel() {
        let evidence = measured.evidence
        if let ceiling = evidence.ceilingDBFS {
            add(
                .clipping, "Clipping: the sound is cut off at \(AudioText.number(ceiling, "dBFS"))",
                "Turn down what comes before the place where it is cut off: the output if it is below full scale, else "
                    + "the input.",
                check: failed.contains("clipping") ? "clipping" : nil)
        } else if failed.contains("clipping") {
            add(.clipping, "Clipping: \(measured.clipping.samples) samples are cut off", check: "clipping")
        }
        if failed.contains("offset"), let offset = evidence.offsetPercent {
            add(.offset, "A constant offset (DC) of \(AudioText.number(offset, "%")) of full scale", check: "offset")
        }
        if failed.contains("gain"), let gain = measured.timing.gainDB {
            add(.quiet, "The signal is too soft: gain \(AudioText.number(gain, "dB"))", check: "gain")
        }
        if let step = evidence.stepSize, step >= Self.coarseStep {
            let bits = AudioText.fixed(16 - log2(step), 0)
            add(
                .coarse, "Coarse samples: steps of about \(Int(step.rounded())) of 65,536, as of \(bits) bits",
                "A format of fewer bits lies between (U8, µ-law, A-law), or a large digital amplification.")
        }
        nameUnsteadiness()
    }

    private mutating func nameUnsteadiness() {
        guard let level = measured.evidence.level, measured.timing.likeness(quantile: 0.5) ?? 0 > 0.5,
            measured.signalToNoiseDB ?? 40 > 15, !has(.coarse)
        else { return }
        let against = level.againstSweepDB ?? 0
        let isSteady = level.rangeDB < Self.steadyDB
        guard !isSteady || abs(against) > Self.steadyDB else { return }
        // A peak that is cut off is power lost.
        if isSteady, has(.clipping) { return }
        let advice = "Switch off gain control and noise suppression of the card, the sound server or the program."
        let range = AudioText.number(max(level.rangeDB, abs(against)), "dB")
        if let step = level.step {
            add(
                .levelStep,
                "The level changes by \(AudioText.number(step.changeDB, "dB")) at "
                    + "\(AudioText.fixed(Double(step.position) / Double(AudioFormat.sampleRate), 1))\u{202F}s",
                "Somebody or something set a volume during the run, or a contact is loose.")
        } else if against > Self.steadyDB {
            add(
                .gainControl, "Automatic gain control: soft sound is amplified by \(range) more than loud sound", advice
            )
        } else if against < -Self.steadyDB {
            add(
                .noiseSuppression, "Noise suppression: steady noise is lowered by \(range), and a moving tone is not",
                advice)
        } else if level.fallDB > Self.steadyDB / 2 {
            add(.gainControl, "Automatic gain control: the level falls by \(range) after each onset", advice)
        } else {
            add(
                .unsteadyLevel,
                "The level wanders by \(range) while the played one does not: gain control, or "
                    + "noise suppression", advice)
        }
    }

    // MARK: - Sound

    private mutating func nameSound() {
        if let echo = measured.evidence.echo {
            let delay = AudioText.number(AudioText.milliseconds(Double(echo.delaySamples)), "ms")
            add(
                .echo, "Echo: the sound comes again after \(delay), at \(AudioText.number(echo.levelDB, "dB"))",
                "A second path: monitoring of the input (sidetone), a loudspeaker that a microphone hears, a loop of a mixer."
            )
        }
        nameNoise()
        nameDistortion()
        if failed.contains("speech_ripple"),
            !has(.band, .echo, .gainControl, .noiseSuppression, .levelStep, .unsteadyLevel),
            let ripple = measured.response?.speechRippleDB
        {
            add(
                .uneven, "The frequency response is uneven by \(AudioText.number(ripple, "dB")) from 300 Hz to 3.4 kHz",
                check: "speech_ripple")
        }
    }

    private mutating func nameBand() {
        guard let band = measured.response?.edgesHz else { return }
        let key = ["band", "band_low"].first(where: failed.contains)
        guard let key else { return }
        add(
            .band,
            "Band-limited: \(AudioText.frequency(band.lowerBound)) to \(AudioText.frequency(band.upperBound)) "
                + "(−\(Int(FrequencyResponse.edgeDB)) dB)", check: key)
    }

    private mutating func nameNoise() {
        guard let noise = measured.noise else { return }
        let share = pow(10, (noise.strongest.levelDBFS - noise.levelDBFS) / 10)
        if let hum = measured.evidence.hum, hum.levelDBFS > Self.leastLineDBFS, hum.share > Self.leastShare {
            add(
                .hum,
                "Hum of \(Int(hum.mainsHz)) Hz mains at \(AudioText.number(hum.levelDBFS, "dBFS"))",
                "A ground loop, an unshielded cable, or a power supply: try other sockets, a balanced cable, a battery.",
                check: failed.contains("signal_to_noise") ? "signal_to_noise" : nil)
        } else if noise.strongest.levelDBFS > Self.leastLineDBFS, share > Self.leastShare {
            add(
                .whistle,
                "A whistle near \(AudioText.frequency(noise.strongest.frequencyHz)) at "
                    + AudioText.number(noise.strongest.levelDBFS, "dBFS"),
                "Interference of a switching supply or of USB, or feedback.",
                check: failed.contains("signal_to_noise") ? "signal_to_noise" : nil)
        } else if failed.contains("signal_to_noise"), !has(.quiet) {
            add(.noise, "Noise at \(AudioText.number(noise.levelDBFS, "dBFS"))", check: "signal_to_noise")
        }
    }

    private mutating func nameDistortion() {
        guard failed.contains("distortion"), let tone = measured.worstTone,
            !has(
                .clipping, .coarse, .hum, .whistle, .noise, .echo, .gainControl, .noiseSuppression, .levelStep,
                .unsteadyLevel, .jitter, .quiet)
        else { return }
        let percent = AudioText.number(tone.thdPlusNoisePercent, "%")
        let at = AudioText.frequency(tone.playedHz, isExact: true)
        // Harmonics of the highest tones lie above the band.
        let isHarmonic = measured.tones.contains {
            $0.playedHz < 6_000 && $0.thdPercent > 0.5 && $0.thdPercent > 0.7 * $0.thdPlusNoisePercent
        }
        if isHarmonic || tone.thdPercent > 0.7 * tone.thdPlusNoisePercent {
            add(.distortion, "Distortion: harmonics of \(percent) of the tone of \(at)", check: "distortion")
            return
        }
        let rest = tone.levelDBFS + tone.thdPlusNoiseDB
        guard let noise = measured.noise?.levelDBFS else { return }
        if noise > rest - 4 {
            add(.noise, "Noise at \(AudioText.number(noise, "dBFS"))", check: "distortion")
        } else if faults.isEmpty {
            add(
                .soundNoise,
                "Noise that comes only with the sound, of \(percent) of the tone of \(at): a codec, a coarse format, or a "
                    + "poor resampler", check: "distortion")
        }
    }

    // MARK: - Timing

    private mutating func nameTiming(_ run: LoopbackRun) {
        let timing = measured.timing
        let isDisturbed = !failed.isDisjoint(with: ["events", "disturbed"])
        let key = failed.contains("events") ? "events" : "disturbed"
        func count(_ kind: LoopbackEvent.Kind) -> Int { timing.counts[kind] ?? 0 }
        let (skips, repeats) = (count(.skip), count(.repeat))
        let isToAndFro = min(skips, repeats) >= 3 && 3 * min(skips, repeats) >= max(skips, repeats)
        let isClean = timing.likeness(quantile: 0.5) ?? 0 > 0.9 && measured.signalToNoiseDB ?? 0 > 20
        let wander = timing.wanderSamples ?? 0
        let isUnsteady = isClean && timing.eventCount == 0 && wander > Self.steadySamples
        if isToAndFro && isDisturbed || isUnsteady && measured.evidence.ceilingDBFS == nil {
            let range = timing.delayRange.map { AudioText.milliseconds($0.upperBound - $0.lowerBound) } ?? 0
            add(
                .jitter, "Jitter: the delay goes to and fro, by \(AudioText.number(range, "ms")) in all",
                "A clock that is not steady, or a resampler that hunts for its rate.",
                check: isToAndFro && isDisturbed ? key : nil)
        }
        if failed.contains("drift"), let drift = timing.driftPPM {
            add(.drift, "The clocks are \(AudioText.number(abs(drift.value), "ppm")) apart", check: "drift")
        }
        guard isDisturbed else { return }
        let cause = run.recurrenceText.map { "They recur \($0)." } ?? run.trouble?.advice ?? ""
        let stale = measured.evidence.staleBlocks
        // Where an echo begins, within the carrier, the sound changes.
        let isEchoes = measured.evidence.echo != nil && count(.disturbance) <= Self.echoesBegin
        let disturbances = isEchoes ? 0 : count(.disturbance)
        if disturbances > 0, 2 * stale > disturbances {
            add(
                .staleBlocks, "\(stale) blocks are heard in place of others: a buffer is played or captured twice",
                cause,
                check: key)
        } else if disturbances > 0 {
            add(.clicks, "\(disturbances) clicks or bursts of other sound", cause, check: key)
        }
        if count(.silence) > 0 { add(.gaps, "\(count(.silence)) gaps of silence", cause, check: key) }
        guard !has(.jitter) else { return }
        if skips > 0 {
            add(.lostSamples, "Sound is lost without a gap, \(skips) times", cause, check: key)
        }
        if repeats > 0 { add(.repeatedSamples, "Sound is repeated, \(repeats) times", cause, check: key) }
    }

    private mutating func nameDelay() {
        if failed.contains("delay"), let delay = measured.timing.meanDelay {
            add(.delay, "The delay is \(AudioText.number(AudioText.milliseconds(delay), "ms"))", check: "delay")
        } else if failed.contains("delay_range") {
            add(.delay, "The delay changes", check: "delay_range")
        }
    }
}

extension LoopbackMeasurement {
    /// The tone with the most distortion and noise.
    var worstTone: ToneAnalysis? { tones.max { $0.thdPlusNoisePercent < $1.thdPlusNoisePercent } }
}
