public import AudioDevices
internal import AudioKit
internal import Glibc
public import LoopbackAnalysis
public import LoopbackReport
internal import Realtime
internal import Timekeeping

/// A measurement of a sound card, or of two of which one hears the other.
public struct CardLoopback: Sendable {
    /// The cards; both directions must be named.
    public var configuration: AudioDeviceConfiguration
    /// How far the buffer to play from is filled, in milliseconds; nil for two periods.
    public var bufferMilliseconds: Double?
    /// How long the carrier lasts, in seconds: how long gaps are watched for.
    public var carrierSeconds = 10.0
    /// The longest delay that is looked for, in milliseconds.
    public var maximumDelayMilliseconds = 2_000
    /// When it begins, as ISO 8601 has it.
    public var startedAt: String

    /// What is told while it runs.
    public enum Progress: Sendable {
        /// What stands on the live view now; some five times a second.
        case state(LiveView.State)
        /// A minute of a soak is over.
        case minute(SoakMonitor.Minute)
        /// The card went away (errno), or is back (nil).
        case card(absence: Int32?)
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
    ///   - mustStop: Asked some fifty times a second.
    public func measure(
        follows: Bool, mustStop: () -> Bool, tell: (Progress) -> Void
    ) throws(LoopbackError) -> LoopbackRun {
        let signal = LoopbackSignal(carrierSeconds: carrierSeconds)
        let maximumDelay = AudioFormat.samples(milliseconds: maximumDelayMilliseconds)
        var session = try CardSession(self, signal)
        var recording: [Int16] = []
        recording.reserveCapacity(signal.count + maximumDelay)
        var live = follows ? LiveTiming(signal, maximumDelay: maximumDelay) : nil
        // What is played last comes back as much later as the delay is; the signal ends with some silence of its own.
        let end = signal.count + max(AudioFormat.sampleRate / 2, maximumDelay / 2)
        let total = Double(signal.count) / Double(AudioFormat.sampleRate)
        try session.start()
        while recording.count < end, !mustStop() {
            let samples = session.exchange()
            recording += samples
            if let absence = session.tape.statistics.absence { throw LoopbackError(.cardLost, configuration, absence) }
            if live?.add(samples) == true, let state = live?.state(phase: signal.phase(at: recording.count), total) {
                tell(.state(state))
            }
        }
        session.stop()
        var measurement = LoopbackAnalyser(signal, maximumDelay: maximumDelay).analyse(recording)
        measurement.timing = measurement.timing.aligned(to: session.tape.alignment)
        var run = LoopbackRun(mode: .device, startedAt: startedAt, measurement: measurement)
        session.describe(&run)
        return run
    }

    /// Plays the carrier for as long as it is not told to stop.
    ///
    /// - Parameters:
    ///   - seconds: How long; nil until `mustStop`.
    ///   - keep: Is given the worst moments so far whenever they are others than before, at the end of a minute and at
    ///     the end; answers with the files' names.
    public func soak(
        seconds: Double?, mustStop: () -> Bool, keep: ([SoakMonitor.Moment]) throws(LoopbackError) -> [String],
        tell: (Progress) -> Void
    ) throws(LoopbackError) -> LoopbackRun {
        var soak = SoakTape(maximumDelay: AudioFormat.samples(milliseconds: maximumDelayMilliseconds))
        var session = try CardSession(self, soak.signal)
        let end = seconds.map { Int($0 * Double(AudioFormat.sampleRate)) } ?? Int.max
        var absence: Int32?
        try session.start()
        while soak.captured < end, !mustStop() {
            let samples = session.exchange()
            for minute in soak.add(samples, &session.tape) {
                tell(.minute(minute))
                if soak.hasNewMoments { soak.files = try keep(soak.takeMoments()) }
            }
            if session.tape.statistics.absence != absence {
                absence = session.tape.statistics.absence
                tell(.card(absence: absence))
            }
            if let state = soak.state(everySamples: 9_600, total: seconds) { tell(.state(state)) }
        }
        session.stop()
        if let minute = soak.finish(&session.tape) { tell(.minute(minute)) }
        soak.files = try keep(soak.takeMoments())
        var run = soak.run(startedAt: startedAt, alignment: session.tape.alignment)
        session.describe(&run)
        return run
    }
}

/// A card at work: its thread, and the tape that it is fed from.
struct CardSession: ~Copyable {
    var tape: LoopbackTape
    private let card: DuplexCard
    private let configuration: AudioDeviceConfiguration

    init(_ loopback: CardLoopback, _ signal: LoopbackSignal) throws(LoopbackError) {
        let card: DuplexCard
        do throws(AudioDeviceError) {
            card = try DuplexCard(loopback.configuration, bufferMilliseconds: loopback.bufferMilliseconds)
        } catch {
            throw LoopbackError(error)
        }
        guard
            let tape = LoopbackTape(signal, playbackRate: card.playback.rate, captureRate: card.capture.rate)
        else { throw LoopbackError(.cardUnusable, loopback.configuration, EINVAL) }
        configuration = loopback.configuration
        self.card = card
        self.tape = tape
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

    /// Feeds the card, and takes what it has captured, at 48 kHz; waits a little if there is nothing to do.
    mutating func exchange() -> [Int16] {
        fill()
        while let note = card.nextNote() { tape.take(note) }
        var block = [Int16](repeating: 0, count: card.capture.rate / 2)
        var room = block.mutableSpan
        let count = card.capture(into: &room)
        // A fiftieth of a second, of which the rings hold hundreds.
        guard count > 0 else {
            usleep(20_000)
            return []
        }
        return tape.samples(of: Array(block.prefix(count)))
    }

    /// Up to four seconds ahead: what was made cannot be taken back, and need not be.
    private mutating func fill() {
        let piece = card.playback.rate / 10
        let ahead = card.playback.rate * (DuplexCard.ringSeconds - 4)
        while card.playSpace > ahead + piece {
            let frames = tape.frames(piece)
            guard card.play(frames.span) == frames.count else { return }
        }
    }

    func describe(_ run: inout LoopbackRun) {
        let facts = CardFacts(
            configuration: configuration, playback: card.playback, capture: card.capture, statistics: tape.statistics)
        run.facts = facts.facts + run.facts
        run.stages = facts.stages(ofDelay: run.measurement.timing.meanDelay.map { $0 * 1_000 / 48_000 })
    }
}
