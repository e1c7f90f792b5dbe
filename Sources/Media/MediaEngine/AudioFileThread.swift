internal import AudioKit
internal import CallMedia
internal import Realtime
internal import Synchronization

/// The thread that moves audio between files and the rings of calls, so that no media thread ever waits for a disk.
final class AudioFileThread: Sendable {
    /// Names one file being played or recorded.
    struct StreamID: Hashable, Sendable {
        let rawValue: UInt64
    }

    /// Samples a player keeps ahead: a third of a second.
    private static let playCapacity = 16_384
    /// Samples a recording may wait for a slow disk: 1.4 s.
    private static let recordCapacity = 65_536
    /// How often files are moved, in milliseconds; several times within what the rings hold.
    private static let intervalMilliseconds: Int32 = 40

    private let state = Mutex(State())
    private let wakeup: WakeupHolder
    private let thread: Mutex<RealtimeThread?>

    private final class WakeupHolder: Sendable {
        let wakeup: Wakeup
        init() throws(RealtimeError) { wakeup = try Wakeup() }
    }

    private struct State {
        var lastID: UInt64 = 0
        var streams: [StreamID: any AudioFileStream] = [:]
        var endings: [Ending] = []
        var isFinished = false
    }

    private struct Ending {
        var streams: [StreamID]
        var then: @Sendable () -> Void
    }

    /// Starts the thread; it sleeps until there is a file.
    init() throws(RealtimeError) {
        wakeup = try WakeupHolder()
        thread = Mutex(nil)
    }

    /// Opens the files of a call. A recording or capture that cannot be written is reported to `onFailure` and left
    /// out, because a call is worth more than its recording.
    ///
    /// - Parameter reports: Are made once for a recording that cannot be opened, and for each file that fails later.
    /// - Throws: ``MediaStartError`` if the file to be played cannot be read.
    func open(
        _ audio: AudioBehaviour, capture: CaptureOrder? = nil, _ reports: FileReports
    ) throws(MediaStartError) -> CallFiles {
        var files = CallFiles()
        do throws(AudioFileError) {
            if case .file(let path, let loops) = audio.source {
                let reader = try AudioFileReader(path: path, loops: loops)
                let ring = AudioRing(capacity: Self.playCapacity)
                files.rings.player = .some(ring.consumer)
                files.ids.append(add(PlayerStream(reader, into: ring.producer, onFailure: reports.onFailure)))
            }
        } catch {
            throw MediaStartError("\(error)", file: error)
        }
        if let path = audio.recording {
            do throws(AudioFileError) {
                try record(
                    to: path, audio.recordingFormat, keepsEarlier: audio.keepsEarlierRecording, into: &files, reports)
            } catch {
                reports.onFailure(error)
            }
        }
        if let capture { begin(capture, into: &files, onFailure: reports.onFailure) }
        do throws(RealtimeError) {
            try startIfNeeded()
        } catch {
            stop(files.ids) {}
            throw MediaStartError("\(error)")
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
    /// - Throws: ``MediaStartError`` if it cannot be written.
    func record(
        to path: String, _ format: RecordingFormat, _ reports: FileReports
    ) throws(MediaStartError) -> CallFiles {
        var files = CallFiles()
        do throws(AudioFileError) {
            try record(to: path, format, keepsEarlier: true, into: &files, reports)
        } catch {
            throw MediaStartError("\(error)", file: error)
        }
        do throws(RealtimeError) {
            try startIfNeeded()
        } catch {
            stop(files.ids) {}
            throw MediaStartError("\(error)")
        }
        return files
    }

    private func record(
        to path: String, _ format: RecordingFormat, keepsEarlier: Bool, into files: inout CallFiles,
        _ reports: FileReports
    ) throws(AudioFileError) {
        let played = state.withLock { $0.streams.values.compactMap(\.played) }
        let writer = try RecordingWriter(path: path, format, keepsEarlier: keepsEarlier, sparing: played)
        let ring = AudioRing(capacity: Self.recordCapacity)
        files.rings.recorder = .some(ring.producer)
        let id: StreamID
        if format.channels == 2 {
            let sent = AudioRing(capacity: Self.recordCapacity)
            files.rings.sentRecorder = .some(sent.producer)
            id = add(RecorderStream(writer, from: ring.consumer, and: .some(sent.consumer), reports))
        } else {
            id = add(RecorderStream(writer, from: ring.consumer, reports))
        }
        files.ids.append(id)
        files.recording = id
    }

    private func begin(
        _ order: CaptureOrder, into files: inout CallFiles, onFailure: @escaping @Sendable (AudioFileError) -> Void
    ) {
        do throws(AudioFileError) {
            let ring = SPSCRing<CaptureRecord>(capacity: order.records)
            let stream = try CaptureStream(order, from: ring.consumer, onFailure: onFailure)
            files.rings.capture = .some(CaptureWriter(ring.producer, at: order.at))
            files.ids.append(add(stream))
        } catch {
            onFailure(error)
        }
    }

    /// Finishes files: what waits in their rings is written, and they are closed. `then` runs on the file thread.
    func stop(_ ids: [StreamID], then: @escaping @Sendable () -> Void) {
        guard !ids.isEmpty else { return then() }
        state.withLock { $0.endings.append(Ending(streams: ids, then: then)) }
        wakeup.wakeup.signal()
    }

    /// Finishes all files and ends the thread.
    func finish() {
        state.withLock { $0.isFinished = true }
        wakeup.wakeup.signal()
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    private func add(_ stream: some AudioFileStream) -> StreamID {
        // The first block is there before the call begins.
        stream.move()
        let id = state.withLock { state in
            state.lastID += 1
            let id = StreamID(rawValue: state.lastID)
            state.streams[id] = stream
            return id
        }
        // Without streams the thread waits until it is woken, however long that takes.
        wakeup.wakeup.signal()
        return id
    }

    private func startIfNeeded() throws(RealtimeError) {
        try thread.withLock { thread throws(RealtimeError) in
            guard thread == nil, !state.withLock({ $0.streams.isEmpty }) else { return }
            thread = try RealtimeThread(name: "audio-files") { [self] in
                while !turn() {}
            }
        }
    }

    /// Waits for the next interval, or without streams for a wake-up, and moves what there is to move.
    ///
    /// Code that changes what the wait depends on, or adds work, must signal the wake-up afterwards.
    /// - Returns: Whether that was the last turn.
    private func turn() -> Bool {
        let isIdle = state.withLock { $0.streams.isEmpty }
        wakeup.wakeup.wait(timeoutMilliseconds: isIdle ? nil : Self.intervalMilliseconds)
        let (streams, endings, isLast) = state.withLock { state in
            defer { state.endings = [] }
            return (state.streams, state.endings, state.isFinished)
        }
        for stream in streams.values { stream.move() }
        for ending in endings {
            for id in ending.streams { streams[id]?.finish() }
            state.withLock { state in ending.streams.forEach { state.streams[$0] = nil } }
            ending.then()
        }
        if isLast {
            for stream in streams.values { stream.finish() }
            state.withLock { $0.streams = [:] }
        }
        return isLast
    }
}

/// A call's files: the call's ends of their rings, and their names on the file thread.
struct CallFiles: ~Copyable {
    var rings = CallRings()
    var ids: [AudioFileThread.StreamID] = []
    /// Of these, the recording.
    var recording: AudioFileThread.StreamID?
}
