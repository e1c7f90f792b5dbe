public import JSON

/// Which records of calls that ended a client asks for.
public struct ControlHistoryQuery: Hashable, Sendable {
    /// Its name, of one record alone; the other members are then without effect.
    public var record: String?
    /// A part of a record's name, of the invite or of the other side's name, regardless of case.
    public var search: String?
    /// Why the calls ended.
    public var outcome: String?
    /// Whether something went wrong in them.
    public var hasFindings: Bool?
    /// Ended then or later, in milliseconds since 1970.
    public var from: Int64?
    /// Ended before, in milliseconds since 1970.
    public var to: Int64?
    /// After this record in the order of the list, which is the newest first.
    public var before: Position?
    /// Records in the answer, 1 to ``ControlLimits/listedRecords``.
    public var limit = ControlLimits.listedRecords

    /// A record's position in the list.
    public struct Position: Hashable, Comparable, Sendable, CustomStringConvertible {
        /// When the call ended, in milliseconds since 1970.
        public let time: Int64
        /// The record's name.
        public let record: String

        /// Names a position.
        public init(time: Int64, record: String) {
            self.time = time
            self.record = record
        }

        /// Reads what ``description`` has written.
        init?(_ text: String) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 2, let time = Int64(parts[0]), ControlLimits.times.contains(time),
                ControlHistoryQuery.isRecord(parts[1])
            else { return nil }
            self.init(time: time, record: String(parts[1]))
        }

        /// As it is on the wire.
        public var description: String { "\(time).\(record)" }

        /// Earlier ones are less.
        public static func < (left: Position, right: Position) -> Bool {
            (left.time, left.record) < (right.time, right.record)
        }
    }

    /// All records.
    public init() {}

    /// One record.
    public init(record: String) { self.record = record }

    /// Bytes in a ``Position``.
    static let cursorBytes = ControlLimits.recordBytes + 16

    /// Whether a text can be the name of a record.
    static func isRecord(_ text: Substring) -> Bool {
        (1...ControlLimits.recordBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 45 || $0 == 95
            }
    }

    init(_ fields: inout RequestFields) throws(ControlFault) {
        record = try fields.optionalText("record", maximumBytes: ControlLimits.recordBytes)
        search = try fields.optionalText("search", maximumBytes: ControlLimits.nameBytes)
        outcome = try fields.optionalText("outcome", maximumBytes: ControlLimits.nameBytes)
        hasFindings = try fields.flag("findings")
        from = try Self.time("from_ms", &fields)
        to = try Self.time("to_ms", &fields)
        if let text = try fields.optionalText("before", maximumBytes: Self.cursorBytes) {
            guard let position = Position(text) else {
                throw ControlFault(.wrongValue, "before must be the next of another answer")
            }
            before = position
        }
        let limit = try fields.number("limit", in: 1...Double(ControlLimits.listedRecords))
        self.limit = limit.map { Int($0) } ?? ControlLimits.listedRecords
        guard record.map({ Self.isRecord($0[...]) }) ?? true else {
            throw ControlFault(.wrongValue, "record must be the name of a record, as the list has it")
        }
    }

    private static func time(_ key: String, _ fields: inout RequestFields) throws(ControlFault) -> Int64? {
        let range = Double(ControlLimits.times.lowerBound)...Double(ControlLimits.times.upperBound)
        return try fields.number(key, in: range).map { Int64($0) }
    }

    /// As they are on the wire.
    var members: [String: JSONValue?] {
        [
            "record": record.map { .string($0) }, "search": search.map { .string($0) },
            "outcome": outcome.map { .string($0) }, "findings": hasFindings.map { .bool($0) },
            "from_ms": from.map { .integer($0) }, "to_ms": to.map { .integer($0) },
            "before": before.map { .string($0.description) }, "limit": .integer(Int64(limit)),
        ]
    }
}

/// The record of a call that ended. Times are in milliseconds.
public struct ControlRecord: Codable, Hashable, Sendable {
    /// Its name.
    public var record: String
    /// The account that the call was of, if that has a name.
    public var account: String?
    /// The id of the call at the service, if it had one.
    public var invite: String?
    /// The other side.
    public var peer: String
    /// Whether it came in.
    public var isIncoming: Bool
    /// When it began, since 1970.
    public var began: Int64?
    /// When it ended, since 1970.
    public var ended: Int64?
    /// From the invite to the answer; nil if there was none.
    public var answeredAfter: Int64?
    /// From the invite until it could carry media; nil if it never could.
    public var establishedAfter: Int64?
    /// From the invite until media flowed both ways; nil if it never did.
    public var mediaAfter: Int64?
    /// For how long it was established.
    public var duration: Int64 = 0
    /// Why it ended.
    public var reason: String
    /// `local`, `remote` or `neither`.
    public var endedBy: String
    /// The cause of a failure, if it is known.
    public var cause: String?
    /// What went wrong, in the device's words.
    public var error: String?
    /// Why the device hung up, if it did.
    public var hangUpCause: String?
    /// The user who transferred another call to this one, if any.
    public var transferredBy: String?
    /// The user who took over this call by a transfer, if any.
    public var transferredTo: String?
    /// The rule that decided about a call that came in, if one did.
    public var decidedBy: String?
    /// How it ended, as a sentence.
    public var outcome: String
    /// What is said if nothing was found; nil if something was.
    public var remark: String?
    /// What went wrong, the gravest first.
    public var findings: [ControlFinding]
    /// What its media counted, as docs/explain.md lists it; nil in lists, and if it had none.
    public var media: JSONValue?
    /// What its media counted second by second, as docs/explain.md lists it; nil in lists, and if it had none.
    public var timeline: JSONValue?
    /// What happened in it, and when; nil in lists, and if nothing was noted.
    public var moments: JSONValue?
    /// Its recordings; nil in lists, and if it has none.
    public var recordings: [ControlRecording]?

    enum CodingKeys: String, CodingKey {
        case record, account, invite, peer, reason, cause, error, outcome, remark, findings, media, timeline, moments,
            recordings
        case isIncoming = "incoming"
        case began = "began_ms"
        case ended = "ended_ms"
        case answeredAfter = "answered_after_ms"
        case establishedAfter = "established_after_ms"
        case mediaAfter = "media_after_ms"
        case duration = "duration_ms"
        case endedBy = "ended_by"
        case hangUpCause = "hung_up_because"
        case transferredBy = "transferred_by"
        case transferredTo = "transferred_to"
        case decidedBy = "decided_by"
    }

    /// Makes a record in which nothing was found.
    public init(
        record: String, peer: String, isIncoming: Bool, reason: String, endedBy: String, outcome: String
    ) {
        self.record = record
        self.peer = peer
        self.isIncoming = isIncoming
        self.reason = reason
        self.endedBy = endedBy
        self.outcome = outcome
        findings = []
    }
}

/// What went wrong in a call, as `handset explain` says it.
public struct ControlFinding: Codable, Hashable, Sendable {
    /// The kind of fault.
    public var code: String
    /// Whose fault it looks like.
    public var side: String
    /// The same in words.
    public var whose: String
    /// What happened, as a sentence.
    public var text: String
    /// The figures that say so.
    public var because: String
    /// What to try.
    public var advice: String

    enum CodingKeys: String, CodingKey {
        case code, side, whose, text, because
        case advice = "try"
    }

    /// Describes a fault.
    public init(code: String, side: String, whose: String, text: String, because: String, advice: String) {
        self.code = code
        self.side = side
        self.whose = whose
        self.text = text
        self.because = because
        self.advice = advice
    }
}

/// Figures of a call's sound. Counts are from its beginning until now; times are in milliseconds.
public struct ControlCallMedia: Codable, Hashable, Sendable {
    /// RTP packets that were sent.
    public var sent = 0
    /// RTP packets that arrived and were accepted.
    public var received = 0
    /// Packets of the other side that were needed and never came.
    public var lost = 0
    /// Packets that came after their turn.
    public var late = 0
    /// Packets for which the jitter buffer had no room, or which it could not use.
    public var discarded = 0
    /// Packets of this device that the other side reports as lost.
    public var remoteLost = 0
    /// Frames that were skipped because the machine stalled.
    public var framesSkipped = 0
    /// The round trip by the other side's last report; nil without one.
    public var roundTrip: Double?
    /// Interarrival jitter (RFC 3550 §6.4.1).
    public var jitter = 0.0
    /// The jitter buffer's delay now.
    public var delay = 0.0
    /// The delay that it aims at.
    public var targetDelay = 0.0
    /// Sound that was played out.
    public var played = 0
    /// What of it was concealed, because packets were missing.
    public var concealed = 0
    /// What of it was silence and comfort noise.
    public var silent = 0
    /// What the jitter buffer took out to lower its delay.
    public var accelerated = 0
    /// What the jitter buffer put in to raise its delay.
    public var decelerated = 0
    /// The largest level of the last 0.5 to 1 s that was sent, in dBFS, −100…0.
    public var sentLevel = -100.0
    /// The same of what was received.
    public var receivedLevel = -100.0

    enum CodingKeys: String, CodingKey {
        case sent, received, lost, late, discarded
        case remoteLost = "remote_lost"
        case framesSkipped = "frames_skipped"
        case roundTrip = "round_trip_ms"
        case jitter = "jitter_ms"
        case delay = "delay_ms"
        case targetDelay = "target_delay_ms"
        case played = "played_ms"
        case concealed = "concealed_ms"
        case silent = "silent_ms"
        case accelerated = "accelerated_ms"
        case decelerated = "decelerated_ms"
        case sentLevel = "sent_dbfs"
        case receivedLevel = "received_dbfs"
    }

    /// Nothing has happened.
    public init() {}
}
