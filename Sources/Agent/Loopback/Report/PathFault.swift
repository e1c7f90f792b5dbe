internal import AudioKit
internal import Glibc
internal import LoopbackAnalysis

/// What is wrong with a path, by name, with the evidence.
public struct PathFault: Equatable, Sendable {
    /// The names of faults. They stay the same between versions, for programs.
    public enum Name: String, CaseIterable, Sendable {
        case noSound = "no_sound"
        case wrongSpeed = "wrong_speed"
        case frequencyShift = "frequency_shift"
        case otherSound = "other_sound"
        case oppositePolarity = "opposite_polarity"
        case swapped, inverted, crosstalk
        case deadChannel = "dead_channel"
        case channelImbalance = "channel_imbalance"
        case channelDelay = "channel_delay"
        case clipping, offset, quiet
        case levelChange = "level_change"
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
    /// The gain of the baseline, in dB.
    private let formerGainDB: Double?
    /// Sound that a busy machine needed ahead.
    private let extraAheadMilliseconds: Double
    /// Whether this machine caused all gaps. The carrier behind an xrun is then heard twice, and is no echo.
    private let isStalled: Bool
    /// Whether a codec lies in the path.
    private let isCall: Bool
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
    /// The channels of a card are equal to 1 dB, and those of a volume knob to some 3 dB. Half of a balanced line is 6 dB
    /// softer; half a decibel less is for the tolerance of both.
    private static let imbalanceDB = 5.5
    /// Channels that are nearer to each other, in samples, are even to 6 dB up to 3.4 kHz in their mean: 0.1 ms.
    private static let leastSkewSamples = 4.8
    /// An echo and a delay between the channels that differ by less, in samples, are the same: 0.5 ms.
    private static let sameDelay = 24.0
    /// Where the treble ends, in dB, and the share of the threshold for the band below which that is worth a remark.
    private static let treble = (decibels: 6.0, share: 2.0 / 3)
    /// A tone below is none that is called a whistle, in Hz.
    private static let leastWhistleHz = 1_000.0
    /// A delay that wanders by more, in samples, is no clean clock's.
    private static let steadySamples = 0.25

    /// - Parameter failed: Keys of the checks that failed.
    init(_ run: LoopbackRun, failed: Set<String>) {
        (measured, limits, self.failed) = (run.measurement, run.thresholds, failed)
        formerGainDB = run.baseline?.gainDB
        extraAheadMilliseconds = run.trouble?.extraAheadMilliseconds ?? 0
        isStalled = run.mode == .device && run.trouble?.stall(explaining: run.measurement.timing.eventCount) != nil
        isCall = run.mode == .call
        guard measured.timing.isFound else {
            nameSilence()
            return
        }
        if let speed = measured.evidence.speed {
            // All else follows from it.
            nameSpeed(speed, check: nil)
            return
        }
        if let shift = measured.evidence.shiftHz {
            nameShift(shift, check: nil)
            return
        }
        nameChannels()
        nameSkew()
        nameLevel()
        nameBand()
        nameEcho()
        nameTiming(run)
        nameSound()
        if faults.isEmpty { nameDelay() }
        if !faults.contains(where: \.isFailure) { nameLevelChange() }
    }

    /// Any other fault may change the level, so this one counts alone.
    private mutating func nameLevelChange() {
        guard failed.contains("baseline_gain"), let gain = measured.timing.gainDB, let formerGainDB else { return }
        let direction = gain < formerGainDB ? "softer" : "louder"
        add(
            .levelChange,
            "The signal comes back \(AudioText.number(abs(gain - formerGainDB), "dB")) \(direction) than in the baseline",
            "A volume or a gain of the path has been changed since: compare the settings of the mixers.",
            check: "baseline_gain")
    }

    private func has(_ names: PathFault.Name...) -> Bool { faults.contains { names.contains($0.name) } }

    /// - Parameter check: The key of the check that looks at it; nil if none does.
    private mutating func add(_ name: PathFault.Name, _ text: String, _ advice: String = "", check: String? = nil) {
        faults.append(
            PathFault(
                name: name, text: text, advice: advice, isUnchecked: check == nil,
                isFailure: check.map(failed.contains) ?? (limits.faults.map { $0 == 0 } ?? false)))
    }

    /// Adds what is no failure but worth a look.
    private mutating func addRemark(_ name: PathFault.Name, _ text: String, _ advice: String) {
        faults.append(PathFault(name: name, text: text, advice: advice, isUnchecked: false, isFailure: false))
    }

    // MARK: - Nothing came back

    private mutating func nameSilence() {
        if let shift = measured.evidence.shiftHz {
            nameShift(shift, check: "signal")
        } else if measured.channels?.hasOppositePolarity == true {
            add(
                .oppositePolarity, "One channel is inverted and the other is not: together they cancel each other",
                LoopbackVerdict.channelAdvice(measured.channels), check: "signal")
            if measured.channels?.isSwapped == true {
                add(.swapped, "Left and right are swapped", check: "channel_faults")
            }
        } else if let speed = measured.evidence.speed {
            nameSpeed(speed, check: "signal")
        } else if measured.levelDBFS < -80 {
            add(.noSound, "Nothing came back", check: "signal")
        } else {
            add(.otherSound, "Something came back that is not the test signal", check: "signal")
        }
    }

    private mutating func nameSpeed(_ speed: Double, check: String?) {
        let percent = AudioText.number(abs(speed - 1) * 100, "%")
        let rates = Self.rates(speed).map { ", as \($0) does" } ?? ""
        add(
            .wrongSpeed, "The signal comes back \(percent) too \(speed > 1 ? "fast" : "slow")\(rates)",
            "One side of the path takes samples of one rate for samples of another: compare the rates of the card, of "
                + "the sound server and of the program.", check: check)
    }

    private mutating func nameShift(_ shift: Double, check: String?) {
        add(
            .frequencyShift,
            "All frequencies are shifted \(shift > 0 ? "up" : "down") by "
                + AudioText.number((abs(shift) * 10).rounded() / 10, "Hz"),
            "Something between shifts them: the protection against feedback of a loudspeaker system, or a radio link of "
                + "one sideband.", check: check)
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
        if let imbalance = channels.imbalanceDB, abs(imbalance) >= Self.imbalanceDB {
            let (softer, louder): (SoundChannel, SoundChannel) = imbalance < 0 ? (.left, .right) : (.right, .left)
            add(
                .channelImbalance,
                "The \(softer.rawValue) channel is \(AudioText.number(abs(imbalance), "dB")) softer than the "
                    + "\(louder.rawValue) one",
                "Compare the volumes of both channels in the mixer, and the cable: of a balanced line one wire alone is 6 dB "
                    + "softer.")
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
        let isOverdriven = measured.tones.contains {
            Self.isHarmonic($0) && $0.thdPlusNoisePercent > limits.distortionPercent ?? .infinity
        }
        if let ceiling = evidence.ceilingDBFS {
            add(
                .clipping, "Clipping: the sound is cut off at \(AudioText.number(ceiling, "dBFS"))",
                "Turn down what comes before the place where it is cut off: the output if it is below full scale, else "
                    + "the input.",
                check: failed.contains("clipping") ? "clipping" : nil)
        } else if failed.contains("clipping") {
            add(.clipping, "Clipping: \(measured.clipping.samples) samples are cut off", check: "clipping")
        }
        if !has(.clipping), !isOverdriven, let crest = evidence.crestDB, crest < PathEvidence.leastCrestDB {
            add(
                .clipping,
                "Clipping, or a limiter: peaks are only \(AudioText.number(crest, "dB")) above the mean level",
                "Turn down what comes before the place where it is cut off.")
        }
        if failed.contains("offset"), let offset = evidence.offsetPercent {
            add(.offset, "A constant offset (DC) of \(AudioText.number(offset, "%")) of full scale", check: "offset")
        }
        if failed.contains("gain"), let gain = measured.timing.gainDB {
            add(.quiet, "The signal is too soft: gain \(AudioText.number(gain, "dB"))", check: "gain")
        }
        if let step = evidence.stepSize, step >= (has(.clipping) ? 4 : 1) * Self.coarseStep {
            let bits = AudioText.fixed(16 - log2(step), 0)
            add(
                .coarse, "Coarse samples: steps of about \(Int(step.rounded())) of 65,536, as of \(bits) bits",
                "A format of fewer bits lies between (U8, µ-law, A-law), or a large digital amplification.")
        }
        nameUnsteadiness()
    }

    private mutating func nameUnsteadiness() {
        guard let level = measured.evidence.level, let likeness = measured.timing.likeness(quantile: 0.5),
            likeness > 0.5, measured.signalToNoiseDB ?? 40 > 15, !has(.coarse, .channelDelay)
        else { return }
        let against = level.againstSweepDB ?? 0
        // What a codec loses of noise differs from moment to moment.
        let steadyDB = Self.steadyDB + (isCall ? Self.codecLossDB(likeness) : 0)
        let isSteady = level.rangeDB < steadyDB
        let isLowered = against < -steadyDB
        guard !isSteady || against > Self.steadyDB || isLowered else { return }
        // A peak that is cut off is power lost.
        if isSteady, has(.clipping) { return }
        let advice = "Switch off gain control and noise suppression of the card, the sound server or the program."
        let range = AudioText.number(max(level.rangeDB, abs(against)), "dB")
        if let step = level.step {
            add(
                .levelStep,
                "The level changes by \(AudioText.number(step.changeDB, "dB")) at "
                    + "\(AudioText.fixed(Double(step.position) / Double(AudioFormat.sampleRate), 1))\u{202F}s",
                "A volume changed during the run, or a contact is loose.")
        } else if let trend = level.trend {
            add(
                .unsteadyLevel,
                "The level \(trend.changeDB < 0 ? "falls" : "rises") evenly, by "
                    + "\(AudioText.number(abs(trend.slopeDB), "dB")) a second",
                "A fade, or a gain control with a time of many seconds.")
        } else if against > Self.steadyDB {
            add(
                .gainControl, "Automatic gain control: soft sound is amplified by \(range) more than loud sound", advice
            )
        } else if isLowered {
            add(
                .noiseSuppression, "Noise suppression: steady noise is lowered by \(range), and a moving tone is not",
                advice)
        } else if level.fallDB > Self.steadyDB / 2, level.againstSweepDB != nil {
            add(.gainControl, "Automatic gain control: the level falls by \(range) after each onset", advice)
        } else {
            add(
                .unsteadyLevel,
                "The level wanders by \(range) while the played one does not: gain control, or "
                    + "noise suppression", advice)
        }
    }

    /// The most that a codec loses of noise, in dB: noise that it cannot code returns softer, and lowers the likeness.
    /// Through Opus twice, likeness and loss are 0.95 and 1.4 dB at 128 kb/s, 0.88 and 2.4 dB at 64, 0.77 and 3.2 dB at
    /// 40, 0.67 and 3.3 dB at 16.
    private static func codecLossDB(_ likeness: Double) -> Double { -40 * log10(likeness) }

    // MARK: - Sound

    private mutating func nameSound() {
        nameNoise()
        nameDistortion()
        if failed.contains("speech_ripple"),
            !has(.band, .channelDelay, .echo, .gainControl, .noiseSuppression, .levelStep, .unsteadyLevel),
            let ripple = measured.response?.speechRippleDB
        {
            add(
                .uneven, "The frequency response is uneven by \(AudioText.number(ripple, "dB")) from 300 Hz to 3.4 kHz",
                check: "speech_ripple")
        }
        nameTreble()
    }

    /// Names a delay between the channels if the mean of both suffers from it: the delay of the path may have changed between
    /// the two pieces by which it is known.
    private mutating func nameSkew() {
        guard let skew = measured.channels?.wireSkewSamples, abs(skew) >= Self.leastSkewSamples, !isStalled,
            failed.contains("speech_ripple") || isEcho(skew)
        else { return }
        let (later, earlier): (SoundChannel, SoundChannel) = skew > 0 ? (.right, .left) : (.left, .right)
        let delay = AudioText.number((AudioText.milliseconds(abs(skew)) * 100).rounded() / 100, "ms")
        add(
            .channelDelay, "The \(later.rawValue) channel comes \(delay) later than the \(earlier.rawValue) one",
            "Calls use the mean of both channels, in which frequencies cancel each other: look for a delay or an effect on "
                + "one channel.",
            check: failed.contains("speech_ripple") ? "speech_ripple" : nil)
    }

    /// Whether an echo is the later one of two channels.
    private func isEcho(_ skew: Double) -> Bool {
        measured.evidence.echo.map { abs(abs(skew) - abs(Double($0.delaySamples))) < Self.sameDelay } ?? false
    }

    /// A path that is within its band by the −10 dB that count, and softer long before.
    private mutating func nameTreble() {
        guard let response = measured.response, let limit = limits.bandHighHz,
            !has(.band, .uneven, .channelDelay, .echo),
            response.edgesHz.upperBound >= limit
        else { return }
        let edge = response.upperEdgeHz(at: Self.treble.decibels)
        guard edge < Self.treble.share * limit else { return }
        addRemark(
            .uneven,
            "The treble is soft: −3 dB at \(AudioText.frequency(response.upperEdgeHz(at: 3))), "
                + "−\(Int(Self.treble.decibels)) dB at \(AudioText.frequency(edge))",
            "A tone control, an equaliser or a long cable lies between.")
    }

    private mutating func nameEcho() {
        if let echo = measured.evidence.echo, !isStalled {
            if has(.channelDelay), let skew = measured.channels?.wireSkewSamples, isEcho(skew) { return }
            let delay = AudioText.number(AudioText.milliseconds(Double(echo.delaySamples)), "ms")
            add(
                .echo, "Echo: the sound comes again after \(delay), at \(AudioText.number(echo.levelDB, "dB"))",
                "A second path: monitoring of the input (sidetone), a loudspeaker that a microphone hears, a loop of a mixer."
            )
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
            let frequency = noise.strongest.frequencyHz
            add(
                .whistle,
                "A \(frequency < Self.leastWhistleHz ? "tone" : "whistle") near \(AudioText.frequency(frequency)) at "
                    + AudioText.number(noise.strongest.levelDBFS, "dBFS"),
                "Interference of a switching supply or of USB, or feedback.",
                check: failed.contains("signal_to_noise") ? "signal_to_noise" : nil)
        } else if failed.contains("signal_to_noise"), !has(.quiet) {
            add(.noise, "Noise at \(AudioText.number(noise.levelDBFS, "dBFS"))", check: "signal_to_noise")
        }
    }

    private mutating func nameDistortion() {
        // What lies outside the band is soft, and not distorted.
        let band = has(.band) ? measured.response?.edgesHz : nil
        let tones = measured.tones.filter {
            $0.thdPlusNoisePercent > limits.distortionPercent ?? .infinity && band?.contains($0.playedHz) ?? true
        }
        // Harmonics of high tones come back elsewhere, and count as noise: those of a lower one say what it is.
        let worst = tones.max { $0.thdPlusNoisePercent < $1.thdPlusNoisePercent }
        guard let tone = tones.first(where: Self.isHarmonic) ?? worst,
            !has(
                .channelDelay, .clipping, .coarse, .hum, .whistle, .noise, .echo, .gainControl, .noiseSuppression,
                .levelStep, .unsteadyLevel, .jitter, .quiet)
        else { return }
        let percent = AudioText.number(tone.thdPlusNoisePercent, "%")
        let at = AudioText.frequency(tone.playedHz, isExact: true)
        if let modulation = tones.lazy.compactMap(\.modulation).first {
            add(
                .unsteadyLevel,
                "The level goes up and down \(AudioText.number(modulation.frequencyHz, places: 0)) times a second, by "
                    + "\(AudioText.number(modulation.depthPercent, places: 0))\u{202F}% either way",
                "Hum on a gain control or on a supply, a tremolo, or interference of packets.", check: "distortion")
            return
        }
        if Self.isHarmonic(tone) {
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

    private static func isHarmonic(_ tone: ToneAnalysis) -> Bool { tone.thdPercent > 0.7 * tone.thdPlusNoisePercent }

    // MARK: - Timing

    private mutating func nameTiming(_ run: LoopbackRun) {
        let timing = measured.timing
        let isDisturbed = !failed.isDisjoint(with: ["events", "disturbed"])
        let key = failed.contains("events") ? "events" : "disturbed"
        let cause = run.recurrenceText.map { "They recur \($0)." } ?? run.trouble?.advice ?? ""
        let stale = measured.evidence.staleBlocks
        let isStale = isDisturbed && 2 * stale > timing.eventCount / 2
        let (skips, repeats) = (jumps { $0 < 0 }, jumps { $0 > 0 })
        let isToAndFro = !isStale && goesToAndFro(skips, repeats)
        let isClean = timing.likeness(quantile: 0.5) ?? 0 > 0.9 && measured.signalToNoiseDB ?? 0 > 20
        // Behind a jump the line is not yet known well.
        let isWandering = isClean && timing.eventCount == 0 && timing.wanderSamples ?? 0 > Self.steadySamples
        let isUnsteady = has(.gainControl, .noiseSuppression, .unsteadyLevel, .echo, .clipping)
        if isToAndFro && isDisturbed || isWandering && !isUnsteady {
            let range = timing.delayRange.map { AudioText.milliseconds($0.upperBound - $0.lowerBound) } ?? 0
            add(
                .jitter, "Jitter: the delay goes to and fro, by \(AudioText.number(range, "ms")) in all",
                "A clock that is not steady, or a resampler that hunts for its rate.",
                check: isToAndFro && isDisturbed ? key : nil)
        }
        // A slope through pieces between jumps is not known well.
        if failed.contains("drift"), !isStale, skips + repeats < 3, !has(.jitter), let drift = timing.driftPPM {
            add(.drift, "The clocks are \(AudioText.number(abs(drift.value), "ppm")) apart", check: "drift")
        }
        guard isDisturbed else { return }
        if isStale {
            add(
                .staleBlocks,
                Self.counted(stale, "block is", "blocks are")
                    + " heard in place of others: a buffer is played or captured twice",
                cause,
                check: key)
            return
        }
        let silences = timing.counts[.silence] ?? 0
        if silences > 0 { add(.gaps, Self.counted(silences, "gap", "gaps") + " of silence", cause, check: key) }
        if skips > 0, !has(.jitter) {
            add(.lostSamples, "Sound is lost without a gap, " + Self.counted(skips, "time", "times"), cause, check: key)
        }
        if repeats > 0, !has(.jitter) {
            add(.repeatedSamples, "Sound is repeated, " + Self.counted(repeats, "time", "times"), cause, check: key)
        }
        // What changes the level or adds an echo disturbs the carrier too, and so may a filter or a jump.
        let clicks = timing.events.count { $0.kind == .disturbance && !Self.isJump($0) }
        let isExplained =
            has(.jitter, .levelStep, .echo, .noiseSuppression) || isUnsteady && clicks <= 10
            || clicks < 3 && failed.contains("signal_to_noise") || clicks <= 10 && has(.band)
            || 4 * clicks <= skips + repeats
        if clicks > 0, !isExplained {
            add(
                .clicks, Self.counted(clicks, "click or burst", "clicks or bursts") + " of other sound", cause,
                check: key)
        }
    }

    private static func counted(_ count: Int, _ one: String, _ more: String) -> String {
        "\(count) \(count == 1 ? one : more)"
    }

    /// Whether the delay jumps both ways, by little each time, or so that it comes back.
    private func goesToAndFro(_ skips: Int, _ repeats: Int) -> Bool {
        guard min(skips, repeats) > 0, skips + repeats >= 4 else { return false }
        let sizes = measured.timing.events.filter(Self.isJump).map { $0.delayAfter - $0.delayBefore }
        let largest = sizes.map(abs).max() ?? 0
        let sum = sizes.reduce(0) { $0 + abs($1) }
        return largest <= 12 || min(skips, repeats) >= 3 && abs(sizes.reduce(0, +)) < 0.3 * sum
    }

    /// Events, other than silences, by which the delay jumps one way.
    private func jumps(_ isWanted: (Double) -> Bool) -> Int {
        measured.timing.events.count {
            $0.kind != .silence && Self.isJump($0) && isWanted($0.delayAfter - $0.delayBefore)
        }
    }

    private static func isJump(_ event: LoopbackEvent) -> Bool { abs(event.delayAfter - event.delayBefore) >= 0.5 }

    private mutating func nameDelay() {
        if failed.contains("delay"), let delay = measured.timing.meanDelay {
            let path = AudioText.milliseconds(delay) - extraAheadMilliseconds
            add(.delay, "The delay is \(AudioText.number(path, "ms"))", check: "delay")
        } else if failed.contains("delay_range") {
            add(.delay, "The delay changes", check: "delay_range")
        }
    }
}

extension LoopbackMeasurement {
    /// The tone with the most distortion and noise.
    var worstTone: ToneAnalysis? { tones.max { $0.thdPlusNoisePercent < $1.thdPlusNoisePercent } }
}
