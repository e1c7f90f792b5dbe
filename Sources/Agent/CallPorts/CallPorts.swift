// CallPorts: the sound of calls for the process that embeds the library, as async sequences and queues.

public import AudioPort
public import Realtime
internal import Synchronization
internal import Core
public import VoiceActivity

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

/// Events of ports for their device.
public enum PortNews: Sendable, Equatable {
    /// Who speaks has changed, and how turns were taken at this port of the call so far. A later port has a greater number.
    case turn(call: UInt64, port: UInt64, TurnNews, TurnSummary)
    /// What ``CallPorts/hearOut(call:)`` asked for is done.
    case heardOut(call: UInt64)
}

/// The ports of a device's calls in this process, and the one thread that serves them.
///
/// Nothing that the process does with a port makes another port, or a media worker, wait. All methods may be called from any
/// thread.
public final class CallPorts: Sendable {
    private let signal: PortSignal
    private let publish: @Sendable (PortNews) -> Void
    private let table = Mutex(Table())
    private let thread = Mutex<RealtimeThread?>(nil)

    private struct Table {
        var ports: [UInt64: PortBox] = [:]
        var lastNumber: UInt64 = 0
        var isFinished = false
    }

    /// Prepares for ports; the thread starts with the first.
    ///
    /// - Parameter publish: Receives the news, on the ports' thread, or on that of ``end(call:)``.
    public init(publish: @escaping @Sendable (PortNews) -> Void) throws(RealtimeError) {
        signal = try PortSignal()
        self.publish = publish
    }

    /// Opens a call's port.
    ///
    /// - Parameter call: The unique number of the call. A port that the call had before ends.
    public func open(_ plan: PortPlan, call: UInt64) throws(RealtimeError) -> OpenedPort {
        try thread.withLock { thread throws(RealtimeError) in
            guard thread == nil else { return }
            thread = try RealtimeThread(name: "ports") { [self] in run() }
        }
        let pair = AudioPort.pair(rate: plan.rate, signal: signal, turns: TurnPlan(plan.bargeIn))
        let number = table.withLock { table in
            table.lastNumber += 1
            return table.lastNumber
        }
        let box = PortBox(PortSession(pair.port, number: number))
        // What the one before was told last is published before anything of this one.
        end(call: call)
        table.withLock { $0.ports[call] = box }
        signal.signal()
        return OpenedPort(port: CallPort(call: call, plan.rate, box), line: pair.line)
    }

    /// Whether the call has a port that its owner has closed or forgotten.
    public func isClosed(call: UInt64) -> Bool {
        table.withLock { $0.ports[call] }?.change { session, _ in session.isClosed } ?? false
    }

    /// The caller has pressed a telephone key.
    public func sendDigit(_ digit: Character, heldFor time: Duration, to call: UInt64) {
        table.withLock { $0.ports[call] }?.change { session, wakes in
            session.tell(.digit(digit, heldFor: time), into: &wakes)
        }
    }

    /// What a call's port was given so far is played, and then ``PortNews/heardOut(call:)`` follows.
    public func hearOut(call: UInt64) {
        table.withLock { $0.ports[call] }?.change { session, wakes in session.hearOut(into: &wakes) }
    }

    /// The call is over, or its port leaves it. Does nothing if the call has none.
    public func end(call: UInt64) {
        guard let box = table.withLock({ $0.ports.removeValue(forKey: call) }) else { return }
        var news: [PortNews] = []
        box.change { session, wakes in
            // What was heard and played until now, which the thread has not seen yet.
            session.run(call: call, at: MonotonicClock.now, into: &wakes, &news)
            session.end(into: &wakes)
        }
        for item in news { publish(item) }
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
        signal.signal()
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    /// How long the thread waits for a frame, when a port may have to be told that a time has passed.
    private static let longestWait: Int32 = 100

    private func run() {
        while true {
            let isIdle = table.withLock { $0.ports.isEmpty }
            signal.wait(timeoutMilliseconds: isIdle ? nil : Self.longestWait)
            let now = MonotonicClock.now
            let current = table.withLock { $0 }
            if current.isFinished { return }
            for (call, box) in current.ports { serve(box, of: call, at: now) }
        }
    }

    private func serve(_ box: PortBox, of call: UInt64, at now: Instant) {
        var news: [PortNews] = []
        box.change { session, wakes in session.run(call: call, at: now, into: &wakes, &news) }
        for item in news { publish(item) }
    }
}

/// Both sides of a call's port.
@frozen
public struct OpenedPort: ~Copyable {
    /// For the process.
    public let port: CallPort
    /// For the media worker.
    public var line: PortLine

    init(port: CallPort, line: consuming PortLine) {
        self.port = port
        self.line = line
    }
}

/// A port's state, and the lock around it.
final class PortBox: Sendable {
    private let session: Mutex<PortSession>

    init(_ session: consuming sending PortSession) { self.session = Mutex(session) }

    /// Changes the state, and then wakes whoever waits for what has changed.
    @discardableResult
    func change<Result: Sendable>(_ act: (inout PortSession, inout [PortWake]) -> Result) -> Result {
        var wakes: [PortWake] = []
        let result = session.withLock { session in act(&session, &wakes) }
        for wake in wakes { wake.resume() }
        return result
    }
}
