internal import CallControl
internal import Core

/// How many calls a device places because peers of its calls ask for them (contract CALL-8).
///
/// A transfer that fails lets the peer ask for the next one, so that without a bound one peer has the device dial as fast as callees decline.
struct TransferBudget {
    /// Of one peer, by its name, because it may call again to ask again: five at once, and five a minute.
    static let ofPeer = TokenBucket.Rate(burst: 5, every: .seconds(12))
    /// Of all, because strangers may choose their names: sixty at once, and sixty a minute.
    static let ofAll = TokenBucket.Rate(burst: 60, every: .seconds(1))

    /// The peers that are remembered are as many as can have asked within the minute in which a bucket fills, and as many again.
    private var peers = TokenBuckets<UserID>(ofPeer, capacity: 240)
    private var all = TokenBucket()

    /// Takes one transfer that `peer` asks for.
    ///
    /// - Returns: Whether it may be carried out.
    mutating func take(_ peer: UserID, at now: Instant) -> Bool {
        // One without a turn of its own uses up none of the others'.
        peers.take(peer, at: now) && all.take(Self.ofAll, at: now)
    }
}
