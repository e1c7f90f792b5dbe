import JSON
import SignalWire
import Core
import Cryptography

/// Effects that the parts of the core request while they handle an input, in order: ``ExchangeCore`` carries them out.
///
/// A part changes only its own state. Events to devices, deadlines, and other outputs are recorded here. Room in the
/// budget is requested before anything is changed, and is known at once.
struct Effects: Sendable {
    /// One thing to be done.
    enum Effect: Sendable {
        /// Number an event in a principal's stream, keep it, and send it to the devices of its audience.
        case notify(Principal, Audience, EventBody)
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
    /// Which shard this is of several.
    let shard: Shard?
    /// The number of the newest body of an event. One transaction may have bodies of several shards, each with numbers of its own.
    private var lastBody: UInt64
    /// Whether steps of invites are put out.
    let isTracing: Bool

    init(_ limits: StorageQuota.Limits, run: RunSeed, shard: Shard? = nil, isTracing: Bool = false) {
        self.isTracing = isTracing
        budget = Budget(limits)
        ids = IDSource(run, shard: shard)
        self.shard = shard
        lastBody = UInt64(shard?.number ?? 0) << 56
    }

    // MARK: - For the core

    /// How many there are to carry out.
    var count: Int { asked.count }

    subscript(index: Int) -> Effect { asked[index] }

    /// All were carried out.
    mutating func removeAll() { asked.removeAll(keepingCapacity: asked.count < 1_024) }

    /// Continues the counters of an earlier core.
    mutating func goOn(from earlier: CoreCounters) { counters = earlier }

    /// Continues numbering bodies above those that are on disk.
    mutating func goOn(afterBody number: UInt64) { lastBody += number }

    // MARK: - For parts

    /// Checks that `bytes` more may be kept.
    ///
    /// - Throws: `tooManyRequests`, which says whether the user's own limit or the total limit was reached.
    mutating func afford(_ bytes: Int, _ cause: StorageQuota.Cause = .request) throws(RPCError) {
        switch budget.refusal(of: bytes, cause) {
        case nil: return
        case .payerIsOverBound(let bytes):
            counters.overBudget += 1
            throw RPCError(
                .tooManyRequests,
                "The exchange would store more than \(bytes) bytes for this user; end invites, or wait "
                    + "for a minute.", limit: bytes)
        case .memoryIsShort:
            counters.overload += 1
            throw RPCError(
                .tooManyRequests,
                "The exchange is short of memory, and this user has used its share; try again in a minute.")
        }
    }

    mutating func count(_ counter: WritableKeyPath<CoreCounters, Int>, by number: Int = 1) {
        counters[keyPath: counter] += number
    }

    /// An unpredictable id that no other run makes. With several shards it says which one has what it names.
    mutating func nextID<Kind>(_ kind: String) -> Identifier<Kind> { ids.next(kind) }

    /// The id of a group, whose shard is that of its name (``Shard/init(of:)``), whether a client gave it or not.
    mutating func nextGroupID() -> GroupID { ids.next("group", saysShard: false) }

    /// Encodes an event once for all its receivers.
    mutating func body(of event: ExchangeEvent) -> EventBody { body(try? EventText(event)) }

    /// Encodes an invite notification once for all its receivers.
    mutating func body(of invite: InviteRecord, at now: Instant) -> EventBody { body(try? invite.received(at: now)) }

    private mutating func body(_ text: EventText?) -> EventBody {
        lastBody += 1
        // Only numbers that JSON does not have cannot be written, and from JSON none came in.
        return EventBody(number: lastBody, text: text ?? EventText(kept: #"{"data":null,"type":"unknown"}"#))
    }

    /// Sends an event to a user's devices in the audience. The user has an account.
    mutating func notify(_ user: UserID, _ audience: Audience, _ event: EventBody) {
        asked.append(.notify(.account(user), audience, event))
    }

    /// Sends an event to one device.
    mutating func notify(_ endpoint: Endpoint, _ event: EventBody) {
        asked.append(.notify(endpoint.principal, .device(endpoint.device), event))
    }

    /// Sends an event to one device and no other.
    mutating func notify(_ endpoint: Endpoint, _ event: ExchangeEvent) { notify(endpoint, body(of: event)) }

    /// Sends an event to the device of a session without keeping it: the device asks again when it resumes.
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
    /// Puts out a step of an invite for those who trace calls; does nothing if nothing is traced.
    mutating func trace(_ invite: InviteID, _ kind: @autoclosure () -> InviteStep.Kind, at now: Instant) {
        guard isTracing else { return }
        asked.append(.put(.traced(InviteStep(invite: invite, at: now, kind: kind()))))
    }
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

/// The source of unpredictable ids for one run of an exchange: random bits, which its driver supplies.
package struct RunSeed: Sendable {
    private let key: Redacted<[UInt8]>

    /// 256 bits from a generator; the system's, but in tests.
    package init(using generator: inout some RandomNumberGenerator) {
        key = Redacted((0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    /// A number for what need not be secret, such as pauses that are not to fall together.
    var number: UInt64 { code("number").prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

    fileprivate func code(_ text: String) -> [UInt8] { Digest.hmacSHA256(key.secret, Array(text.utf8)) }
}

/// Makes ids that are unique across runs and unpredictable even to a client that has seen many others: 128 bits of
/// HMAC-SHA256, with a key of this run alone, over a rising number.
struct IDSource: Sendable {
    private let seed: RunSeed
    /// Begins the part of a name behind its kind.
    private let prefix: String
    private var count: UInt64 = 0

    /// - Parameter shard: Which the names begin with; nil in an exchange that has one core for all users.
    init(_ seed: RunSeed, shard: Shard? = nil) {
        self.seed = seed
        prefix = shard?.prefix ?? ""
    }

    /// The next name, such as `invite-0b5f9e3ad2c14f7f8e6d1c0b9a887766`.
    mutating func next<Kind>(_ kind: String, saysShard: Bool = true) -> Identifier<Kind> {
        count += 1
        return Identifier(
            ours: "\(kind)-\(saysShard ? prefix : "")\(Hexadecimal.text(seed.code("\(count)").prefix(16)))")
    }
}
