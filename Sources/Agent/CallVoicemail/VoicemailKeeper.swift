internal import AudioKit
internal import BlockingWork
internal import CallParticipation
internal import CallPrograms
internal import CallSounds
internal import Core
internal import Synchronization
internal import Voicemail

/// A message that is being left: its recording, for which the mailbox has room. Without ``finish(isKept:)`` there is no message.
final class VoicemailDraft: Sendable {
    private let recording: CallRecording

    fileprivate init(_ recording: CallRecording) { self.recording = recording }

    deinit { recording.finish(isKept: false) }

    /// Appends what the caller says.
    func append(_ samples: [Int16]) { recording.append(samples) }

    /// Ends the message.
    ///
    /// - Parameter isKept: Otherwise there is none.
    func finish(isKept: Bool) { recording.finish(isKept: isKept) }
}

/// Does with messages what blocks: asks for room, completes what was recorded, reports it, and runs the command.
final class VoicemailKeeper: Sendable {
    /// A command that takes longer is killed.
    static let commandTime = Duration.seconds(60)

    private let publish: @Sendable (ParticipantEvent) -> Void
    /// What is under way, by numbers.
    private let jobs = Mutex<(last: Int, all: [Int: Task<Void, Never>])>((0, [:]))

    init(publish: @escaping @Sendable (ParticipantEvent) -> Void) { self.publish = publish }

    /// Keeps room for a message, and does what follows on its end.
    ///
    /// - Parameters:
    ///   - begun: Receives the draft, or why there is none.
    ///   - saved: Is called when the message is saved, or dropped; or with the reason why it could not be written on.
    func reserve(
        _ plan: VoicemailPlan, _ names: VoicemailNames, _ message: VoicemailMessage, of call: CallID,
        begun: @escaping @Sendable (Result<VoicemailDraft, VoicemailError>) -> Void,
        saved: @escaping @Sendable (SoundFault?) -> Void
    ) {
        let folder = VoicemailFolder(path: plan.folder)
        work { [self] in
            let (ends, end) = AsyncStream.makeStream(of: Result<String?, SoundFault>.self)
            let recording = await BlockingThreads.files.run {
                Result { () throws(VoicemailError) -> CallRecording in
                    let writer = try folder.reserve(names.stem, message, plan.bounds)
                    return CallRecording(
                        path: folder.soundPath(names.stem), rate: VoicemailBounds.rate, opened: writer
                    ) { result in
                        end.yield(result)
                        end.finish()
                    }
                }
            }
            // Nothing here may keep the draft.
            begun(recording.map(VoicemailDraft.init))
            guard case .success = recording else { return }
            for await result in ends {
                let entry = await settle(result, folder, names, of: call)
                if case .failure(let fault) = result { saved(fault) } else { saved(nil) }
                if let entry { await announce(entry, plan, of: call) }
            }
        }
    }

    /// Makes messages of what a process has left that was killed.
    func recover(_ plan: VoicemailPlan) async {
        let folder = VoicemailFolder(path: plan.folder)
        let found = await BlockingThreads.files.run {
            Result { () throws(VoicemailError) in try folder.recover() }
        }
        switch found {
        case .success(let entries): for entry in entries { work { [self] in await announce(entry, plan, of: nil) } }
        case .failure(let error): publish(.noted(.warned("\(error)", leftOut: 0), nil))
        }
    }

    /// Waits until messages are saved and commands have ended, for this long at most.
    func finish(within limit: Duration) async {
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let patience = Task<Void, Never> {
            try? await Task<Never, Never>.sleep(for: limit)
            end.finish()
        }
        Task<Void, Never> { [self] in
            while let job = jobs.withLock({ $0.all.values.first }) { await job.value }
            end.finish()
        }
        for await _ in ends {}
        patience.cancel()
    }

    private func work(_ job: @escaping @Sendable () async -> Void) {
        jobs.withLock { jobs in
            jobs.last += 1
            let number = jobs.last
            jobs.all[number] = Task { [self] in
                await job()
                self.jobs.withLock { $0.all[number] = nil }
            }
        }
    }

    // MARK: Behind a recording

    /// - Returns: The message; nil if there is none.
    private func settle(
        _ result: Result<String?, SoundFault>, _ folder: VoicemailFolder, _ names: VoicemailNames, of call: CallID
    ) async -> VoicemailFolder.Entry? {
        let kept = await BlockingThreads.files.run {
            Result { () throws(VoicemailError) in try Self.keep(result, folder, names.stem) }
        }
        switch kept {
        case .success(let entry): return entry
        case .failure(let error):
            publish(.noted(.warned("\(error)", leftOut: 0), call))
            guard case .success(.some) = result else { return nil }
            // Its sound is whole, although not all that is known of it could be written.
            return await BlockingThreads.files.run { try? folder.message(names.id) }
        }
    }

    private static func keep(
        _ result: Result<String?, SoundFault>, _ folder: VoicemailFolder, _ stem: String
    ) throws(VoicemailError) -> VoicemailFolder.Entry? {
        switch result {
        case .success(nil):
            folder.forget(stem)
            return nil
        case .success: return try folder.complete(stem)
        case .failure: return try folder.rescue(stem)
        }
    }

    private func announce(_ entry: VoicemailFolder.Entry, _ plan: VoicemailPlan, of call: CallID?) async {
        publish(.noted(.stored(entry.message, path: entry.file), call))
        guard !plan.command.isEmpty else { return }
        let failure = await BlockingThreads.programs.run {
            Self.run(plan.command, Array("\(entry.json)\n".utf8), withholding: plan.withheldVariables)
        }
        if let failure { publish(.noted(.warned(failure, leftOut: 0), call)) }
    }

    /// - Returns: Why it failed; nil if it did not.
    private static func run(_ command: [String], _ input: [UInt8], withholding withheld: Set<String>) -> String? {
        let name = command.first ?? ""
        do throws(FilterProgram.Failure) {
            _ = try FilterProgram.run(
                command, input: input, output: .dropped, within: commandTime, withholding: withheld)
            return nil
        } catch {
            switch error {
            case .notStarted(let why): return "cannot start the command \"\(name)\" for a new message: \(why)"
            case .failed(let how):
                return "the command \(name) for a new message failed: \(how). Run it by hand to see why"
            case .tooSlow:
                return "the command \(name) for a new message took longer than \(commandTime.text) and was killed"
            case .tooMuch: return "the command \(name) for a new message wrote too much"
            }
        }
    }
}
