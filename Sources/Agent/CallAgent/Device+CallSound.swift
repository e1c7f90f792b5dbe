internal import AudioKit
internal import Call
public import CallParticipation
internal import CallControl
internal import Logging
internal import MediaEngine
internal import CallMedia
internal import Realtime

// What is played, recorded and attached in calls that run.
extension Device {
    /// Plays a WAV or Ogg Opus file in place of the call's source, once; then the source is heard again. A program or bot
    /// hears the peer meanwhile, and what it says waits. Another file that is being played ends.
    ///
    /// - Throws: ``CallSoundError`` if the file cannot be played, or the call's media does not run.
    public func play(_ path: String, on id: CallID) async throws(CallSoundError) {
        let media = try runningMedia(of: id)
        do throws(MediaStartError) {
            guard try await engine.play(path, on: media) else { throw MediaStartError("the call has just ended") }
        } catch {
            throw CallSoundError(error.file == nil ? .failed : .file, "\(error)")
        }
        publish(.playing(id, path: path))
    }

    /// Stops what ``play(_:on:)`` plays.
    public func stopPlaying(on id: CallID) throws(CallSoundError) {
        guard engine.stopPlaying(on: try runningMedia(of: id)) else {
            throw CallSoundError(.wrongState, "no file is played in \(id); play plays one")
        }
    }

    /// Begins to record the call, in the configured format. A path that ends in `.wav` or `.opus` has that format.
    ///
    /// - Parameter path: A file that does not exist yet; nil for one in the configured folder.
    /// - Returns: The file. It has that name when it is whole.
    public func record(_ id: CallID, to path: String? = nil) async throws(CallSoundError) -> String {
        let media = try runningMedia(of: id)
        guard let call = calls[id], !call.opensRecording else {
            throw CallSoundError(.wrongState, "a recording of \(id) is being opened")
        }
        if let current = call.session.wholeRecording {
            throw CallSoundError(.wrongState, "\(id) is being recorded already, to \"\(current)\"; stop that first")
        }
        var format = call.session.recordingFormat
        if let ending = path.flatMap(RecordingFormat.Container.init(ofFile:)) { format.container = ending }
        guard let near = path ?? call.session.audio.recording else {
            throw CallSoundError(
                .notConfigured, "say which file to record to, or set behaviour.record_folder in the configuration")
        }
        try files.checkName(near)
        let order = files.recording(to: path, near: near, format, of: call.session)
        calls[id]?.opensRecording = true
        defer { calls[id]?.opensRecording = false }
        do throws(MediaStartError) {
            guard let file = try await engine.record(media, order) else {
                throw MediaStartError("the call has just ended")
            }
            feed(.user(.recordingBegan(path: file)), to: id)
            return file
        } catch {
            throw CallSoundError(error.file == nil ? .failed : .file, "\(error)")
        }
    }

    /// Ends the recording of a continuing call. ``DeviceEvent/recordingEnded(_:_:_:)`` follows when the file is whole.
    ///
    /// - Returns: The file.
    @discardableResult
    public func stopRecording(_ id: CallID) throws(CallSoundError) -> String {
        let media = try runningMedia(of: id)
        guard let path = calls[id]?.session.recording else {
            throw CallSoundError(.wrongState, "\(id) is not being recorded")
        }
        feed(.user(.recordingStopped), to: id)
        engine.stopRecording(media)
        return path
    }

    /// Lets the configured program or bot take part in a call, in place of its source.
    public func attach(to id: CallID) throws(CallSoundError) {
        let media = try mediaWithoutProgram(of: id)
        let hasNoProgram = CallSoundError(
            .notConfigured, "the configuration names no program or bot: set behaviour.attach to exec or bot")
        guard configuration.hasParticipant else { throw hasNoProgram }
        do {
            guard let line = try beginParticipation(in: id, isAttached: true) else { throw hasNoProgram }
            engine.attach(line, to: media)
        } catch let error as CallSoundError {
            throw error
        } catch {
            feed(.user(.attachingFailed), to: id)
            throw CallSoundError(.failed, "\(error)")
        }
        feed(.user(.attached), to: id)
    }

    /// Lets this process take part in a call that runs, in place of its source. A closed port that the call has leaves it.
    ///
    /// ``detach(from:)`` ends the port's part in the call.
    public func attachPort(_ plan: PortPlan = PortPlan(), to id: CallID) throws(CallSoundError) -> CallPort {
        if participants.ports.isClosed(id) { try detach(from: id) }
        let media = try mediaWithoutProgram(of: id)
        do throws(RealtimeError) {
            let port = try participants.ports.open(plan, for: id)
            calls[id]?.participant = participants.ports
            if let line = participants.ports.attach(to: id) { engine.attach(line, to: media) }
            feed(.user(.attached), to: id)
            return port
        } catch {
            throw CallSoundError(.failed, "\(error)")
        }
    }

    /// The media of a call in which a program can begin to take part.
    private func mediaWithoutProgram(of id: CallID) throws(CallSoundError) -> MediaCallID {
        let media = try runningMedia(of: id)
        guard calls[id]?.session.isAttended != true else {
            throw CallSoundError(.wrongState, "a program or bot takes part in \(id) already; detach it first")
        }
        guard calls[id]?.session.usesCard != true else {
            throw CallSoundError(.wrongState, "\(id) is on the sound card, where no program can take part")
        }
        return media
    }

    /// Removes the program, bot or port from a call, which continues with its source; silence if the source is a program or bot.
    public func detach(from id: CallID) throws(CallSoundError) {
        let media = try runningMedia(of: id)
        guard calls[id]?.session.isAttended == true else {
            throw CallSoundError(.wrongState, "no program or bot takes part in \(id)")
        }
        engine.detach(from: media)
        feed(.user(.detach), to: id)
    }

    private func runningMedia(of id: CallID) throws(CallSoundError) -> MediaCallID {
        // Of a call that has just ended the media may still run: nothing would end what joined it now.
        guard let call = calls[id], call.session.record == nil, let media = call.media.negotiated.runningID else {
            throw CallSoundError(.wrongState, "the media of \(id) does not run: wait until it is established")
        }
        return media
    }

    // MARK: Recordings

    func recordingEnded(in media: MediaCallID, _ end: RecordingEnd) {
        guard let (id, reason) = calls.recordingEnded(in: media, end.requestedPath, isWhole: end.failure == nil) else {
            return
        }
        publish(.recordingEnded(id, end, reason))
    }
}

extension RecordingFormat.Container {
    /// The container that a file's name ends with; nil for another ending.
    fileprivate init?(ofFile path: String) {
        guard let found = Self.allCases.first(where: { path.hasSuffix(".\($0.rawValue)") }) else { return nil }
        self = found
    }
}
