internal import Core
internal import Realtime
internal import Synchronization

/// The thread that moves audio between the files of one folder and the rings of calls. It alone waits for their disk.
final class AudioFileThread: Sendable {
    /// How often files are moved, in milliseconds; several times within what the rings hold.
    private static let intervalMilliseconds: Int32 = 40
    /// Files that it has at once, also those of calls that have ended: where the disk takes them more slowly than they come.
    static let mostStreams = 1_024

    /// How long a disk may take to answer.
    struct Patience {
        /// Where more sound comes: longer than any ring holds, so that sound is lost.
        let moving: Duration
        /// Where the file is being closed: nothing is lost yet.
        let closing: Duration
    }

    private enum Job {
        case open(AudioFileID)
        case finish(AudioFileID)
        case discard(AudioFileID)
    }

    private struct Entry {
        let stream: any AudioFileStream
        /// When it was added, or when its end was asked for.
        var since: Instant
        var isOpen = false
        var isClosing = false

        mutating func close(at now: Instant) {
            guard !isClosing else { return }
            (isClosing, since) = (true, now)
        }
    }

    private struct State {
        var jobs: [Job] = []
        var entries: [AudioFileID: Entry] = [:]
        /// Since when the disk has not answered; nil while nothing is asked of it.
        var waitsSince: Instant?
        var isStalled = false
        var isFinished = false
        var isDone = false

        /// Those for which the disk has had more time by `now` than it may take.
        func streamsWithoutAnswer(at now: Instant, _ patience: Patience) -> [any AudioFileStream] {
            guard let waitsSince else { return [] }
            return entries.values.compactMap { entry in
                let waited = max(waitsSince, entry.since).duration(to: now)
                return waited >= (entry.isClosing ? patience.closing : patience.moving) ? entry.stream : nil
            }
        }
    }

    private let state = Mutex(State())
    private let holder: WakeupHolder
    private let thread = Mutex<RealtimeThread?>(nil)
    private let onUse: @Sendable () -> Void
    private let onClosed: @Sendable (AudioFileID) -> Void
    private let onDone: @Sendable () -> Void

    /// Starts the thread; it sleeps until there is a file.
    ///
    /// - Parameters:
    ///   - onUse: Is called each time before the disk is used.
    ///   - onClosed: Is called for each file that was finished.
    ///   - onDone: Is called when the thread has nothing more to do, after ``finish()``.
    init(
        onUse: @escaping @Sendable () -> Void, onClosed: @escaping @Sendable (AudioFileID) -> Void,
        onDone: @escaping @Sendable () -> Void
    ) throws(RealtimeError) {
        holder = try WakeupHolder()
        self.onUse = onUse
        self.onClosed = onClosed
        self.onDone = onDone
        let started = try RealtimeThread(name: "audio-files") { [self] in
            while !turn() {}
            state.withLock { $0.isDone = true }
            onDone()
        }
        thread.withLock { $0 = started }
    }

    // MARK: On other threads. None of this waits for the disk.

    /// Why the thread takes no further file; nil if it does.
    var obstacle: String? {
        state.withLock { state in
            if state.isStalled { return "its disk does not answer" }
            let isFull = state.entries.count >= Self.mostStreams
            return isFull ? "its disk does not keep up: \(Self.mostStreams) files wait for it" : nil
        }
    }

    /// Since when the disk has not answered.
    var waitsSince: Instant? { state.withLock { $0.waitsSince } }

    /// Opens a file, and moves it from then on.
    func add(_ stream: any AudioFileStream, as id: AudioFileID) {
        state.withLock { $0.entries[id] = Entry(stream: stream, since: MonotonicClock.now) }
        enqueue(.open(id))
    }

    /// Writes what waits for a file, and closes it.
    func finish(_ id: AudioFileID) {
        state.withLock { $0.entries[id]?.close(at: MonotonicClock.now) }
        enqueue(.finish(id))
    }

    /// Closes a file that is not wanted.
    func discard(_ id: AudioFileID) { enqueue(.discard(id)) }

    private func enqueue(_ job: Job) {
        state.withLock { $0.jobs.append(job) }
        holder.wakeup.signal()
    }

    /// Finishes all files and ends the thread, once the disk answers.
    func finish() {
        let now = MonotonicClock.now
        state.withLock { state in
            state.isFinished = true
            for id in state.entries.keys { state.entries[id]?.close(at: now) }
        }
        holder.wakeup.signal()
    }

    var isDone: Bool { state.withLock { $0.isDone } }

    /// Waits for the end of a thread that is done.
    func join() {
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    /// Reports a disk that does not answer for longer than it may, once for each file.
    func check(at now: Instant, _ patience: Patience) {
        let (streams, time): ([any AudioFileStream], Duration) = state.withLock { state in
            let time = state.waitsSince?.duration(to: now) ?? .zero
            guard time >= patience.moving else { return ([], .zero) }
            state.isStalled = true
            return (state.streamsWithoutAnswer(at: now, patience), time)
        }
        for stream in streams { stream.news.noteStall("its disk has not answered for \(time.components.seconds) s") }
    }

    /// Reports the end of all files of a thread that hangs when the process ends.
    func abandon() {
        for entry in state.withLock({ Array($0.entries.values) }) { entry.stream.abandon() }
    }

    // MARK: On the thread

    /// Waits for the next interval, or without streams for a wake-up, and moves what there is to move.
    ///
    /// Code that changes what the wait depends on, or adds work, must signal the wake-up afterwards.
    /// - Returns: Whether that was the last turn.
    private func turn() -> Bool {
        let isIdle = state.withLock { !$0.entries.values.contains(where: \.isOpen) }
        holder.wakeup.wait(timeoutMilliseconds: isIdle ? nil : Self.intervalMilliseconds)
        // In their order, so that a file is opened before it is finished. A job stays in the list until it is done, so that its
        // file is known while the disk hangs.
        while let job = state.withLock({ $0.jobs.first }) {
            carryOut(job)
            state.withLock { _ = $0.jobs.removeFirst() }
        }
        let (entries, isLast) = state.withLock { ($0.entries.filter(\.value.isOpen), $0.isFinished) }
        for (id, entry) in entries {
            if isLast {
                close(id, entry.stream)
            } else {
                ask { entry.stream.move() }
            }
        }
        return isLast && state.withLock { $0.jobs.isEmpty && $0.entries.isEmpty }
    }

    private func carryOut(_ job: Job) {
        switch job {
        case .open(let id):
            guard let stream = stream(id) else { return }
            ask { stream.open() }
            state.withLock { $0.entries[id]?.isOpen = true }
        case .finish(let id):
            if let stream = stream(id) { close(id, stream) }
        case .discard(let id):
            guard let stream = stream(id) else { return }
            ask { stream.discard() }
            state.withLock { $0.entries[id] = nil }
            onClosed(id)
        }
    }

    private func stream(_ id: AudioFileID) -> (any AudioFileStream)? { state.withLock { $0.entries[id]?.stream } }

    private func close(_ id: AudioFileID, _ stream: any AudioFileStream) {
        ask { stream.finish() }
        state.withLock { $0.entries[id] = nil }
        onClosed(id)
    }

    /// Runs what may wait for the disk.
    private func ask(_ work: () -> Void) {
        state.withLock { $0.waitsSince = MonotonicClock.now }
        onUse()
        work()
        state.withLock { state in
            state.waitsSince = nil
            state.isStalled = false
        }
    }
}
