import JSON
import SignalWire
import Core

/// Telling devices that are not connected (DEV-4): their push tokens, and the pushes that are to be made.
struct Pushes: Sendable {
    /// How an invite ended for its users, or for some.
    struct End {
        /// Why, as a push says it.
        var reason: String
        /// The device that answered, which knows.
        var device: DeviceID?
        /// The payload of a missed call's push.
        var payload: KeptJSON?

        static let timedOut = "timedOut"
        static let cancelled = "cancelled"
    }

    private let life: Duration
    private var board = PushBoard()
    private var queue: PushQueue
    /// The exchange closes all connections itself: that a device has none is no reason for a push.
    private var isGoingDown = false

    /// - Parameter seed: A random number, from which waits are drawn.
    init(_ settings: PushQueue.Settings, seed: UInt64) {
        life = settings.chosen.life
        queue = PushQueue(settings, seed: seed)
    }

    /// When pushes are to be tried next; `nil` is never.
    var nextDeadline: Instant? { queue.nextDeadline }
    /// Pushes that are not settled.
    var openCount: Int { queue.open }
    /// All pushes that are known.
    var all: [(key: PushID, value: StoredPush)] { queue.all }
    /// All devices with push tokens.
    var endpoints: [Endpoint] { board.endpoints }

    /// The user's devices with push tokens, the one set longest ago first.
    func entries(of user: UserID) -> [PushBoard.Entry] { board.entries(of: user) }

    /// One device's push tokens.
    func targets(of endpoint: Endpoint) -> [DeviceRegister.PushTarget] { board.targets(of: endpoint) }

    /// How many pushes it takes to reach all of some users' devices, and the bytes of their tokens.
    func reach(of users: [UserID]) -> (pushes: Int, tokenBytes: Int) {
        let targets = users.flatMap { board.entries(of: $0) }.flatMap(\.targets)
        return (targets.count, targets.reduce(0) { $0 + $1.token.secret.utf8.count })
    }

    // MARK: - What happens

    /// Pushes an invite to those devices of users that are not connected and have push tokens.
    mutating func push(
        _ record: InviteRecord, to users: [UserID], _ sessions: Sessions, at now: Instant, _ effects: inout Effects
    ) {
        for user in users {
            for entry in board.entries(of: user) {
                let endpoint = Endpoint(user: user, device: entry.device)
                push(record, to: endpoint, entry.targets, sessions, at: now, &effects)
            }
        }
    }

    /// Pushes the invites that a device's user has still to answer. A device that received them over its connection may
    /// have lost it before it could ring: a phone whose program was stopped.
    mutating func pushOpen(
        _ invites: Invites, to endpoint: Endpoint, _ sessions: Sessions, at now: Instant, _ effects: inout Effects
    ) {
        let targets = board.targets(of: endpoint)
        guard !targets.isEmpty, !isGoingDown else { return }
        for record in invites.toAnswer(by: endpoint.user) {
            push(record, to: endpoint, targets, sessions, at: now, &effects)
        }
    }

    private mutating func push(
        _ record: InviteRecord, to endpoint: Endpoint, _ targets: [DeviceRegister.PushTarget], _ sessions: Sessions,
        at now: Instant, _ effects: inout Effects
    ) {
        guard !record.isOnlineOnly, !sessions.isListening(endpoint),
            record.ringing(of: endpoint.user).includes(endpoint.device, isRegistered: true)
        else { return }
        let end = now.advanced(by: life)
        for target in targets {
            var push = StoredPush(
                id: effects.nextID("push"), invite: record.id, user: endpoint.user, device: endpoint.device,
                target: target, message: .invite, inviter: record.inviter.user, group: record.group,
                deadline: record.deadline, expires: min(record.deadline ?? end, end), due: now)
            push.payload = record.payload
            add(push, at: now, &effects)
        }
    }

    /// Notifies devices that are not connected that an invite ended for their users: those that a push may have
    /// notified of the invite and, if there is a timeout payload for them, all (INV-4, INV-6, INV-7).
    mutating func pushEnd(
        of record: InviteRecord, for users: [UserID], _ end: End, _ sessions: Sessions, at now: Instant,
        _ effects: inout Effects
    ) {
        for user in users {
            if end.reason == End.timedOut {
                for push in queue.untaken(record.id, of: user) {
                    Self.deadLetter(push, .expired, nil, at: now, &effects)
                }
            }
            var receivers = queue.end(record.id, for: user).map { ($0.endpoint, $0.target) }
            if end.payload != nil, !record.isOnlineOnly {
                for entry in board.entries(of: user) {
                    let endpoint = Endpoint(user: user, device: entry.device)
                    guard record.ringing(of: user).includes(entry.device, isRegistered: true) else { continue }
                    for target in entry.targets where !receivers.contains(where: { $0 == (endpoint, target) }) {
                        receivers.append((endpoint, target))
                    }
                }
            }
            for (endpoint, target) in receivers
            where endpoint.device != end.device && !sessions.isListening(endpoint) {
                var push = StoredPush(
                    id: effects.nextID("push"), invite: record.id, user: user, device: endpoint.device, target: target,
                    message: .ended, inviter: record.inviter.user, group: record.group, reason: end.reason,
                    deadline: record.deadline,
                    expires: expiryOfEnd(of: record, isMissedCall: end.payload != nil, at: now), due: now)
                push.payload = end.payload
                add(push, at: now, &effects)
            }
        }
    }

    /// A missed call is worth reporting for long; a device that rings stops by itself.
    private func expiryOfEnd(of record: InviteRecord, isMissedCall: Bool, at now: Instant) -> Instant {
        let end = now.advanced(by: life)
        if isMissedCall { return end }
        return min(max(record.deadline ?? end, now.advanced(by: .seconds(30))), end)
    }

    /// Sets a device's push tokens; what was on its way by others is taken back (DEV-2).
    mutating func setTargets(_ targets: [DeviceRegister.PushTarget], for endpoint: Endpoint) {
        board.set(targets, for: endpoint)
        queue.restrict(endpoint, to: targets)
    }

    /// A user without an account is called no more.
    mutating func forget(_ user: UserID) {
        for entry in board.entries(of: user) { setTargets([], for: Endpoint(user: user, device: entry.device)) }
    }

    /// A device is connected, and receives open invites over its connection.
    mutating func connect(_ endpoint: Endpoint) { queue.connect(endpoint) }

    /// An attempt at a push ended.
    mutating func answered(
        _ id: PushID, attempt: Int, _ answer: PushAnswer, at now: Instant, _ effects: inout Effects
    ) {
        feed(.answered(id, attempt: attempt, answer), at: now, &effects)
    }

    /// Tries what is due.
    mutating func tryDue(at now: Instant, _ effects: inout Effects) { feed(.timer, at: now, &effects) }

    /// From now on connections end because the exchange closes them.
    mutating func goDown() { isGoingDown = true }

    // MARK: - To disk and back

    /// Puts out which devices' push tokens and which pushes changed, and charges who pays for them.
    mutating func recordChanges(_ budget: inout Budget, into outbox: inout [ExchangeCore.Output]) {
        for endpoint in board.takeChanged() {
            charge(endpoint, &budget)
            let stored = StoredPushTargets(
                user: endpoint.user, device: endpoint.device, targets: board.targets(of: endpoint))
            outbox.append(.persist(.pushTargets(stored)))
        }
        for (id, push) in queue.takeChanges() {
            Self.charge(id, push, &budget)
            outbox.append(.persist(push.map(Change.push) ?? .pushForgotten(id)))
        }
    }

    /// Charges who pays for all that is kept here.
    func chargeAll(_ budget: inout Budget) {
        for endpoint in board.endpoints { charge(endpoint, &budget) }
        for (id, push) in queue.all { Self.charge(id, push, &budget) }
    }

    /// Sets push tokens that are on disk already.
    mutating func restore(_ targets: [DeviceRegister.PushTarget], for endpoint: Endpoint) {
        board.restore(targets, for: endpoint)
    }

    /// Restores a push from disk. It never waits longer than the longest life, even if the clock was changed.
    mutating func restore(_ stored: StoredPush, at now: Instant) {
        var push = stored
        push.expires = min(stored.expires, now.advanced(by: life))
        push.due = min(stored.due, push.expires)
        queue.restore(push, at: now)
    }

    // MARK: - Within

    /// Queues a push, if there is room to keep it. The inviter always pays for it.
    private mutating func add(_ push: StoredPush, at now: Instant, _ effects: inout Effects) {
        guard effects.budget.hasRoom(for: Weight.of(push), of: .account(push.inviter)) else {
            return Self.deadLetter(push, .overflow, nil, at: now, &effects)
        }
        feed(.add(push), at: now, &effects)
        let kept = queue.push(push.id)
        if kept != nil, push.message == .invite {
            effects.trace(push.invite, .pushing(push.id, push.user), at: now)
        }
        Self.charge(push.id, kept, &effects.budget)
    }

    /// Gives the queue an input, and does what comes of it.
    private mutating func feed(_ input: PushQueue.Input, at now: Instant, _ effects: inout Effects) {
        var made: [PushQueue.Output] = []
        queue.handle(input, at: now, into: &made)
        for output in made {
            switch output {
            case .post(let push): effects.post(push)
            case .made(let push):
                effects.count(\.pushes)
                effects.note(.pushMade(push.id, push.endpoint))
                effects.trace(push.invite, .pushed(push.id, gaveUp: nil), at: now)
            case .failed(let push, let detail, let wait):
                effects.note(.pushFailed(push.id, push.endpoint, detail: detail, wait: wait))
            case .died(let push, let reason, let detail):
                Self.deadLetter(push, reason, detail, at: now, &effects)
                guard reason == .gone else { continue }
                setTargets(board.targets(of: push.endpoint).filter { $0 != push.target }, for: push.endpoint)
            }
        }
    }

    private static func deadLetter(
        _ push: StoredPush, _ reason: DeadPush.Reason, _ detail: String?, at now: Instant, _ effects: inout Effects
    ) {
        effects.count(\.deadPushes)
        let dead = DeadPush(push, reason, detail: detail)
        effects.record(.pushDied(dead, at: now))
        effects.note(.pushDied(dead))
        effects.trace(push.invite, .pushed(push.id, gaveUp: reason), at: now)
    }

    private func charge(_ endpoint: Endpoint, _ budget: inout Budget) {
        budget.charge(.pushTargets(endpoint), Weight.of(board.targets(of: endpoint)), for: endpoint.principal)
    }

    private static func charge(_ id: PushID, _ push: StoredPush?, _ budget: inout Budget) {
        budget.charge(.push(id), push.map(Weight.of) ?? 0, for: (push?.inviter).map(Principal.account))
    }
}
