internal import Bytes
internal import Datagrams
internal import Peering
internal import RTP
internal import Realtime
internal import Timekeeping

/// What the control side asks of a worker. Pointers change their owner with the message.
@safe
enum WorkerCommand: BitwiseCopyable {
    case add(UnsafeMutablePointer<MediaCall>)
    case remove(MediaCallID)
    case report(MediaCallID, into: UnsafeMutablePointer<MediaReport>)
    case stop
}

/// What a worker tells the control side. Pointers change their owner with the message.
@safe
enum WorkerEvent: BitwiseCopyable {
    /// The first authenticated packet of the peer came in.
    case mediaReceived(MediaCallID, at: Instant)
    /// Media flows both ways.
    case established(MediaCallID, at: Instant)
    case playbackEnded(MediaCallID)
    /// The peer said goodbye (RTCP BYE).
    case goodbyeReceived(MediaCallID)
    /// The report asked for was written, or not: the worker has no such call.
    case reported(UnsafeMutablePointer<MediaReport>, found: Bool)
    /// The worker is done with this call, and will not touch it again.
    case removed(UnsafeMutablePointer<MediaCall>)
    /// There was no room for this call.
    case refused(UnsafeMutablePointer<MediaCall>)
    case stopped(WorkerCounters)
}

/// A media worker's thread: owns the socket and runs its calls from datagram to samples.
///
/// It waits on its timer alone once all its calls are established: what arrives in between is read, with the kernel's
/// timestamps, when the next frame is due, and not before anybody could hear it. While a call is being set up it
/// handles datagrams as they come.
struct WorkerLoop: ~Copyable {
    private let socket: UDPSocket
    private let timer: DeadlineTimer
    private let wakeup: WakeupHandle
    private let eventSignal: WakeupHandle
    private var commands: SPSCRing<WorkerCommand>.Consumer
    private var events: SPSCRing<WorkerEvent>.Producer
    private var calls: RouteTable
    private var incoming = DatagramBatch()
    private var outgoing = DatagramBatch()
    private var scratch = FrameScratch()
    private var counters = WorkerCounters()
    private var isRunning = true
    private var hasNews = false

    init(
        socket: consuming UDPSocket, timer: consuming DeadlineTimer, wakeup: WakeupHandle,
        eventSignal: WakeupHandle, commands: consuming SPSCRing<WorkerCommand>.Consumer,
        events: consuming SPSCRing<WorkerEvent>.Producer, callLimit: Int
    ) {
        self.socket = socket
        self.timer = timer
        self.wakeup = wakeup
        self.eventSignal = eventSignal
        self.commands = commands
        self.events = events
        calls = RouteTable(capacity: callLimit)
    }

    /// Runs until told to stop. Calls left then are given back as removed.
    mutating func run() {
        while isRunning {
            timer.wait(until: nextDeadline, wakeup: wakeup, socket: watchedSocket)
            step(at: MonotonicClock.now)
        }
    }

    /// One turn: commands, datagrams in, frames, datagrams out, news.
    @_noAllocation @_noLocks
    mutating func step(at now: Instant) {
        counters.wakeups += 1
        wakeup.clear()
        receiveAll()
        while let command = commands.pop() { obey(command, at: now) }
        runCalls(at: now)
        removeLeavingCalls()
        flush()
        if hasNews {
            hasNews = false
            eventSignal.signal()
        }
    }

    private var nextDeadline: Instant? {
        @_noAllocation @_noLocks get {
            var earliest: Instant?
            for index in 0..<calls.count {
                let deadline = unsafe calls[index].pointee.nextDeadline
                if let known = earliest, known.nanoseconds <= deadline.nanoseconds { continue }
                earliest = deadline
            }
            return earliest
        }
    }

    private var watchedSocket: Int32? {
        @_noAllocation @_noLocks get {
            for index in 0..<calls.count where unsafe calls[index].pointee.isSettling { return socket.descriptor }
            return nil
        }
    }
}

// MARK: Commands

extension WorkerLoop {
    @_noAllocation @_noLocks
    private mutating func obey(_ command: WorkerCommand, at now: Instant) {
        switch command {
        case .add(let call):
            if calls.count < calls.capacity {
                unsafe calls.append(call)
            } else {
                unsafe emit(.refused(call))
            }
        case .remove(let id):
            guard let index = calls.index(of: id) else { return }
            if outgoing.isFull { flush() }
            unsafe calls[index].pointee.leave(at: now, batch: &outgoing)
            unsafe calls[index].pointee.isLeaving = true
        case .report(let id, let report):
            let index = calls.index(of: id)
            if let index { unsafe report.pointee = calls[index].pointee.report() }
            unsafe emit(.reported(report, found: index != nil))
        case .stop: stop(at: now)
        }
    }

    @_noAllocation @_noLocks
    private mutating func stop(at now: Instant) {
        for index in 0..<calls.count {
            if outgoing.isFull { flush() }
            unsafe calls[index].pointee.leave(at: now, batch: &outgoing)
            unsafe calls[index].pointee.isLeaving = true
        }
        removeLeavingCalls()
        flush()
        emit(.stopped(counters))
        isRunning = false
    }

    /// Gives back the calls that are to end; one that finds the ring full waits for the next turn.
    @_noAllocation @_noLocks
    private mutating func removeLeavingCalls() {
        var index = 0
        while index < calls.count {
            let call = unsafe calls[index]
            guard unsafe call.pointee.isLeaving, unsafe emit(.removed(call)) else {
                index += 1
                continue
            }
            calls.remove(at: index)
        }
    }

    @discardableResult
    @_noAllocation @_noLocks
    private mutating func emit(_ event: WorkerEvent) -> Bool {
        let taken = events.push(event)
        if !taken { counters.eventsLost += 1 }
        hasNews = true
        return taken
    }
}

// MARK: Media

extension WorkerLoop {
    @_noAllocation @_noLocks
    private mutating func receiveAll() {
        guard calls.count > 0 else { return }
        // Bounded, so that a flood cannot keep the frames from being run.
        for _ in 0..<8 {
            let error = socket.receive(into: &incoming)
            if error != 0 { counters.receiveErrors += 1 }
            for index in 0..<incoming.count { route(index) }
            counters.datagramsReceived += incoming.count
            if incoming.count < DatagramBatch.capacity { return }
        }
    }

    @_noAllocation @_noLocks
    private mutating func route(_ index: Int) {
        guard let position = Self.deliver(&incoming, index, to: calls, &counters) else { return }
        let call = unsafe calls[position]
        let news = unsafe call.pointee.peer.takeNews()
        guard !news.isEmpty else { return }
        let id = unsafe call.pointee.id
        if news.contains(.routeChanged) { calls.update(position) }
        if news.contains(.mediaReceived) { emit(.mediaReceived(id, at: incoming.arrival(index))) }
        if news.contains(.established) { emit(.established(id, at: MonotonicClock.now)) }
        if news.contains(.goodbyeReceived) { emit(.goodbyeReceived(id)) }
    }

    /// Gives a datagram to the call that it belongs to.
    ///
    /// - Returns: Where that call stands; nil if there is none, and the datagram is counted as dropped.
    @_noAllocation @_noLocks
    private static func deliver(
        _ batch: inout DatagramBatch, _ index: Int, to calls: borrowing RouteTable, _ counters: inout WorkerCounters
    ) -> Int? {
        let (source, arrival, truncated) = (batch.address(index), batch.arrival(index), batch.isTruncated(index))
        var datagram = batch.bytes(index)
        guard !truncated, let ssrc = senderSSRC(of: datagram) else {
            counters.datagramsNotMedia += 1
            return nil
        }
        guard let position = calls.index(ssrc: ssrc, source: source) else {
            counters.datagramsUnknown += 1
            return nil
        }
        unsafe calls[position].pointee.receive(&datagram, from: source, arrival: arrival)
        return position
    }

    @_noAllocation @_noLocks
    private mutating func runCalls(at now: Instant) {
        for index in 0..<calls.count {
            let call = unsafe calls[index]
            let deadline = unsafe call.pointee.nextDeadline
            guard deadline.nanoseconds <= now.nanoseconds, unsafe !call.pointee.isLeaving else {
                if unsafe call.pointee.isSettling { unsafe sendControl(of: call, at: now) }
                continue
            }
            counters.worstLatenessNanoseconds = max(
                counters.worstLatenessNanoseconds, deadline.nanoseconds(to: now))
            unsafe runFrames(of: call, at: now)
            if unsafe call.pointee.takePlaybackEnd() { emit(.playbackEnded(unsafe call.pointee.id)) }
        }
    }

    @_noAllocation @_noLocks
    private mutating func runFrames(of call: UnsafeMutablePointer<MediaCall>, at now: Instant) {
        unsafe call.pointee.prepareFrames(at: now)
        running: while true {
            if outgoing.isFull { flush() }
            switch unsafe call.pointee.runFrame(at: now, scratch: &scratch, batch: &outgoing) {
            case .nothing: break running
            case .runAgain: continue
            case .chooseSlot: unsafe call.pointee.place(nextFrame: secondFrame(of: call, after: now))
            }
        }
        unsafe sendControl(of: call, at: now)
    }

    @_noAllocation @_noLocks
    private mutating func sendControl(of call: UnsafeMutablePointer<MediaCall>, at now: Instant) {
        if outgoing.isFull { flush() }
        unsafe call.pointee.sendControlIfDue(at: now, into: &outgoing)
    }

    /// Where a call's second frame goes: the less loaded of the two next slots.
    @_noAllocation @_noLocks
    private func secondFrame(of call: UnsafeMutablePointer<MediaCall>, after first: Instant) -> Instant {
        let grid = unsafe call.pointee.grid
        let (early, late) = (grid.earliestSlot(after: first), grid.slot(following: grid.earliestSlot(after: first)))
        var (atEarly, atLate) = (0, 0)
        for index in 0..<calls.count where unsafe calls[index] != call {
            let deadline = unsafe calls[index].pointee.nextDeadline
            if grid.share(deadline, early) { atEarly += 1 }
            if grid.share(deadline, late) { atLate += 1 }
        }
        return atEarly <= atLate ? early : late
    }

    @_noAllocation @_noLocks
    private mutating func flush() { counters.datagramsNotSent += socket.send(&outgoing) }
}

// Looks at a datagram without changing it. Unoptimised code counts the end of such a view as a deallocation, though
// there is nothing to free, so this is not analysed; what it calls is.
@_semantics("no_performance_analysis") @inline(__always)
private func senderSSRC(of datagram: borrowing MutableRawSpan) -> UInt32? {
    switch DatagramKind(of: datagram.bytes) {
    case .rtp: datagram.bytes.uint32(at: 8)  // RFC 3550 §5.1
    case .rtcp: datagram.bytes.uint32(at: 4)  // RFC 3550 §6.4
    case .stun, .dtls, .turnChannel, .unknown: nil
    }
}
