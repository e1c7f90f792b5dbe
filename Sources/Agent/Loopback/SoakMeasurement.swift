internal import AudioKit
internal import LoopbackAnalysis

/// Hours of carrier, minute by minute.
struct SoakMeasurement {
    let signal = LoopbackSignal(soakWith: Carrier())
    private var monitor: SoakMonitor
    private(set) var captured = 0
    private var minutes: [SoakMonitor.Minute] = []
    private var minutesLeftOut = 0
    private var meter = LevelMeter()
    private var heldPeak = LevelMeter.floorDBFS
    private var shown = 0
    private var savedMoments: [SoakMonitor.Moment] = []
    var files: [String] = []

    /// Minutes kept for the report: a week of them.
    private static let minuteLimit = 7 * 24 * 60

    init(maximumDelay: Int) {
        monitor = SoakMonitor(signal, maximumDelay: maximumDelay, lead: AudioFormat.sampleRate)
    }

    /// Takes what was captured; answers with the minutes that ended in it.
    mutating func add(_ samples: [Int16], _ stream: inout LoopbackStream) -> [SoakMonitor.Minute] {
        captured += samples.count
        meter.add(samples.span)
        var ended: [SoakMonitor.Minute] = []
        monitor.add(samples.span, into: &ended)
        return ended.map { keep($0, &stream) }
    }

    private mutating func keep(_ minute: SoakMonitor.Minute, _ stream: inout LoopbackStream) -> SoakMonitor.Minute {
        let minute = minute.aligned(to: stream.takeRecentAlignment())
        if minutes.count < Self.minuteLimit { minutes.append(minute) } else { minutesLeftOut += 1 }
        return minute
    }

    /// Ends the soak; returns the unfinished minute, unless nothing of it was heard.
    mutating func finish(_ stream: inout LoopbackStream) -> SoakMonitor.Minute? {
        let last = monitor.finish()
        let length = captured - last.number * 60 * AudioFormat.sampleRate
        return length < AudioFormat.sampleRate ? nil : keep(last, &stream)
    }

    /// Whether the worst moments are others than those taken last.
    var hasNewMoments: Bool { monitor.moments != savedMoments }

    mutating func takeMoments() -> [SoakMonitor.Moment] {
        savedMoments = monitor.moments
        return savedMoments
    }

    /// The state for the live view, if enough samples have arrived since the last.
    mutating func state(everySamples interval: Int, total: Double?) -> LiveView.State? {
        guard captured >= shown + interval else { return nil }
        defer {
            shown = captured
            meter.reset()
        }
        heldPeak = max(heldPeak - 1, meter.peakDBFS)
        return LiveView.State(
            phase: "Soaking", elapsedSeconds: Double(captured) / Double(AudioFormat.sampleRate), totalSeconds: total,
            timing: monitor.timing, playedDBFS: signal.levelDBFS(at: captured), capturedDBFS: meter.rmsDBFS,
            capturedPeakDBFS: heldPeak)
    }

    /// All of it.
    func run(startedAt: String, alignment: BlockAlignment) -> LoopbackRun {
        var measurement = LoopbackMeasurement(
            timing: monitor.timing.aligned(to: alignment), capturedSamples: captured,
            levelDBFS: monitor.meter.rmsDBFS, peakDBFS: monitor.meter.peakDBFS, clipping: monitor.clipping)
        measurement.carrierDBFS = signal.carrier.levelDBFS
        var run = LoopbackRun(mode: .soak, startedAt: startedAt, measurement: measurement)
        run.minutes = minutes
        run.momentFiles = files
        if minutesLeftOut > 0 { run.facts.append(.init("Minutes not in the table", "\(minutesLeftOut)")) }
        return run
    }
}
