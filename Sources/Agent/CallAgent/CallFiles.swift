internal import AudioKit
internal import BlockingWork
internal import CallControl
internal import CallMedia
internal import Core
internal import Files
internal import Logging
internal import Realtime

/// The files of a device's calls, as it is configured now: folders, names, and what is removed.
struct CallFiles {
    private let behaviour: BehaviourConfiguration
    private let logger: Logger

    init(_ behaviour: BehaviourConfiguration, _ logger: Logger) {
        self.behaviour = behaviour
        self.logger = logger
    }

    // MARK: The behaviour of a call, with the file that it is recorded to

    /// Of a call that comes in.
    ///
    /// - Parameter key: Letters and digits that no other call has.
    func audio(from invite: ReceivedInvite, key: String) -> AudioBehaviour {
        // A trunk's account is not who calls.
        audio(invite.trunk?.caller ?? invite.inviter.text, isOutgoing: false, key)
    }

    /// Of a call to a user.
    ///
    /// - Parameter key: Letters and digits that no other call has.
    func audio(to callee: UserID, key: String) -> AudioBehaviour { audio(callee.text, isOutgoing: true, key) }

    private func audio(_ peer: String, isOutgoing: Bool, _ key: String) -> AudioBehaviour {
        let name = RecordingName(peer: peer, isOutgoing: isOutgoing, at: MonotonicClock.wallTime, key: key)
        return behaviour.audio(named: "\(name)")
    }

    // MARK: Folders

    /// Makes the folder that calls are recorded in, if it was removed.
    func makeRecordingFolder() {
        guard let folder = behaviour.recordingFolder else { return }
        do throws(RegularFileError) {
            try WritableFolder.make(folder)
        } catch {
            logger.error(
                "Calls cannot be recorded: their folder cannot be written to",
                metadata: ["folder": "\(folder)", "error": "\(error.message)"])
        }
    }

    /// Renames recordings that a killed process has left, so that they are known as incomplete.
    func keepLeftRecordings() async {
        guard let folder = behaviour.recordingFolder else { return }
        for path in await BlockingThreads.files.run({ PartFile.keepLeftovers(in: folder) }) {
            logger.notice("A recording of an earlier run was cut off", metadata: ["file": "\(path)"])
        }
    }

    /// Removes recordings that are older, or more, than are kept.
    ///
    /// - Parameter isAgeKnown: Whether the clock can be right; otherwise nothing is removed by age.
    func removeOldRecordings(isAgeKnown: Bool) async {
        guard let folder = behaviour.recordingFolder else { return }
        let (limits, logger) = (behaviour.recordingLimits.applicable(isAgeKnown: isAgeKnown), logger)
        await BlockingThreads.files.run { limits.apply(to: folder, logger) }
    }

    /// The file that a call is captured in, if it can be written.
    func capture(_ path: String) -> String? {
        do throws(AudioFileError) {
            try AppendedFile.check(path: path)
            return path
        } catch {
            logger.error("A call is not captured: its file cannot be written", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Checks that a recording in mid-call can begin in a file.
    func checkRecording(_ path: String) throws(CallSoundError) {
        guard !PartFile.isReserved(path) else {
            throw CallSoundError(
                .file,
                "cannot record to \"\(path)\": .part and .cut are for recordings that are not whole. "
                    + "Name another one.")
        }
        guard FileIdentity(path: path) == nil, FileIdentity(path: PartFile.path(of: path)) == nil else {
            throw CallSoundError(
                .file, "cannot record to \"\(path)\": there is such a file, or what is left of one. Name another one.")
        }
    }
}

extension BehaviourConfiguration {
    /// The file of the call with this number, from 1.
    func capture(number: Int) -> String? {
        guard let capture, number > 1 else { return capture }
        let name = capture.lastIndex(of: "/").map { capture.index(after: $0) } ?? capture.startIndex
        guard let dot = capture[name...].lastIndex(of: "."), dot > name else { return "\(capture)-\(number)" }
        return "\(capture[..<dot])-\(number)\(capture[dot...])"
    }

    /// The behaviour of a call whose recording is to have this name.
    func audio(named name: String) -> AudioBehaviour {
        var audio = AudioBehaviour(
            source: source.sound, recording: recordingFolder.map { "\($0)/\(name).\(recordingFormat.fileExtension)" },
            recordingFormat: recordingFormat)
        audio.keepsEarlierRecording = true
        return audio
    }
}
