internal import AudioKit
internal import AudioPort
internal import Call
internal import CallControl
internal import CallMedia
internal import MediaEngine

/// What a device does at a user's request to the sound of one call whose media runs: files, recordings, and what takes part in it.
struct CallSoundControl {
    private let call: CallSession
    private let stream: MediaCallID
    private let engine: MediaEngine

    /// - Throws: ``CallSoundError`` if the call's media does not run.
    init(_ call: CallSession?, _ id: CallID, on engine: MediaEngine) throws(CallSoundError) {
        // Of a call that has just ended the media may still run: nothing would end what joined it now.
        guard let call, call.record == nil, let stream = call.runningStream else {
            throw CallSoundError(.wrongState, "the media of \(id) does not run: wait until it is established")
        }
        self.call = call
        self.stream = stream
        self.engine = engine
    }

    // MARK: Files

    func play(_ path: String, isUntilJoined: Bool = false) async throws(CallSoundError) {
        try await begin { () throws(MediaStartError) in
            try await engine.play(path, on: stream, isUntilJoined: isUntilJoined) ? path : nil
        }
    }

    func stopPlaying() throws(CallSoundError) {
        guard engine.stopPlaying(on: stream) else {
            throw CallSoundError(.wrongState, "no file is played in \(call.id); play plays one")
        }
    }

    /// - Returns: The file that is played or recorded to.
    @discardableResult
    private func begin(
        _ act: () async throws(MediaStartError) -> String?
    ) async throws(CallSoundError) -> String {
        do throws(MediaStartError) {
            guard let file = try await act() else { throw MediaStartError("the call has just ended") }
            return file
        } catch {
            throw CallSoundError(error.file == nil ? .failed : .file, "\(error)")
        }
    }

    // MARK: Recordings

    /// Begins to record the call.
    ///
    /// - Parameter path: A file that does not exist yet, whose ending may name its format; nil for one in the folder of the call's behaviour.
    /// - Returns: The file.
    func record(to path: String?) async throws(CallSoundError) -> String {
        if let current = call.wholeRecording {
            throw CallSoundError(
                .wrongState, "\(call.id) is being recorded already, to \"\(current)\"; stop that first")
        }
        let (near, format) = try place(path, or: call.audio.recording)
        let order = CallFiles.recording(to: path, near: near, format, of: call)
        return try await begin { () throws(MediaStartError) in try await engine.record(stream, order) }
    }

    /// Opens a recording of the room that the call is in.
    ///
    /// - Parameters:
    ///   - path: A file that does not exist yet, whose ending may name its format; nil for one in the folder of the call's behaviour.
    ///   - name: The file's name there, without its ending.
    func openRoomRecording(
        to path: String?, named name: String, onFailure: @escaping @Sendable (AudioFileError) -> Void,
        onEnd: @escaping @Sendable (RecordingEnd) -> Void
    ) async throws(CallSoundError) -> MediaEngine.OpenRecording {
        let ending = call.recordingFormat.fileExtension
        var (near, format) = try place(path, or: call.audio.recordingFolder.map { "\($0)/\(name).\(ending)" })
        format.channels = 1
        let order = CallFiles.recording(to: near, folder: path == nil ? call.audio.recordingFolder : nil, format)
        do throws(MediaStartError) {
            return try await engine.openRecording(order, onFailure: onFailure, onEnd: onEnd)
        } catch {
            throw CallSoundError(error.file == nil ? .failed : .file, "\(error)")
        }
    }

    /// Where a recording goes, and in which format.
    private func place(
        _ path: String?, or configured: String?
    ) throws(CallSoundError) -> (near: String, RecordingFormat) {
        var format = call.recordingFormat
        if let ending = path.flatMap(RecordingFormat.Container.init(ofFile:)) { format.container = ending }
        guard let near = path ?? configured else {
            throw CallSoundError(
                .notConfigured,
                "say which file to record to, or set record_folder in the configuration of the call's behaviour")
        }
        try CallFiles.checkName(near)
        return (near, format)
    }

    /// The file that is being recorded to.
    func recording() throws(CallSoundError) -> String {
        guard let path = call.recording else {
            throw CallSoundError(.wrongState, "\(call.id) is not being recorded")
        }
        return path
    }

    func stopRecording() { engine.stopRecording(stream) }

    // MARK: What takes part

    /// Checks that a program can begin to take part.
    func checkAttaching() throws(CallSoundError) {
        guard !call.isAttended else {
            throw CallSoundError(.wrongState, "a program or bot takes part in \(call.id) already; detach it first")
        }
        guard !call.usesCard else {
            throw CallSoundError(.wrongState, "\(call.id) is on the sound card, where no program can take part")
        }
    }

    /// Checks that the call can be joined to another one.
    func checkBridging() throws(CallSoundError) {
        guard !call.usesCard else {
            throw CallSoundError(.wrongState, "\(call.id) is on the sound card, and cannot be joined to another call")
        }
    }

    func attach(_ line: consuming PortLine) { engine.attach(line, to: stream) }

    func detach() throws(CallSoundError) {
        guard call.isAttended else {
            throw CallSoundError(.wrongState, "no program or bot takes part in \(call.id)")
        }
        engine.detach(from: stream)
    }
}

extension RecordingFormat.Container {
    /// The container that a file's name ends with; nil for another ending.
    fileprivate init?(ofFile path: String) {
        guard let found = Self.allCases.first(where: { path.hasSuffix(".\($0.rawValue)") }) else { return nil }
        self = found
    }
}
