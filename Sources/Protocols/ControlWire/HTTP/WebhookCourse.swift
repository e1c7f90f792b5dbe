public import Core
internal import JSON

/// What a webhook receives: a kind of event that programs elsewhere want to know of.
public enum WebhookEvent: String, CaseIterable, Sendable {
    /// A call comes in, or is placed.
    case started = "call.started"
    /// It was answered.
    case answered = "call.answered"
    /// It ended.
    case ended = "call.ended"
    /// A recording of it is complete.
    case recorded = "call.recorded"
    /// A caller has left a message in the mailbox.
    case messageLeft = "message.left"
}

/// The kind of process that sends webhooks: each has its own names of events.
public enum WebhookSource: Sendable {
    case device, exchange, trunk

    /// What it sends. Exchanges and trunks record nothing, and have no mailboxes.
    public var events: [WebhookEvent] {
        switch self {
        case .device: WebhookEvent.allCases
        case .exchange, .trunk: [.started, .answered, .ended]
        }
    }

    /// Its name in a sentence.
    public var name: String {
        switch self {
        case .device: "a device"
        case .exchange: "an exchange"
        case .trunk: "a trunk"
        }
    }

    /// The kind of an event of its history; nil if webhooks do not receive it.
    func kind(of event: EventHistory.Event) -> WebhookEvent? {
        switch self {
        case .device: Self.ofDevice(event)
        case .exchange:
            switch ExchangeHappening.Kind(rawValue: event.name) {
            case .invite?: .started
            case .callStarted?: .answered
            case .inviteEnded?, .callEnded?: .ended
            case .login?, .logout?, .connectionLost?, .loginEnded?, .removed?, .moveRequested?, .eventsLost?, nil: nil
            }
        case .trunk:
            switch TrunkHappening.Kind(rawValue: event.name) {
            case .call?: .started
            case .callAnswered?: .answered
            case .callEnded?: .ended
            case .connection?, .callRefused?, .callStarted?, .draining?, nil: nil
            }
        }
    }

    private static func ofDevice(_ event: EventHistory.Event) -> WebhookEvent? {
        switch event.name {
        case "incoming", "calling": return .started
        case "answered": return .answered
        case "ended": return .ended
        case "recording" where ControlCoding.decode(RecordingState.self, from: event.json)?.state == "ended":
            return .recorded
        case "voicemail": return .messageLeft
        case _: return nil
        }
    }

    private struct RecordingState: Decodable { let state: String }
}

/// What has become of events for the webhooks of one server since the start.
public struct WebhookFigures: Codable, Hashable, Sendable {
    /// The server's host and port; not the path, which may have a key.
    public let server: String
    /// Events that the server has.
    public var delivered = 0
    /// Tries that failed, after which another one follows.
    public var failed = 0
    /// Events that are not tried again.
    public var lost = 0
    /// Times that events may be missing: the history had no room for them, or the process ended without closing it.
    public var gaps = 0
    /// Seconds since the event that is sent or waits for its next try; nil if none is waiting.
    public var delaySeconds: Double?

    enum CodingKeys: String, CodingKey {
        case server, delivered, failed, lost, gaps
        case delaySeconds = "delay_s"
    }

    /// Nothing has happened yet.
    public init(server: String) { self.server = server }

    /// Adds those of another webhook of the server.
    public mutating func add(_ other: WebhookFigures) {
        delivered += other.delivered
        failed += other.failed
        lost += other.lost
        gaps += other.gaps
        if let theirs = other.delaySeconds { delaySeconds = max(theirs, delaySeconds ?? 0) }
    }
}

/// The course of one webhook: which event it is sent next, when that is tried again, and when it is given up. Pure.
///
/// The history of events is its queue, so it holds one event itself. Events are sent in order, one at a time. A failure is tried again
/// after 5 s, and each time after twice as long, up to half an hour, until the event is too old (``patience(for:)``).
public struct WebhookCourse: Sendable {
    /// An event as it is sent.
    public struct Delivery: Equatable, Sendable {
        /// Its cursor: unlike that of any other event, and the same when it is sent again.
        public let id: String
        /// Its kind.
        public let kind: WebhookEvent
        /// When it happened.
        public let time: WallClock
        /// The content: `type`, `timestamp`, `run`, and the event in `data`.
        public let body: [UInt8]
        fileprivate let end: EventCursor
    }

    /// What a try has led to.
    public enum Outcome: Equatable, Sendable {
        /// The server has answered with this status of HTTP, and perhaps said when to come again.
        case answered(Int, retryAfter: Duration?)
        /// It did not answer, for this reason.
        case failed(String)
    }

    /// What becomes of the event.
    public enum Verdict: Equatable, Sendable {
        /// The server has it.
        case delivered
        /// It is tried again after this time.
        case later(Duration, String)
        /// It is not tried again.
        case lost(String)
    }

    /// Why events may be missing.
    public enum Gap: Equatable, Sendable {
        /// The history dropped events before they could be sent, or is another one.
        case dropped
        /// The process ended without closing its history, or its disk took nothing: what it did not write is unknown.
        case interrupted
    }

    /// The first and the longest wait between two tries, before ``spread``.
    public static let (shortestPause, longestPause) = (Duration.seconds(5), Duration.seconds(1_800))
    /// A wait is this share shorter or longer at most, so that many processes do not come back at once.
    public static let spread = 0.25

    private enum State: Sendable {
        case idle
        case sending(Delivery, tries: Int)
        case waiting(Delivery, tries: Int, until: Instant)
    }

    private let wanted: Set<WebhookEvent>
    private let source: WebhookSource
    /// Events up to here are delivered, lost, or not wanted.
    public private(set) var cursor: EventCursor
    private var gap: Gap?
    private var state = State.idle

    /// Begins after a cursor.
    public init(_ wanted: Set<WebhookEvent>, of source: WebhookSource = .device, after cursor: EventCursor) {
        self.wanted = wanted
        self.source = source
        self.cursor = cursor
    }

    /// When ``next(of:at:)`` has something although nothing happened; nil for never.
    public var nextDeadline: Instant? {
        if case .waiting(_, _, let until) = state { return until }
        return nil
    }

    /// When the event happened that is sent or waits for its next try; nil without one.
    public var waitingSince: WallClock? {
        switch state {
        case .idle: nil
        case .sending(let delivery, _), .waiting(let delivery, _, _): delivery.time
        }
    }

    /// Takes what is to be sent now; ``finish(_:at:_:spread:)`` follows. Nil if nothing is due.
    public mutating func next(of history: EventHistory, at now: Instant) -> Delivery? {
        switch state {
        case .sending: return nil
        case .waiting(let delivery, let tries, let until):
            guard now >= until else { return nil }
            state = .sending(delivery, tries: tries)
            return delivery
        case .idle:
            let found = history.first(after: cursor) { [wanted, source] event in
                source.kind(of: event).map(wanted.contains) ?? false
            }
            cursor = found.before
            if let gap = found.gap { self.gap = gap == .interrupted ? .interrupted : .dropped }
            guard let event = found.event, let kind = source.kind(of: event) else { return nil }
            let delivery = Delivery(event, kind, EventCursor(history: history.id, position: event.position))
            state = .sending(delivery, tries: 0)
            return delivery
        }
    }

    /// Takes the reason why events may be missing before the newest delivery; nil if none are.
    public mutating func takeGap() -> Gap? {
        defer { gap = nil }
        return gap
    }

    /// Notes what the try of the newest delivery has led to.
    ///
    /// - Parameter spread: Random, -1 to 1: how much of ``spread`` a wait gets.
    public mutating func finish(
        _ outcome: Outcome, at now: Instant, _ time: WallClock, spread: Double
    ) -> Verdict? {
        guard case .sending(let delivery, let tries) = state else { return nil }
        guard let patience = Self.patience(for: outcome) else {
            settle(delivery)
            return .delivered
        }
        guard Duration.milliseconds(time.unixMilliseconds - delivery.time.unixMilliseconds) < patience else {
            settle(delivery)
            return .lost(outcome.cause)
        }
        let pause = Self.pause(after: tries, outcome, spread)
        state = .waiting(delivery, tries: tries + 1, until: now.advanced(by: pause))
        return .later(pause, outcome.cause)
    }

    /// The age from which on an event is not tried again: a day if the server cannot be reached or is out of order, an hour if it refuses the
    /// event, so that one event that it cannot take does not hold up the others for longer, and none if the webhook is gone (410). Nil if
    /// the server has the event.
    static func patience(for outcome: Outcome) -> Duration? {
        switch outcome {
        case .failed, .answered(408, _), .answered(425, _), .answered(429, _), .answered(500..., _): .seconds(86_400)
        case .answered(200..<300, _): nil
        case .answered(410, _): .zero
        case .answered: .seconds(3_600)
        }
    }

    private static func pause(after tries: Int, _ outcome: Outcome, _ spread: Double) -> Duration {
        let doubled = min(longestPause, shortestPause * (1 << min(tries, 10)))
        let spread = doubled * (1 + Self.spread * max(-1, min(1, spread)))
        guard case .answered(_, let wait?) = outcome else { return spread }
        return max(spread, min(longestPause, wait))
    }

    private mutating func settle(_ delivery: Delivery) {
        cursor = delivery.end
        state = .idle
    }
}

extension WebhookCourse.Outcome {
    /// Why it was no success.
    fileprivate var cause: String {
        switch self {
        case .answered(let status, _) where (300..<400).contains(status):
            "its answer has the status \(status), and redirects are not followed"
        case .answered(let status, _): "its answer has the status \(status)"
        case .failed(let cause): cause
        }
    }
}

extension WebhookCourse.Delivery {
    fileprivate init(_ event: EventHistory.Event, _ kind: WebhookEvent, _ end: EventCursor) {
        (self.kind, self.end) = (kind, end)
        id = "\(end)"
        time = WallClock(unixMilliseconds: ControlCoding.decode(Time.self, from: event.json)?.milliseconds ?? 0)
        // The event is a JSON object already.
        let head = #"{"type":"\#(kind.rawValue)","timestamp":"\#(time.rfc3339)","run":"\#(end.run)","data":"#
        body = Array(head.utf8) + event.json + [UInt8(ascii: "}")]
    }

    private struct Time: Decodable {
        let milliseconds: Int64

        enum CodingKeys: String, CodingKey { case milliseconds = "at_ms" }
    }
}
