internal import BlockingWork
public import CallControl
public import CallDiagnosis
internal import FoundationEssentials
public import Logging
internal import Files
internal import Synchronization
internal import VoiceActivity

/// One record of every call, answered or missed, in a file that survives a crash (contract CALL-7).
///
/// A line is written when a call begins and another when it ends, both on disk before the end is reported, unless the disk
/// takes longer than two seconds. If a call's end is missing when the file is opened again, the program was killed during the
/// call, and the end is added then. Lines are JSON; only the owner may read the file, and it is bounded: at 4 MiB it becomes
/// `PATH.1`, and four such are kept. Records can be kept for a number of days, too. One process at a time keeps records in a
/// file (`PATH.lock`).
public final class CallJournal: Sendable {
    private enum Job: Sendable {
        case write(KeptCall, done: @Sendable () -> Void)
        case prune
    }

    private let application: String
    private let queue: AsyncStream<Job>.Continuation
    private let writer: Task<Void, Never>
    private let patience: Duration
    private let logger: Logger

    /// Opens a journal; records of another application are removed first (AUTH-8).
    ///
    /// If the file cannot be used, the log says so, and calls continue without records.
    ///
    /// - Parameter days: For how long records are kept; nil for as long as there is room.
    public convenience init(path: String, application: String, days: Int? = nil, logger: Logger) {
        self.init(
            path: path, application: application, days: days, patience: .seconds(2), on: .records, logger: logger)
    }

    /// - Parameters:
    ///   - patience: How long a call's end and ``close()`` wait for the disk.
    ///   - threads: Where the disk is waited for.
    init(
        path: String, application: String, days: Int? = nil, patience: Duration, on threads: BlockingThreads,
        logger: Logger
    ) {
        self.application = application
        self.patience = patience
        self.logger = logger
        // Two lines a call, a few hundred bytes each; if the disk stalls for longer, records are lost.
        let (jobs, queue) = AsyncStream.makeStream(of: Job.self, bufferingPolicy: .bufferingOldest(16_384))
        self.queue = queue
        writer = Task.detached {
            let opened = await threads.run { Self.open(path, application, logger) }
            let journal = opened?.journal
            for await job in jobs {
                switch job {
                case .write(let entry, let done):
                    await threads.run { Self.append([entry], to: journal, logger) }
                    done()
                case .prune: await threads.run { Self.prune(journal, days, logger) }
                }
            }
            withExtendedLifetime(opened) {}
        }
    }

    /// Notes that a call begins, and gives it a name of the journal's.
    func begin(invite: InviteID?, peer: UserID, direction: CallRecord.Direction) -> String {
        let key = UUID().uuidString.lowercased()
        let entry = KeptCall(
            call: key, application: application, isOver: false, began: Self.now, invite: invite?.text,
            direction: direction.rawValue, peer: peer.text)
        queue.yield(.write(entry, done: {}))
        return key
    }

    /// Notes how a call ended; `done` is called when that is on disk, or cannot be, or the disk takes too long.
    func end(
        _ key: String, _ record: CallRecord, turns: TurnSummary? = nil, media: MediaFacts? = nil,
        timeline: CallTimeline? = nil, moments: [CallMoment] = [], recordings: [KeptCall.Recording] = [],
        decidedBy: String? = nil,
        done: @escaping @Sendable () -> Void
    ) {
        var entry = KeptCall(
            call: key, application: application, isOver: true, began: nil, invite: record.invite?.text,
            direction: record.direction.rawValue, peer: record.peer.text)
        entry.ended = Self.now
        entry.answeredAfter = record.answeredAfter.map(Self.milliseconds)
        entry.establishedAfter = record.establishedAfter.map(Self.milliseconds)
        entry.setUpTime = record.setUpTime.map(Self.milliseconds)
        entry.duration = Self.milliseconds(record.duration)
        entry.reason = record.reason.rawValue
        entry.endedBy = record.endedBy.rawValue
        entry.cause = record.cause?.rawValue
        entry.error = record.error.map(\.description)
        entry.hangUpCause = record.hangUpCause?.rawValue
        entry.transferredBy = record.transferredBy?.text
        entry.transferredTo = record.transferredTo?.text
        entry.turns = turns.map(KeptCall.Turns.init)
        entry.media = media
        entry.timeline = timeline
        entry.moments = moments.isEmpty ? nil : moments
        entry.recordings = recordings.isEmpty ? nil : recordings
        entry.decidedBy = decidedBy
        let ending = FirstOf(done)
        guard case .enqueued = queue.yield(.write(entry, done: { ending.happen() })) else {
            ending.happen()
            return
        }
        Task { [patience, logger] in
            try? await Task.sleep(for: patience)
            guard ending.happen() else { return }
            logger.error(
                "A call has ended before its record is on disk: the disk does not answer. Check it (dmesg, mount)",
                metadata: ["call": "\(key)"])
        }
    }

    /// Runs an action when the first of several events happens.
    private final class FirstOf: Sendable {
        private let action: Mutex<(@Sendable () -> Void)?>

        init(_ action: @escaping @Sendable () -> Void) { self.action = Mutex(action) }

        /// - Returns: Whether it was the first.
        @discardableResult
        func happen() -> Bool {
            let first = action.withLock { action -> (@Sendable () -> Void)? in
                defer { action = nil }
                return action
            }
            first?()
            return first != nil
        }
    }

    /// Removes records that are older than they are kept. To be called now and then, while this machine's clock can be right.
    func prune() { queue.yield(.prune) }

    /// Writes what is waiting, and stops. A disk that does not answer is not waited for.
    func close() async {
        queue.finish()
        let logger = logger
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let closed = FirstOf { continuation.resume() }
            Task { [writer] in
                await writer.value
                closed.happen()
            }
            Task { [patience] in
                try? await Task.sleep(for: patience)
                if closed.happen() { logger.error("Records of calls may be lost: their disk does not answer") }
            }
        }
    }

    /// The records in a journal's files, the oldest first, one for each call.
    ///
    /// - Throws: ``SignalingError`` with the code `badConfiguration` if a file cannot be read.
    public static func records(in path: String) throws(SignalingError) -> [KeptCall] {
        do throws(PrivateFileError) {
            return merged(try LineJournal.lines(in: path).compactMap(KeptCall.init(line:)))
        } catch {
            throw SignalingError(
                .badConfiguration, activity: "read the calls in \"\(path)\"", cause: error.cause)
        }
    }

    // MARK: On the writer's side

    /// A journal, and what keeps other processes from taking its calls for cut off.
    private final class Opened: Sendable {
        let journal: LineJournal
        private let lock: LockFile

        init(_ path: String) throws(PrivateFileError) {
            lock = try LockFile(path + ".lock")
            journal = try LineJournal(path: path)
        }
    }

    private static func open(_ path: String, _ application: String, _ logger: Logger) -> Opened? {
        do throws(PrivateFileError) {
            let opened = try Opened(path)
            let journal = opened.journal
            // Without what takes memory and is not looked at here.
            let kept = try journal.lines().compactMap { line -> KeptCall? in
                guard var call = KeptCall(line: line) else { return nil }
                call.timeline = nil
                call.moments = nil
                call.recordings = nil
                return call
            }
            if kept.contains(where: { $0.application != application }) {
                try journal.clear()
                return opened
            }
            let cutOff = merged(kept).filter { !$0.isOver }.map { call in
                var call = call
                call.isOver = true
                call.ended = now
                call.duration = 0
                call.reason = CallEndReason.internalError.rawValue
                call.endedBy = CallRecord.Ender.neither.rawValue
                call.error = "the device stopped while the call stood"
                return call
            }
            append(cutOff, to: journal, logger)
            return opened
        } catch {
            logger.error("Calls leave no records", metadata: ["error": "\(error)"])
            return nil
        }
    }

    private static func prune(_ journal: LineJournal?, _ days: Int?, _ logger: Logger) {
        guard let journal, let days else { return }
        let oldest = now - Int64(days) * 86_400_000
        do throws(PrivateFileError) {
            try journal.prune { line in
                guard let call = KeptCall(line: line), let time = call.ended ?? call.began else { return true }
                return time >= oldest
            }
        } catch {
            logger.error("Old records of calls are not removed", metadata: ["error": "\(error)"])
        }
    }

    private static func append(_ entries: [KeptCall], to journal: LineJournal?, _ logger: Logger) {
        guard let journal, !entries.isEmpty else { return }
        do throws(PrivateFileError) {
            try journal.append(entries.compactMap(\.line))
        } catch {
            logger.error("A call leaves no record", metadata: ["error": "\(error)"])
        }
    }

    /// One entry for each call: what its end says, and when it began.
    private static func merged(_ entries: [KeptCall]) -> [KeptCall] {
        var order: [String] = []
        var calls: [String: KeptCall] = [:]
        for entry in entries {
            if let earlier = calls[entry.call] {
                var later = entry.isOver ? entry : earlier
                later.began = earlier.began ?? entry.began
                calls[entry.call] = later
            } else {
                order.append(entry.call)
                calls[entry.call] = entry
            }
        }
        return order.compactMap { calls[$0] }
    }

    private static var now: Int64 { Int64((Date().timeIntervalSince1970 * 1_000).rounded()) }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        duration.components.seconds * 1_000 + duration.components.attoseconds / 1_000_000_000_000_000
    }
}

/// A call's line in a journal.
public struct KeptCall: Codable, Hashable, Sendable {
    /// The journal's name for the call.
    public var call: String
    /// The application that the device was logged in as.
    public var application: String
    /// Whether it has ended.
    public var isOver: Bool
    /// When it began, in milliseconds since 1970 by this machine's clock.
    public var began: Int64?
    /// When it ended.
    public var ended: Int64?
    /// The invite's id, if it had one.
    public var invite: String?
    /// `incoming` or `outgoing`.
    public var direction: String
    /// The other side.
    public var peer: String
    /// Milliseconds from the invite to the answer, if there was one.
    public var answeredAfter: Int64?
    /// Milliseconds from the invite until the call could carry media, if it could.
    public var establishedAfter: Int64?
    /// Milliseconds from the invite to media flowing both ways, if it did.
    public var setUpTime: Int64?
    /// Milliseconds for which the call was established.
    public var duration: Int64?
    /// One of ``CallEndReason``.
    public var reason: String?
    /// `local`, `remote` or `neither`.
    public var endedBy: String?
    /// One of ``CallFailureCause``, if it failed and the cause is known.
    public var cause: String?
    /// What went wrong, if something did.
    public var error: String?
    /// Why the device hung up, if it did.
    public var hangUpCause: String?
    /// The user who transferred another call to this one, if any.
    public var transferredBy: String?
    /// The user that took over this call by a transfer, if any.
    public var transferredTo: String?

    /// How turns were taken, if a program took part.
    public var turns: Turns?
    /// What its media counted, if it had any.
    public var media: MediaFacts?
    /// What its media counted second by second, if it had any.
    public var timeline: CallTimeline?
    /// What happened in it, and when; nil if nothing was noted.
    public var moments: [CallMoment]?
    /// Its recordings, in their order, ``mostRecordings`` at most; nil if there were none.
    public var recordings: [Recording]?
    /// The rule of the answer table, or the key, that decided about a call that came in; nil if none did.
    public var decidedBy: String?

    /// Recordings that a record names at most: the first ones.
    public static let mostRecordings = 16

    /// A recording of the call, by `behaviour.record_folder` or by request.
    public struct Recording: Codable, Hashable, Sendable {
        /// The file, as a path from the root.
        public var file: String
        /// When it began, in milliseconds since 1970.
        public var began: Int64

        /// Names a recording.
        public init(file: String, began: Int64) {
            self.file = file
            self.began = began
        }
    }

    /// How the caller and a program took turns.
    public struct Turns: Codable, Hashable, Sendable {
        /// Turns of the caller that were answered.
        public var answered: Int
        /// Milliseconds from the end of the caller's speech to the first sound that was sent, P50, to 3 %; 0 if none was.
        public var medianResponse: Int
        /// The same, P95.
        public var slowResponse: Int
        /// Times the caller's speech stopped the program.
        public var interruptions: Int
        /// Times the program was lowered.
        public var dips: Int
        /// False dips among them: the sound was not speech, or was not confirmed in time.
        public var falseDips: Int

        private enum CodingKeys: String, CodingKey {
            case answered, interruptions, dips
            case medianResponse = "response_p50_ms"
            case slowResponse = "response_p95_ms"
            case falseDips = "false_dips"
        }

        init(_ summary: TurnSummary) {
            answered = summary.turns
            medianResponse = summary.medianResponse / 48
            slowResponse = summary.slowResponse / 48
            interruptions = summary.interruptions
            dips = summary.dips
            falseDips = summary.falseDips
        }
    }

    private enum CodingKeys: String, CodingKey {
        case call, application, began, ended, invite, direction, peer, reason, cause, error, turns, media, timeline,
            moments, recordings
        case isOver = "over"
        case answeredAfter = "answered_after_ms"
        case establishedAfter = "established_ms"
        case setUpTime = "setup_ms"
        case duration = "duration_ms"
        case endedBy = "ended_by"
        case hangUpCause = "hung_up_because"
        case transferredBy = "transferred_by"
        case transferredTo = "transferred_to"
        case decidedBy = "decided_by"
    }

    init?(line: String) {
        guard let call = try? JSONDecoder().decode(Self.self, from: Data(line.utf8)) else { return nil }
        self = call
    }

    init(
        call: String, application: String, isOver: Bool, began: Int64?, invite: String?, direction: String, peer: String
    ) {
        self.call = call
        self.application = application
        self.isOver = isOver
        self.began = began
        self.invite = invite
        self.direction = direction
        self.peer = peer
    }

    var line: String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension KeptCall {
    /// What a diagnosis knows of the call; nil for a begin without an end, which says nothing yet.
    public var facts: CallFacts? {
        // A call that runs has no reason.
        guard let reason = isOver ? reason.flatMap(CallEndReason.init) : duration.map({ _ in CallEndReason.completed }),
            let direction = CallRecord.Direction(rawValue: direction)
        else { return nil }
        var facts = CallFacts(
            direction, peer: peer, reason: reason, endedBy: endedBy.flatMap(CallRecord.Ender.init) ?? .neither,
            duration: Int(duration ?? 0))
        facts.isRunning = !isOver
        facts.cause = cause.flatMap(CallFailureCause.init)
        facts.error = error
        facts.hangUpCause = hangUpCause.flatMap(CallRecord.HangUpCause.init)
        facts.answeredAfter = answeredAfter.map { Int($0) }
        facts.establishedAfter = establishedAfter.map { Int($0) }
        facts.flowingAfter = setUpTime.map { Int($0) }
        facts.media = media
        facts.timeline = timeline
        facts.moments = moments ?? []
        if let turns, turns.answered > 0 { facts.slowResponse = turns.slowResponse }
        return facts
    }

    /// Whether a text is a part of its name, of its invite or of the other side's name, regardless of case.
    public func matches(_ text: String) -> Bool {
        let wanted = text.lowercased()
        return [call, invite ?? "", peer].contains { $0.lowercased().contains(wanted) }
    }

    /// What went wrong in the call, the gravest first.
    public var findings: [Finding] { facts.map { CallDiagnosis($0).findings } ?? [] }

    /// What is said of a call that has ended and in which nothing was found.
    public var remarkWithoutFindings: String {
        switch (media, establishedAfter) {
        case (nil, .some): "This record has no figures of the call's media, so nothing can be said of its sound."
        case _ where !isOver: "Nothing is wrong so far that this side can see."
        case (_, nil): "Nothing went wrong that this side can see: the call was never established."
        case (.some, .some): "Nothing went wrong that this side can see."
        }
    }
}
