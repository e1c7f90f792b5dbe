internal import AudioKit
internal import BlockingWork
internal import Call
internal import CallControl
internal import CallMedia
internal import CallVoicemail
internal import Core
internal import Files
internal import Logging
internal import MediaEngine
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
    func audio(from invite: ReceivedInvite) -> AudioBehaviour {
        // A trunk's account is not who calls.
        audio(invite.trunk?.caller ?? invite.inviter.text, isOutgoing: false)
    }

    /// Of a call to a user.
    func audio(to callee: UserID) -> AudioBehaviour { audio(callee.text, isOutgoing: true) }

    private func audio(_ peer: String, isOutgoing: Bool) -> AudioBehaviour {
        behaviour.audio(named: Self.name(peer, isOutgoing: isOutgoing))
    }

    private static func name(_ peer: String, isOutgoing: Bool) -> String {
        let name = RecordingName(
            peer: peer, isOutgoing: isOutgoing, at: MonotonicClock.wallTime, key: CallMaker.newKey())
        return "\(name)"
    }

    /// The part of a call that comes in and takes the place of one with this part: the same, with a recording of its own.
    static func part(continuing former: CallPart, from invite: ReceivedInvite) -> CallPart {
        former.recorded(named: name(invite.trunk?.caller ?? invite.inviter.text, isOutgoing: false))
    }

    /// The same of a call to a user.
    static func part(continuing former: CallPart, to callee: UserID) -> CallPart {
        former.recorded(named: name(callee.text, isOutgoing: true))
    }

    // MARK: Folders

    /// Makes the folder that calls are recorded in, and renames recordings that a killed process has left there, so that they are known
    /// as incomplete.
    func prepareRecordings() async {
        guard let folder = behaviour.recordingFolder else { return }
        do throws(RegularFileError) {
            try await BlockingThreads.files.run { () throws(RegularFileError) in try WritableFolder.make(folder) }
        } catch {
            logger.error(
                "Calls cannot be recorded: their folder cannot be written to",
                metadata: ["folder": "\(folder)", "error": "\(error.message)"])
        }
        for path in await BlockingThreads.files.run({ PartFile.keepLeftovers(in: folder) }) {
            logger.notice("A recording of an earlier run was cut off", metadata: ["file": "\(path)"])
        }
    }

    /// Removes recordings and messages that are older, or more, than are kept.
    ///
    /// - Parameter isAgeKnown: Whether the clock can be right; otherwise nothing is removed by age.
    func removeOldRecordings(isAgeKnown: Bool) async {
        if isAgeKnown { await removeOldMessages() }
        guard let folder = behaviour.recordingFolder else { return }
        let (limits, logger) = (behaviour.recordingLimits.applicable(isAgeKnown: isAgeKnown), logger)
        await BlockingThreads.files.run { limits.apply(to: folder, logger) }
    }

    private func removeOldMessages() async {
        guard let plan = behaviour.source.mailbox else { return }
        let folder = VoicemailFolder(path: plan.folder)
        do throws(VoicemailError) {
            let count = try await BlockingThreads.files.run { () throws(VoicemailError) in
                try folder.removeExpired(plan.bounds, leftSince: RecordingLimits.earliestTime)
            }
            if count > 0 {
                logger.info("Old messages are removed", metadata: ["count": "\(count)", "folder": "\(folder.path)"])
            }
        } catch {
            logger.warning("Old messages are not removed", metadata: ["error": "\(error)"])
        }
    }

    // MARK: Recordings in mid-call

    /// Checks that a recording may have a name.
    static func checkName(_ path: String) throws(CallSoundError) {
        guard !PartFile.isReserved(path) else {
            throw CallSoundError(
                .file,
                "cannot record to \"\(path)\": .part and .cut are for recordings that are not whole. "
                    + "Name another one.")
        }
    }

    /// What makes the file of a recording, on the thread that waits for its disk.
    ///
    /// - Parameters:
    ///   - path: Nil for the next one in the folder of the call's behaviour.
    ///   - near: `path`, or the call's file there, which is in the same folder.
    static func recording(
        to path: String?, near: String, _ format: RecordingFormat, of call: CallSession
    ) -> RecordingOrder {
        recording(near: near, folder: path == nil ? call.audio.recordingFolder : nil, format) {
            path ?? call.nextRecording { FileIdentity(path: $0) != nil } ?? near
        }
    }

    /// The same of a file with this name.
    ///
    /// - Parameter folder: What is made for it.
    static func recording(to path: String, folder: String?, _ format: RecordingFormat) -> RecordingOrder {
        recording(near: path, folder: folder, format) { path }
    }

    private static func recording(
        near: String, folder: String?, _ format: RecordingFormat, choose: @escaping @Sendable () -> String
    ) -> RecordingOrder {
        RecordingOrder(near: near, format) { () throws(AudioFileError) in
            // What is wrong with the folder is wrong with the file, too.
            if let folder { try? WritableFolder.make(folder) }
            let name = choose()
            guard FileIdentity(path: name) == nil, FileIdentity(path: PartFile.path(of: name)) == nil else {
                throw AudioFileError(taken: name)
            }
            return name
        }
    }
}

extension CallPart {
    /// The same, with a recording of this name if it has a folder for them.
    fileprivate func recorded(named name: String) -> CallPart {
        var part = self
        part.audio.recording = audio.recordingFolder.map { "\($0)/\(name).\(audio.recordingFormat.fileExtension)" }
        return part
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
        audio.recordingFolder = recordingFolder
        return audio
    }
}

/// The name of a call's recording: when the call began, in UTC, and who is at the other end.
///
/// What the peer calls itself is its own choice, so that it is escaped and bounded; the key keeps calls of the same millisecond, also of
/// several processes, apart.
struct RecordingName: CustomStringConvertible {
    /// Bytes of the peer's name, with escapes.
    static let mostBytes = 64
    /// Characters of the key, at its end.
    static let keyLength = 6
    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@+".utf8)

    /// The name, without an ending.
    let description: String

    /// - Parameter key: Letters and digits.
    init(peer: String, isOutgoing: Bool, at time: WallClock, key: String) {
        self.init(isOutgoing ? "to" : "from", peer, at: time, key: key)
    }

    /// Of a room.
    init(room: String, at time: WallClock, key: String) { self.init("room", room, at: time, key: key) }

    private init(_ kind: String, _ name: String, at time: WallClock, key: String) {
        // A colon is no character of names on memory cards (FAT).
        let clock = time.rfc3339.map { $0 == ":" ? "-" : $0 }
        description = "\(String(clock))_\(kind)_\(Self.escaped(name))_\(key.prefix(Self.keyLength))"
    }

    /// The beginning of a name; `~` is in place of what is left out.
    private static func escaped(_ name: String) -> String {
        var text = ""
        for byte in name.utf8 {
            let next =
                plain.contains(byte)
                ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            guard text.utf8.count + next.utf8.count <= mostBytes else { return text + "~" }
            text += next
        }
        return text
    }
}
