import JSON
import SignalWire
import Core

/// What the parts of the core ask for while they serve an input, in order: ``ExchangeCore`` carries it out.
///
/// A part changes its own state, and nobody else's. That devices hear of it, that something is due later, and what else is
/// put out goes in here. Room in the budget is asked for before anything is changed, and is known at once.
struct Effects: Sendable {
    /// One thing to be done.
    enum Effect: Sendable {
        /// Number an event in somebody's stream, keep it, and send it to those of the devices that it is for.
        case tell(Principal, Audience, EventBody)
        /// Number an event and send it on one connection without keeping it: a device that resumes asks again.
        case sendTransient(EventBody, Principal, ConnectionID)
        case schedule(ExchangeCore.Deadline, due: Instant)
        case plan(Deadlines.Task, due: Instant)
        /// Something is on disk that is dropped after a while.
        case planPruning
        case put(ExchangeCore.Output)
    }

    var budget: Budget
    private(set) var counters = CoreCounters()
    private var asked: [Effect] = []
    private var ids: IDSource
    /// The number of the newest body of an event.
    private var lastBody: UInt64 = 0

    init(_ limits: StorageQuota.Limits, run: RunSeed) {
        budget = Budget(limits)
        ids = IDSource(run)
    }

    // MARK: - For the core

    /// How many there are to carry out.
    var count: Int { asked.count }

    subscript(index: Int) -> Effect { asked[index] }

    /// All were carried out.
    mutating func removeAll() { asked.removeAll(keepingCapacity: asked.count < 1_024) }

    /// Goes on counting where an earlier core ended.
    mutating func goOn(from earlier: CoreCounters) { counters = earlier }

    /// Goes on numbering bodies above those that are on disk.
    mutating func goOn(afterBody number: UInt64) { lastBody = number }

    // MARK: - For parts

    /// Makes sure that so many bytes more may be kept.
    ///
    /// - Throws: `tooManyRequests`, which says whether it is for the user's own bound or for that of all.
    mutating func afford(_ bytes: Int, _ cause: StorageQuota.Cause = .request) throws(RPCError) {
        switch budget.refusal(of: bytes, cause) {
        case nil: return
        case .payerIsOverBound(let bytes):
            counters.overBudget += 1
            throw RPCError(
                .tooManyRequests,
                "What the exchange keeps for this user would exceed \(bytes) bytes; end invites, or wait "
                    + "for a minute.", limit: bytes)
        case .memoryIsShort:
            counters.overload += 1
            throw RPCError(
                .tooManyRequests,
                "The exchange is short of memory, and this user has its share of it; try again in a minute.")
        }
    }

    mutating func count(_ counter: WritableKeyPath<CoreCounters, Int>, by number: Int = 1) {
        counters[keyPath: counter] += number
    }

    /// The next name that no other run makes and nobody guesses.
    mutating func nextID<Kind>(_ kind: String) -> Identifier<Kind> { ids.next(kind) }

    /// Writes an event for all who will be told of it.
    mutating func body(of event: ExchangeEvent) -> EventBody { body(try? EventText(event)) }

    /// Writes the news of an invite for all who will be told of it.
    mutating func body(of invite: InviteRecord, at now: Instant) -> EventBody { body(try? invite.received(at: now)) }

    private mutating func body(_ text: EventText?) -> EventBody {
        lastBody += 1
        // Only numbers that JSON does not have cannot be written, and from JSON none came in.
        return EventBody(number: lastBody, text: text ?? EventText(kept: #"{"data":null,"type":"unknown"}"#))
    }

    /// Tells those devices of a user with an account that an event is for.
    mutating func tell(_ user: UserID, _ audience: Audience, _ event: EventBody) {
        asked.append(.tell(.account(user), audience, event))
    }

    /// Tells one device.
    mutating func tell(_ endpoint: Endpoint, _ event: EventBody) {
        asked.append(.tell(endpoint.principal, .device(endpoint.device), event))
    }

    /// Tells one device of what nobody else is told.
    mutating func tell(_ endpoint: Endpoint, _ event: ExchangeEvent) { tell(endpoint, body(of: event)) }

    /// Tells the device of a session without keeping the event: it asks again when it resumes.
    mutating func sendTransient(_ event: EventBody, to session: Session) {
        asked.append(.sendTransient(event, session.endpoint.principal, session.connection))
    }

    /// Has the core look at something later.
    mutating func schedule(_ deadline: ExchangeCore.Deadline, due: Instant) {
        asked.append(.schedule(deadline, due: due))
    }

    /// Has the core do a task later, unless it is planned already.
    mutating func plan(_ task: Deadlines.Task, due: Instant) { asked.append(.plan(task, due: due)) }

    mutating func note(_ note: ExchangeNote) { asked.append(.put(.note(note))) }
    mutating func close(_ connection: ConnectionID, _ reason: CloseReason) {
        asked.append(.put(.close(connection, reason)))
    }
    mutating func refuse(_ connection: ConnectionID, _ id: RPCID?, _ error: RPCError) {
        asked.append(.put(.refuse(connection, id, error)))
    }
    mutating func post(_ push: StoredPush) { asked.append(.put(.push(push))) }
    mutating func persist(_ change: Change) { asked.append(.put(.persist(change))) }

    /// Keeps what is dropped from disk after a while.
    mutating func record(_ change: Change) {
        persist(change)
        asked.append(.planPruning)
    }

    /// Keeps how a call, or an attempt at one, ended (CALL-7).
    mutating func recordEnd(
        of invite: InviteID, with invitee: UserID, reason: String, duration: Int64, at now: Instant
    ) {
        let kind = CallStep.Kind.ended(reason: reason, durationMilliseconds: duration)
        record(.record(CallStep(invite: invite, invitee: invitee, kind: kind, at: now)))
    }
}
