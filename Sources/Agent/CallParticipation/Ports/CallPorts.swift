public import AudioPort
public import CallControl
public import Realtime
internal import Synchronization
internal import Core

/// What a process wants of a call's sound.
public struct PortPlan: Sendable, Equatable {
    /// Samples a second, both ways.
    public var rate: PortRate
    /// Whether the caller's speech interrupts what is written.
    public var bargeIn: BargeInMode

    /// Makes a plan.
    public init(rate: PortRate = .hz16000, bargeIn: BargeInMode = .off) {
        self.rate = rate
        self.bargeIn = bargeIn
    }
}

/// The ports of a device's calls in this process, and the one thread that serves them.
///
/// Nothing that the process does with a port makes another port, or a media worker, wait. All methods may be called from any
/// thread.
public final class CallPorts: CallParticipant {
    /// A port.
    public let kind = ParticipantKind.port
    /// The process is always ready.
    public let delaysAnswer = false
    private let publish: @Sendable (ParticipantEvent) -> Void
    private let table = Mutex(Table())
    private let server = Mutex<Server?>(nil)
    private let lines = HeldLines()

    private struct Table {
        var ports: [CallID: PortBox] = [:]
        var provider: Provider?
        var isFinished = false
    }

    private struct Provider {
        let plan: PortPlan
        let converse: @Sendable (CallPort) async -> Void
    }

    /// The thread, and what wakes it.
    private struct Server {
        let signal: PortSignal
        let thread: RealtimeThread
    }

    /// Prepares for ports; the thread starts with the first.
    ///
    /// - Parameter publish: Receives the events, on the ports' thread, or on that of ``end(_:_:)``, while a port is locked: it does not
    ///   wait, and uses no port.
    public init(publish: @escaping @Sendable (ParticipantEvent) -> Void) { self.publish = publish }

    /// Opens a port of this plan for each call that begins, and runs `converse` with it as a task.
    public func provide(_ plan: PortPlan, _ converse: @escaping @Sendable (CallPort) async -> Void) {
        table.withLock { $0.provider = Provider(plan: plan, converse: converse) }
    }

    /// Whether calls that begin get a port.
    public var areProvided: Bool { table.withLock { $0.provider != nil } }

    /// Opens the call's port, if ports are provided, and begins to converse.
    public func begin(_ call: ParticipantCall) throws(RealtimeError) {
        guard let provider = table.withLock({ $0.provider }) else { return }
        let port = try open(provider.plan, for: call.id)
        Task { await provider.converse(port) }
    }

    /// Opens a port of a call. An earlier port of the call ends.
    public func open(_ plan: PortPlan, for call: CallID) throws(RealtimeError) -> CallPort {
        let signal = try startIfNeeded()
        let pair = AudioPort.pair(rate: plan.rate, signal: signal, turns: TurnPlan(plan.bargeIn))
        let box = PortBox(PortSession(pair.port))
        if let earlier = table.withLock({ $0.ports.removeValue(forKey: call) }) { end(earlier, of: call) }
        lines.hold(pair.line, of: call)
        table.withLock { $0.ports[call] = box }
        signal.signal()
        return CallPort(call: call, plan.rate, box)
    }

    /// The line of a call's port for its media worker, once; nil if the call has none.
    public func attach(to call: CallID) -> PortLine? { lines.take(of: call) }

    /// Whether the call has a port that its owner has closed or forgotten.
    public func isClosed(_ call: CallID) -> Bool {
        table.withLock { $0.ports[call] }?.change { session, _ in session.isClosed } ?? false
    }

    /// Reports a telephone key as ``PortEvent/digit(_:heldFor:)``.
    public func sendDigit(_ digit: Character, heldFor time: Duration, to call: CallID) {
        table.withLock { $0.ports[call] }?.change { session, wakes in
            session.tell(.digit(digit, heldFor: time), into: &wakes)
        }
    }

    /// Does nothing: the process receives the device's events.
    public func noteTransfer(to target: UserID, _ progress: CallTransfer.Progress, of call: CallID) {}

    /// Does nothing: a port requests nothing.
    public func refuse(_ request: ParticipantRequest, of call: CallID, _ why: String) {}

    /// Plays what the call's port was given so far.
    public func hearOut(_ call: CallID) {
        table.withLock { $0.ports[call] }?.change { session, wakes in session.hearOut(into: &wakes) }
    }

    /// Ends the call's port.
    public func end(_ call: CallID, _ end: ParticipationEnd) {
        lines.drop(of: call)
        guard let box = table.withLock({ $0.ports.removeValue(forKey: call) }) else { return publish(.left(call)) }
        self.end(box, of: call)
    }

    private func end(_ box: PortBox, of call: CallID) {
        // All events of a port come before this, because each is published under its lock.
        box.change { session, wakes in
            // What was heard and played until now, which the thread has not seen yet.
            serve(&session, of: call, at: MonotonicClock.now, into: &wakes)
            session.end(into: &wakes)
            publish(.left(call))
        }
    }

    /// Ends all ports and the thread.
    public func finish() {
        let left = table.withLock { table in
            defer {
                table.ports = [:]
                table.isFinished = true
            }
            return table.ports.values
        }
        for box in left { box.change { session, wakes in session.end(into: &wakes) } }
        server.withLock { server in
            server?.signal.signal()
            server?.thread.join()
            server = nil
        }
    }

    private func startIfNeeded() throws(RealtimeError) -> PortSignal {
        try server.withLock { server throws(RealtimeError) in
            if let server { return server.signal }
            let signal = try PortSignal()
            let thread = try RealtimeThread(name: "ports") { [self] in run(signal) }
            server = Server(signal: signal, thread: thread)
            return signal
        }
    }

    /// How long the thread waits for a frame while a port has a deadline.
    private static let longestWait: Int32 = 100

    private func run(_ signal: PortSignal) {
        while true {
            let isIdle = table.withLock { $0.ports.isEmpty }
            signal.wait(timeoutMilliseconds: isIdle ? nil : Self.longestWait)
            let now = MonotonicClock.now
            let current = table.withLock { $0 }
            if current.isFinished { return }
            for (call, box) in current.ports {
                box.change { session, wakes in serve(&session, of: call, at: now, into: &wakes) }
            }
        }
    }

    private func serve(
        _ session: inout PortSession, of call: CallID, at now: Instant, into wakes: inout [PortWake]
    ) {
        var events: [ParticipantEvent] = []
        session.run(call: call, at: now, into: &wakes, &events)
        for event in events { publish(event) }
    }
}

/// A port's state, and the lock around it.
final class PortBox: Sendable {
    private let session: Mutex<PortSession>

    init(_ session: consuming sending PortSession) { self.session = Mutex(session) }

    /// Changes the state, and then wakes the tasks that wait for the change.
    @discardableResult
    func change<Result: Sendable>(_ act: (inout PortSession, inout [PortWake]) -> Result) -> Result {
        var wakes: [PortWake] = []
        let result = session.withLock { session in act(&session, &wakes) }
        for wake in wakes { wake.resume() }
        return result
    }
}
