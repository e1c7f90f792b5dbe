internal import Call
internal import CallControl
internal import CallDiagnosis
internal import CallMedia
internal import Core
internal import Logging
internal import Realtime
internal import VoiceActivity

/// What a device keeps of its calls past their end: the journal with their records, if one is configured, and recordings for as long as
/// they are kept.
struct CallArchive {
    private let journal: CallJournal?
    private let application: String

    init(_ configuration: DeviceConfiguration, _ logger: Logger) {
        application = configuration.account.appKey
        journal = configuration.device.callRecords.map {
            CallJournal(
                path: $0, application: configuration.account.appKey, days: configuration.device.callRecordDays,
                logger: logger)
        }
    }

    /// Notes that a call begins.
    ///
    /// - Returns: The journal's name for it; nil without a journal.
    func begin(_ call: CallSession) -> String? {
        journal?.begin(invite: call.inviteID, peer: call.peer, direction: call.direction)
    }

    /// Whether calls leave records.
    var keepsRecords: Bool { journal != nil }

    /// Puts a call's record on disk. `done` is called when it is there, or cannot be.
    ///
    /// - Parameters:
    ///   - observation: What was noted while the call ran.
    ///   - source: What was sent in the call, in one word.
    ///   - decidedBy: What has decided about the call; nil for outgoing calls.
    /// - Returns: False if no journal has the call; then `done` is not called.
    func end(
        _ key: String?, _ waiting: ActiveCall.WaitingRecord, _ report: MediaReport?, _ observation: CallObservation,
        source: String, decidedBy: String?, done: @escaping @Sendable () -> Void
    ) -> Bool {
        guard let journal, let key else { return false }
        let media = report.map { MediaFacts($0, source: source, at: waiting.end) }
        journal.end(
            key, waiting.record, turns: waiting.turns, media: media, timeline: observation.timeline,
            moments: observation.moments.kept, recordings: observation.recordings, decidedBy: decidedBy, done: done)
        return true
    }

    /// What the record of a call that runs would be now; nil if no journal has it.
    func snapshot(of call: ActiveCall, _ report: MediaReport?) -> KeptCall? {
        guard let key = call.journalKey else { return nil }
        let (session, observation) = (call.session, call.observation)
        var record = KeptCall(
            call: key, application: application, isOver: false, began: observation.began,
            invite: session.inviteID?.text, direction: session.direction.rawValue, peer: session.peer.text)
        record.answeredAfter = observation.delay(of: .answered)
        record.establishedAfter = observation.delay(of: .established)
        record.setUpTime = observation.delay(of: .flowing)
        let age = MonotonicClock.wallTime.unixMilliseconds - observation.began
        record.duration = record.establishedAfter.map { max(0, age - $0) } ?? 0
        record.media = report.map { MediaFacts($0, source: session.audio.source.word, at: MonotonicClock.now) }
        (record.timeline, record.moments) = (observation.timeline, observation.moments.kept)
        record.recordings = observation.recordings
        record.decidedBy = call.decidedBy
        return record
    }

    /// Removes recordings and records that are older, or more, than are kept: now and every hour, until the task is cancelled. Nothing
    /// is removed by age while the clock cannot be right.
    ///
    /// - Parameter files: The files of calls, as the device is configured at that moment.
    func keepTidy(_ files: @Sendable () async -> [CallFiles]) async {
        while !Task.isCancelled {
            let isAgeKnown = ClockPlausibility.canBeRight(MonotonicClock.wallTime)
            if isAgeKnown { journal?.prune() }
            for files in await files() { await files.removeOldRecordings(isAgeKnown: isAgeKnown) }
            try? await Task.sleep(for: .seconds(3_600))
        }
    }

    /// Writes what waits.
    func close() async { await journal?.close() }
}
