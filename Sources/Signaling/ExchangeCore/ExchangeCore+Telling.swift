import SignalWire
import Timekeeping

/// Telling devices what happened. What several are told of is written once, and kept once.
extension ExchangeCore {
    /// Writes an event for all who will be told of it.
    mutating func body(of event: ExchangeEvent) -> EventBody { body(try? EventText(event)) }

    /// Writes the news of an invite for all who will be told of it.
    mutating func body(of invite: InviteRecord, at now: Instant) -> EventBody { body(try? invite.received(at: now)) }

    private mutating func body(_ text: EventText?) -> EventBody {
        lastBody += 1
        // Only numbers that JSON does not have cannot be written, and from JSON none came in.
        return EventBody(number: lastBody, text: text ?? EventText(kept: #"{"data":null,"type":"unknown"}"#))
    }

    /// Numbers an event in the stream of a user with an account and sends it to those of its devices that it is for.
    mutating func tell(
        _ user: UserID, _ audience: Audience, _ event: ExchangeEvent, at now: Instant, into outbox: inout [Output]
    ) {
        tell(.account(user), audience, body(of: event), at: now, into: &outbox)
    }

    /// The same for an event that others are told of, too.
    mutating func tell(
        _ user: UserID, _ audience: Audience, _ event: EventBody, at now: Instant, into outbox: inout [Output]
    ) {
        tell(.account(user), audience, event, at: now, into: &outbox)
    }

    /// Numbers an event and sends it to one device.
    mutating func tell(
        _ endpoint: Endpoint, _ event: ExchangeEvent, at now: Instant, into outbox: inout [Output]
    ) {
        tell(endpoint.principal, .device(endpoint.device), body(of: event), at: now, into: &outbox)
    }

    /// The same for an event that others are told of, too.
    mutating func tell(_ endpoint: Endpoint, _ event: EventBody, at now: Instant, into outbox: inout [Output]) {
        tell(endpoint.principal, .device(endpoint.device), event, at: now, into: &outbox)
    }

    /// Numbers an event in somebody's stream and sends it to those of the devices that it is for.
    ///
    /// It is kept for devices that resume, unless the budgets have no room for it: then who is there is told of it, and who
    /// is not starts afresh.
    mutating func tell(
        _ principal: Principal, _ audience: Audience, _ event: EventBody, at now: Instant, into outbox: inout [Output]
    ) {
        // Nothing is kept for a removed user: the next one of that name would find it.
        guard principal.kind != .account || accounts.account(id: principal.user) != nil else { return }
        let forgotten = logs[principal]?.forgotten ?? 0
        let isKept = ledger.hasRoom(for: ledger.cost(of: event), of: actsFor, .sequel)
        let dropped: [EventBody]
        if isKept {
            dropped = logs[principal, default: EventLog()].append(event, for: audience, at: now)
            ledger.enter(event, for: actsFor)
        } else {
            dropped = logs[principal, default: EventLog()].skip()
            count(\.unkeptEvents)
        }
        for body in dropped { ledger.leave(body) }
        let told = ToldEvent(sequence: logs[principal]?.sequence ?? 0, body: event)
        if isKept {
            outbox.append(
                .persist(
                    .event(
                        StoredEvent(
                            principal: principal, sequence: told.sequence, body: event, audience: audience.stored,
                            at: now))))
            planExpiry(of: principal, at: now)
        }
        planPruning(at: now)
        if let newest = logs[principal]?.forgotten, newest > forgotten {
            outbox.append(.persist(.eventsForgotten(principal, upTo: newest)))
        }
        let receivers = sessions.sessions(of: principal)
            .filter { audience.includes($0.endpoint.device, isRegistered: $0.isRegistered) }
        guard !receivers.isEmpty else { return }
        count(\.events, by: receivers.count)
        outbox.append(.event(receivers.map(\.connection), told))
    }

    /// Numbers an event and sends it on one connection without keeping it: a device that resumes asks again.
    mutating func sendTransient(_ event: ExchangeEvent, to session: Session, into outbox: inout [Output]) {
        sendTransient(body(of: event), to: session, into: &outbox)
    }

    /// The same for an event that others are told of, too.
    mutating func sendTransient(_ event: EventBody, to session: Session, into outbox: inout [Output]) {
        let principal = session.endpoint.principal
        if let reserved = logs[principal, default: EventLog()].pass() {
            outbox.append(.persist(.sequenceReserved(principal, upTo: reserved)))
        }
        count(\.events)
        let told = ToldEvent(sequence: logs[principal]?.sequence ?? 0, body: event)
        outbox.append(.event([session.connection], told))
    }

    // MARK: - Forgetting

    /// How much longer than the resume window events may be kept, so that they go several at a time.
    static let expiryGrain = Duration.seconds(5)

    /// Sees to it that what is too old goes without anybody's doing.
    mutating func planExpiry(of principal: Principal, at now: Instant) {
        guard let log = logs[principal], !log.isExpiryPlanned, let oldest = log.oldest else { return }
        logs[principal]?.isExpiryPlanned = true
        let due = oldest.advanced(by: settings.resumeWindow + Self.expiryGrain)
        deadlines.add(.eventsExpire(principal), due: max(due, now))
    }

    /// Drops somebody's events that nobody can resume with any more.
    mutating func expireEvents(of principal: Principal, at now: Instant, into outbox: inout [Output]) {
        guard let forgotten = logs[principal]?.forgotten else { return }
        logs[principal]?.isExpiryPlanned = false
        let before = now.advanced(by: .zero - settings.resumeWindow)
        for body in logs[principal]?.forget(before: before) ?? [] { ledger.leave(body) }
        if let newest = logs[principal]?.forgotten, newest > forgotten {
            outbox.append(.persist(.eventsForgotten(principal, upTo: newest)))
        }
        planExpiry(of: principal, at: now)
        guard !isEventPruningPlanned else { return }
        isEventPruningPlanned = true
        deadlines.add(.eventsArePruned, due: now.advanced(by: Self.expiryGrain))
    }

    /// Drops on disk what was dropped in memory.
    mutating func pruneEvents(at now: Instant, into outbox: inout [Output]) {
        isEventPruningPlanned = false
        outbox.append(.persist(.eventsPruned(before: now.advanced(by: .zero - settings.resumeWindow))))
    }

    /// Somebody's stream is over, with all that is kept of it.
    mutating func dropLog(of principal: Principal) {
        for body in logs.removeValue(forKey: principal)?.bodies ?? [] { ledger.leave(body) }
    }
}
