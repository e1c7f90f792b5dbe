import Core
import ExchangeCore
import Monitoring
import SignalWire
import Tracing

/// Makes the exchange's part of each call's trace of the steps of its invite (docs/tracing.md).
///
/// A trace is put out when the invite and all its calls have ended. Steps come when what they report is on disk.
///
/// Capacity: ``Limits/invites``. Past it the oldest are dropped, and counted; so a user whose invites never end takes no room from others
/// for long.
struct InviteTraces: Sendable {
    /// The limits.
    struct Limits: Hashable, Sendable {
        /// Invites, and calls that they have become, which have not ended.
        var invites = 10_000
        /// Spans within one trace, and as many events; further ones are counted.
        var parts = 32
    }

    /// What can happen.
    enum Input: Sendable {
        case step(InviteStep)
        /// The exchange ends: what has not ended is put out as it is.
        case finish
    }

    private let limits: Limits
    private let sampling: TraceSampling
    private let parents: TraceConfiguration.Parents
    private let hasNames: Bool
    private var generator: SplitMix64
    private var open: [InviteID: Part] = [:]
    /// The invites of ``open`` in the order of their coming, among others that have ended; ``first`` is the oldest that may be open.
    private var order: [InviteID] = []
    private var first = 0
    /// Traces that were dropped because there was no room.
    private(set) var dropped = 0

    /// - Parameter seed: A random number, from which the names of spans are drawn.
    init(_ configuration: TraceConfiguration, limits: Limits = Limits(), seed: UInt64) {
        self.limits = limits
        sampling = configuration.sampling
        parents = configuration.parents
        hasNames = configuration.hasNames
        generator = SplitMix64(seed: seed)
    }

    /// How many are traced that have not ended.
    var count: Int { open.count }

    /// Takes what has happened.
    ///
    /// - Parameters:
    ///   - now: When the outputs of the step left the exchange.
    ///   - epoch: 1970 on the machine's clock, in nanoseconds.
    mutating func handle(_ input: Input, at now: Instant, epoch: Int64, into outbox: inout [Trace]) {
        switch input {
        case .step(let step):
            if case .sent(let origin) = step.kind { return begin(step, origin, at: now) }
            guard open[step.invite] != nil else { return }
            let isOver = open[step.invite]?.take(step, at: now, limits, &generator) ?? false
            guard isOver, let part = open.removeValue(forKey: step.invite) else { return }
            outbox.append(part.trace(until: step.at, epoch: epoch))
        case .finish:
            for id in order[first...] {
                guard let part = open.removeValue(forKey: id) else { continue }
                outbox.append(part.trace(until: now, epoch: epoch))
            }
            (order, first) = ([], 0)
        }
    }

    private mutating func begin(_ step: InviteStep, _ origin: InviteStep.Origin, at now: Instant) {
        let followed = isFollowed(origin) ? origin.parent : nil
        let trace = followed?.trace ?? TraceID(using: &generator)
        guard followed?.isSampled ?? sampling.takes(trace) else { return }
        makeRoom()
        let context = TraceContext(trace: trace, span: SpanID(using: &generator), isSampled: true)
        open[step.invite] = Part(
            step, origin, context, parent: followed.map { .remote($0.span) } ?? .root,
            link: followed == nil ? origin.parent : nil, hasNames: hasNames, committedAt: now, &generator)
        order.append(step.invite)
    }

    private func isFollowed(_ origin: InviteStep.Origin) -> Bool {
        switch parents {
        case .none: false
        case .users: !origin.isForeign
        case .all: true
        }
    }

    private mutating func makeRoom() {
        while open.count >= limits.invites, first < order.count {
            if open.removeValue(forKey: order[first]) != nil { dropped += 1 }
            first += 1
        }
        while first < order.count, open[order[first]] == nil { first += 1 }
        guard order.count >= 2 * limits.invites else { return }
        order = order[first...].filter { open[$0] != nil }
        first = 0
    }
}

/// What is known of one invite, and of the calls that it has become.
private struct Part: Sendable {
    private let context: TraceContext
    private let parent: TraceSpan.Parent
    private let link: TraceContext?
    private let origin: InviteStep.Origin
    private let invite: InviteID
    private let hasNames: Bool
    private let received: Instant
    private let committed: Instant
    private let commit: SpanID
    private let ringing: SpanID
    /// When the first invitee answered, or the invite ended for one.
    private var settled: Instant?
    private var outcome: String?
    private var isFinished = false
    private var devices = 0
    private var events: [(name: String, at: Instant, attributes: [TraceSpan.Attribute])] = []
    private var spans: [Span] = []
    private var pushes: [PushID: Int] = [:]
    /// The calls that run, with the place of each among ``spans``; nil for one that has none.
    private var calls: [UserID: Int?] = [:]
    private var leftOut = 0

    /// Something that takes a time.
    private struct Span: Sendable {
        let id: SpanID
        let name: String
        let invitee: Int?
        let began: Instant
        var ended: Instant?
        var attributes: [TraceSpan.Attribute] = []
        var failure: String?
    }

    init(
        _ step: InviteStep, _ origin: InviteStep.Origin, _ context: TraceContext, parent: TraceSpan.Parent,
        link: TraceContext?, hasNames: Bool, committedAt committed: Instant, _ generator: inout SplitMix64
    ) {
        (self.context, self.parent, self.link, self.origin) = (context, parent, link, origin)
        (invite, self.hasNames, received, self.committed) = (step.invite, hasNames, step.at, committed)
        commit = SpanID(using: &generator)
        ringing = SpanID(using: &generator)
    }

    // MARK: Steps

    /// Takes a step.
    ///
    /// - Returns: Whether it was the last one.
    mutating func take(
        _ step: InviteStep, at now: Instant, _ limits: InviteTraces.Limits, _ generator: inout SplitMix64
    ) -> Bool {
        switch step.kind {
        case .sent: break
        case .delivered(let user, let count):
            devices += count
            // It left when the disk was done.
            note("delivered", now, user, [.init("handset.devices", .whole(Int64(count)))], limits)
        case .pushing(let push, let user):
            pushes[push] = add("push", step.at, user, limits, &generator)
        case .pushed(let push, let reason):
            guard let place = pushes.removeValue(forKey: push) else { break }
            spans[place].ended = step.at
            spans[place].failure = reason?.rawValue
        case .answered(let user, let action):
            settle(action.rawValue, at: step.at)
            note(action.rawValue, step.at, user, [], limits)
            if action == .accepted { calls[user] = .some(add("call", step.at, user, limits, &generator)) }
        case .ended(let end):
            settle(end.rawValue, at: step.at)
            note(end.rawValue, step.at, nil, [], limits)
        case .finished: isFinished = true
        case .callEnded(let user, let reason, let isFailure):
            guard let place = calls.removeValue(forKey: user) else { break }
            if let place {
                spans[place].ended = step.at
                spans[place].attributes.append(.init("handset.reason", .text(reason)))
                spans[place].failure = isFailure ? reason : nil
            }
        }
        return isFinished && calls.isEmpty
    }

    private mutating func settle(_ outcome: String, at now: Instant) {
        guard settled == nil else { return }
        (settled, self.outcome) = (now, outcome)
    }

    private mutating func note(
        _ name: String, _ at: Instant, _ user: UserID?, _ attributes: [TraceSpan.Attribute],
        _ limits: InviteTraces.Limits
    ) {
        guard events.count < limits.parts else { return leftOut += 1 }
        events.append((name, at, invitee(user).map { [Self.number(of: $0)] + attributes } ?? attributes))
    }

    /// - Returns: The place of the span; nil if there are too many.
    private mutating func add(
        _ name: String, _ began: Instant, _ user: UserID, _ limits: InviteTraces.Limits,
        _ generator: inout SplitMix64
    ) -> Int? {
        guard spans.count < limits.parts else {
            leftOut += 1
            return nil
        }
        spans.append(Span(id: SpanID(using: &generator), name: name, invitee: invitee(user), began: began))
        return spans.count - 1
    }

    /// An invitee in spans: the first is 1.
    private func invitee(_ user: UserID?) -> Int? {
        user.flatMap { origin.invitees.firstIndex(of: $0) }.map { $0 + 1 }
    }

    private static func number(of invitee: Int) -> TraceSpan.Attribute {
        TraceSpan.Attribute("handset.invitee", .whole(Int64(invitee)))
    }

    // MARK: The trace

    /// The spans. What has not ended by then ends.
    func trace(until end: Instant, epoch: Int64) -> Trace {
        let last = max(end, committed)
        func time(_ instant: Instant) -> Int64 { min(max(instant, received), last).nanoseconds &- epoch }
        func span(_ id: SpanID, _ name: String, _ start: Instant, _ end: Instant) -> TraceSpan {
            var span = TraceSpan(id, name, from: time(start), to: time(end))
            span.parent = .own(context.span)
            return span
        }
        var whole = span(context.span, "exchange", received, last)
        whole.parent = parent
        whole.kind = .server
        whole.attributes = attributes
        whole.events = events.map { TraceSpan.Event($0.name, at: time($0.at), $0.attributes) }
        whole.links = link.map { [$0] } ?? []
        let parts = spans.map { part in
            var made = span(part.id, part.name, part.began, part.ended ?? last)
            made.attributes = (part.invitee.map { [Self.number(of: $0)] } ?? []) + part.attributes
            made.failure = part.failure
            return made
        }
        return Trace(
            context.trace,
            [
                whole, span(commit, "commit", received, committed),
                span(ringing, "ringing", committed, settled ?? last),
            ] + parts)
    }

    private var attributes: [TraceSpan.Attribute] {
        var attributes: [TraceSpan.Attribute] = [
            .init("handset.invite", .text(invite.text)),
            .init("handset.invitees", .whole(Int64(origin.invitees.count))),
            .init("handset.devices", .whole(Int64(devices))),
        ]
        if let outcome { attributes.append(.init("handset.outcome", .text(outcome))) }
        if leftOut > 0 { attributes.append(.init("handset.left_out", .whole(Int64(leftOut)))) }
        guard hasNames else { return attributes }
        attributes.append(.init("handset.user", .text(origin.inviter.text)))
        attributes.append(
            .init("handset.peer", .text(origin.invitees.map(\.text).joined(separator: " "))))
        return attributes
    }
}
