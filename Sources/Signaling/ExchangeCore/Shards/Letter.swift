public import SignalWire

/// What one shard's core writes to another's, as stored until the other has consumed it (docs/shards.md).
public struct Letter: Hashable, Sendable {
    /// Which shard's core wrote it.
    public var from: Shard
    /// Which shard's core consumes it.
    public var to: Shard
    /// Counts the letters from one shard to another, from 1 and without a gap.
    public var number: UInt64
    /// What it says.
    public var body: KeptJSON

    /// Makes an entry.
    public init(from: Shard, to: Shard, number: UInt64, body: KeptJSON) {
        self.from = from
        self.to = to
        self.number = number
        self.body = body
    }

    /// What it takes up in memory, and about as much on disk.
    var bytes: Int { Weight.record + body.bytes }
}

/// How far the letters between a shard and another have come, as that shard's owner stores it.
public struct StoredLetterMarks: Hashable, Sendable {
    /// Whose owner writes it.
    public var shard: Shard
    /// The other shard.
    public var peer: Shard
    /// The shard's letters up to this number were consumed by the peer.
    public var acknowledged: UInt64
    /// The peer's letters up to this number were consumed by the shard.
    public var consumed: UInt64
    /// The newest ownership of the peer from which anything came; nil before the first.
    public var peerEpoch: OwnerEpoch?

    /// Makes an entry.
    public init(
        shard: Shard, peer: Shard, acknowledged: UInt64 = 0, consumed: UInt64 = 0, peerEpoch: OwnerEpoch? = nil
    ) {
        self.shard = shard
        self.peer = peer
        self.acknowledged = acknowledged
        self.consumed = consumed
        self.peerEpoch = peerEpoch
    }
}

/// A letter on its way. It is sent once the transaction with it is committed, and again until there is a receipt.
package struct LetterDelivery: Hashable, Sendable {
    package var letter: Letter
    /// The ownership of ``Letter/from`` that sends it, which need not be the one that wrote it.
    package var epoch: OwnerEpoch

    package init(_ letter: Letter, epoch: OwnerEpoch) {
        self.letter = letter
        self.epoch = epoch
    }
}

/// How far a shard has consumed another's letters. It is sent once the transaction that consumed them is committed.
package struct LetterReceipt: Hashable, Sendable {
    /// Which shard consumed them.
    package var from: Shard
    /// Whose letters they are.
    package var to: Shard
    /// The number of the last one.
    package var upTo: UInt64
    /// The ownership of ``from`` that sends it.
    package var epoch: OwnerEpoch

    package init(from: Shard, to: Shard, upTo: UInt64, epoch: OwnerEpoch) {
        self.from = from
        self.to = to
        self.upTo = upTo
        self.epoch = epoch
    }
}
