internal import AudioPort
package import CallControl
package import CallMedia
internal import CallParticipation
package import Core
internal import Playout
package import Tracing

/// What a call is in traces: the names by which other programs continue its trace, and the times from which its spans are made at its
/// end. Until then it costs a few instants, and nothing if the call is not recorded.
package struct CallTrace: Sendable {
    /// The call's own span, for those that it causes elsewhere.
    package let context: TraceContext
    private let parent: TraceSpan.Parent
    private let link: TraceContext?
    /// Nil if the call is not recorded.
    private var times: CallTimes?

    /// Turns of a caller that have spans of their own; further ones are counted.
    package static let mostTurns = 64
    /// Times that a caller's speech stopped a program which are events; likewise.
    package static let mostInterruptions = 64

    /// Names a call that is about to begin.
    ///
    /// - Parameters:
    ///   - parent: What caused it.
    ///   - link: The span that the inviter names, if that is not taken for the parent.
    package init(_ context: TraceContext, parent: TraceSpan.Parent = .root, link: TraceContext? = nil) {
        self.context = context
        self.parent = parent
        self.link = link
        times = context.isSampled ? CallTimes() : nil
    }

    /// Notes what the call's session takes.
    package mutating func note(_ input: CallSession.Input, at now: Instant) { times?.note(input, at: now) }

    /// Notes what it orders for that.
    package mutating func note(_ outputs: ArraySlice<CallSession.Output>, at now: Instant) {
        for output in outputs { times?.note(output, at: now) }
    }

    /// The spans of the call.
    ///
    /// - Parameters:
    ///   - record: How the call has ended.
    ///   - attributes: What its device knows of it besides.
    ///   - epoch: 1970 on the machine's clock, in nanoseconds.
    ///   - generator: For the names of spans.
    /// - Returns: Nil if it is not recorded, or has not ended.
    package func trace(
        _ record: CallRecord, _ report: MediaReport?, _ attributes: [TraceSpan.Attribute], epoch: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> Trace? {
        guard let times, let end = times.ended else { return nil }
        var writer = SpanWriter(context.span, record.began, end, epoch: epoch)
        times.write(of: record, into: &writer, using: &generator)
        var call = writer.span(
            context.span, record.direction == .outgoing ? "outgoing call" : "incoming call", record.began, end)
        call.parent = parent
        call.kind = record.direction == .outgoing ? .client : .server
        call.attributes = attributes + record.attributes + (report?.attributes ?? []) + times.attributes
        call.events = writer.events
        call.links = link.map { [$0] } ?? []
        call.failure = record.failure
        return Trace(context.trace, [call] + writer.spans)
    }
}

/// When what has happened in a call; of each the first time.
private struct CallTimes: Sendable {
    private struct Link {
        let began: Instant
        let hasICE: Bool
        let hasHandshake: Bool
    }

    private struct Turn {
        /// From the beginning of the call's sound.
        let began: Duration
        var ended: Duration?
        /// When the answer was first heard, and how long it took.
        var answer: (at: Instant, after: Duration)?
    }

    /// Until then the service has taken the invite, or the call has begun to ring.
    private var announced: Instant?
    private var summoned: Instant?
    private var attended: Instant?
    private var answered: Instant?
    private var link: Link?
    private var path: Instant?
    private var ready: Instant?
    private var established: Instant?
    private var heard: Instant?
    private var flowing: Instant?
    private(set) var ended: Instant?
    /// When the call's sound began, as near as reports of turns show it.
    private var soundBegan: Instant?
    private var turns: [Turn] = []
    private var turnsLeftOut = 0
    private var interruptions: [(at: Instant, played: Duration)] = []

    private static func note(_ time: inout Instant?, _ now: Instant) { if time == nil { time = now } }

    mutating func note(_ input: CallSession.Input, at now: Instant) {
        switch input {
        case .service(.event(.inviteSent)): Self.note(&announced, now)
        case .engine(.pathFound): Self.note(&path, now)
        case .engine(.ready): Self.note(&ready, now)
        case .engine(.packetReceived): Self.note(&heard, now)
        case .engine(.flowing): Self.note(&flowing, now)
        case .participant(.ready, _): Self.note(&attended, now)
        case .participant(.turn(_, let notice, _), _): note(notice, at: now)
        case .begin, .user, .service, .peer, .engine, .failed, .participant, .device, .timerFired: break
        }
    }

    mutating func note(_ output: CallSession.Output, at now: Instant) {
        switch output {
        case .event(.incoming): Self.note(&announced, now)
        case .participant(.summon): Self.note(&summoned, now)
        case .event(.answered): Self.note(&answered, now)
        case .event(.established): Self.note(&established, now)
        case .engine(.connect(_, let remote)):
            guard link == nil else { return }
            var hasICE = false
            if case .ice = remote.way { hasICE = true }
            link = Link(began: now, hasICE: hasICE, hasHandshake: remote.handshake != nil)
        case .device(.ended): Self.note(&ended, now)
        case .service, .media, .engine, .participant, .device, .event, .note: break
        }
    }

    private mutating func note(_ notice: TurnNotice, at now: Instant) {
        switch notice {
        case .speechBegan(let at):
            follow(at, now)
            guard turns.count < CallTrace.mostTurns else { return turnsLeftOut += 1 }
            turns.append(Turn(began: at))
        case .speechEnded(let at):
            follow(at, now)
            guard turnsLeftOut == 0, !turns.isEmpty else { return }
            turns[turns.count - 1].ended = at
        case .answered(let time):
            guard turnsLeftOut == 0, let last = turns.indices.last, turns[last].answer == nil else { return }
            turns[last].answer = (now, time)
        case .interrupted(let played):
            if interruptions.count < CallTrace.mostInterruptions { interruptions.append((now, played)) }
        }
    }

    /// A report comes at least as late as what it reports, so the earliest beginning that fits one is the nearest.
    private mutating func follow(_ at: Duration, _ now: Instant) {
        let began = now.advanced(by: .zero - at)
        soundBegan = min(soundBegan ?? began, began)
    }

    // MARK: Spans

    /// Writes what happened within the call.
    func write(of record: CallRecord, into writer: inout SpanWriter, using generator: inout some RandomNumberGenerator)
    {
        guard let ended else { return }
        if let announced { writer.event(record.direction == .outgoing ? "invite sent" : "ringing", announced) }
        if let flowing { writer.event("media flows both ways", flowing) }
        for interruption in interruptions {
            writer.event(
                "program interrupted", interruption.at,
                [.init("handset.played_ms", .real(interruption.played.milliseconds))])
        }
        writer.add("invite", record.began, answered ?? ended, using: &generator)
        if let summoned { writer.add("participant", summoned, attended ?? ended, using: &generator) }
        if let link { write(link, until: ended, into: &writer, using: &generator) }
        if let answered, let heard { writer.add("first sound", answered, heard, using: &generator) }
        if let established {
            let talk = writer.add("talk", established, ended, using: &generator)
            for turn in turns { write(turn, within: talk, until: ended, into: &writer, using: &generator) }
        }
    }

    private func write(
        _ link: Link, until ended: Instant, into writer: inout SpanWriter,
        using generator: inout some RandomNumberGenerator
    ) {
        if link.hasICE { writer.add("ice", link.began, path ?? ended, using: &generator) }
        guard link.hasHandshake, let began = link.hasICE ? path : link.began else { return }
        writer.add("dtls", began, ready ?? ended, using: &generator)
    }

    private func write(
        _ turn: Turn, within talk: SpanID, until ended: Instant, into writer: inout SpanWriter,
        using generator: inout some RandomNumberGenerator
    ) {
        guard let soundBegan else { return }
        let began = soundBegan.advanced(by: turn.began)
        let silent = turn.ended.map { soundBegan.advanced(by: $0) }
        let id = writer.add("turn", began, turn.answer?.at ?? silent ?? ended, within: talk, using: &generator)
        guard let answer = turn.answer else { return }
        writer.add("response", answer.at.advanced(by: .zero - answer.after), answer.at, within: id, using: &generator)
    }

    var attributes: [TraceSpan.Attribute] {
        turnsLeftOut == 0 ? [] : [.init("handset.turns_left_out", .whole(Int64(turnsLeftOut)))]
    }
}

/// Collects what happened within a call, by the machine's time of day.
private struct SpanWriter {
    private(set) var spans: [TraceSpan] = []
    private(set) var events: [TraceSpan.Event] = []
    private let call: SpanID
    private let began: Instant
    private let ended: Instant
    private let epoch: Int64

    init(_ call: SpanID, _ began: Instant, _ ended: Instant, epoch: Int64) {
        self.call = call
        self.began = began
        self.ended = ended
        self.epoch = epoch
    }

    /// Nanoseconds since 1970; nothing of a call is before it or after.
    private func time(_ instant: Instant) -> Int64 { min(max(instant, began), max(began, ended)).nanoseconds &- epoch }

    func span(_ id: SpanID, _ name: String, _ start: Instant, _ end: Instant) -> TraceSpan {
        TraceSpan(id, name, from: time(start), to: time(end))
    }

    /// Adds a span within another one, or within the call.
    @discardableResult
    mutating func add(
        _ name: String, _ start: Instant, _ end: Instant, within parent: SpanID? = nil,
        using generator: inout some RandomNumberGenerator
    ) -> SpanID {
        var span = self.span(SpanID(using: &generator), name, start, end)
        span.parent = .own(parent ?? call)
        spans.append(span)
        return span.id
    }

    mutating func event(_ name: String, _ at: Instant, _ attributes: [TraceSpan.Attribute] = []) {
        events.append(TraceSpan.Event(name, at: time(at), attributes))
    }
}

extension CallRecord {
    /// What a record says of a call without a name.
    fileprivate var attributes: [TraceSpan.Attribute] {
        let words: [(String, String?)] = [
            ("handset.invite", invite?.text), ("handset.direction", direction.rawValue),
            ("handset.reason", reason.rawValue), ("handset.ended_by", endedBy.rawValue),
            ("handset.cause", cause?.rawValue), ("handset.hung_up_because", hangUpCause?.rawValue),
        ]
        return words.compactMap { key, word in word.map { TraceSpan.Attribute(key, .text($0)) } }
    }

    /// Why it failed, in the words of reasons and causes: what went wrong may name users, and is in the log.
    fileprivate var failure: String? {
        guard reason.isFailure else { return nil }
        return cause.map { "\(reason.rawValue): \($0.rawValue)" } ?? reason.rawValue
    }
}

extension MediaReport {
    fileprivate var attributes: [TraceSpan.Attribute] {
        var attributes: [TraceSpan.Attribute] = [
            .init("handset.packets_sent", .whole(Int64(peer.packetsSent))),
            .init("handset.packets_received", .whole(Int64(playout.packetsReceived))),
            .init("handset.packets_lost", .whole(Int64(playout.packetsLost))),
        ]
        if peer.roundTripNanoseconds > 0 {
            attributes.append(.init("handset.round_trip_ms", .real(Double(peer.roundTripNanoseconds) / 1e6)))
        }
        return attributes
    }
}
