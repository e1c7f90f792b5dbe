import SignalWire
import Core

/// The users that each user has chosen to have contact with: inviters whose invites it accepted, and users that it
/// invited.
///
/// Only the user's own actions add an entry, so calling a user neither adds the caller nor displaces others. Members of
/// one group do not become acquainted, because a group's owner adds members without asking them.
///
/// Capacity: ``capacity`` for each user; past it the least recently used entry is removed.
struct Acquaintances: Sendable {
    static let capacity = SignalLimits.acquaintances
    /// How much too early the last use may be, so that calls between the same users need not be written each time.
    static let grain = Duration.seconds(3_600)

    /// That one user knows another.
    private struct Pair: Hashable {
        var owner: UserID
        var user: UserID
    }

    private var byOwner: [UserID: [UserID: Instant]] = [:]
    private var changed: Set<Pair> = []
    private var gone: Set<UserID> = []

    /// Whether `owner` knows `user`. Everybody knows itself.
    func has(_ owner: UserID, _ user: UserID) -> Bool { owner == user || byOwner[owner]?[user] != nil }

    func count(of owner: UserID) -> Int { byOwner[owner]?.count ?? 0 }

    /// `owner` has invited `user`, or has accepted an invite of `user`.
    mutating func meet(_ owner: UserID, _ user: UserID, at now: Instant) {
        guard owner != user else { return }
        if let used = byOwner[owner]?[user], used.duration(to: now) < Self.grain { return }
        byOwner[owner, default: [:]][user] = now
        changed.insert(Pair(owner: owner, user: user))
        trim(owner)
    }

    /// Takes in what is on disk; call ``trim()`` after the last.
    mutating func restore(_ stored: StoredAcquaintance) {
        byOwner[stored.owner, default: [:]][stored.user] = stored.used
    }

    /// Drops what is beyond capacity, as after a migration.
    mutating func trim() { for owner in byOwner.keys { trim(owner) } }

    private mutating func trim(_ owner: UserID) {
        while let known = byOwner[owner], known.count > Self.capacity,
            let oldest = known.min(by: { ($0.value, $0.key) < ($1.value, $1.key) })?.key
        {
            byOwner[owner]?[oldest] = nil
            changed.insert(Pair(owner: owner, user: oldest))
        }
    }

    /// A user's account is removed: forgets its acquaintances, so that a later user of the same name does not inherit
    /// them.
    mutating func forget(_ user: UserID) {
        byOwner[user] = nil
        for owner in byOwner.keys {
            byOwner[owner]?[user] = nil
            if byOwner[owner]?.isEmpty == true { byOwner[owner] = nil }
        }
        changed = changed.filter { $0.owner != user && $0.user != user }
        gone.insert(user)
    }

    /// What changed since last asked, for the disk.
    mutating func takeChanges() -> [Change] {
        guard !changed.isEmpty || !gone.isEmpty else { return [] }
        defer { (changed, gone) = ([], []) }
        let forgotten = gone.sorted().map { Change.acquaintancesForgotten(of: $0) }
        return forgotten
            + changed.sorted { ($0.owner, $0.user) < ($1.owner, $1.user) }.map { pair in
                byOwner[pair.owner]?[pair.user].map {
                    .acquaintance(StoredAcquaintance(owner: pair.owner, user: pair.user, used: $0))
                } ?? .acquaintanceForgotten(owner: pair.owner, user: pair.user)
            }
    }
}
