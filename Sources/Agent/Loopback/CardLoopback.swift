public import AudioDevices
internal import AudioKit
internal import Glibc
public import LoopbackAnalysis
internal import Realtime
internal import Core

/// A measurement of a sound card, or of two of which one captures the other.
public struct CardLoopback: Sendable {
    /// The cards; both directions must be named.
    public var configuration: AudioDeviceConfiguration
    /// How far the playback buffer is filled, in milliseconds; nil for two periods, or for more if this machine turns
    /// out to need it.
    public var bufferMilliseconds: Double?
    /// ``bufferMilliseconds`` is what this machine turned out to need, and not what the user asked for.
    private(set) var isGrown = false
    /// How long the carrier lasts, in seconds: how long gaps are watched for.
    public var carrierSeconds = 10.0
    /// Frequencies of the tones, in Hz.
    public var tonesHz = LoopbackSignal.usualTonesHz
    /// The longest delay that is looked for, in milliseconds.
    public var maximumDelayMilliseconds = 2_000
    /// When it begins, as ISO 8601 has it.
    public var startedAt: String

    /// Events during the run.
    public enum Progress: Sendable {
        /// The state for the live view; some five times a second.
        case state(LiveView.State)
        /// A minute of a soak has ended.
        case minute(SoakMonitor.Minute)
        /// The card went away (errno), or is back (nil).
        case card(absence: Int32?)
        /// The number of figures that are withheld, whose parts of the signal are played again.
        case repeats(withheld: Int)
        /// The measurement restarts with more sound buffered ahead, because this thread was delayed.
        case again(aheadMilliseconds: Double, holdUpMilliseconds: Double)
    }

    /// Measures what `configuration` names.
    public init(_ configuration: AudioDeviceConfiguration, startedAt: String) {
        self.configuration = configuration
        self.startedAt = startedAt
    }

    /// Plays the whole test signal and measures what comes back.
    ///
    /// - Parameters:
    ///   - follows: Whether `tell` is given states, which costs some of the processor.
    ///   - mustStop: Called some fifty times a second.
    public func measure(
        follows: Bool, mustStop: () -> Bool, tell: (Progress) -> Void
    ) throws(LoopbackError) -> LoopbackRun {
        var choice = BufferChoice(asked: bufferMilliseconds)
        while true {
            var attempt = self
            attempt.bufferMilliseconds = choice.milliseconds
            attempt.isGrown = !choice.facts.isEmpty
            let outcome = try attempt.measureOnce(
                isEnough: { choice.isWorthAnother($0) }, follows: follows, mustStop: mustStop, tell: tell)
            switch outcome {
            case .measured(var run):
                run.facts += choice.facts
                var short = attempt
                short.carrierSeconds = 1
                Self.playAgain(for: &run, mustStop: mustStop, tell: tell) { () throws(LoopbackError) in
                    let again = try short.measureOnce(
                        isEnough: { _ in false }, follows: follows, mustStop: mustStop, tell: tell)
                    guard case .measured(let later) = again else { return nil }
                    return later.measurement
                }
                return run
            case .heldUp(let trouble):
                choice.grow(after: trouble)
                tell(
                    .again(
                        aheadMilliseconds: choice.milliseconds ?? 0,
                        holdUpMilliseconds: trouble.longestHoldUpMilliseconds))
            }
        }
    }

    /// What happens to one part of the signal costs that part only: it is played again, twice at most. A repeat that fails, or is
    /// interrupted, changes nothing.
    ///
    /// - Parameter measure: Plays the signal behind a short carrier; nil if it could not be measured.
    static func playAgain(
        for run: inout LoopbackRun, mustStop: () -> Bool, tell: (Progress) -> Void,
        _ measure: () throws(LoopbackError) -> LoopbackMeasurement?
    ) {
        let first = run.measurement.withheld
        for _ in 0..<repeats {
            guard run.measurement.timing.isFound, !run.measurement.withheld.isEmpty, !mustStop() else { break }
            tell(.repeats(withheld: run.measurement.withheld.count))
            do throws(LoopbackError) {
                guard let later = try measure() else { continue }
                // Of a signal that was cut off, the rest was not heard.
                guard !mustStop() else { break }
                run.measurement.fill(from: later)
            } catch {
                run.facts.append(.init("Not played again", error.description))
                break
            }
        }
        guard run.measurement.withheld.count < first.count else { return }
        let names = first.filter { !run.measurement.withheld.contains($0) }.map { "\($0.name) (\($0.reasonText))" }
        run.facts.append(.init("Played again for", names.joined(separator: ", ")))
    }

    private static let repeats = 2

    private enum Outcome {
        case measured(LoopbackRun)
        case heldUp(CardTrouble)
    }

    /// - Parameter isEnough: Whether the trouble so far is a reason to end early, and to begin again.
    private func measureOnce(
        isEnough: (CardTrouble) -> Bool, follows: Bool, mustStop: () -> Bool, tell: (Progress) -> Void
    ) throws(LoopbackError) -> Outcome {
        let signal = LoopbackSignal(carrierSeconds: carrierSeconds, tonesHz: tonesHz, channels: true)
        let maximumDelay = AudioFormat.samples(milliseconds: maximumDelayMilliseconds)
        var stereo = self
        stereo.configuration.channels = 2
        var session = try CardSession(stereo, signal, keepsPairs: true)
        // The last samples return later by the delay; the signal itself ends with some silence.
        let end = signal.count + max(AudioFormat.sampleRate / 2, maximumDelay / 2)
        var recorder = CardRecorder(signal, maximumDelay: maximumDelay, playedSamples: signal.count, follows: follows)
        try session.start()
        while recorder.samples.count < end, !mustStop() {
            if let state = try recorder.add(session.exchange(), session.stream.statistics, configuration) {
                tell(.state(state))
            }
            if isEnough(session.facts.trouble), !mustStop() {
                session.stop()
                return .heldUp(session.facts.trouble)
            }
            if !session.hasMore { Self.rest() }
        }
        session.stop()
        var measurement = LoopbackAnalyser(signal, maximumDelay: maximumDelay)
            .analyse(recorder.samples, interruptions: session.stream.interruptions)
        measurement.timing = measurement.timing.aligned(to: session.stream.alignment)
        session.channels.measure(
            recorder.samples, signal, maximumDelay: maximumDelay, interruptions: session.stream.interruptions,
            &measurement)
        var run = LoopbackRun(mode: .device, startedAt: startedAt, measurement: measurement)
        session.describe(&run)
        return .measured(run)
    }

    /// Plays the carrier until it is stopped.
    ///
    /// - Parameters:
    ///   - seconds: How long; nil until `mustStop`.
    ///   - keep: Gets the worst moments so far when they have changed, at the end of a minute and at the end; returns
    ///     the files' names.
    public func soak(
        seconds: Double?, mustStop: () -> Bool, keep: ([SoakMonitor.Moment]) throws(LoopbackError) -> [String],
        tell: (Progress) -> Void
    ) throws(LoopbackError) -> LoopbackRun {
        var soak = SoakMeasurement(maximumDelay: AudioFormat.samples(milliseconds: maximumDelayMilliseconds))
        var session = try CardSession(self, soak.signal)
        let end = seconds.map { Int($0 * Double(AudioFormat.sampleRate)) } ?? Int.max
        var absence: Int32?
        try session.start()
        while soak.captured < end, !mustStop() {
            let samples = session.exchange()
            for minute in soak.add(samples, &session.stream) {
                tell(.minute(minute))
                if soak.hasNewMoments { soak.files = try keep(soak.takeMoments()) }
            }
            if session.stream.statistics.absence != absence {
                absence = session.stream.statistics.absence
                tell(.card(absence: absence))
            }
            if let state = soak.state(everySamples: 9_600, total: seconds) { tell(.state(state)) }
            if !session.hasMore { Self.rest() }
        }
        session.stop()
        if let minute = soak.finish(&session.stream) { tell(.minute(minute)) }
        soak.files = try keep(soak.takeMoments())
        var run = soak.run(startedAt: startedAt, alignment: session.stream.alignment)
        session.describe(&run)
        return run
    }
}

extension CardLoopback {
    /// Waits until there is something to do: a fiftieth of a second, of which the rings hold hundreds.
    private static func rest() { usleep(20_000) }
}

/// What a card has captured so far, and its state for display.
struct CardRecorder {
    private(set) var samples: [Int16] = []
    private let signal: LoopbackSignal
    private let total: Double
    private var live: LiveTiming?

    /// - Parameters:
    ///   - playedSamples: How many are played in all; those behind the signal are speech.
    ///   - follows: Whether anything is shown.
    init(_ signal: LoopbackSignal, maximumDelay: Int, playedSamples: Int, follows: Bool) {
        self.signal = signal
        total = Double(playedSamples) / Double(AudioFormat.sampleRate)
        live = follows ? LiveTiming(signal, maximumDelay: maximumDelay) : nil
        samples.reserveCapacity(playedSamples + maximumDelay)
    }

    /// Takes captured samples. Returns the state to show, if it is time to.
    mutating func add(
        _ captured: [Int16], _ statistics: DuplexStatistics, _ configuration: AudioDeviceConfiguration
    ) throws(LoopbackError) -> LiveView.State? {
        samples += captured
        if let absence = statistics.absence { throw LoopbackError(.cardLost, configuration, absence) }
        guard live?.add(captured) == true else { return nil }
        let isSpeech = samples.count >= signal.count && Double(samples.count) < total * Double(AudioFormat.sampleRate)
        return live?.state(phase: isSpeech ? "Speaking" : signal.phase(at: samples.count), total)
    }
}

/// A card at work: its thread, and the stream that it is fed from.
struct CardSession: ~Copyable {
    var stream: LoopbackStream
    /// What the channels of the card have captured.
    private(set) var channels: ChannelRecorder
    /// The last exchange brought something, so that more may be waiting.
    private(set) var hasMore = false
    private let card: DuplexCard
    private let configuration: AudioDeviceConfiguration
    /// How far ahead the buffer is filled because this machine needs it; nil if it does not.
    private let grownMilliseconds: Double?

    /// - Parameters:
    ///   - following: Played after the signal.
    ///   - keepsPairs: Whether the two channels of a stereo card are stored separately where the signal plays each
    ///     alone.
    ///   - explain: Makes the error for a card that cannot be opened.
    init(
        _ loopback: CardLoopback, _ signal: LoopbackSignal, followedBy following: [Int16] = [],
        keepsPairs: Bool = false,
        explain: (AudioDeviceError) -> LoopbackError = { LoopbackError($0) }
    ) throws(LoopbackError) {
        let card: DuplexCard
        do throws(AudioDeviceError) {
            card = try DuplexCard(
                loopback.configuration, bufferMilliseconds: loopback.bufferMilliseconds, keepsPairs: keepsPairs,
                solo: { SoloPlan(signal, rate: $0) })
        } catch {
            throw explain(error)
        }
        guard
            let stream = LoopbackStream(
                signal, followedBy: following, playbackRate: card.playback.rate, captureRate: card.capture.rate)
        else { throw LoopbackError(.cardUnusable, loopback.configuration, EINVAL) }
        configuration = loopback.configuration
        grownMilliseconds = loopback.isGrown ? loopback.bufferMilliseconds : nil
        channels = ChannelRecorder(signal, outputs: card.playback.channels, inputs: card.captureWidth)
        self.card = card
        self.stream = stream
        fill()
    }

    func start() throws(LoopbackError) {
        do throws(RealtimeError) {
            try card.start()
        } catch {
            throw LoopbackError(.cardUnusable, configuration, error.errno)
        }
    }

    func stop() { card.stop() }

    /// Feeds the card, and takes what it has captured, at 48 kHz.
    mutating func exchange() -> [Int16] {
        fill()
        while let note = card.nextNote() { stream.take(note) }
        var block = [Int16](repeating: 0, count: card.capture.rate / 2 * card.captureWidth)
        var room = block.mutableSpan
        let count = card.capture(into: &room)
        hasMore = count > 0
        guard hasMore else { return [] }
        guard card.captureWidth == 2 else { return stream.samples(of: Array(block.prefix(count))) }
        let samples = stream.samples(ofPairs: Array(block.prefix(count)))
        channels.add(samples.left, samples.right)
        return samples.mean
    }

    /// Up to four seconds ahead: what was made cannot be taken back, and need not be.
    private mutating func fill() {
        let piece = card.playback.rate / 10
        let ahead = card.playback.rate * (DuplexCard.ringSeconds - 4)
        while card.playSpace > ahead + piece {
            let frames = stream.frames(piece)
            guard card.play(frames.span) == frames.count else { return }
        }
    }

    /// The facts about the card.
    var facts: CardFacts {
        CardFacts(
            configuration: configuration, playback: card.playback, capture: card.capture, statistics: stream.statistics)
    }

    func describe(_ run: inout LoopbackRun) {
        let facts = facts
        let delay = run.measurement.timing.meanDelay.map { $0 * 1_000 / Double(AudioFormat.sampleRate) }
        run.facts = facts.facts + facts.factsOfStages(ofDelay: delay) + run.facts
        run.stages = facts.stages(ofDelay: delay)
        run.trouble = facts.trouble
        run.trouble?.ownGaps = stream.ownGaps(at: run.measurement.timing.events.map(\.position))
        if let grownMilliseconds { run.trouble?.extraAheadMilliseconds = facts.extraAhead(asked: grownMilliseconds) }
        run.periods = facts.periods
    }
}

/// How far ahead a card's buffer is filled: the default, or the requested value; and up to twice more, if the thread
/// that serves the card turns out to be delayed for longer.
struct BufferChoice {
    /// The value to request; nil for the default.
    private(set) var milliseconds: Double?
    /// The results with less.
    private(set) var facts: [LoopbackRun.Fact] = []
    private let isFixed: Bool
    private var triesLeft = 2

    /// The least and the most that is chosen.
    private static let least = 80.0
    private static let most = 300.0

    /// - Parameter asked: The user's value, which is not changed; nil for none.
    init(asked: Double?) { (milliseconds, isFixed) = (asked, asked != nil) }

    /// Whether another try would have more.
    private func canGrow(from ahead: Double) -> Bool { !isFixed && triesLeft > 0 && ahead < Self.most - 1 }

    /// Whether what happened so far is a reason to measure again with more.
    func isWorthAnother(_ trouble: CardTrouble) -> Bool {
        trouble.ownXruns > 0 && canGrow(from: trouble.aheadMilliseconds)
    }

    /// Chooses more: four times as much, and half as much again as the longest hold-up, within bounds.
    mutating func grow(after trouble: CardTrouble) {
        triesLeft -= 1
        let wanted = max(Self.least, 4 * trouble.aheadMilliseconds, 1.5 * trouble.longestHoldUpMilliseconds)
        let chosen = min(Self.most, (wanted / 10).rounded(.up) * 10)
        let before = milliseconds
        milliseconds = chosen
        facts.append(
            .init(
                "Measured again",
                "with \(Int(chosen)) ms ahead: with \(before.map { "\(Int($0)) ms" } ?? "as much as usual") the card ran empty, "
                    + "because this machine kept Handset's thread waiting for "
                    + "\(Int(trouble.longestHoldUpMilliseconds.rounded())) ms"))
    }
}
