internal import BlockingWork
internal import CallAgent
internal import CallControl
internal import CallDiagnosis
internal import CallMedia
internal import ControlWire
internal import Core
internal import JSON
internal import Playout
internal import Realtime
internal import Synchronization

/// Reads the records of calls that ended, and by its name what would be in that of a call that runs.
///
/// A request reads the files of `device.call_records` whole, 20 MiB an account at most, on one thread for all requests: however many
/// clients ask, the file of one account is in memory. Only the records that may be in the answer are parsed.
struct CallHistory: Sendable {
    /// Requests that wait for the thread, itself included.
    static let mostWaiting = 8

    private static let thread = BlockingThreads(name: "history", most: 1)
    private static let bound = RequestBound(most: mostWaiting)

    private let targets: [ControlTargets.Target]
    /// The files of the accounts that are meant, by the names of those.
    private let files: [(account: String?, path: String)]

    /// - Throws: ``ControlFault`` if none of them keeps records.
    init(_ targets: ControlTargets) throws(ControlFault) {
        self.targets = targets.targets
        files = targets.meant.compactMap { member in
            member.configuration.device.callRecords.map { (member.name, $0) }
        }
        guard !files.isEmpty else {
            throw ControlFault(
                .notConfigured, "the device keeps no records of calls; device.call_records names a file for them")
        }
    }

    /// The answer to a request.
    func answer(_ query: ControlHistoryQuery) async throws(ControlFault) -> ControlReply {
        if let name = query.record {
            let (call, account) = try await kept(name)
            guard let record = ControlRecord(whole: call, of: account) else { throw Self.noRecord(name) }
            var reply = ControlReply()
            reply.history = [record]
            return reply
        }
        return try await read { files throws(ControlFault) in try Self.answer(query, in: files) }
    }

    /// The file of a recording that a record names.
    ///
    /// - Throws: ``ControlFault`` with `noSuchRecording` if there is none.
    func recording(_ query: ControlRecordingQuery) async throws(ControlFault) -> RecordingFile {
        let (call, _) = try await kept(query.record)
        let recordings = call.recordings ?? []
        guard query.number <= recordings.count else {
            let count = recordings.isEmpty ? "no recording" : "\(recordings.count) recordings"
            throw ControlFault(.noSuchRecording, "the record \(query.record) names \(count)")
        }
        let recording = recordings[query.number - 1]
        let end = call.ended ?? MonotonicClock.wallTime.unixMilliseconds
        return try await RecordingStreams.threads.run { () throws(ControlFault) in
            try RecordingFile.open(recording, endOfCall: end)
        }
    }

    /// The call of a record, and its account: one that runs has what its record would be now.
    private func kept(_ name: String) async throws(ControlFault) -> (KeptCall, account: String?) {
        for target in targets {
            if let call = await target.device.runningRecord(name) { return (call, target.name) }
        }
        return try await read { files throws(ControlFault) in try Self.kept(name, in: files) }
    }

    /// Reads files on the thread of all requests.
    private func read<Value: Sendable>(
        _ work: @escaping @Sendable ([(account: String?, path: String)]) throws(ControlFault) -> Value
    ) async throws(ControlFault) -> Value {
        try Self.bound.enter()
        defer { Self.bound.leave() }
        let files = files
        return try await Self.thread.run { () throws(ControlFault) in try work(files) }
    }

    /// The records of an account.
    private struct Source {
        let account: String?
        let index: CallRecordIndex

        init(path: String, account: String?) throws(ControlFault) {
            self.account = account
            do throws(SignalingError) {
                index = try CallRecordIndex(path: path)
            } catch {
                throw ControlFault(.failed, error.description)
            }
        }
    }

    private static func kept(
        _ name: String, in files: [(account: String?, path: String)]
    ) throws(ControlFault) -> (KeptCall, account: String?) {
        for file in files {
            let source = try Source(path: file.path, account: file.account)
            guard let entry = source.index.entries.last(where: { $0.call == name }),
                let call = source.index.record(of: entry)
            else { continue }
            return (call, source.account)
        }
        throw noRecord(name)
    }

    private static func noRecord(_ name: String) -> ControlFault {
        ControlFault(.noSuchCall, "there is no record \(name)")
    }

    private static func answer(
        _ query: ControlHistoryQuery, in files: [(account: String?, path: String)]
    ) throws(ControlFault) -> ControlReply {
        var records: [ControlRecord] = []
        for file in files {
            let found = newest(query, in: try Source(path: file.path, account: file.account))
            let all = (records + found).sorted { ControlHistoryQuery.Position($0) > ControlHistoryQuery.Position($1) }
            records = Array(all.prefix(query.limit + 1))
        }
        var reply = ControlReply()
        if records.count > query.limit {
            records.removeLast()
            reply.next = records.last.map { "\(ControlHistoryQuery.Position($0))" }
        }
        reply.history = records
        return reply
    }

    /// The newest records of an account that are asked for, and one more than the answer has, which says that there are more.
    private static func newest(_ query: ControlHistoryQuery, in source: Source) -> [ControlRecord] {
        let wanted = source.index.entries.map {
            ($0, ControlHistoryQuery.Position(time: $0.ended, record: $0.call))
        }.filter { query.admits($0.1) }.sorted { $0.1 > $1.1 }
        var records: [ControlRecord] = []
        for (entry, _) in wanted where records.count <= query.limit {
            guard query.mayAdmit(entry, of: source.index), let call = source.index.record(of: entry),
                query.admits(call),
                let record = ControlRecord(call, of: source.account), query.admits(record)
            else { continue }
            records.append(record)
        }
        return records
    }
}

extension ControlHistoryQuery {
    /// Whether a position in the list is among those that are asked for.
    fileprivate func admits(_ position: Position) -> Bool {
        if let before, position >= before { return false }
        if let from, position.time < from { return false }
        if let to, position.time >= to { return false }
        return true
    }

    /// Whether it is worth while to parse a record.
    fileprivate func mayAdmit(_ entry: CallRecordIndex.Entry, of index: CallRecordIndex) -> Bool {
        [search, outcome].allSatisfy { text in text.map { index.mayContain($0, entry) } ?? true }
    }

    /// Whether a record is what is searched for.
    fileprivate func admits(_ call: KeptCall) -> Bool {
        if let outcome, call.reason != outcome { return false }
        return search.map { call.matches($0) } ?? true
    }

    /// Whether its findings are as they are asked for.
    fileprivate func admits(_ record: ControlRecord) -> Bool {
        hasFindings.map { $0 == !record.findings.isEmpty } ?? true
    }
}

extension ControlHistoryQuery.Position {
    fileprivate init(_ record: ControlRecord) { self.init(time: record.ended ?? 0, record: record.record) }
}

extension ControlRecord {
    /// A record with the figures of its media, with what happened in it, and with its recordings.
    fileprivate init?(whole call: KeptCall, of account: String?) {
        self.init(call, of: account)
        media = call.media.flatMap { ControlCoding.value(of: ControlCoding.line($0)) }
        timeline = call.timeline.flatMap { ControlCoding.value(of: ControlCoding.line($0)) }
        moments = call.moments.flatMap { $0.isEmpty ? nil : ControlCoding.value(of: ControlCoding.line($0)) }
        let named = (call.recordings ?? []).prefix(ControlRecordingQuery.most).enumerated()
        recordings = call.recordings.flatMap { recordings in
            recordings.isEmpty
                ? nil
                : named.map { ControlRecording(number: $0.offset + 1, file: $0.element.file, began: $0.element.began) }
        }
    }

    /// A record as clients receive it, without the figures of its media; nil if the call has not ended.
    init?(_ call: KeptCall, of account: String?) {
        guard let facts = call.facts else { return nil }
        self.init(
            record: call.call, peer: call.peer, isIncoming: facts.direction == .incoming,
            reason: facts.isRunning ? "running" : facts.reason.rawValue, endedBy: facts.endedBy.rawValue,
            outcome: facts.outcome)
        self.account = account
        invite = call.invite
        began = call.began
        ended = call.ended
        answeredAfter = call.answeredAfter
        establishedAfter = call.establishedAfter
        mediaAfter = call.setUpTime
        duration = call.duration ?? 0
        cause = call.cause
        error = call.error
        hangUpCause = call.hangUpCause
        transferredBy = call.transferredBy
        transferredTo = call.transferredTo
        decidedBy = call.decidedBy
        findings = call.findings.map(ControlFinding.init)
        if findings.isEmpty { remark = call.remarkWithoutFindings }
    }
}

extension ControlFinding {
    fileprivate init(_ finding: Finding) {
        self.init(
            code: finding.code.rawValue, side: finding.side.rawValue, whose: finding.side.words, text: finding.text,
            because: finding.evidence, advice: finding.advice)
    }
}

extension ControlCallMedia {
    /// A report as clients receive it.
    init(_ report: MediaReport) {
        self.init()
        let (peer, playout) = (report.peer, report.playout)
        (sent, received, remoteLost) = (peer.packetsSent, peer.packetsReceived, max(0, peer.remotePacketsLost))
        (lost, late, discarded) = (playout.packetsLost, playout.packetsLate, playout.packetsDiscarded)
        framesSkipped = report.call.framesSkipped
        if peer.roundTripNanoseconds > 0 { roundTrip = Self.milliseconds(peer.roundTripNanoseconds) }
        jitter = Self.milliseconds(peer.jitterNanoseconds)
        delay = Self.milliseconds(playout.playoutDelayNanoseconds)
        targetDelay = Self.milliseconds(playout.targetDelayNanoseconds)
        (played, concealed) = (playout.samplesPlayed / 48, playout.samplesConcealed / 48)
        silent = playout.samplesSilent / 48
        (accelerated, decelerated) = (playout.samplesAccelerated / 48, playout.samplesDecelerated / 48)
        sentLevel = (report.sent.recentPeakDBFS * 10).rounded() / 10
        receivedLevel = (report.received.recentPeakDBFS * 10).rounded() / 10
    }

    /// To a tenth.
    private static func milliseconds(_ nanoseconds: Int64) -> Double {
        (Double(nanoseconds) / 100_000).rounded() / 10
    }
}

/// Bounds the requests for the history that wait at a time.
final class RequestBound: Sendable {
    private let most: Int
    private let waiting = Mutex(0)

    init(most: Int) { self.most = most }

    /// Takes a place, which ``leave()`` gives back.
    ///
    /// - Throws: ``ControlFault`` with `tooMany`, which is 429 over HTTP, if there is none.
    func enter() throws(ControlFault) {
        let hasRoom = waiting.withLock { waiting in
            guard waiting < most else { return false }
            waiting += 1
            return true
        }
        guard hasRoom else {
            throw ControlFault(.tooMany, "\(most) requests for the history wait, the limit; try again later")
        }
    }

    func leave() { waiting.withLock { $0 -= 1 } }
}
