internal import AudioKit
public import AudioPort
public import BotProbe
public import CallScript
internal import Glibc
public import Realtime
internal import Synchronization
internal import Core

/// A caller as a value: takes what is heard frame by frame, and answers with what it says and does.
public protocol FrameCaller: Sendable {
    /// Takes a frame, and says what follows: as many samples, a key, notes for a person, and whether the caller hangs up.
    mutating func hear(_ frame: [Int16]) -> (samples: [Int16], key: Character?, notes: [String], isOver: Bool)
    /// How many samples later than the frame with which it is given what is said leaves.
    mutating func setSendingDelay(_ samples: Int)
    /// The program that drives the caller was late.
    mutating func noteSlip()
    /// A key could not be pressed.
    mutating func refuseKeys(_ reason: String)
}

extension BotProbe: FrameCaller {
    /// Takes a frame as ``exchange(_:)`` does, without notes.
    public mutating func hear(_ frame: [Int16]) -> (samples: [Int16], key: Character?, notes: [String], isOver: Bool) {
        let step = exchange(frame)
        return (step.samples, step.key, [], step.isOver)
    }

    /// Nothing follows: a key without an answer is what the measurement reports.
    public mutating func refuseKeys(_ reason: String) {}
}

extension ScriptedCaller: FrameCaller {
    /// Takes a frame as ``exchange(_:)`` does.
    public mutating func hear(_ frame: [Int16]) -> (samples: [Int16], key: Character?, notes: [String], isOver: Bool) {
        let step = exchange(frame)
        return (step.samples, step.key, step.notes, step.isOver)
    }

    /// Nothing follows: its lengths are those of what it heard.
    public mutating func setSendingDelay(_ samples: Int) {}
    /// Nothing follows, for the same reason.
    public mutating func noteSlip() {}
}

/// The priority of the thread that runs a caller, as that of a measured card.
let callerPriority: Int32 = 20

/// A caller that is the program of a call.
///
/// It receives the decoded frames behind the call's jitter buffer. Its samples are sent with the next frame.
public final class CallProbe<Caller: FrameCaller>: @unchecked Sendable {
    // The thread that runs has the port and the caller to itself; what it leaves is read once it has ended. The line is taken
    // before it starts.
    private var port: AudioPort
    private var line: PortLine?
    /// As it is once ``run(press:note:)`` has returned.
    public var caller: Caller
    private let isStopped = Atomic<Bool>(false)
    private let keyFault = Mutex<String?>(nil)
    private var heardSamples = 0
    /// Samples of silence that the call has sent because nothing was there yet: the first frame, and more after a delay.
    private var silence = 0

    /// Makes a caller for one call.
    public init(_ caller: Caller) throws(RealtimeError) {
        let pair = AudioPort.pair(rate: .hz48000, signal: try PortSignal())
        port = pair.port
        let made = pair.line
        line = consume made
        self.caller = caller
    }

    /// The media worker's side, once.
    public func takeLine() -> PortLine? { line.take() }

    /// Ends ``run(press:note:)``.
    public func stop() { isStopped.store(true, ordering: .releasing) }

    /// A key could not be pressed.
    public func refuseKeys(_ reason: String) { keyFault.withLock { $0 = reason } }

    /// Speaks and listens until the caller is done or the call has ended.
    public func run(press: (Character) -> Void, note: (String) -> Void = { _ in }) {
        // Without permission this is an ordinary thread, and what it does late is withheld.
        try? RealtimeThread.makeCurrentRealtime(priority: callerPriority)
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
            if let fault = keyFault.withLock({ $0.take() }) { caller.refuseKeys(fault) }
            let step = caller.hear(heard)
            step.notes.forEach(note)
            if let key = step.key { press(key) }
            if step.isOver { return }
            if port.write(step.samples.span, at: MonotonicClock.now) < step.samples.count { caller.noteSlip() }
        }
    }

    /// Finds out how much later than its frame what is said leaves. A frame that has run since the samples were read makes the
    /// difference too small, never too large.
    private func align(to frameSamples: Int) {
        let unsaid = heardSamples - port.played
        guard unsaid > silence else { return }
        if silence > 0 { caller.noteSlip() }
        silence = unsaid
        // What a frame has was said before the frame is sent.
        caller.setSendingDelay(silence - frameSamples)
    }
}
