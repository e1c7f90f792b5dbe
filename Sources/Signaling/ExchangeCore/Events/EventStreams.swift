package import SignalWire
import Core

/// The numbered events of all principals, kept for devices that resume, for as long as they can.
///
/// An event with several receivers is encoded once, and kept once.
struct EventStreams: Sendable {
    /// How much longer than the resume window events may be kept, so that they go several at a time.
    static let expiryGrain = Duration.seconds(5)

    private let window: Duration
    private var logs: [Principal: EventLog] = [:]
    /// Principals without an account whose stored events must be deleted.
    private var gone: [Principal] = []

    /// - Parameter window: For how long a device can resume.
    init(window: Duration) { self.window = window }

    subscript(principal: Principal) -> EventLog? { logs[principal] }

    /// Whether the principal has a stream.
    func has(_ principal: Principal) -> Bool { logs[principal] != nil }

    /// How many streams there are.
    var count: Int { logs.count }
    /// Whose streams there are.
    var principals: some Collection<Principal> { logs.keys }
    /// The bodies that are kept, once for each stream that holds them.
    var bodies: [EventBody] { logs.values.flatMap(\.bodies) }
    /// Whether any event is kept.
    var isKeeping: Bool { logs.values.contains { $0.oldest != nil } }

    /// The number of the principal's newest event; 0 before the first.
    func sequence(of principal: Principal) -> UInt64 { logs[principal]?.sequence ?? 0 }

    /// What a device missed since event number `after`; `nil` if that is not known any more.
    func missed(after: UInt64, by endpoint: Endpoint, isRegistered: Bool) -> [DeliveredEvent]? {
        (logs[endpoint.principal] ?? EventLog()).missed(
            after: after, by: endpoint.device, isRegistered: isRegistered)
    }

    /// Numbers an event in a principal's stream, and keeps it for devices that resume. If the budget has no room for
    /// it, only connected devices receive it, and the others start afresh.
    ///
    /// - Returns: The event, and whether it is kept.
    mutating func add(
        _ event: EventBody, to principal: Principal, for audience: Audience, at now: Instant, _ budget: inout Budget,
        _ deadlines: inout Deadlines, into outbox: inout [ExchangeCore.Output]
    ) -> (event: DeliveredEvent, isKept: Bool) {
        let forgotten = logs[principal]?.forgotten ?? 0
        let isKept = budget.hasRoom(for: event)
        let dropped: [EventBody]
        if isKept {
            dropped = logs[principal, default: EventLog()].append(event, for: audience, at: now)
            budget.enter(event)
        } else {
            dropped = logs[principal, default: EventLog()].skip()
        }
        budget.leave(dropped)
        let told = DeliveredEvent(sequence: sequence(of: principal), body: event)
        if isKept {
            let stored = StoredEvent(
                principal: principal, sequence: told.sequence, body: event, audience: audience.stored, at: now)
            outbox.append(.persist(.event(stored)))
            planExpiry(of: principal, at: now, &deadlines)
        }
        putForgotten(of: principal, since: forgotten, into: &outbox)
        return (told, isKept)
    }

    /// Numbers an event that is not kept.
    mutating func pass(
        _ event: EventBody, to principal: Principal, into outbox: inout [ExchangeCore.Output]
    ) -> DeliveredEvent {
        if let reserved = logs[principal, default: EventLog()].pass() {
            outbox.append(.persist(.sequenceReserved(principal, upTo: reserved)))
        }
        return DeliveredEvent(sequence: sequence(of: principal), body: event)
    }

    // MARK: - Forgetting

    /// Schedules the removal of expired events.
    private mutating func planExpiry(of principal: Principal, at now: Instant, _ deadlines: inout Deadlines) {
        guard let log = logs[principal], !log.isExpiryPlanned, let oldest = log.oldest else { return }
        logs[principal]?.isExpiryPlanned = true
        deadlines.add(.eventsExpire(principal), due: max(oldest.advanced(by: window + Self.expiryGrain), now))
    }

    private func putForgotten(
        of principal: Principal, since forgotten: UInt64, into outbox: inout [ExchangeCore.Output]
    ) {
        guard let newest = logs[principal]?.forgotten, newest > forgotten else { return }
        outbox.append(.persist(.eventsForgotten(principal, upTo: newest)))
    }

    /// Drops a principal's events that are too old for any device to resume with.
    mutating func expire(
        _ principal: Principal, at now: Instant, _ budget: inout Budget, _ deadlines: inout Deadlines,
        into outbox: inout [ExchangeCore.Output]
    ) {
        guard let forgotten = logs[principal]?.forgotten else { return }
        logs[principal]?.isExpiryPlanned = false
        budget.leave(logs[principal]?.forget(before: now.advanced(by: .zero - window)) ?? [])
        putForgotten(of: principal, since: forgotten, into: &outbox)
        planExpiry(of: principal, at: now, &deadlines)
        deadlines.plan(.eventPruning, due: now.advanced(by: Self.expiryGrain))
    }

    /// Ends a principal's stream, and deletes all its stored events.
    mutating func end(_ principal: Principal, _ effects: inout Effects) {
        effects.budget.leave(logs.removeValue(forKey: principal)?.bodies ?? [])
        effects.persist(.streamForgotten(principal))
    }

    // MARK: - To disk and back

    /// The streams of which the disk is to keep nothing more, since last asked.
    mutating func takeGone() -> [Principal] {
        guard !gone.isEmpty else { return [] }
        defer { gone = [] }
        return gone
    }

    /// Restores the streams, except those of principals that cannot resume.
    mutating func restore(
        _ saved: Saved, at now: Instant, _ deadlines: inout Deadlines, keeping isThere: (Principal) -> Bool
    ) {
        for stream in saved.streams { logs[stream.principal] = EventLog(stream) }
        for event in saved.events { logs[event.principal, default: EventLog()].restore(event) }
        for principal in logs.keys { planExpiry(of: principal, at: now, &deadlines) }
        for principal in logs.keys where !isThere(principal) {
            logs[principal] = nil
            gone.append(principal)
        }
    }
}

extension Audience {
    /// The audience to store on disk.
    var stored: StoredEvent.Audience {
        switch self {
        case .device(let device): .device(device)
        case .registered(let except): .registered(except: except)
        case .every: .every
        }
    }

    init(_ stored: StoredEvent.Audience) {
        switch stored {
        case .device(let device): self = .device(device)
        case .registered(let except): self = .registered(except: except)
        case .every: self = .every
        }
    }
}

/// An event as one user's devices receive it: the number is that user's, the body is shared by all receivers.
package struct DeliveredEvent: Hashable, Sendable {
    var sequence: UInt64
    var body: EventBody

    /// What happened, read from its text.
    package var event: ExchangeEvent { body.event ?? .unknown(type: "unknown", data: nil) }
    /// The message, ready to send.
    package var message: [UInt8] { body.text.message(numbered: sequence) }
}
