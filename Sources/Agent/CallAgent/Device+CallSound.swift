internal import AudioKit
internal import Call
internal import CallMeetings
public import CallParticipation
internal import CallControl
internal import MediaEngine
public import CallMedia
internal import Realtime

// What is played, recorded and attached in calls that run.
extension Device {
    private func sound(of id: CallID) throws(CallSoundError) -> CallSoundControl {
        try CallSoundControl(calls[id]?.session, id, on: engine)
    }

    /// Plays a WAV or Ogg Opus file in place of the call's source, once; then the source is heard again. A program or bot
    /// hears the peer meanwhile, and what it says waits. Another file that is being played ends.
    ///
    /// - Throws: ``CallSoundError`` if the file cannot be played, or the call's media does not run.
    public func play(_ path: String, on id: CallID) async throws(CallSoundError) {
        try await sound(of: id).play(path)
        publish(.playing(id, path: path))
    }

    /// Plays a file as ``play(_:on:)`` does, and publishes nothing: calls that wait hear theirs again and again.
    func playToWaiting(_ path: String, on id: CallID, isUntilJoined: Bool) async throws(CallSoundError) {
        try await sound(of: id).play(path, isUntilJoined: isUntilJoined)
    }

    /// Stops what ``play(_:on:)`` plays.
    public func stopPlaying(on id: CallID) throws(CallSoundError) { try sound(of: id).stopPlaying() }

    /// Begins to record the call, in the configured format. A path that ends in `.wav` or `.opus` has that format.
    ///
    /// - Parameter path: A file that does not exist yet; nil for one in the folder of the call's behaviour.
    /// - Returns: The file. It has that name when it is whole.
    public func record(_ id: CallID, to path: String? = nil) async throws(CallSoundError) -> String {
        let sound = try sound(of: id)
        guard calls[id]?.opensRecording == false else {
            throw CallSoundError(.wrongState, "a recording of \(id) is being opened")
        }
        calls[id]?.opensRecording = true
        defer { calls[id]?.opensRecording = false }
        let file = try await sound.record(to: path)
        feed(.user(.recordingBegan(path: file)), to: id)
        return file
    }

    /// Ends the recording of a continuing call. ``DeviceEvent/recordingEnded(_:_:_:)`` follows when the file is whole.
    ///
    /// - Returns: The file.
    @discardableResult
    public func stopRecording(_ id: CallID) throws(CallSoundError) -> String {
        let sound = try sound(of: id)
        let path = try sound.recording()
        feed(.user(.recordingStopped), to: id)
        sound.stopRecording()
        return path
    }

    /// Begins to record the room that a call is in: those who speak, in one channel. A path that ends in `.wav` or `.opus` has that
    /// format. The recording ends with the room.
    ///
    /// - Parameter path: A file that does not exist yet; nil for one in the folder of the call's behaviour.
    /// - Returns: The file. It has that name when it is whole.
    public func recordRoom(of id: CallID, to path: String? = nil) async throws(CallSoundError) -> String {
        let sound = try sound(of: id)
        guard let room = share.media.hall.room(of: id.number) else {
            throw CallSoundError(.wrongState, "\(id) is in no room; conference list shows the rooms")
        }
        let name = RecordingName(room: room, at: MonotonicClock.wallTime, key: CallMaker.newKey())
        let recording = try await sound.openRoomRecording(
            to: path, named: "\(name)",
            onFailure: { [weak self] error in Task { await self?.noteFailure(ofRecording: room, error, of: id) } },
            onEnd: { [weak self] end in Task { await self?.publish(.roomRecordingEnded(id, room: room, end)) } })
        return try begin(recording, of: id, in: room)
    }

    /// What follows can be recorded to another file.
    private func noteFailure(ofRecording room: String, _ error: AudioFileError, of id: CallID) {
        publish(.fileFailed(id, error))
        share.media.hall.stopRecording(room)
    }

    private func begin(
        _ recording: consuming MediaEngine.OpenRecording, of id: CallID, in room: String
    ) throws(CallSoundError) -> String {
        let (engine, file, path) = (engine, recording.file, recording.path)
        do throws(MeetingRefusal) {
            try share.media.hall.record(room, to: path, into: recording.ring) { engine.finish(file) }
            publish(.roomRecording(id, room: room, path: path))
            return path
        } catch {
            engine.discard(file)
            throw CallSoundError(.wrongState, error.description)
        }
    }

    /// Ends the recording of the room that a call is in. ``DeviceEvent/roomRecordingEnded(_:room:_:)`` follows when the file is whole.
    ///
    /// - Returns: The file.
    @discardableResult
    public func stopRecordingRoom(of id: CallID) throws(CallSoundError) -> String {
        guard let path = share.media.hall.stopRecording(roomOf: id.number) else {
            throw CallSoundError(.wrongState, "the room of \(id) is not being recorded, or it is in none")
        }
        return path
    }

    /// Lets the configured program or bot take part in a call, in place of its source.
    public func attach(to id: CallID) throws(CallSoundError) {
        let sound = try sound(of: id)
        try sound.checkAttaching()
        guard configuration.behaviour.participation != nil, let call = calls[id]?.session else {
            throw CallSoundError.noProgram
        }
        do {
            guard let line = try participants.begin(in: call, isAttached: true, own: signaling.user) else {
                throw CallSoundError.noProgram
            }
            sound.attach(line)
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
        if participants.hasClosedPort(in: id) { try detach(from: id) }
        let sound = try sound(of: id)
        try sound.checkAttaching()
        do throws(RealtimeError) {
            let port = try participants.openPort(plan, in: id)
            if let line = participants.line(ofPortIn: id) { sound.attach(line) }
            feed(.user(.attached), to: id)
            return port
        } catch {
            throw CallSoundError(.failed, "\(error)")
        }
    }

    /// Removes the program, bot or port from a call, which continues with its source; silence if the source is a program or bot.
    public func detach(from id: CallID) throws(CallSoundError) {
        try sound(of: id).detach()
        feed(.user(.detach), to: id)
    }

    /// Gives the card to a call that waits for it; the one that had it waits in silence.
    ///
    /// - Returns: False if the call does not use the card, or its media does not run.
    @discardableResult
    public func giveCard(to id: CallID) -> Bool { calls[id]?.session.stream.map { engine.giveCard(to: $0) } ?? false }

    /// The card's present levels, from the media worker; nil while no call is on the card.
    public func soundReport() async -> SoundReport? {
        guard let media = calls.mediaOnCard else { return nil }
        return await engine.report(on: media)?.sound
    }
}
