public import AudioKit
public import AudioPort
public import CallMedia
public import Realtime
internal import Synchronization

// What is played in place of a call's source, recorded, and attached, while the call runs.
extension MediaEngine {
    /// A file that is played in place of a call's source.
    struct Announcement {
        let number: UInt64
        let path: String
        let file: AudioFileID
        /// Whether the file fails.
        let failure: FailureNote
    }

    /// Notes that a file has failed: on the file thread, before the end of its sound is read.
    final class FailureNote: Sendable {
        private let note = Atomic(false)
        var hasFailed: Bool { note.load(ordering: .acquiring) }
        func fail() { note.store(true, ordering: .releasing) }
    }

    /// Plays a file in place of the call's source, once; then the source is heard again. Another file that is being played
    /// ends. ``MediaEvent/announcementEnded(_:path:_:)`` follows.
    ///
    /// Runs on the caller's actor, which does nothing else between the beginning and the return, so that it learns of the end later.
    ///
    /// - Parameter isUntilJoined: Whether another call that is joined to this one is heard in place of the file from its first sound on.
    /// - Returns: False if the call has ended.
    /// - Throws: ``MediaStartError`` if the file cannot be played.
    public nonisolated(nonsending) func play(
        _ path: String, on id: MediaCallID, isUntilJoined: Bool = false
    ) async throws(MediaStartError) -> Bool {
        guard worker(of: id) != nil else { return false }
        let (failure, reports) = (FailureNote(), reports(on: id))
        let noting = FileReports(onFailure: { error in
            failure.fail()
            reports.onFailure(error)
        })
        var opened = try await files.play(path, noting)
        guard let file = opened.ids.first else { return false }
        // A file that cannot be played ends nothing.
        endAnnouncement(of: id, number: nil, .stopped)
        let number = newID().rawValue
        let isRunning = state.withLock { state in
            state.calls[id]?.files.append(file)
            state.calls[id]?.announcement = Announcement(number: number, path: path, file: file, failure: failure)
            return state.calls[id] != nil
        }
        guard isRunning else {
            files.stop([file]) {}
            return false
        }
        var change = AudioChange(.announcement(number: number), installs: true)
        change.player = opened.rings.player.take()
        change.yieldsToBridge = isUntilJoined
        send(change, to: id) {}
        return true
    }

    /// Stops what ``play(_:on:)`` plays.
    ///
    /// - Returns: False if nothing is played.
    @discardableResult
    public func stopPlaying(on id: MediaCallID) -> Bool { endAnnouncement(of: id, number: nil, .stopped) }

    /// Ends an announcement; with a number, only that one.
    @discardableResult
    func endAnnouncement(of id: MediaCallID, number: UInt64?, _ end: AnnouncementEnd) -> Bool {
        let ended = state.withLock { state -> Announcement? in
            guard let current = state.calls[id]?.announcement, number == nil || number == current.number else {
                return nil
            }
            state.calls[id]?.announcement = nil
            state.calls[id]?.files.removeAll { $0 == current.file }
            return current
        }
        guard let ended else { return false }
        send(AudioChange(.announcement(number: ended.number), installs: false), to: id) { [files] in
            files.stop([ended.file]) {}
        }
        tellEnd(of: ended, in: id, end)
        return true
    }

    func tellEnd(of announcement: Announcement, in id: MediaCallID, _ end: AnnouncementEnd) {
        let hasFailed = end == .played && announcement.failure.hasFailed
        onEvent(.announcementEnded(id, path: announcement.path, hasFailed ? .failed : end))
    }

    /// Whether the call is being recorded.
    public func isRecording(_ id: MediaCallID) -> Bool { state.withLock { $0.calls[id]?.recording != nil } }

    /// Whether the call is being captured.
    public func isCaptured(_ id: MediaCallID) -> Bool { state.withLock { $0.calls[id]?.capture != nil } }

    /// Begins to record the call, in place of a recording that there is. ``MediaEvent/recordingEnded(_:_:)`` follows, soon after the
    /// end of the call at the latest.
    ///
    /// Runs on the caller's actor, which does nothing else between the beginning and the return, so that it learns of the end later.
    ///
    /// - Returns: The file; nil if the call has ended.
    /// - Throws: ``MediaStartError`` if the file cannot be written, or its disk does not answer.
    public nonisolated(nonsending) func record(
        _ id: MediaCallID, _ order: RecordingOrder
    ) async throws(MediaStartError) -> String? {
        guard worker(of: id) != nil else { return nil }
        var opened = try await files.record(order, reports(on: id))
        guard let file = opened.recording, let path = opened.path else { return nil }
        let (isRunning, former) = state.withLock { state in
            let former = state.calls[id]?.recording
            state.calls[id]?.files.removeAll { $0 == former }
            state.calls[id]?.files.append(file)
            state.calls[id]?.recording = file
            return (state.calls[id] != nil, former)
        }
        guard isRunning else {
            files.discard(file)
            return nil
        }
        var change = AudioChange(.recording, installs: true, recordsSent: order.format.channels == 2)
        change.recorder = opened.rings.recorder.take()
        change.sentRecorder = opened.rings.sentRecorder.take()
        send(change, to: id) { [files] in files.stop([former].compactMap(\.self)) {} }
        return path
    }

    /// Ends the recording of a call that continues.
    ///
    /// - Returns: False if it is not being recorded.
    @discardableResult
    public func stopRecording(_ id: MediaCallID) -> Bool {
        let former = state.withLock { state in
            let former = state.calls[id]?.recording
            state.calls[id]?.recording = nil
            state.calls[id]?.files.removeAll { $0 == former }
            return former
        }
        guard let former else { return false }
        send(AudioChange(.recording, installs: false), to: id) { [files] in files.stop([former]) {} }
        return true
    }

    /// A recording that belongs to no call, such as that of a room.
    @frozen
    public struct OpenRecording: ~Copyable {
        /// What is recorded is written here, by one thread.
        public var ring: AudioRing.Producer
        /// The file. It has that name when it is whole.
        public let path: String
        /// For ``MediaEngine/finish(_:)``.
        public let file: RecordingFile
    }

    /// Names the file of an ``OpenRecording``.
    public struct RecordingFile: Sendable {
        let id: AudioFileID
    }

    /// Opens a recording that belongs to no call. It ends by ``finish(_:)`` or ``discard(_:)``, or with the engine.
    ///
    /// - Parameters:
    ///   - onFailure: The file has failed, or its disk does not answer.
    ///   - onEnd: The file is closed. Both are called on other threads.
    /// - Throws: ``MediaStartError`` if the file cannot be written, or its disk does not answer.
    public nonisolated(nonsending) func openRecording(
        _ order: RecordingOrder, onFailure: @escaping @Sendable (AudioFileError) -> Void,
        onEnd: @escaping @Sendable (RecordingEnd) -> Void
    ) async throws(MediaStartError) -> OpenRecording {
        var opened = try await files.record(order, FileReports(onFailure: onFailure, onRecordingEnd: onEnd))
        guard let file = opened.recording, let path = opened.path, let ring = opened.rings.recorder.take() else {
            throw MediaStartError("the recording has no file")
        }
        return OpenRecording(ring: ring, path: path, file: RecordingFile(id: file))
    }

    /// Writes what waits for a recording, and closes its file.
    public func finish(_ recording: RecordingFile) { files.stop([recording.id]) {} }

    /// Closes a recording that is not wanted, and leaves no file.
    public func discard(_ recording: RecordingFile) { files.discard(recording.id) }

    /// Has a program be heard in place of the call's source, and hear the peer.
    public func attach(_ line: consuming PortLine, to id: MediaCallID) {
        var change = AudioChange(.line, installs: true)
        change.line = .some(line)
        send(change, to: id) {}
    }

    /// Lets the program leave; the call's source is heard again, and silence if that is a program.
    public func detach(from id: MediaCallID) { send(AudioChange(.line, installs: false), to: id) {} }

    /// One of two calls that are joined.
    public struct BridgeEnd: Sendable {
        let id: MediaCallID
        let suspendsProgram: Bool
        let endsFile: Bool

        /// Describes a call.
        ///
        /// - Parameters:
        ///   - suspendsProgram: Its program is paused while it hears the other call.
        ///   - endsFile: The other call is heard in place of the file that is played in it, too.
        public init(_ id: MediaCallID, suspendsProgram: Bool = false, endsFile: Bool = false) {
            self.id = id
            self.suspendsProgram = suspendsProgram
            self.endsFile = endsFile
        }
    }

    /// Joins two calls: each hears the other in place of its source and its program, which continue when it is parted.
    ///
    /// A call hears what it did before until the other one has sound, for ``BridgeLines/longestWait`` at most;
    /// ``MediaEvent/bridgeHeard(_:)`` reports that.
    public func bridge(_ one: BridgeEnd, to other: BridgeEnd) {
        let lines = BridgeLines.make()
        bridge(one, to: lines.one)
        bridge(other, to: lines.other)
    }

    private func bridge(_ end: BridgeEnd, to line: consuming PortLine) {
        var change = AudioChange(.bridge, installs: true)
        change.suspendsLine = end.suspendsProgram
        change.waitsForSound = true
        change.outlivesAnnouncement = end.endsFile
        change.line = .some(line)
        send(change, to: end.id) {}
    }

    /// Has a call hear silence in place of its source and its program, and the file that is played in it.
    public func bridgeToSilence(_ id: MediaCallID, suspending: Bool) {
        let lines = BridgeLines.make()
        bridge(id, to: lines.one, suspending: suspending)
    }

    /// Has a call hear another call or a room in place of its source and its program.
    ///
    /// - Parameter suspending: Whether the program is paused meanwhile, and hears nothing.
    public func bridge(_ id: MediaCallID, to line: consuming PortLine, suspending: Bool = false) {
        var change = AudioChange(.bridge, installs: true)
        change.suspendsLine = suspending
        change.line = .some(line)
        send(change, to: id) {}
    }

    /// Has a call hear its program, or its source, again.
    public func unbridge(_ id: MediaCallID) { send(AudioChange(.bridge, installs: false), to: id) {} }

    /// How the file thread reports on files of a call.
    func reports(on id: MediaCallID) -> FileReports {
        FileReports(
            onFailure: { [onEvent] in onEvent(.fileFailed(id, $0)) },
            onRecordingEnd: { [onEvent] in onEvent(.recordingEnded(id, $0)) })
    }

    /// Gives a change to the call's worker. `then` runs when the worker has released what the call had.
    private func send(_ change: consuming AudioChange, to id: MediaCallID, then: @escaping @Sendable () -> Void) {
        guard let worker = worker(of: id) else { return then() }
        let memory = UnsafeMutablePointer<AudioChange>.allocate(capacity: 1)
        unsafe memory.initialize(to: change)
        state.withLock { $0.audioChanges[UInt(bitPattern: memory)] = then }
        unsafe worker.enqueue(.changeAudio(id, memory))
    }
}
