internal import CRealtime
internal import Datagrams
internal import Realtime
internal import Synchronization

/// The control side of one media worker: its thread, and the two rings to it.
final class MediaWorker: Sendable {
    let localAddress: SocketAddress
    private let thread: RealtimeThread
    private let wakeup: WakeupHolder
    private let commands: Mutex<CommandSide>
    private let events: Mutex<EventSide>

    /// Keeps the wake-up open as long as the worker may be signalled.
    private final class WakeupHolder: Sendable {
        let wakeup: Wakeup
        init() throws(RealtimeError) { wakeup = try Wakeup() }
    }

    private struct CommandSide: ~Copyable {
        var ring: SPSCRing<WorkerCommand>.Producer
    }

    private struct EventSide: ~Copyable {
        var ring: SPSCRing<WorkerEvent>.Consumer
        var final: WorkerCounters?
    }

    /// Commands and events that a worker's rings hold. Filled by bursts of new calls, drained within a frame.
    private static let ringCapacity = 1024

    /// Opens the socket and starts the thread.
    init(
        number: Int, _ configuration: MediaEngineConfiguration, eventSignal: WakeupHandle,
        onPriorityRefused: @escaping @Sendable (RealtimeError) -> Void
    ) throws(RealtimeError) {
        var address = configuration.bindAddress
        if address.port != 0 { address.port += UInt16(truncatingIfNeeded: number) }
        let socket = try UDPSocket(boundTo: address)
        localAddress = socket.localAddress
        let holder = try WakeupHolder()
        wakeup = holder
        let commandRing = SPSCRing<WorkerCommand>(capacity: Self.ringCapacity)
        let eventRing = SPSCRing<WorkerEvent>(capacity: Self.ringCapacity)
        commands = Mutex(CommandSide(ring: commandRing.producer))
        events = Mutex(EventSide(ring: eventRing.consumer))
        let loop = LoopBox(
            WorkerLoop(
                socket: socket, timer: try DeadlineTimer(), wakeup: holder.wakeup.handle, eventSignal: eventSignal,
                commands: commandRing.consumer, events: eventRing.producer,
                callLimit: configuration.callLimitPerWorker))
        let priority = configuration.realtimePriority
        thread = try RealtimeThread(name: "media-\(number)") {
            if let priority {
                do throws(RealtimeError) {
                    try RealtimeThread.makeCurrentRealtime(priority: priority)
                } catch {
                    onPriorityRefused(error)
                }
            }
            loop.run()
        }
    }

    /// Hands the loop to its thread.
    private final class LoopBox: @unchecked Sendable {
        // Made before the thread starts, and touched by it alone from then on.
        private var loop: WorkerLoop

        init(_ loop: consuming WorkerLoop) { self.loop = loop }
        func run() { loop.run() }
    }

    /// Gives the worker a command.
    ///
    /// - Returns: False if the ring is full; nothing was given.
    func send(_ command: WorkerCommand) -> Bool {
        guard commands.withLock({ $0.ring.push(command) }) else { return false }
        wakeup.wakeup.signal()
        return true
    }

    /// Tells all events that wait.
    ///
    /// - Returns: False once the worker has stopped.
    func drainEvents(_ tell: (WorkerEvent) -> Void) -> Bool {
        while let event = events.withLock({ $0.ring.pop() }) {
            if case .stopped(let counters) = event { events.withLock { $0.final = counters } }
            tell(event)
        }
        return finalCounters == nil
    }

    /// The counters, once the worker has stopped.
    var finalCounters: WorkerCounters? { events.withLock { $0.final } }

    /// Ends the worker's calls and its thread.
    func stop() {
        while !send(.stop) {}
        thread.join()
    }
}
