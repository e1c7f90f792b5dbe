internal import Glibc
internal import Core
internal import CallMedia
internal import Realtime
internal import SecureTransport
internal import Synchronization

/// The control side of one media worker: its thread, its sockets, and the rings to it. All methods may be called from
/// any thread, but each ring's other end by one thread only, as said there.
final class MediaWorker: ConnectionTransport {
    /// Address at which calls without their own socket receive media; the host may be the wildcard address.
    let localAddress: SocketAddress
    private let thread: RealtimeThread
    private let wakeup: WakeupHolder
    private let sockets: Mutex<SocketTable>
    private let commands: Mutex<CommandSide>
    private let events: Mutex<EventSide>
    private let forwarded: Mutex<ForwardedSide>

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

    private struct ForwardedSide: ~Copyable {
        var ring: SPSCRing<ForwardedDatagram>.Consumer
    }

    /// Commands and events that a worker's rings hold. Filled by bursts of new calls, drained within a frame.
    private static let ringCapacity = 1024
    /// STUN and DTLS that may wait for the connection thread; when it is full they are dropped and counted, and their
    /// senders repeat them.
    private static let forwardedCapacity = 128

    /// Signals with which a worker wakes other threads.
    struct Signals {
        var events: WakeupHandle
        var connections: WakeupHandle
    }

    /// Opens the sockets and starts the thread.
    init(
        number: Int, _ configuration: MediaEngineConfiguration, _ signals: Signals, costOfCall: Double,
        mixer: UnsafeMutablePointer<CardMixer>? = nil,
        onPriorityRefused: @escaping @Sendable (RealtimeError) -> Void
    ) throws(RealtimeError) {
        var address = configuration.bindAddress
        if address.port != 0 { address.port += UInt16(truncatingIfNeeded: number) }
        var set = try SocketSet()
        var book = SocketTable(try set.makeWatcher())
        localAddress = try book.openMain(address, in: &set)
        sockets = Mutex(book)
        let holder = try WakeupHolder()
        wakeup = holder
        let commandRing = SPSCRing<WorkerCommand>(capacity: Self.ringCapacity)
        let eventRing = SPSCRing<WorkerEvent>(capacity: Self.ringCapacity)
        let forwardedRing = SPSCRing<ForwardedDatagram>(capacity: Self.forwardedCapacity)
        commands = Mutex(CommandSide(ring: commandRing.producer))
        events = Mutex(EventSide(ring: eventRing.consumer))
        forwarded = Mutex(ForwardedSide(ring: forwardedRing.consumer))
        let ends = WorkerLoop.Ends(
            sockets: set, wakeup: holder.wakeup.handle, eventSignal: signals.events,
            connectionSignal: signals.connections, forwarded: forwardedRing.producer, commands: commandRing.consumer,
            events: eventRing.producer)
        let loop = unsafe LoopBox(
            WorkerLoop(ends, callLimit: configuration.callLimitPerWorker, costOfCall: costOfCall, mixer: mixer))
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

    /// Gives the worker a command that it must get, waiting for room if the ring is full.
    ///
    /// A full ring drains within a frame, and no media thread comes here, so waiting does no harm.
    func enqueue(_ command: WorkerCommand) {
        while !send(command) { usleep(500) }
    }

    /// Reports all waiting events. For the event thread.
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
        enqueue(.stop)
        thread.join()
    }
}

// MARK: For the connection thread

extension MediaWorker {
    func nextForwarded() -> ForwardedDatagram? { forwarded.withLock { $0.ring.pop() } }

    func use(_ path: MediaPath?, roundTripNanoseconds: Int64?, for call: MediaCallID) {
        enqueue(.use(call, path, roundTripNanoseconds: roundTripNanoseconds))
    }

    func install(_ keys: consuming SRTPPair, for call: MediaCallID) {
        let memory = UnsafeMutablePointer<SRTPPair>.allocate(capacity: 1)
        unsafe memory.initialize(to: keys)
        unsafe enqueue(.install(call, memory))
    }

    func setConnecting(_ isBeginning: Bool) { enqueue(.connecting(isBeginning)) }

    func openSocket(boundTo address: SocketAddress) throws(RealtimeError) -> Int {
        let slot = try sockets.withLock { book throws(RealtimeError) in
            let (slot, socket) = unsafe try book.open(address)
            unsafe enqueue(.addSocket(socket, slot: slot))
            return slot
        }
        return slot
    }

    /// Puts a call's own socket into a free slot.
    ///
    /// - Returns: Its slot.
    func adopt(_ socket: consuming UDPSocket, _ lease: PortLease) throws(RealtimeError) -> Int {
        var socket: UDPSocket? = consume socket
        return try sockets.withLock { book throws(RealtimeError) in
            guard let own = socket.take() else { return -1 }
            let (slot, memory) = unsafe try book.adopt(own, lease)
            unsafe enqueue(.addSocket(memory, slot: slot))
            return slot
        }
    }

    func openPair(holdingBack bytes: Int32, otherEnd: inout UDPSocket?) throws(RealtimeError) -> Int {
        try sockets.withLock { book throws(RealtimeError) in
            let (slot, socket) = unsafe try book.openPair(holdingBack: bytes, otherEnd: &otherEnd)
            unsafe enqueue(.addSocket(socket, slot: slot))
            return slot
        }
    }

    func closeSocket(_ slot: Int) {
        sockets.withLock { $0.retire(slot) }
        enqueue(.removeSocket(slot: slot))
    }

    func transmit(_ bytes: [UInt8], by path: DatagramPath) {
        sockets.withLock { $0.send(bytes, by: path) }
    }

    func boundAddress(_ slot: Int) -> SocketAddress? { sockets.withLock { $0.boundAddress(slot) } }

    /// Frees a socket that the thread has released.
    func free(_ socket: UnsafeMutablePointer<UDPSocket>) {
        let address = UInt(bitPattern: socket)
        sockets.withLock { $0.free(socketAt: address) }
    }
}
