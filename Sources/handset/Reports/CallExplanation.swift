internal import CallAgent
internal import CallControl
internal import CallDiagnosis
internal import CallMedia
internal import ControlPlane
internal import ControlWire
internal import Core
internal import DeviceControl
internal import Files
internal import RTP

/// What `handset explain` says of one call: of its record, of a device in which it runs, or of a capture of it.
struct CallExplanation {
    private var members = JSONObjectText()
    private let head: String
    private let decidedBy: String?
    private let findings: [FindingText]
    private let remark: String

    /// Of the record of a call that ended.
    init(_ call: KeptCall) {
        let time = Self.time(call.began ?? call.ended)
        head = "\(time) \(call.facts?.outcome ?? "")"
        decidedBy = call.decidedBy
        findings = call.findings.map(FindingText.init)
        remark = call.remarkWithoutFindings
        describe(call.call, call.invite, time, call.direction, call.peer, call.reason)
        members.add("decided_by", call.decidedBy)
        members.add("outcome", call.facts?.outcome)
        members.add("has_media", call.media != nil)
    }

    /// Of a call that runs.
    ///
    /// - Parameter socket: The socket of its device for HTTP.
    init(running call: KeptCall, at socket: String) async throws {
        var query = ControlHistoryQuery()
        query.record = call.call
        let client = DeviceClient(ControlHTTPClient(path: socket, owner: .device))
        let (reply, _) = try await client.ask(ControlRequest(.history(query)))
        guard let record = reply.history?.first else {
            throw CommandFailure(
                .failed, "the device at \(socket) has no record of this call: \(reply.error?.message ?? "it gave none")"
            )
        }
        let time = Self.time(record.began)
        head = "\(time) \(record.outcome)"
        decidedBy = record.decidedBy
        findings = record.findings.map(FindingText.init)
        remark = record.remark ?? ""
        describe(
            record.record, record.invite, time, record.isIncoming ? "incoming" : "outgoing", record.peer, record.reason)
        members.add("decided_by", record.decidedBy)
        members.add("outcome", record.outcome)
        members.add("has_media", record.media != nil)
    }

    /// Of a capture, which has what a device received and nothing else.
    init(capture path: String) throws {
        guard let replay = try StreamReplay().run(PacketRecording(parsing: try InputFile.bytes(of: path))) else {
            throw CommandFailure(
                .audioFileUnusable,
                "\(path) has no RTP packet. `handset run --capture` writes captures that can be explained")
        }
        let media = MediaFacts(replay)
        let milliseconds = replay.samples.count / 48
        var facts = CallFacts(.incoming, peer: path, reason: .completed, endedBy: .neither, duration: milliseconds)
        (facts.establishedAfter, facts.media) = (0, media)
        let outcome =
            "The capture \(path) has \(media.received.packets) packets of the other side in \(Double(milliseconds / 100) / 10) s."
        head = outcome
        decidedBy = nil
        findings = CallDiagnosis(facts).findings.map(FindingText.init)
        remark = "Nothing is wrong with what was received. What was sent, and how the call ended, are not in a capture."
        members.add("capture", path)
        members.add("outcome", outcome)
        members.add("has_media", true)
    }

    private mutating func describe(
        _ call: String, _ invite: String?, _ time: String, _ direction: String, _ peer: String, _ reason: String?
    ) {
        members.add("call", call)
        members.add("invite", invite)
        members.add("time", time)
        members.add("direction", direction)
        members.add("peer", peer)
        members.add("reason", reason)
    }

    /// What is printed.
    var text: String {
        var lines = [head]
        if let decidedBy { lines.append("Decided by \(decidedBy).") }
        for finding in findings { lines += [""] + finding.lines }
        if findings.isEmpty { lines += ["", remark] }
        return lines.joined(separator: "\n")
    }

    /// The same in JSON.
    var object: String {
        var members = members
        members.add("findings", objects: findings.map(\.object))
        return members.text
    }

    /// When a call began, in RFC 3339.
    static func time(_ milliseconds: Int64?) -> String {
        milliseconds.map { WallClock(unixMilliseconds: $0).rfc3339 } ?? "?"
    }
}
