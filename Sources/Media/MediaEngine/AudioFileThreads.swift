internal import AudioKit
internal import CallMedia
internal import Core
internal import Files
internal import Realtime
internal import Synchronization

/// Names one file being played or recorded.
struct AudioFileID: Hashable, Sendable {
    let rawValue: UInt64
}

/// The files that calls play, record and are captured in: a thread for each folder, so that neither a media thread nor the control
/// side ever waits for a disk, and files on one disk do not wait for another disk.
///
/// A call does not wait for its files either: what a disk does not take in time is left out and counted, and a disk that does not
/// answer is reported.
final class AudioFileThreads: Sendable {
    /// How long is waited at most.
    struct Limits {
        /// By the control side, for a file that is being opened, so that it knows of a file that is not there.
        var opening: Duration = .milliseconds(250)
        /// By the report of a call's end, for the call's files.
        var ending: Duration = .seconds(2)
        /// Before a disk that does not answer is reported for each file into which more sound comes, and takes no further files until it
        /// does. Longer than a ring holds, so that sound is lost.
        var stall: Duration = .seconds(2)
        /// By the end of the process, for all files; and before a disk that does not answer is reported for a file that is being closed.
        var finish: Duration = .seconds(10)
    }

    /// Folders with threads of their own; files in more folders share these threads.
    private static let mostThreads = 16
    /// Samples a player keeps ahead: a third of a second.
    private static let playCapacity = 16_384
    /// Samples a recording may wait for a slow disk: 1.4 s.
    private static let recordCapacity = 65_536
    /// How often disks that do not answer are looked for, in milliseconds, while there are files.
    private static let checkMilliseconds: Int32 = 250

    private struct Place {
        let thread: AudioFileThread
        let stream: any AudioFileStream
    }

    /// A call's end that waits for its files.
    private struct Ending {
        var files: Set<AudioFileID>
        let deadline: Instant
        let then: @Sendable () -> Void
    }

    private struct State {
        var lastID: UInt64 = 0
        var threads: [String: AudioFileThread] = [:]
        var places: [AudioFileID: Place] = [:]
        var endings: [Ending] = []
        var watch: RealtimeThread?
        var isFinished = false

        /// Takes out the ends that need not wait any more.
        mutating func takeEndings(where isOver: (Ending) -> Bool) -> [@Sendable () -> Void] {
            let over = endings.filter(isOver)
            endings.removeAll(where: isOver)
            return over.map { $0.then }
        }
    }

    private let limits: Limits
    private let onUse: @Sendable (String) -> Void
    private let state = Mutex(State())
    private let watchSignal: WakeupHolder
    private let doneSignal: WakeupHolder

    /// Threads start with the first files.
    ///
    /// - Parameter onUse: Is called with a folder on its thread, each time before its disk is used.
    init(_ limits: Limits = Limits(), onUse: @escaping @Sendable (String) -> Void = { _ in }) throws(RealtimeError) {
        self.limits = limits
        self.onUse = onUse
        watchSignal = try WakeupHolder()
        doneSignal = try WakeupHolder()
    }

    // MARK: Opening files

    /// Opens the files of a call. A recording or capture that cannot be written is reported to `reports` and left out, because a
    /// call is worth more than its recording. One whose disk takes longer than ``Limits/opening`` is opened later.
    ///
    /// - Throws: ``MediaStartError`` if the file to be played cannot be read.
    func open(
        _ audio: AudioBehaviour, capture: CaptureOrder? = nil, _ reports: FileReports
    ) throws(MediaStartError) -> CallFiles {
        var files = CallFiles()
        if case .file(let path, let loops) = audio.source {
            let ring = AudioRing(capacity: Self.playCapacity)
            let opened = begin(PlayerStream(path, loops: loops, into: ring.producer, reports))
            files.rings.player = .some(ring.consumer)
            switch opened {
            case .success(let id): files.ids.append(id)
            case .failure(let error): throw MediaStartError("\(error)", file: error)
            }
        }
        if let order = RecordingOrder(audio) {
            let stream = makeRecorder(order, into: &files, reports)
            switch begin(stream) {
            case .success(let id):
                files.ids.append(id)
                files.recording = id
            case .failure(let error):
                files.rings.recorder = nil
                files.rings.sentRecorder = nil
                reports.onFailure(error)
            }
        }
        if let capture {
            let ring = SPSCRing<CaptureRecord>(capacity: capture.records)
            switch begin(CaptureStream(capture, from: ring.consumer, reports)) {
            case .success(let id):
                files.rings.capture = .some(CaptureWriter(ring.producer, at: capture.at))
                files.ids.append(id)
                files.capture = id
            case .failure(let error): reports.onFailure(error)
            }
        }
        return files
    }

    /// The same where only failures are of interest.
    func open(
        _ audio: AudioBehaviour, capture: CaptureOrder? = nil,
        onFailure: @escaping @Sendable (AudioFileError) -> Void
    ) throws(MediaStartError) -> CallFiles {
        try open(audio, capture: capture, FileReports(onFailure: onFailure))
    }

    /// Opens a recording of a call that runs.
    ///
    /// - Throws: ``MediaStartError`` if it cannot be written, or its disk does not answer.
    nonisolated(nonsending) func record(
        _ order: RecordingOrder, _ reports: FileReports
    ) async throws(MediaStartError) -> CallFiles {
        var files = CallFiles()
        let stream = makeRecorder(order, into: &files, reports)
        let (id, path) = try await opened(stream)
        files.ids = [id]
        files.recording = id
        files.path = path
        return files
    }

    /// Opens a file that is to be played in a call that runs, once.
    ///
    /// - Throws: ``MediaStartError`` if it cannot be read, or its disk does not answer.
    nonisolated(nonsending) func play(
        _ path: String, _ reports: FileReports
    ) async throws(MediaStartError) -> CallFiles {
        var files = CallFiles()
        let ring = AudioRing(capacity: Self.playCapacity)
        let stream = PlayerStream(path, loops: false, into: ring.producer, reports)
        files.rings.player = .some(ring.consumer)
        let (id, _) = try await opened(stream)
        files.ids = [id]
        return files
    }

    private func makeRecorder(
        _ order: RecordingOrder, into files: inout CallFiles, _ reports: FileReports
    ) -> RecorderStream {
        let spared: @Sendable () -> [FileIdentity] = { [weak self] in self?.playedFiles ?? [] }
        let ring = AudioRing(capacity: Self.recordCapacity)
        files.rings.recorder = .some(ring.producer)
        guard order.format.channels == 2 else {
            return RecorderStream(order, from: ring.consumer, sparing: spared, reports)
        }
        let sent = AudioRing(capacity: Self.recordCapacity)
        files.rings.sentRecorder = .some(sent.producer)
        return RecorderStream(order, from: ring.consumer, and: .some(sent.consumer), sparing: spared, reports)
    }

    private var playedFiles: [FileIdentity] {
        state.withLock { Array($0.places.values) }.compactMap(\.stream.played)
    }

    /// Has a file opened, and waits for that no longer than ``Limits/opening``, nor if its disk does not answer anyhow.
    private func begin(_ stream: any AudioFileStream) -> Result<AudioFileID, AudioFileError> {
        let added: (id: AudioFileID, thread: AudioFileThread)
        do throws(AudioFileError) {
            added = try add(stream)
        } catch {
            return .failure(error)
        }
        let isSlow = added.thread.waitsSince.map { $0.duration(to: MonotonicClock.now) >= limits.opening } ?? false
        guard case .failure(let error)? = stream.news.outcome(withinMilliseconds: isSlow ? 0 : limits.opening.forWait)
        else { return .success(added.id) }
        added.thread.discard(added.id)
        return .failure(error)
    }

    /// Has a file opened, and waits for that until its disk counts as stalled.
    private nonisolated(nonsending) func opened(
        _ stream: any AudioFileStream
    ) async throws(MediaStartError) -> (id: AudioFileID, path: String) {
        do throws(AudioFileError) {
            let (id, thread) = try add(stream)
            switch await stream.news.outcome() {
            case .success(let path)?: return (id, path)
            case .failure(let error)?:
                thread.discard(id)
                throw error
            case nil:
                // Its own failure would be one of a file that the call does not have.
                stream.news.finish()
                thread.discard(id)
                throw stream.news.stall
                    ?? AudioFileError(
                        stalled: stream.news.path, stream.news.purpose, reason: "its disk does not answer")
            }
        } catch {
            throw MediaStartError("\(error)", file: error)
        }
    }

    private func add(_ stream: any AudioFileStream) throws(AudioFileError) -> (id: AudioFileID, thread: AudioFileThread)
    {
        let news = stream.news
        let thread: AudioFileThread
        do throws(RealtimeError) {
            thread = try self.thread(forFolder: WritableFolder.parent(of: news.path))
            try startWatch()
        } catch {
            throw AudioFileError(stalled: news.path, news.purpose, reason: "\(error)")
        }
        if let obstacle = thread.obstacle { throw AudioFileError(stalled: news.path, news.purpose, reason: obstacle) }
        let id = state.withLock { state in
            state.lastID += 1
            let id = AudioFileID(rawValue: state.lastID)
            state.places[id] = Place(thread: thread, stream: stream)
            return id
        }
        thread.add(stream, as: id)
        watchSignal.wakeup.signal()
        return (id, thread)
    }

    private func thread(forFolder folder: String) throws(RealtimeError) -> AudioFileThread {
        try state.withLock { state throws(RealtimeError) in
            if let thread = state.threads[folder] { return thread }
            if state.threads.count >= Self.mostThreads {
                let shared = state.threads.sorted { $0.key < $1.key }
                return shared[Int(UInt(bitPattern: folder.hashValue) % UInt(shared.count))].value
            }
            let thread = try AudioFileThread(
                onUse: { [onUse] in onUse(folder) },
                onClosed: { [weak self] in self?.noteClosed($0) },
                onDone: { [doneSignal] in doneSignal.wakeup.signal() })
            state.threads[folder] = thread
            return thread
        }
    }

    // MARK: Ends

    /// Finishes files: what waits in their rings is written, and they are closed. Then, or after ``Limits/ending`` if their disk takes
    /// longer, `then` runs on another thread.
    func stop(_ ids: [AudioFileID], then: @escaping @Sendable () -> Void) {
        let places = state.withLock { state -> [(AudioFileID, AudioFileThread)] in
            guard !state.isFinished else { return [] }
            let places = ids.compactMap { id in state.places[id].map { (id, $0.thread) } }
            if !places.isEmpty {
                let deadline = MonotonicClock.now.advanced(by: limits.ending)
                state.endings.append(Ending(files: Set(places.map(\.0)), deadline: deadline, then: then))
            }
            return places
        }
        guard !places.isEmpty else { return then() }
        for (id, thread) in places { thread.finish(id) }
    }

    /// Closes a file that is not wanted, and leaves nothing of it.
    func discard(_ id: AudioFileID) { state.withLock { $0.places[id]?.thread }?.discard(id) }

    private func noteClosed(_ id: AudioFileID) {
        let over = state.withLock { state in
            state.places[id] = nil
            for index in state.endings.indices { state.endings[index].files.remove(id) }
            return state.takeEndings { $0.files.isEmpty }
        }
        for follow in over { follow() }
    }

    /// Finishes all files and ends the threads. Of a disk that does not answer within ``Limits/finish``, the files are given up: its
    /// thread is left alone, and they are reported as failed.
    func finish() {
        let threads = state.withLock { state in
            state.isFinished = true
            return Array(state.threads.values)
        }
        for thread in threads { thread.finish() }
        let deadline = MonotonicClock.now.advanced(by: limits.finish)
        while threads.contains(where: { !$0.isDone }) {
            let left = MonotonicClock.now.duration(to: deadline)
            guard left > .zero else { break }
            doneSignal.wakeup.wait(timeoutMilliseconds: left.forWait + 1)
        }
        for thread in threads { if thread.isDone { thread.join() } else { thread.abandon() } }
        watchSignal.wakeup.signal()
        let watch = state.withLock { $0.watch }
        watch?.join()
        for follow in state.withLock({ $0.takeEndings { _ in true } }) { follow() }
    }

    // MARK: Disks that do not answer

    /// Reports what a disk that does not answer has held up too long by `now`.
    func check(at now: Instant) {
        let threads = state.withLock { Array($0.threads.values) }
        let patience = AudioFileThread.Patience(moving: limits.stall, closing: limits.finish)
        for thread in threads { thread.check(at: now, patience) }
        for follow in state.withLock({ $0.takeEndings { $0.deadline <= now } }) { follow() }
    }

    private func startWatch() throws(RealtimeError) {
        try state.withLock { state throws(RealtimeError) in
            guard state.watch == nil, !state.isFinished else { return }
            state.watch = try RealtimeThread(name: "file-watch") { [self] in while watch() {} }
        }
    }

    /// - Returns: False after the end.
    private func watch() -> Bool {
        let isIdle = state.withLock { $0.places.isEmpty }
        watchSignal.wakeup.wait(timeoutMilliseconds: isIdle ? nil : Self.checkMilliseconds)
        check(at: MonotonicClock.now)
        return state.withLock { !$0.isFinished }
    }
}

extension Duration {
    /// For a wait that takes milliseconds.
    fileprivate var forWait: Int32 { Int32(clamping: nanoseconds / 1_000_000) }
}

/// A call's files: the call's ends of their rings, and their names on the file threads.
struct CallFiles: ~Copyable {
    var rings = CallRings()
    var ids: [AudioFileID] = []
    /// Of these, the recording.
    var recording: AudioFileID?
    /// And the capture.
    var capture: AudioFileID?
    /// The recording's file, of one in mid-call.
    var path: String?
}
