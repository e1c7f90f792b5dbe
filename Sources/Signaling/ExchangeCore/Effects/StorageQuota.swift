import SignalWire

/// How many bytes are kept for each payer. The principal that caused them pays, not the receiver, so that no user fills
/// another's share.
///
/// One payer's limit depends on the total: ``Limits/user``, and never more than an eighth of what is free, so that a
/// payer that holds nothing yet finds room, however many attackers there are (dynamic thresholds, as in switches that
/// share their memory). Guests, which anyone can create in any number, have a part of their own that is divided in the
/// same way.
package struct StorageQuota: Sendable {
    /// Bytes that may be kept.
    package struct Limits: Hashable, Sendable {
        /// For everybody together.
        package var total: Int
        /// For one user: 256 open invites with 6 kB of data each, or 25 of the largest to 32 users (docs/protocol.md,
        /// Limits).
        package var user: Int
        /// For everybody who came in by a name alone.
        var guests: Int { total / 16 }
        /// A payer that holds nothing may use this fraction (1/8) of the free bytes.
        static let shares = 8

        /// Bounds both.
        package init(total: Int = 256 << 20, user: Int = 4 << 20) {
            self.total = total
            self.user = user
        }
    }

    /// Why something comes about.
    enum Cause: Hashable, Sendable {
        /// A principal begins something.
        case request
        /// It follows from an earlier request: an answer, an end, a return. It has as much room again, so that every
        /// request that was begun can be completed.
        case sequel

        fileprivate var factor: Int { self == .request ? 1 : 2 }
    }

    /// Something kept, other than events.
    enum Item: Hashable, Sendable {
        case invite(InviteID)
        case push(PushID)
        case session(SessionID)
        case group(GroupID)
        case call(CallKey)
        case pushTargets(Endpoint)
    }

    /// What one thing, or the events with one body, take up.
    struct Charge: Hashable, Sendable {
        /// `nil` for the exchange itself, and for events from before a restart.
        var payer: Principal?
        var bytes: Int
        /// Logs that hold a body.
        var holders = 0
    }

    let limits: Limits
    /// Bytes that are kept in all.
    private(set) var total = 0
    /// Bytes that guests have caused.
    private(set) var guests = 0
    private var used: [Principal: Int] = [:]
    private(set) var items = PartedDictionary<Item, Charge>()
    private(set) var bodies = PartedDictionary<UInt64, Charge>()

    init(_ limits: Limits) { self.limits = limits }

    /// Bytes that a payer has caused.
    func used(by payer: Principal) -> Int { used[payer] ?? 0 }

    /// Whether `bytes` more may be kept.
    func hasRoom(for bytes: Int, of payer: Principal?, _ cause: Cause) -> Bool {
        guard total + bytes <= limits.total else { return false }
        guard let payer else { return true }
        var limit = min(limits.user, (limits.total - total) / Limits.shares)
        if payer.isGuest { limit = min(limit, (limits.guests - guests) / Limits.shares) }
        return used(by: payer) + bytes <= limit * cause.factor
    }

    /// Whether the payer's own limit alone is the reason that there is no room.
    func isOwnFault(_ bytes: Int, of payer: Principal?, _ cause: Cause) -> Bool {
        payer.map { used(by: $0) + bytes > limits.user * cause.factor } ?? false
    }

    /// Sets what something takes up; 0 once it is gone.
    mutating func set(_ item: Item, _ bytes: Int, for payer: Principal?) {
        if let before = items[item] {
            guard before.bytes != bytes || before.payer != payer else { return }
            add(-before.bytes, to: before.payer)
        }
        items[item] = bytes > 0 ? Charge(payer: payer, bytes: bytes) : nil
        if bytes > 0 { add(bytes, to: payer) }
    }

    /// Bytes that one log more takes up that holds a body.
    func cost(of body: EventBody) -> Int {
        Weight.entry + (bodies[body.number] == nil ? Weight.body(body) : 0)
    }

    /// A log holds a body.
    mutating func enter(_ body: EventBody, for payer: Principal?) {
        let cost = cost(of: body)
        var charge = bodies[body.number] ?? Charge(payer: payer, bytes: 0)
        charge.bytes += cost
        charge.holders += 1
        bodies[body.number] = charge
        add(cost, to: charge.payer)
    }

    /// A log has released a body; the last one takes it along.
    mutating func leave(_ body: EventBody) {
        guard var charge = bodies[body.number] else { return }
        charge.holders -= 1
        let gone = charge.holders > 0 ? Weight.entry : charge.bytes
        charge.bytes -= gone
        bodies[body.number] = charge.holders > 0 ? charge : nil
        add(-gone, to: charge.payer)
    }

    private mutating func add(_ bytes: Int, to payer: Principal?) {
        total += bytes
        guard let payer else { return }
        if payer.isGuest { guests += bytes }
        let sum = used(by: payer) + bytes
        used[payer] = sum > 0 ? sum : nil
    }
}
