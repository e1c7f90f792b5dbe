internal import Core
internal import CallMedia
internal import RTP
internal import Realtime
internal import SecureTransport

/// A media worker's thread: owns the sockets and runs its calls from datagram to samples.
///
/// Once media flows in all its calls it waits only for its timer: datagrams that arrive in between are read, with the
/// kernel's timestamps, when the next frame is due, because nothing could be played earlier. While a call is being set
/// up it handles datagrams as they arrive.
@safe
struct WorkerLoop: ~Copyable {
    private var sockets: SocketSet
    private let wakeup: WakeupHandle
    private let eventSignal: WakeupHandle
    private let connectionSignal: WakeupHandle
    private var forwarded: SPSCRing<ForwardedDatagram>.Producer
    private var commands: SPSCRing<WorkerCommand>.Consumer
    private var events: SPSCRing<WorkerEvent>.Producer
    var calls: RouteTable
    private var incoming = DatagramBatch()
    private var outgoing = DatagramBatch()
    private var early = EarlyDatagrams()
    private var scratch = FrameScratch()
    private var counters = WorkerCounters()
    private var governor: LoadGovernor
    /// How often datagrams may still be tried on unlikely calls in this turn.
    private var guessesLeft = 0
    /// Of this thread, until its first call.
    private var faultsBefore: Int?
    private var isRunning = true
    private var hasEvents = false
    private var hasForwarded = false
    /// Connections being made.
    private var connecting = 0
    /// The sound card's, on the worker whose calls may use it; its owner frees it after the thread has ended.
    let mixer: UnsafeMutablePointer<CardMixer>?

    /// What a worker's rings and sockets are.
    struct Ends: ~Copyable {
        var sockets: SocketSet
        var wakeup: WakeupHandle
        /// Signalled when there are events.
        var eventSignal: WakeupHandle
        /// Signalled when there are forwarded datagrams.
        var connectionSignal: WakeupHandle
        var forwarded: SPSCRing<ForwardedDatagram>.Producer
        var commands: SPSCRing<WorkerCommand>.Consumer
        var events: SPSCRing<WorkerEvent>.Producer
    }

    init(
        _ ends: consuming Ends, callLimit: Int, costOfCall: Double = WorkerLoad().costOfCall,
        mixer: UnsafeMutablePointer<CardMixer>? = nil
    ) {
        governor = LoadGovernor(costOfCall: costOfCall)
        unsafe self.mixer = mixer
        sockets = ends.sockets
        wakeup = ends.wakeup
        eventSignal = ends.eventSignal
        connectionSignal = ends.connectionSignal
        forwarded = ends.forwarded
        commands = ends.commands
        events = ends.events
        calls = RouteTable(capacity: callLimit)
    }

    /// Runs until `stop`. The remaining calls are then returned as removed.
    mutating func run() {
        while isRunning { turn() }
    }

    /// Waits for what comes next, and does it.
    @_noAllocation @_noLocks
    mutating func turn() {
        let (start, deadline) = (MonotonicClock.now, nextDeadline)
        let outcome = DeadlineWait.wait(until: deadline, wakeup: wakeup, socket: watchedSocket)
        // A command that comes in after the wait ends the next one.
        if outcome.isSignalled, !wakeup.clear() { counters.readsInVain += 1 }
        let now = MonotonicClock.now
        governor.waited(from: start, until: deadline, wokenAt: now)
        step(at: now)
    }

    /// One turn: commands, datagrams in, frames, datagrams out, events.
    @_noAllocation @_noLocks
    mutating func step(at now: Instant) {
        counters.wakeups += 1
        receiveAll()
        while let command = commands.pop() { handle(command, at: now) }
        takeTicks(at: now)
        runCalls(at: now)
        removeLeavingCalls()
        flush()
        measureLoad(at: now)
        if hasEvents {
            hasEvents = false
            eventSignal.signal()
        }
        if hasForwarded {
            hasForwarded = false
            connectionSignal.signal()
        }
    }

    private var nextDeadline: Instant? {
        @_noAllocation @_noLocks get {
            var earliest = unsafe mixer?.pointee.nextTick
            for index in 0..<calls.count {
                let deadline = unsafe calls[index].pointee.nextWakeup
                if let known = earliest, known.nanoseconds <= deadline.nanoseconds { continue }
                earliest = deadline
            }
            return earliest
        }
    }

    private var watchedSocket: Int32? {
        @_noAllocation @_noLocks get {
            if connecting > 0 { return sockets.descriptor }
            for index in 0..<calls.count where unsafe calls[index].pointee.isSettling { return sockets.descriptor }
            return nil
        }
    }
}

// MARK: Commands

extension WorkerLoop {
    @_noAllocation @_noLocks
    private mutating func handle(_ command: WorkerCommand, at now: Instant) {
        switch command {
        case .add(let call):
            if case .none = faultsBefore { faultsBefore = ThreadMemory.pageFaults }
            if calls.count < calls.capacity {
                unsafe calls.append(call)
                takeEvents(of: calls.count - 1, at: now)
            } else {
                unsafe emit(.refused(call))
            }
        case .remove(let id):
            guard let index = calls.index(of: id) else { return }
            noteSound(of: index)
            if outgoing.isFull { flush() }
            unsafe calls[index].pointee.leave(
                at: now, wallNanoseconds: MonotonicClock.wallNanoseconds, batch: &outgoing)
            unsafe calls[index].pointee.isLeaving = true
        case .report(let id, let report):
            let index = calls.index(of: id)
            if let index {
                noteSound(of: index)
                unsafe report.pointee = calls[index].pointee.report()
            }
            unsafe emit(.reported(report, found: index != nil))
        case .use(let id, let path, let roundTrip):
            guard let index = calls.index(of: id) else { return }
            unsafe calls[index].pointee.use(path, roundTripNanoseconds: roundTrip, at: now)
            calls.update(index)
            takeEvents(of: index, at: now)
        case .redirect(let id, let remote, let control):
            guard let index = calls.index(of: id) else { return }
            unsafe calls[index].pointee.redirect(to: remote, control: control, at: now)
            calls.update(index)
            takeEvents(of: index, at: now)
        case .answered(let id):
            guard let index = calls.index(of: id) else { return }
            unsafe calls[index].pointee.answered()
        case .beginFlow(let id):
            guard let index = calls.index(of: id) else { return }
            unsafe calls[index].pointee.beginFlow()
            takeEvents(of: index, at: now)
        case .liftSoundLimit(let id):
            guard let index = calls.index(of: id) else { return }
            unsafe calls[index].pointee.liftSoundLimit()
        case .networkChanged:
            for index in 0..<calls.count { unsafe calls[index].pointee.releaseLocalAddress() }
        case .install(let id, let pair):
            if let index = calls.index(of: id) {
                unsafe calls[index].pointee.install(&pair.pointee, at: now)
                early.give(to: index, of: calls, at: now)
                takeEvents(of: index, at: now)
            }
            unsafe emit(.replaced(pair))
        case .change(let id, let change):
            guard let index = calls.index(of: id) else {
                unsafe emit(.changed(change))
                return
            }
            if let rest = unsafe calls[index].pointee.change(change) { unsafe emit(.changed(rest)) }
        case .changeAudio(let id, let change):
            if let index = calls.index(of: id) { unsafe calls[index].pointee.change(change) }
            unsafe emit(.audioChanged(change))
        case .setDirection(let id, let sends, let receives):
            guard let index = calls.index(of: id) else { return }
            unsafe calls[index].pointee.setDirection(sends: sends, receives: receives)
        case .press(let id, let code):
            guard let index = calls.index(of: id) else { return }
            unsafe calls[index].pointee.press(code)
        case .addSocket(let socket, let slot): unsafe sockets.insert(socket, at: slot)
        case .removeSocket(let slot):
            flush()
            if let socket = unsafe sockets.remove(at: slot) { unsafe emit(.socketRemoved(socket)) }
        case .sound(let order): unsafe mixer?.pointee.handle(order)
        case .connecting(let isBeginning): connecting += isBeginning ? 1 : -1
        case .warmUp: warmUp()
        case .pulse: emit(.pulse(overdueNanoseconds: overdueNanoseconds(at: now)))
        case .stop: stop(at: now)
        }
    }

    /// Writes to what only this thread writes to and may not have yet: some 100 pages, in some 100 µs.
    @_noAllocation @_noLocks
    private mutating func warmUp() {
        ThreadMemory.touchStack(bytes: Self.stackInUse)
        incoming.touch()
        outgoing.touch()
        events.touch()
        forwarded.touch()
    }

    /// Stack for libopus's encoder and its callers.
    private static var stackInUse: Int { @_noAllocation @_noLocks get { 160 * 1024 } }

    @_noAllocation @_noLocks
    private mutating func stop(at now: Instant) {
        for index in 0..<calls.count {
            noteSound(of: index)
            if outgoing.isFull { flush() }
            unsafe calls[index].pointee.leave(
                at: now, wallNanoseconds: MonotonicClock.wallNanoseconds, batch: &outgoing)
            unsafe calls[index].pointee.isLeaving = true
        }
        removeLeavingCalls()
        flush()
        while let socket = unsafe sockets.removeNext() { unsafe emit(.socketRemoved(socket)) }
        if let faultsBefore { counters.pageFaults = ThreadMemory.pageFaults - faultsBefore }
        emit(.stopped(counters))
        isRunning = false
    }

    /// Returns the calls that are to end; if the ring is full, a call waits for the next turn.
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
        hasEvents = true
        return taken
    }
}

// MARK: Media

extension WorkerLoop {
    @_noAllocation @_noLocks
    private mutating func receiveAll() {
        guessesLeft = Self.mostGuesses
        var budget = ReceiveBudget()
        var waiting = sockets.findReady()
        while waiting > 0 {
            budget.beginRound(sockets: waiting)
            var stillWaiting = 0
            for index in 0..<waiting {
                let limit = budget.limit(ofBatch: DatagramBatch.capacity)
                guard limit > 0 else {
                    counters.turnsCutShort += 1
                    return
                }
                let count = receive(from: sockets.readySlot(index), limit: limit)
                budget.spend(count)
                guard count == limit else { continue }
                sockets.keepReady(index, at: stillWaiting)
                stillWaiting += 1
            }
            waiting = stillWaiting
        }
    }

    /// Reads a socket once.
    ///
    /// - Returns: How many datagrams it gave; fewer than `limit` are all that waited.
    @_noAllocation @_noLocks
    private mutating func receive(from slot: Int, limit: Int) -> Int {
        let error = sockets.receive(from: slot, into: &incoming, limit: limit)
        if error != 0 { counters.receiveErrors += 1 }
        if incoming.count == 0 { counters.readsInVain += 1 }
        for index in 0..<incoming.count { route(index) }
        counters.datagramsReceived += incoming.count
        return incoming.count
    }

    @_noAllocation @_noLocks
    private mutating func route(_ index: Int) {
        switch Self.deliver(&incoming, index, to: calls, &early, &guessesLeft, &counters) {
        case .call(let position):
            takeEvents(of: position, at: incoming.arrival(index))
            sendRepairs(of: position, at: incoming.arrival(index))
        case .notMedia: forward(index)
        case .dropped: break
        }
    }

    @_noAllocation @_noLocks
    private mutating func takeEvents(of position: Int, at arrival: Instant) {
        let call = unsafe calls[position]
        unsafe reportEvents(of: call)
        let taken = unsafe call.pointee.takeEvents()
        guard !taken.isEmpty else { return }
        let id = unsafe call.pointee.id
        if taken.contains(.routeChanged) || taken.contains(.mediaReceived) { calls.update(position) }
        if taken.contains(.mediaReceived) { emit(.mediaReceived(id, at: arrival)) }
        if taken.contains(.ready) { emit(.ready(id, at: MonotonicClock.now)) }
        if taken.contains(.flowing) { emit(.flowing(id, at: MonotonicClock.now)) }
        if taken.contains(.goodbyeReceived) { emit(.goodbyeReceived(id)) }
    }

    @_noAllocation @_noLocks
    private mutating func reportEvents(of call: UnsafeMutablePointer<MediaCall>) {
        while let digit = unsafe call.pointee.takeDigit() {
            emit(.digit(unsafe call.pointee.id, code: digit.code, milliseconds: digit.milliseconds))
        }
        if let change = unsafe call.pointee.takeSendingChange() {
            emit(.sendingChanged(unsafe call.pointee.id, change))
        }
    }

    /// Sends again what a call's peer has just asked for: every moment counts.
    @_noAllocation @_noLocks
    private mutating func sendRepairs(of position: Int, at arrival: Instant) {
        let call = unsafe calls[position]
        repeat {
            if outgoing.isFull { flush() }
        } while unsafe call.pointee.sendRepair(at: arrival, into: &outgoing)
    }

    /// Lets the connection thread have a datagram that is not media.
    @_noAllocation @_noLocks
    private mutating func forward(_ index: Int) {
        let origin = Self.origin(of: index, in: incoming)
        guard let datagram = ForwardedDatagram(incoming.bytes(index), from: origin), forwarded.push(datagram) else {
            counters.datagramsNotForwarded += 1
            return
        }
        hasForwarded = true
    }

    @_noAllocation @_noLocks
    mutating func runCalls(at now: Instant) {
        for index in 0..<calls.count {
            let call = unsafe calls[index]
            let deadline = unsafe call.pointee.nextDeadline
            guard deadline.nanoseconds <= now.nanoseconds, unsafe !call.pointee.isLeaving else {
                if unsafe call.pointee.isSettling || call.pointee.areRequestsDue(at: now) {
                    unsafe sendControl(of: call, at: now)
                }
                continue
            }
            counters.worstLatenessNanoseconds = max(
                counters.worstLatenessNanoseconds, deadline.nanoseconds(to: now))
            if let rest = unsafe call.pointee.takeUpChange() { unsafe emit(.changed(rest)) }
            unsafe runFrames(of: call, at: now)
            unsafe reportEvents(of: call)
            if unsafe call.pointee.takeSilence(at: now) { emit(.fellSilent(unsafe call.pointee.id)) }
            if unsafe call.pointee.takePlaybackEnd() { emit(.playbackEnded(unsafe call.pointee.id)) }
            if unsafe call.pointee.hasBridgeOpened, emit(.bridgeHeard(unsafe call.pointee.id)) {
                unsafe call.pointee.noteBridgeOpeningTold()
            }
            if let number = unsafe call.pointee.takeAnnouncementEnd() {
                emit(.announcementEnded(unsafe call.pointee.id, number: number))
            }
        }
    }

    @_noAllocation @_noLocks
    private mutating func runFrames(of call: UnsafeMutablePointer<MediaCall>, at now: Instant) {
        unsafe call.pointee.prepareFrames(at: now)
        unsafe call.pointee.limit(complexity: governor.complexityLimit)
        let due = unsafe call.pointee.nextDeadline
        running: while true {
            if outgoing.isFull { flush() }
            let outcome = unsafe call.pointee.runFrame(at: now, scratch: &scratch, batch: &outgoing)
            if case .nothing = outcome { break running }
            unsafe governor.ran(
                frameOf: call.pointee.grid.periodNanoseconds, latenessNanoseconds: due.nanoseconds(to: now),
                isAdjustable: call.pointee.complexity != nil)
            if case .chooseSlot = outcome { unsafe place(call, after: now) }
        }
        unsafe sendControl(of: call, at: now)
        // The packets of the first calls of a slot do not wait for the frames of the last.
        if outgoing.count >= Self.mostWaiting { flush() }
    }

    @_noAllocation @_noLocks
    private mutating func sendControl(of call: UnsafeMutablePointer<MediaCall>, at now: Instant) {
        if outgoing.isFull { flush() }
        if unsafe call.pointee.isControlDue(at: now) {
            unsafe call.pointee.sendControl(
                at: now, wallNanoseconds: MonotonicClock.wallNanoseconds, into: &outgoing)
        }
        if outgoing.isFull { flush() }
        unsafe call.pointee.sendFeedbackIfDue(at: now, into: &outgoing)
        if outgoing.isFull { flush() }
        unsafe call.pointee.sendRequestsIfDue(at: now, into: &outgoing)
    }

    /// Ends the window in which the load is measured, if its time has passed, and reports it.
    @_noAllocation @_noLocks
    private mutating func measureLoad(at now: Instant) {
        guard calls.count > 0 else {
            if governor.reset() { emit(.load(governor.load)) }
            return
        }
        guard governor.isWindowOver(at: now) else { return }
        var highest: Int?
        for index in 0..<calls.count {
            guard let own = unsafe calls[index].pointee.complexity else { continue }
            highest = max(highest ?? 0, own)
        }
        governor.endWindow(
            at: now, highestComplexity: highest, threadNanoseconds: MonotonicClock.threadCPUNanoseconds)
        emit(.load(governor.load))
    }

    /// Packets that wait for each other, so that one system call sends them.
    private static var mostWaiting: Int { @_noAllocation @_noLocks get { 4 } }

    /// Where a call's second frame goes (``Pacer/choice(among:count:room:)``). A call on the card waits for no others.
    @_noAllocation @_noLocks
    func secondFrame(of call: UnsafeMutablePointer<MediaCall>, after first: Instant) -> Instant {
        let grid = unsafe call.pointee.grid
        var slots = InlineArray<3, Pacer.Slot>(repeating: Pacer.Slot(due: grid.earliestSlot(after: first)))
        for number in slots.indices {
            if number > 0 { slots[number].due = grid.slot(following: slots[number - 1].due) }
            for index in 0..<calls.count where unsafe calls[index] != call {
                if grid.share(unsafe calls[index].pointee.nextDeadline, slots[number].due) { slots[number].calls += 1 }
            }
        }
        if unsafe call.pointee.usesCard { return Pacer.choice(among: slots, count: 2, room: 0).due }
        let room = grid.room(costOfCall: governor.load.meanCost)
        return Pacer.choice(among: slots, count: slots.count, room: room).due
    }

    @_noAllocation @_noLocks
    private mutating func flush() { counters.datagramsNotSent += sockets.send(&outgoing) }
}

extension WorkerLoop {
    /// For how long the frame has been due that a call has waited for the longest; 0 or less if none waits.
    @_noAllocation @_noLocks
    func overdueNanoseconds(at now: Instant) -> Int64 {
        var longest: Int64 = 0
        for index in 0..<calls.count where unsafe !calls[index].pointee.isLeaving {
            longest = max(longest, unsafe calls[index].pointee.nextDeadline.nanoseconds(to: now))
        }
        return longest
    }
}
