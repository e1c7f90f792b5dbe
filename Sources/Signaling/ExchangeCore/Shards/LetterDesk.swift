package import SignalWire

/// The letters of one shard: numbers those that its core writes, and passes on those of others exactly once and in order.
///
/// Its changes belong to the transaction of the input that caused them, and what it returns to be sent leaves after that
/// transaction. So a letter is sent only if its sender's changes are stored, and a receipt only if the receiver's are. Between two shards
/// letters and receipts may be lost, delayed, repeated and reordered.
package struct LetterDesk: Sendable {
    /// Bytes of letters that no receipt has come for. Requests that would write more are refused.
    package struct Limits: Sendable {
        /// To one shard, so that one whose node is down does not take the room of the others.
        package var ofPair = 256 * 1_024
        /// To all shards: 256 MiB for a process that owns all 64.
        package var total = 4 * 1_024 * 1_024
        /// Bytes of letters from one shard that wait for an earlier one. Others are dropped, and come again.
        package var early = 64 * 1_024

        package init() {}
    }

    /// What comes of a letter that arrived.
    package struct Arrival: Hashable, Sendable {
        /// The letters to handle now, in this order, in one transaction with ``takeChanges()``.
        package var letters: [Letter] = []
        /// To be sent after that transaction; nil if the letter was dropped, or waits for an earlier one.
        package var receipt: LetterReceipt?
    }

    /// The letters to and from one other shard.
    private struct Pair: Sendable {
        /// Those without a receipt, in order: numbers ``acknowledged`` + 1 to ``last``.
        var waiting: [Letter] = []
        var bytes = 0
        /// The number of the last one that was written.
        var last: UInt64 = 0
        var acknowledged: UInt64 = 0
        var consumed: UInt64 = 0
        var peerEpoch: OwnerEpoch?
        /// Letters from the peer's newest ownership that came before an earlier one.
        var early: [UInt64: Letter] = [:]
        var earlyBytes = 0

        /// Consumes the next letter, and those that waited for it.
        mutating func consume(from first: Letter) -> [Letter] {
            var letters: [Letter] = []
            var next: Letter? = first
            while let letter = next {
                letters.append(letter)
                consumed = letter.number
                next = early.removeValue(forKey: consumed + 1)
                if let next { earlyBytes -= next.bytes }
            }
            return letters
        }
    }

    package let shard: Shard
    /// The ownership under which it sends.
    package let epoch: OwnerEpoch
    private let limits: Limits
    private var pairs: [Shard: Pair] = [:]
    /// Bytes of all letters without a receipt.
    package private(set) var bytes = 0
    private var changes: [Change] = []
    /// The pairs whose marks changed, in the order of the first change.
    private var marked: [Shard] = []

    package init(of shard: Shard, epoch: OwnerEpoch, limits: Limits = Limits()) {
        self.shard = shard
        self.epoch = epoch
        self.limits = limits
    }

    // MARK: - Writing

    /// Checks that there is room for letters that a request wants to write.
    ///
    /// What follows from a letter that was consumed, or from something that was stored before, is always written: those who asked for that
    /// had room.
    ///
    /// - Parameters:
    ///   - bytes: Of their bodies.
    ///   - peer: The shard that consumes them.
    /// - Throws: `tooManyRequests`.
    package func afford(_ bytes: Int, to peer: Shard) throws(RPCError) {
        let more = Weight.record + bytes
        guard (pairs[peer]?.bytes ?? 0) + more <= limits.ofPair, self.bytes + more <= limits.total else {
            throw RPCError(
                .tooManyRequests,
                "The part of the exchange that has the other user is busy, or cannot be reached; try again later.")
        }
    }

    /// Writes a letter to another shard.
    ///
    /// - Returns: What to send after the transaction.
    package mutating func write(_ body: KeptJSON, to peer: Shard) -> LetterDelivery {
        precondition(peer != shard, "a shard writes no letter to itself")
        var pair = pairs[peer] ?? Pair()
        pair.last += 1
        let letter = Letter(from: shard, to: peer, number: pair.last, body: body)
        pair.waiting.append(letter)
        pair.bytes += letter.bytes
        bytes += letter.bytes
        pairs[peer] = pair
        changes.append(.letter(letter))
        return LetterDelivery(letter, epoch: epoch)
    }

    /// Shards that have not acknowledged all letters.
    package var waitingPeers: [Shard] { pairs.filter { !$0.value.waiting.isEmpty }.keys.sorted() }

    /// The oldest letters that no receipt has come for, to be sent again.
    package func unacknowledged(by peer: Shard, atMost count: Int = .max) -> [LetterDelivery] {
        (pairs[peer]?.waiting ?? []).prefix(count).map { LetterDelivery($0, epoch: epoch) }
    }

    /// A receipt came: deletes the letters that it is for.
    package mutating func receive(_ receipt: LetterReceipt) {
        guard receipt.to == shard, admit(receipt.from, receipt.epoch), var pair = pairs[receipt.from] else { return }
        // A number that was never given is no receipt for what will have it.
        guard receipt.upTo > pair.acknowledged, receipt.upTo <= pair.last else { return }
        let count = Int(receipt.upTo - pair.acknowledged)
        let freed = pair.waiting.prefix(count).reduce(0) { $0 + $1.bytes }
        pair.waiting.removeFirst(count)
        pair.bytes -= freed
        bytes -= freed
        pair.acknowledged = receipt.upTo
        pairs[receipt.from] = pair
        mark(receipt.from)
        changes.append(.lettersForgotten(from: shard, to: receipt.from, upTo: receipt.upTo))
    }

    // MARK: - Consuming

    /// A letter came, for the first time or not.
    package mutating func receive(_ delivery: LetterDelivery) -> Arrival {
        let letter = delivery.letter
        let peer = letter.from
        guard letter.to == shard, peer != shard, admit(peer, delivery.epoch) else { return Arrival() }
        var pair = pairs[peer] ?? Pair()
        guard letter.number > pair.consumed + 1 else {
            var arrival = Arrival()
            if letter.number == pair.consumed + 1 {
                arrival.letters = pair.consume(from: letter)
                pairs[peer] = pair
                mark(peer)
            }
            arrival.receipt = LetterReceipt(from: shard, to: peer, upTo: pair.consumed, epoch: epoch)
            return arrival
        }
        if pair.early[letter.number] == nil, pair.earlyBytes + letter.bytes <= limits.early {
            pair.early[letter.number] = letter
            pair.earlyBytes += letter.bytes
            pairs[peer] = pair
        }
        return Arrival()
    }

    /// Whether what comes from `epoch` of a shard counts. A newer ownership than any before ends the earlier ones: of what they sent, only
    /// what is stored comes again.
    private mutating func admit(_ peer: Shard, _ epoch: OwnerEpoch) -> Bool {
        var pair = pairs[peer] ?? Pair()
        guard pair.peerEpoch != epoch else { return true }
        guard pair.peerEpoch.map({ $0 < epoch }) ?? true else { return false }
        pair.peerEpoch = epoch
        pair.early = [:]
        pair.earlyBytes = 0
        pairs[peer] = pair
        mark(peer)
        return true
    }

    // MARK: - To disk and back

    /// What changed since last asked, in order.
    package mutating func takeChanges() -> [Change] {
        defer {
            changes = []
            marked = []
        }
        return changes + marked.compactMap { marks(with: $0) }.map { .letterMarks($0) }
    }

    private mutating func mark(_ peer: Shard) { if !marked.contains(peer) { marked.append(peer) } }

    private func marks(with peer: Shard) -> StoredLetterMarks? {
        pairs[peer].map {
            StoredLetterMarks(
                shard: shard, peer: peer, acknowledged: $0.acknowledged, consumed: $0.consumed, peerEpoch: $0.peerEpoch)
        }
    }

    /// Takes in what is stored of its own letters. For a desk that has been given nothing yet.
    package mutating func restore(_ saved: Saved) {
        for marks in saved.letterMarks where marks.shard == shard {
            var pair = Pair()
            pair.acknowledged = marks.acknowledged
            pair.last = marks.acknowledged
            pair.consumed = marks.consumed
            pair.peerEpoch = marks.peerEpoch
            pairs[marks.peer] = pair
        }
        for letter in saved.letters where letter.from == shard {
            var pair = pairs[letter.to] ?? Pair()
            // The database is in order; a row that was lost or added by hand must not make numbers ambiguous.
            guard letter.number == pair.last + 1 else { continue }
            pair.last = letter.number
            pair.waiting.append(letter)
            pair.bytes += letter.bytes
            bytes += letter.bytes
            pairs[letter.to] = pair
        }
    }
}
