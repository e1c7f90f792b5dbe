internal import AudioKit
internal import LoopbackAnalysis

/// Preliminary figures while a measurement runs, for display: the full analysis follows.
struct LiveTiming {
    private var tracker: CarrierTracker
    private var outbox: [CarrierFinding] = []
    private var timing = TimingSummary()
    private let signal: LoopbackSignal
    private var received = 0
    private var shown = 0
    private var meter = LevelMeter()
    private var heldPeak = LevelMeter.floorDBFS

    /// Samples from one state to the next: a fifth of a second.
    private static let interval = AudioFormat.sampleRate / 5

    init(_ signal: LoopbackSignal, maximumDelay: Int) {
        self.signal = signal
        let active = signal.sections.first { $0.kind == .carrier }?.range ?? 0..<0
        tracker = CarrierTracker(carrier: signal.carrier, active: active, maximumDelay: maximumDelay)
    }

    /// - Returns: Whether it is time to show something new.
    mutating func add(_ samples: [Int16]) -> Bool {
        received += samples.count
        meter.add(samples.span)
        tracker.add(samples.span, into: &outbox)
        for finding in outbox { timing.add(finding) }
        outbox.removeAll(keepingCapacity: true)
        return received >= shown + Self.interval
    }

    mutating func state(phase: String, _ total: Double) -> LiveView.State {
        defer {
            shown = received
            meter.reset()
        }
        heldPeak = max(heldPeak - 1, meter.peakDBFS)
        return LiveView.State(
            phase: phase, elapsedSeconds: Double(received) / Double(AudioFormat.sampleRate), totalSeconds: total,
            timing: timing, playedDBFS: signal.levelDBFS(at: received), capturedDBFS: meter.rmsDBFS,
            capturedPeakDBFS: heldPeak)
    }
}

extension LoopbackSignal {
    private func kind(at position: Int) -> Kind? { sections.first { $0.range.contains(position) }?.kind }

    /// What is played at `position`, in a few words.
    func phase(at position: Int) -> String {
        switch kind(at: position) {
        case .silence: "Listening to the noise floor"
        case .carrier: "Following the carrier"
        case .sweep: "Sweeping from 20 Hz to 20 kHz"
        case .solo(let channel): "Playing the \(channel.rawValue) channel alone"
        case .tone(let frequency): "Playing a tone of \(Int(frequency)) Hz"
        case nil: "Waiting for what comes last"
        }
    }

    /// The level that is played at `position`.
    func levelDBFS(at position: Int) -> Double {
        switch kind(at: position) {
        case .carrier, .solo: carrier.levelDBFS
        case .sweep, .tone: Self.steadyLevelDBFS
        case .silence, nil: LevelMeter.floorDBFS
        }
    }
}
