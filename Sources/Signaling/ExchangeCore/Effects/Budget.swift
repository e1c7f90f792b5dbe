import SignalWire

/// The quotas, and on whose behalf the exchange works.
struct Budget: Sendable {
    /// Why there is no room.
    enum Refusal: Hashable, Sendable {
        /// The payer would exceed its own bound.
        case payerIsOverBound(bytes: Int)
        /// All together would exceed theirs.
        case memoryIsShort
    }

    private(set) var quota: StorageQuota
    /// Who pays for what is kept from now on; `nil`: the exchange itself.
    private var payer: Principal?

    init(_ limits: StorageQuota.Limits) { quota = StorageQuota(limits) }

    /// Charges `payer` for what follows.
    mutating func act(for payer: Principal?) { self.payer = payer }

    /// Why `bytes` more must not be kept; `nil` if they may.
    func refusal(of bytes: Int, _ cause: StorageQuota.Cause) -> Refusal? {
        guard !quota.hasRoom(for: bytes, of: payer, cause) else { return nil }
        return quota.isOwnFault(bytes, of: payer, cause)
            ? .payerIsOverBound(bytes: quota.limits.user) : .memoryIsShort
    }

    /// Whether `bytes` more, which follow from an earlier request, may be kept for `payer`.
    func hasRoom(for bytes: Int, of payer: Principal) -> Bool { quota.hasRoom(for: bytes, of: payer, .sequel) }

    /// Sets what something takes up; 0 once it is gone.
    mutating func charge(_ item: StorageQuota.Item, _ bytes: Int, for payer: Principal?) {
        quota.set(item, bytes, for: payer)
    }

    // MARK: - Events

    /// Whether one more log may hold a body.
    func hasRoom(for body: EventBody) -> Bool { quota.hasRoom(for: quota.cost(of: body), of: payer, .sequel) }

    /// One more log holds a body.
    mutating func enter(_ body: EventBody) { quota.enter(body, for: payer) }

    /// A log of an earlier run holds a body: who caused it is not known any more.
    mutating func enterRestored(_ body: EventBody) { quota.enter(body, for: nil) }

    /// Logs have released these bodies.
    mutating func leave(_ bodies: [EventBody]) { for body in bodies { quota.leave(body) } }
}
