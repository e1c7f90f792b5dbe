// MediaEngine: media workers, which run calls on sockets, on the sound card and over ICE, and the files that calls play and record.

public import AudioPort
public import CallMedia
public import Core
internal import AudioKit
internal import RTP
public import Realtime
internal import ICE
public import SecureTransport
internal import Synchronization

/// Runs calls' media on worker threads, and reports what happens to them.
///
/// All methods may be called from any thread; none of them blocks on the network. Events are delivered on threads of
/// the engine, those about one call in order.
public final class MediaEngine: Sendable {
    let workers: [MediaWorker]
    let connections: ConnectionThread
    let files: AudioFileThreads
    private let eventThread: RealtimeThread
    let card: SoundCardUse?
    let state = Mutex(State())
    private let warmUpThread = WarmUpThread()
    let onEvent: @Sendable (MediaEvent) -> Void
    let callLimitPerWorker: Int
    let ports: PortBook

    struct State {
        var lastID: UInt64 = 0
        /// Calls that ICE connects, and their workers.
        var connected: [MediaCallID: Int] = [:]
        /// What belongs to each call that has not ended.
        var calls: [MediaCallID: Running] = [:]
        /// The waiter for each report, by the address to which the worker writes it.
        var reports: [UInt: CheckedContinuation<MediaReport?, Never>] = [:]
        /// What follows a change of a call's audio, by the address of the change.
        var audioChanges: [UInt: @Sendable () -> Void] = [:]
        var isStopped = false
        /// How often the process had released its code when the calls' code was last loaded; nil before that.
        var warmedAfter: Int?
        var warmUps = 0
        /// How busy each worker was last.
        var loads: [WorkerLoad] = []
        var admission = CallAdmission(limit: CallAdmission.streams(in: MachineMemory.limitBytes))
        var pulses = WorkerPulses()
        /// Calls on the sound card; the last one has it, where only one may.
        var onCard: [MediaCallID] = []
    }

    struct Running {
        var worker: Int
        /// Its own port, which is closed after it.
        var port: MediaPort?
        /// The encoder settings last sent to it.
        var codec: SoundCodec
        var files: [AudioFileID]
        /// Of these, the recording.
        var recording: AudioFileID?
        /// And the capture.
        var capture: AudioFileID?
        /// And the file that is played in place of the source.
        var announcement: Announcement?
    }

    /// Opens the sockets and starts the threads.
    ///
    /// - Parameter onEvent: Is called with each event of a call.
    public convenience init(
        _ configuration: MediaEngineConfiguration, onEvent: @escaping @Sendable (MediaEvent) -> Void
    ) throws(RealtimeError) {
        try self.init(configuration, files: AudioFileThreads(), onEvent: onEvent)
    }

    init(
        _ configuration: MediaEngineConfiguration, files: AudioFileThreads,
        onEvent: @escaping @Sendable (MediaEvent) -> Void
    ) throws(RealtimeError) {
        self.onEvent = onEvent
        self.files = files
        callLimitPerWorker = configuration.callLimitPerWorker
        ports = PortBook(configuration.callPorts)
        // The first call that needs a failed part will report the failure.
        try? SRTPLibrary.prepare()
        STUNKey.prepareLibrary()
        let signal = try SignalHolder()
        connections = try ConnectionThread()
        let signals = MediaWorker.Signals(events: signal.wakeup.handle, connections: connections.signal)
        card = try configuration.sound.map { sound throws(RealtimeError) in
            try SoundCardUse(sound) { onEvent(.card($0)) }
        }
        let cost = CodecSpeed.costOfCall()
        var workers: [MediaWorker] = []
        for number in 0..<configuration.workerCount {
            let worker = unsafe try MediaWorker(
                number: number, configuration, signals, costOfCall: cost,
                mixer: number == Self.cardWorker ? card?.mixer : nil,
                onPriorityRefused: { onEvent(.realtimePriorityRefused($0)) })
            workers.append(worker)
        }
        self.workers = workers
        state.withLock { $0.loads = [WorkerLoad](repeating: WorkerLoad(costOfCall: cost), count: workers.count) }
        let relay = EventRelay()
        let started = workers
        eventThread = try RealtimeThread(name: "media-events") {
            var running = started
            while !running.isEmpty {
                signal.wakeup.wait()
                running.removeAll { worker in !worker.drainEvents { relay.tell($0, of: worker) } }
            }
        }
        relay.engine = self
        try connections.start(workers, trust: configuration.relayTrust) { onEvent(MediaEvent($0)) }
    }

    /// Keeps the wake-up open as long as a worker may signal it.
    private final class SignalHolder: Sendable {
        let wakeup: Wakeup
        init() throws(RealtimeError) { wakeup = try Wakeup() }
    }

    /// Loads what a call's media needs before a call begins: code that was never used, or was released
    /// (``ProcessMemory/releaseStartUpCode()``), and the workers' memory. Takes effect within some 10 ms, on a thread
    /// of ordinary priority. Does nothing if it has been done.
    public func warmUp() {
        let releases = ProcessMemory.releases
        let isNeeded = state.withLock { state in
            guard !state.isStopped, state.warmedAfter != releases else { return false }
            state.warmedAfter = releases
            state.warmUps += 1
            return true
        }
        guard isNeeded else { return }
        for worker in workers { _ = worker.send(.warmUp) }
        // If there is no thread, nothing is lost: this call loads its code itself, and the next one tries again.
        if !warmUpThread.begin({ WarmUpCall.run() }) { state.withLock { $0.warmedAfter = nil } }
    }

    /// Times that ``warmUp()`` had something to do.
    var warmUps: Int { state.withLock { $0.warmUps } }

    /// Waits until what ``warmUp()`` began is done.
    func waitUntilWarm() { warmUpThread.wait() }

    /// Where a new call would run: the worker with the fewest calls.
    ///
    /// - Parameter usesCard: Whether it is going to use the sound card, which one worker has.
    /// - Returns: The address at which that call receives media; its host may be the wildcard address.
    public func place(usesCard: Bool = false) -> MediaPlacement {
        if usesCard {
            return MediaPlacement(worker: Self.cardWorker, localAddress: workers[Self.cardWorker].localAddress)
        }
        let load = state.withLock { state in
            let running = state.calls.values.reduce(into: [Int: Int]()) { $0[$1.worker, default: 0] += 1 }
            // And those that are being connected.
            return state.connected.reduce(into: running) { load, connected in
                if state.calls[connected.key] == nil { load[connected.value, default: 0] += 1 }
            }
        }
        let index = workers.indices.min { load[$0, default: 0] < load[$1, default: 0] } ?? 0
        return MediaPlacement(worker: index, localAddress: workers[index].localAddress)
    }

    /// Starts a call: from when this returns, the peer's packets are taken.
    ///
    /// - Parameter connection: What ``connect(_:at:)`` gave, for a call that ICE connects; the call goes by that name.
    /// - Parameter port: What ``openPort(at:)`` gave, for a call without ICE; it is closed when the call ends.
    /// - Parameter line: The worker's side of a program's port, for a call with ``AudioBehaviour/Source/program``.
    /// - Throws: ``MediaStartError`` when a file cannot be used, or a library refuses.
    public func start(
        _ plan: MediaCallPlan, at placement: MediaPlacement, connection: MediaCallID? = nil, port: MediaPort? = nil,
        line: consuming PortLine? = nil
    ) throws(MediaStartError) -> MediaCallID {
        var plan = plan
        plan.peer.sockets = port?.sockets
        let id = connection ?? newID(of: placement.owner)
        let now = MonotonicClock.now
        let capture = plan.capture.map { CaptureOrder(path: $0, codec: plan.codec, playout: plan.playout, at: now) }
        let reports = reports(on: id)
        var files = try files.open(plan.audio, capture: capture, reports)
        files.rings.line = line
        let (streams, recording, captured) = (files.ids, files.recording, files.capture)
        let call: UnsafeMutablePointer<MediaCall>
        do throws(MediaStartError) {
            unsafe call = try MediaCall.make(id: id, plan: plan, rings: files.rings, at: now)
        } catch {
            self.files.stop(streams) {}
            throw error
        }
        state.withLock { state in
            state.calls[id] = Running(
                worker: placement.worker, port: port, codec: plan.codec, files: streams, recording: recording,
                capture: captured)
        }
        if case .card = plan.audio.source { takeCard(id) }
        guard unsafe workers[placement.worker].send(.add(call)) else {
            unsafe release(call) {}
            throw MediaStartError("the media worker does not keep up with its commands. Is the machine overloaded?")
        }
        return id
    }

    /// Changes the codecs, payload types, header extensions, packet lengths or feedback of a call, after a later offer
    /// and answer. Only the formats of the plan are used; addresses, keys, playout and behaviour stay.
    ///
    /// From when the worker has the change, it accepts the peer's packets in both the old and the new formats.
    /// - Throws: ``MediaStartError`` when a library refuses; the call then continues as it was.
    public func change(_ id: MediaCallID, to plan: MediaCallPlan) throws(MediaStartError) {
        guard let before = state.withLock({ $0.calls[id]?.codec }), let worker = worker(of: id) else { return }
        do throws(OpusError) {
            let change = try MediaCallChange(to: plan, from: before)
            let memory = UnsafeMutablePointer<MediaCallChange>.allocate(capacity: 1)
            unsafe memory.initialize(to: change)
            state.withLock { $0.calls[id]?.codec = plan.codec }
            unsafe worker.enqueue(.change(id, memory))
        } catch {
            throw MediaStartError("the call's media cannot be changed: \(error)")
        }
    }

    /// Sends a call's media to where a later description of the peer wants it. A call that ICE connects keeps its path.
    ///
    /// - Parameter control: Where the peer wants its RTCP; nil with its media.
    public func redirect(_ id: MediaCallID, to remote: SocketAddress, control: SocketAddress?) {
        worker(of: id)?.enqueue(.redirect(id, to: remote, control: control))
    }

    /// The one that a call goes to has answered, after early media (``MediaCallPlan/isEarly``): the call's source begins.
    public func answered(_ id: MediaCallID) { worker(of: id)?.enqueue(.answered(id)) }

    /// Another one is at the other end of a call than before: ``MediaEvent/ready(_:at:)`` and ``MediaEvent/flowing(_:at:)`` come
    /// again, for that one.
    public func beginFlow(_ id: MediaCallID) { worker(of: id)?.enqueue(.beginFlow(id)) }

    /// The peer of a call has shown by signaling that it is where the call's sound goes (``MediaCallPlan/soundCondition``).
    public func liftSoundLimit(of id: MediaCallID) { worker(of: id)?.enqueue(.liftSoundLimit(id)) }

    /// The machine's addresses are others: calls without ICE find out again from which one they send.
    public func networkChanged() {
        for worker in workers { worker.enqueue(.networkChanged) }
    }

    /// Protects a call with other keys from now on, which later descriptions have given (RFC 4568 §7.1.4). Those of DTLS
    /// come by themselves.
    ///
    /// - Parameters:
    ///   - send: Nil if the outgoing direction is the same as before; `receive` is nil likewise.
    ///   - endsFormer: The remote party has changed: the former peer's key is refused at once.
    /// - Throws: ``MediaStartError`` if libsrtp refuses them; the call then continues as it was.
    public func rekey(
        _ id: MediaCallID, send: SRTPKey?, receive: SRTPKey?, endsFormer: Bool = false
    ) throws(MediaStartError) {
        guard let worker = worker(of: id) else { return }
        do throws(SRTPError) {
            worker.install(try SRTPPair(send: send, receive: receive, endsFormer: endsFormer), for: id)
        } catch {
            throw MediaStartError("the call's keys cannot be changed: \(error)")
        }
    }

    func newID(of owner: UInt16 = 0) -> MediaCallID {
        state.withLock { state in
            state.lastID += 1
            return MediaCallID(number: state.lastID, owner: owner)
        }
    }

    /// The worker of a call that has been started and has not ended.
    func worker(of id: MediaCallID) -> MediaWorker? {
        state.withLock { $0.calls[id]?.worker }.map { workers[$0] }
    }

    func noteConnection(_ id: MediaCallID, on worker: Int) { state.withLock { $0.connected[id] = worker } }

    /// Ends a call: says goodbye to the peer and finishes its files. ``MediaEvent/ended(_:_:)`` follows, unless the call
    /// was only being connected and had not been started.
    public func stop(_ id: MediaCallID) {
        let connected = state.withLock { $0.connected.removeValue(forKey: id) }
        defer { if connected != nil { connections.send(.close(id)) } }
        guard let worker = state.withLock({ $0.calls[id]?.worker }) else { return }
        workers[worker].enqueue(.remove(id))
    }

    /// Presses telephone keys, one after the other: `0`…`9`, `*`, `#`, `A`…`D`, and `!` for the flash of the hook.
    ///
    /// Each is sent in place of 180 ms of sound. Up to 32 can wait in a call; further ones, and those for a peer that
    /// accepts none, count in ``CallCounters/digitsDropped``.
    /// - Returns: False if one of them is no key, or the call has ended; then none is pressed.
    @discardableResult
    public func press(_ digits: String, on id: MediaCallID) -> Bool {
        let events = digits.compactMap(TelephoneEvent.init)
        guard events.count == digits.count, let worker = worker(of: id) else { return false }
        for event in events { worker.enqueue(.press(id, code: event.code)) }
        return true
    }

    /// The report of a call so far; nil if it has ended.
    public func report(on id: MediaCallID) async -> MediaReport? {
        guard let worker = state.withLock({ $0.calls[id]?.worker }) else { return nil }
        return await withCheckedContinuation { continuation in
            let report = UnsafeMutablePointer<MediaReport>.allocate(capacity: 1)
            unsafe report.initialize(to: .empty)
            state.withLock { $0.reports[UInt(bitPattern: report)] = continuation }
            if unsafe !workers[worker].send(.report(id, into: report)) { unsafe answer(report, found: false) }
        }
    }

    /// Ends all calls and threads. No event follows its return; calls' last events come before. A disk that does not answer delays it by
    /// 10 s at most.
    ///
    /// - Returns: Each worker's counters.
    @discardableResult
    public func shutdown() -> [WorkerCounters] {
        let isFirst = state.withLock { state in
            defer { state.isStopped = true }
            return !state.isStopped
        }
        if isFirst {
            connections.stop()
            for worker in workers { worker.stop() }
            warmUpThread.end()
            card?.stop()
            eventThread.join()
            files.finish()
        }
        return workers.compactMap(\.finalCounters)
    }
}

// MARK: Events

extension MediaEngine {
    /// Carries worker events to the engine without keeping it alive.
    private final class EventRelay: @unchecked Sendable {
        // Set once, before any call can exist and so before any event.
        weak var engine: MediaEngine?

        func tell(_ event: WorkerEvent, of worker: MediaWorker) { engine?.take(event, of: worker) }
    }

    private func take(_ event: WorkerEvent, of worker: MediaWorker) {
        switch event {
        case .load(let load): note(load, of: worker)
        case .pulse(let overdue): note(overdueNanoseconds: overdue, of: worker)
        case .mediaReceived(let id, let time): onEvent(.mediaReceived(id, at: time))
        case .ready(let id, let time): onEvent(.ready(id, at: time))
        case .flowing(let id, let time): onEvent(.flowing(id, at: time))
        case .playbackEnded(let id): onEvent(.playbackEnded(id))
        case .bridgeHeard(let id): onEvent(.bridgeHeard(id))
        case .announcementEnded(let id, let number): endAnnouncement(of: id, number: number, .played)
        case .audioChanged(let change):
            let next = state.withLock { $0.audioChanges.removeValue(forKey: UInt(bitPattern: change)) }
            unsafe change.deinitialize(count: 1)
            unsafe change.deallocate()
            next?()
        case .digit(let id, let code, let milliseconds):
            // Other events, such as tones of modems, are no keys.
            guard let key = TelephoneEvent(code: code).key else { return }
            onEvent(.digit(id, key, heldFor: .milliseconds(Int64(milliseconds))))
        case .sendingChanged(let id, .stopped(let reason)): onEvent(.sendingStopped(id, reason))
        case .sendingChanged(let id, .resumed): onEvent(.sendingResumed(id))
        case .fellSilent(let id): connections.send(.fellSilent(id))
        case .goodbyeReceived(let id): onEvent(.goodbyeReceived(id))
        case .reported(let report, let found): unsafe answer(report, found: found)
        case .removed(let call):
            let (id, report) = unsafe (call.pointee.id, call.pointee.report())
            unsafe release(call) { [onEvent] in onEvent(.ended(id, report)) }
        case .refused(let call):
            let id = unsafe call.pointee.id
            unsafe release(call) { [onEvent] in onEvent(.refused(id)) }
        case .replaced(let contexts):
            unsafe contexts.deinitialize(count: 1)
            unsafe contexts.deallocate()
        case .changed(let change):
            unsafe change.deinitialize(count: 1)
            unsafe change.deallocate()
        case .socketRemoved(let socket): unsafe worker.free(socket)
        case .stopped: break
        }
    }

    private func answer(_ report: UnsafeMutablePointer<MediaReport>, found: Bool) {
        let waiting = state.withLock { $0.reports.removeValue(forKey: UInt(bitPattern: report)) }
        waiting?.resume(returning: found ? unsafe report.pointee : nil)
        unsafe report.deallocate()
    }

    /// Frees a call that no worker has any more, and finishes its files.
    private func release(_ call: UnsafeMutablePointer<MediaCall>, then: @escaping @Sendable () -> Void) {
        let id = unsafe call.pointee.id
        let running = state.withLock { $0.calls.removeValue(forKey: id) }
        leaveCard(id)
        if let change = unsafe call.pointee.takeWaitingChange() {
            unsafe change.deinitialize(count: 1)
            unsafe change.deallocate()
        }
        unsafe call.deinitialize(count: 1)
        unsafe call.deallocate()
        if let port = running?.port { close(port) }
        if let announcement = running?.announcement { tellEnd(of: announcement, in: id, .callEnded) }
        files.stop(running?.files ?? [], then: then)
    }
}

// How busy the workers are, and whether they have room for more calls.
extension MediaEngine {
    /// Whether the workers, and the memory, have room for one more call without harm to those that they have.
    ///
    /// A refusal makes it answer no until the load has fallen clearly below what it refused at.
    /// - Parameters:
    ///   - streams: Streams of the call, each of which costs as much as a call.
    ///   - unplaced: Streams of calls that have been admitted before and have not been started yet.
    public func hasRoom(for streams: Int = 1, besides unplaced: Int) -> Bool {
        state.withLock { state in
            var calls = [Int](repeating: 0, count: workers.count)
            for call in state.calls.values { calls[call.worker] += 1 }
            let loads = workers.indices.map { index in
                CallAdmission.Worker(
                    load: state.loads[index], calls: calls[index], capacity: callLimitPerWorker)
            }
            return state.admission.admits(loads, streams: streams, unplaced: unplaced)
        }
    }

    /// How busy the workers are, in their order.
    public var loads: [WorkerLoad] { state.withLock { $0.loads } }

    func note(_ load: WorkerLoad, of worker: MediaWorker) {
        guard let index = workers.firstIndex(where: { $0 === worker }) else { return }
        let before = state.withLock { state in
            defer { state.loads[index] = load }
            return state.loads[index].complexityLimit
        }
        if before != load.complexityLimit { onEvent(.effortLimited(worker: index, load)) }
        onEvent(.loadMeasured)
    }
}
