internal import BlockingWork
internal import CallAgent
internal import CallControl
internal import CallDiagnosis
internal import CallMedia
internal import ControlWire
internal import JSON
internal import Playout

/// Reads the records of calls that ended.
///
/// A request reads the files of `device.call_records` from their beginning, 20 MiB an account at most, on one thread for all requests, so
/// that however many clients ask, the records of one request are in memory.
struct CallHistory: Sendable {
    private static let thread = BlockingThreads(name: "history", most: 1)

    /// The files of the accounts that are meant, by the names of those.
    private let files: [(account: String?, path: String)]

    /// - Throws: ``ControlFault`` if none of them keeps records.
    init(_ targets: ControlTargets) throws(ControlFault) {
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
        let files = files
        return try await Self.thread.run { () throws(ControlFault) in
            var calls: [Entry] = []
            for file in files { calls += try Self.entries(file.path, of: file.account) }
            return try Self.answer(query, among: calls)
        }
    }

    /// A record that has ended, and its account.
    private struct Entry {
        let call: KeptCall
        let account: String?

        var position: ControlHistoryQuery.Position { .init(time: call.ended ?? 0, record: call.call) }
    }

    private static func entries(_ path: String, of account: String?) throws(ControlFault) -> [Entry] {
        do throws(SignalingError) {
            return try CallJournal.records(in: path).filter(\.isOver).map { Entry(call: $0, account: account) }
        } catch {
            throw ControlFault(.failed, error.description)
        }
    }

    private static func answer(
        _ query: ControlHistoryQuery, among entries: [Entry]
    ) throws(ControlFault) -> ControlReply {
        var reply = ControlReply()
        if let name = query.record {
            guard let entry = entries.first(where: { $0.call.call == name }),
                var record = ControlRecord(entry.call, of: entry.account)
            else { throw ControlFault(.noSuchCall, "there is no record \(name)") }
            record.media = entry.call.media.flatMap { ControlCoding.value(of: ControlCoding.line($0)) }
            reply.history = [record]
            return reply
        }
        let sorted = entries.filter { query.admits($0.call, $0.position) }.sorted { $0.position > $1.position }
        var records: [ControlRecord] = []
        for entry in sorted {
            guard let record = ControlRecord(entry.call, of: entry.account), query.admits(record) else { continue }
            guard records.count < query.limit else {
                reply.next = records.last.map { "\(ControlHistoryQuery.Position($0))" }
                break
            }
            records.append(record)
        }
        reply.history = records
        return reply
    }
}

extension ControlHistoryQuery {
    /// Whether a record is among those that are asked for, as far as that is known without a diagnosis.
    fileprivate func admits(_ call: KeptCall, _ position: Position) -> Bool {
        if let before, position >= before { return false }
        if let from, position.time < from { return false }
        if let to, position.time >= to { return false }
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
    /// A record as clients receive it, without the figures of its media; nil if the call has not ended.
    init?(_ call: KeptCall, of account: String?) {
        guard let facts = call.facts else { return nil }
        self.init(
            record: call.call, peer: call.peer, isIncoming: facts.direction == .incoming,
            reason: facts.reason.rawValue, endedBy: facts.endedBy.rawValue, outcome: facts.outcome)
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
