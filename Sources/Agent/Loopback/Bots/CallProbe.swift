internal import AudioKit
public import AudioPort
public import BotProbe
internal import Glibc
public import Realtime
internal import Synchronization
internal import Core

/// A measuring caller that is the program of a call.
///
/// What it hears is what the call's jitter buffer and decoder have made, frame by frame. What it says leaves with the next frame.
public final class CallProbe: @unchecked Sendable {
    // The thread that runs has the port and the caller to itself; what it leaves is read once it has ended. The line is taken
    // before it starts.
    private var port: AudioPort
    private var line: PortLine?
    private var probe: BotProbe
    /// Of the thread that runs a caller, as that of a measured card.
    static let priority: Int32 = 20
    private let isStopped = Atomic<Bool>(false)
    private var heardSamples = 0
    /// Samples of silence that the call has sent because nothing was there yet: the first frame, and more after a delay.
    private var silence = 0

    /// Makes a caller for one call.
    public init(_ probe: BotProbe) throws(RealtimeError) {
        let pair = AudioPort.pair(rate: .hz48000, signal: try PortSignal())
        port = pair.port
        let made = pair.line
        line = consume made
        self.probe = probe
    }

    /// The media worker's side, once.
    public func takeLine() -> PortLine? { line.take() }

    /// What was said and heard, once ``run(press:)`` has returned.
    public var recording: ProbeRecording { probe.recording }

    /// Ends ``run(press:)``.
    public func stop() { isStopped.store(true, ordering: .releasing) }

    /// The other side has hung up; after ``run(press:)`` has returned.
    public func noteHangUp() { probe.hangUp() }

    /// Speaks and listens until the caller is done or the call is over.
    public func run(press: (Character) -> Void) {
        // Without permission this is an ordinary thread, and what it does late is withheld.
        try? RealtimeThread.makeCurrentRealtime(priority: Self.priority)
        var events: [PlaybackEvent] = []
        while !isStopped.load(ordering: .acquiring), !port.isOver {
            var heard: [Int16] = []
            port.read(into: &heard)
            events.removeAll()
            port.update(at: MonotonicClock.now, isFinal: false, into: &events)
            guard !heard.isEmpty else {
                usleep(1_000)
                continue
            }
            heardSamples += heard.count
            align(to: heard.count)
            let step = probe.exchange(heard)
            if let key = step.key { press(key) }
            if step.isOver { return }
            if port.write(step.samples.span, at: MonotonicClock.now) < step.samples.count { probe.noteSlip() }
        }
    }

    /// Finds out how much later than its frame what is said leaves. A frame that has run since the samples were read makes the
    /// difference too small, never too large.
    private func align(to frameSamples: Int) {
        let unsaid = heardSamples - port.played
        guard unsaid > silence else { return }
        if silence > 0 { probe.noteSlip() }
        silence = unsaid
        // What a frame has was said before the frame is sent.
        probe.setSendingDelay(silence - frameSamples)
    }
}
