import struct CallControl.Backoff
import JSON
import SignalWire
import Core

/// Delivers pushes as a value: when each is tried, and what comes of it (DEV-4). ``PushSender`` makes the requests.
///
/// Each kind of token has a lane of its own, so that a webhook that fails or hangs delays no other. Of the pushes about
/// one invite to one token only one is under way, so that they arrive in the order of what happened.
///
/// Capacity: ``Settings/capacity`` pushes that wait; one more is given up at once, and counted among the dead.
package struct PushQueue: ProtocolCore, Sendable {
    /// What can happen.
    enum Input: Sendable {
        /// A push is to be made.
        case add(StoredPush)
        /// An attempt ended.
        case answered(PushID, attempt: Int, PushAnswer)
        /// ``nextDeadline`` has come. Early calls are harmless.
        case timer
    }

    /// What is to be done.
    enum Output: Hashable, Sendable {
        /// Ask the webhook of the push's kind; ``StoredPush/attempts`` counts this attempt.
        case post(StoredPush)
        /// The webhook accepted it.
        case made(StoredPush)
        /// It is tried again after a while.
        case failed(StoredPush, String, wait: Duration)
        /// Nothing more is tried.
        case died(StoredPush, DeadPush.Reason, String?)
    }

    /// What the queue works by.
    package struct Settings: Sendable {
        /// What an operator has set.
        package var chosen: PushConfiguration
        /// Pushes that may wait.
        var capacity = 10_000
        /// The first wait's upper end.
        var firstWait = Duration.milliseconds(500)
        /// The upper end that no wait passes.
        var longestWait = Duration.seconds(30)

        package init(_ chosen: PushConfiguration) { self.chosen = chosen }
    }

    /// How many pushes are looked at in one turn.
    private static let expiriesAtOnce = 256

    /// What one kind's webhook is doing.
    private struct Lane {
        var waiting = DeadlineQueue<PushID>()
        var underWay = 0
        /// The webhook has asked for nothing before that.
        var heldUntil = Instant(nanoseconds: .min)
    }

    /// All pushes about one invite by one token.
    private struct Chain: Hashable {
        var invite: InviteID
        var endpoint: Endpoint
        var target: DeviceRegister.PushTarget
    }

    private let settings: Settings
    private var seed: UInt64
    private var pushes = ChangeTrackingMap<PushID, StoredPush>()
    private var lanes: [PushKind: Lane] = [:]
    private var underWay: [PushID: StoredPush] = [:]
    private var busy: Set<Chain> = []
    /// What waits for the chain before it, oldest first.
    private var parked: [Chain: [PushID]] = [:]
    private var expiries = DeadlineQueue<PushID>()
    private var backoffs: [PushID: Backoff] = [:]
    private var byInvite: [InviteID: [PushID]] = [:]
    private var byEndpoint: [Endpoint: [PushID]] = [:]
    /// Pushes that are not settled.
    private(set) var open = 0

    /// - Parameter seed: A random number, from which waits are drawn.
    init(_ settings: Settings, seed: UInt64) {
        self.settings = settings
        self.seed = seed
    }

    var nextDeadline: Instant? {
        var earliest = expiries.earliest
        for lane in lanes.values where lane.underWay < settings.chosen.parallelRequests {
            guard let due = lane.waiting.earliest.map({ max($0, lane.heldUntil) }) else { continue }
            earliest = min(earliest ?? due, due)
        }
        return earliest
    }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .add(let push): add(push, at: now, into: &outbox)
        case .answered(let id, let attempt, let answer):
            finish(id, attempt, answer, at: now, into: &outbox)
        case .timer:
            // What is left is due at once.
            var met = 0
            while met < Self.expiriesAtOnce, let id = expiries.takeDue(at: now) {
                expire(id, at: now, into: &outbox)
                met += 1
            }
            for kind in lanes.keys.sorted() { work(on: kind, at: now, into: &outbox) }
        }
    }

    // MARK: - In and out

    /// The webhook for a kind of token, by the kind that it is configured for; `nil` if there is none.
    private func lane(of target: DeviceRegister.PushTarget) -> PushKind? {
        settings.chosen.webhook(for: target.kind)?.kind
    }

    private static func chain(_ push: StoredPush) -> Chain {
        Chain(invite: push.invite, endpoint: push.endpoint, target: push.target)
    }

    /// Whether a push with this message is known already: waiting, under way, or made while its invite is open.
    private func isKnown(_ push: StoredPush) -> Bool {
        (byInvite[push.invite] ?? []).contains { id in
            pushes[id].map { Self.chain($0) == Self.chain(push) && $0.message == push.message } ?? false
        }
    }

    private mutating func add(_ push: StoredPush, at now: Instant, into outbox: inout [Output]) {
        guard let kind = lane(of: push.target), !isKnown(push) else { return }
        guard open < settings.capacity else { return outbox.append(.died(push, .overflow, nil)) }
        pushes[push.id] = push
        enter(push, kind)
        work(on: kind, at: now, into: &outbox)
    }

    /// Takes in a push that is on disk; an attempt that was under way is made again.
    mutating func restore(_ push: StoredPush, at now: Instant) {
        pushes.restore(push, for: push.id)
        guard let kind = lane(of: push.target) else {
            pushes[push.id] = nil  // The webhook is gone from the configuration.
            return
        }
        enter(push, kind)
    }

    private mutating func enter(_ push: StoredPush, _ kind: PushKind) {
        byInvite[push.invite, default: []].append(push.id)
        byEndpoint[push.endpoint, default: []].append(push.id)
        guard !push.isSettled else { return }
        open += 1
        expiries.add(push.id, due: push.expires)
        lanes[kind, default: Lane()].waiting.add(push.id, due: push.due)
        if expiries.isDueForSweep { expiries.sweep { pushes[$0]?.isSettled == false } }
        guard var waiting = lanes[kind]?.waiting, waiting.isDueForSweep else { return }
        waiting.sweep { pushes[$0]?.isSettled == false }
        lanes[kind]?.waiting = waiting
    }

    private mutating func remove(_ push: StoredPush) {
        guard let known = pushes[push.id] else { return }
        if !known.isSettled { open -= 1 }
        pushes[push.id] = nil
        backoffs[push.id] = nil
        byInvite[push.invite]?.removeAll { $0 == push.id }
        if byInvite[push.invite]?.isEmpty == true { byInvite[push.invite] = nil }
        byEndpoint[push.endpoint]?.removeAll { $0 == push.id }
        if byEndpoint[push.endpoint]?.isEmpty == true { byEndpoint[push.endpoint] = nil }
    }

    /// Stops trying a push, but remembers it until its invite ends.
    private mutating func settle(_ push: StoredPush) {
        guard pushes[push.id]?.isSettled == false else { return }
        pushes[push.id]?.isSettled = true
        backoffs[push.id] = nil
        open -= 1
    }

    /// What was changed since last asked.
    mutating func takeChanges() -> [(id: PushID, push: StoredPush?)] {
        pushes.takeChanges().map { ($0.key, pushes[$0.key]) }
    }

    /// All that are known.
    var all: [(key: PushID, value: StoredPush)] { pushes.all { _ in true } }

    /// A push that waits, is under way, or is known while its invite is open.
    func push(_ id: PushID) -> StoredPush? { pushes[id] }

    // MARK: - What ends pushes

    /// An invite ended for a user.
    ///
    /// - Returns: The pushes that may have notified a device of it; none of them is known any more.
    mutating func end(_ invite: InviteID, for user: UserID) -> [StoredPush] {
        let ended = (byInvite[invite] ?? []).compactMap { pushes[$0] }
            .filter { $0.user == user && $0.message == .invite }
        for push in ended { remove(push) }
        return ended.filter { $0.attempts > 0 }
    }

    /// Pushes of an invite that no webhook has accepted so far.
    func untaken(_ invite: InviteID, of user: UserID) -> [StoredPush] {
        (byInvite[invite] ?? []).compactMap { pushes[$0] }
            .filter { $0.user == user && $0.message == .invite && !$0.isSettled }
    }

    /// A device is connected, and receives open invites over its connection.
    mutating func connect(_ endpoint: Endpoint) {
        for push in (byEndpoint[endpoint] ?? []).compactMap({ pushes[$0] }) where push.message == .invite {
            if push.attempts > 0 { settle(push) } else { remove(push) }
        }
    }

    /// A device is pushed to by these tokens and no others (DEV-2).
    mutating func restrict(_ endpoint: Endpoint, to targets: [DeviceRegister.PushTarget]) {
        for push in (byEndpoint[endpoint] ?? []).compactMap({ pushes[$0] }) where !targets.contains(push.target) {
            remove(push)
        }
    }

    private mutating func expire(_ id: PushID, at now: Instant, into outbox: inout [Output]) {
        guard let push = pushes[id], !push.isSettled, underWay[id] == nil, push.expires <= now else { return }
        remove(push)
        outbox.append(.died(push, .expired, nil))
    }

    // MARK: - Attempts

    /// Begins what is due and has room.
    private mutating func work(on kind: PushKind, at now: Instant, into outbox: inout [Output]) {
        var looked = 0
        while looked < Self.expiriesAtOnce, let lane = lanes[kind], lane.underWay < settings.chosen.parallelRequests,
            lane.heldUntil <= now, let id = lanes[kind]?.waiting.takeDue(at: now)
        {
            looked += 1
            // Settled, moved or started pushes stay in the heap; they are skipped here.
            guard var push = pushes[id], !push.isSettled, underWay[id] == nil, push.due <= now else { continue }
            guard push.expires > now else {
                expire(id, at: now, into: &outbox)
                continue
            }
            let chain = Self.chain(push)
            guard busy.insert(chain).inserted else {
                parked[chain, default: []].append(id)
                continue
            }
            push.attempts += 1
            pushes[id] = push
            underWay[id] = push
            lanes[kind]?.underWay += 1
            outbox.append(.post(push))
        }
    }

    private mutating func finish(
        _ id: PushID, _ attempt: Int, _ answer: PushAnswer, at now: Instant, into outbox: inout [Output]
    ) {
        guard let begun = underWay[id], begun.attempts == attempt, let kind = lane(of: begun.target) else { return }
        underWay[id] = nil
        lanes[kind]?.underWay -= 1
        switch answer {
        case .taken:
            if begun.message == .invite { settle(begun) } else { remove(begun) }
            outbox.append(.made(begun))
        case .gone(let detail):
            remove(begun)
            outbox.append(.died(begun, .gone, detail))
        case .refused(let detail):
            // Withdrawn meanwhile: no failure to report.
            if pushes[id]?.isSettled == false { outbox.append(.died(begun, .refused, detail)) }
            remove(begun)
        case .failed(let detail, let wait, let isAboutAll):
            if isAboutAll, let wait { lanes[kind]?.heldUntil = now.advanced(by: wait) }
            retry(id, kind, detail, after: wait, at: now, into: &outbox)
        }
        let chain = Self.chain(begun)
        busy.remove(chain)
        for next in parked.removeValue(forKey: chain) ?? [] { lanes[kind]?.waiting.add(next, due: now) }
        work(on: kind, at: now, into: &outbox)
    }

    private mutating func retry(
        _ id: PushID, _ kind: PushKind, _ detail: String, after wait: Duration?, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard var push = pushes[id], !push.isSettled else { return }
        seed &+= 1
        var backoff =
            backoffs[id] ?? Backoff(floor: settings.firstWait, ceiling: settings.longestWait, seed: seed)
        let pause = max(backoff.next(), wait ?? .zero)
        guard now.advanced(by: pause) < push.expires else {
            remove(push)
            return outbox.append(.died(push, .expired, detail))
        }
        backoffs[id] = backoff
        push.due = now.advanced(by: pause)
        pushes[id] = push
        lanes[kind]?.waiting.add(id, due: push.due)
        outbox.append(.failed(push, detail, wait: pause))
    }
}

extension StoredPush {
    /// The device that it goes to.
    var endpoint: Endpoint { Endpoint(user: user, device: device) }
}
