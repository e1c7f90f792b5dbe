/// How far a stream has been played: which packet is decoded next, and what media time that is.
struct PlayoutPosition {
    /// Whether the first packet has been played.
    private(set) var isPlaying = false
    /// The packet to decode next: the one with this number, or the first after it.
    private(set) var nextSequence: Int64 = 0
    /// Media time, in samples, of the first sample not yet decoded.
    private var nextTimestamp: Int64 = 0
    /// Samples of the stream still to be skipped unheard: concealment was played in their place.
    private var skippedSamples = 0
    /// The newest packet decoded said that the sender is silent.
    private(set) var isDiscontinuous = false

    @_noAllocation @_noLocks
    init() {}

    /// Begins with another stream.
    @_noAllocation @_noLocks
    mutating func startAfresh() {
        isPlaying = false
        isDiscontinuous = false
        skippedSamples = 0
    }

    /// Takes a packet as the first, if it is the first or comes before that and nothing has been played.
    @_noAllocation @_noLocks
    mutating func begin(with entry: PacketStore.Entry, isFirst: Bool) {
        guard !isPlaying, isFirst || entry.sequence < nextSequence else { return }
        nextSequence = entry.sequence
        nextTimestamp = entry.timestamp
    }

    @_noAllocation @_noLocks
    mutating func start() { isPlaying = true }

    /// Whether a packet's place has been played.
    @_noAllocation @_noLocks
    func isPast(_ sequence: Int64) -> Bool { isPlaying && sequence < nextSequence }

    /// Media time, in samples, of the next sample to be handed out, if `waiting` decoded samples wait.
    @_noAllocation @_noLocks
    func mediaTime(decoded waiting: Int) -> Int64 { nextTimestamp &+ Int64(skippedSamples &- waiting) }

    /// Says how the next packet that waits follows what is decoded.
    @_noAllocation @_noLocks
    func describe(_ entry: PacketStore.Entry, in queue: borrowing PacketQueue, _ status: inout PlayoutStatus) {
        let gap = Int(entry.timestamp &- nextTimestamp)
        guard gap > 0 else {
            status.next = .ready
            status.readySamples = queue.readySamples(from: entry.sequence)
            status.nextSamples = Int(entry.samples)
            return
        }
        // After a pause of the sender's the numbers that are missing right before show how much of the gap is lost sound.
        var missing: Int64 = 0
        if isDiscontinuous {
            let most = entry.sequence &- nextSequence
            while missing < most, !queue.isSoundless(entry.sequence &- missing &- 1) { missing &+= 1 }
        }
        let lost = isDiscontinuous ? min(Int(missing) &* Int(entry.samples), gap) : gap
        let silence = entry.sequence == nextSequence ? gap : gap &- lost
        if silence > 0 {
            status.next = .afterSilence(samples: silence)
            status.excessSamples &-= silence
        } else {
            status.next = .afterLoss(samples: gap, restorable: Int(entry.restorableSamples))
        }
    }

    // MARK: Moving on

    /// Moves past packets that hold no sound: unless they are mere padding, the sender is silent in their place.
    @_noAllocation @_noLocks
    mutating func passSoundless(in queue: borrowing PacketQueue) {
        while queue.isSoundless(nextSequence) {
            if !queue.isPadding(nextSequence) { isDiscontinuous = true }
            nextSequence &+= 1
        }
    }

    /// Lets the next `count` samples be passed over unheard.
    @_noAllocation @_noLocks
    mutating func skip(_ count: Int) { skippedSamples &+= count }

    /// Moves past `count` samples that are not decoded, and need not be.
    @_noAllocation @_noLocks
    mutating func jump(_ count: Int) { nextTimestamp &+= Int64(count) }

    /// Moves up to a packet that waits, past those before it, which are not heard.
    ///
    /// - Returns: How many samples that are.
    @_noAllocation @_noLocks
    mutating func pass(upTo entry: PacketStore.Entry) -> Int {
        let passed = max(Int(entry.timestamp &- nextTimestamp), 0)
        nextSequence = entry.sequence
        nextTimestamp = max(nextTimestamp, entry.timestamp)
        skippedSamples = max(skippedSamples &- passed, 0)
        isDiscontinuous = false
        return passed
    }

    /// How many of the next `count` samples are not to be heard; they are passed over with that.
    @_noAllocation @_noLocks
    mutating func drop(atMost count: Int) -> Int {
        let dropped = min(skippedSamples, count)
        skippedSamples &-= dropped
        return dropped
    }

    /// How many samples of a packet are not to be heard; they are passed over with that. A packet that begins before what is
    /// already covered counts from there.
    @_noAllocation @_noLocks
    mutating func drop(from entry: PacketStore.Entry) -> Int {
        let duration = Int(entry.samples)
        let overlapped = Int(min(max(nextTimestamp &- entry.timestamp, 0), Int64(duration)))
        let dropped = min(skippedSamples &+ overlapped, duration)
        skippedSamples &-= dropped &- min(overlapped, dropped)
        return dropped
    }

    /// Moves up to a packet, past those before it that are lost.
    @_noAllocation @_noLocks
    mutating func move(to entry: PacketStore.Entry) { nextSequence = entry.sequence }

    /// Moves past a packet that has been decoded.
    @_noAllocation @_noLocks
    mutating func move(past entry: PacketStore.Entry) {
        nextSequence = entry.sequence &+ 1
        nextTimestamp = max(nextTimestamp, entry.timestamp &+ Int64(entry.samples))
        isDiscontinuous = entry.isDiscontinuous
    }

    /// Moves past a packet that is thrown away.
    @_noAllocation @_noLocks
    mutating func discard(_ entry: PacketStore.Entry) {
        nextSequence = entry.sequence &+ 1
        nextTimestamp = entry.timestamp &+ Int64(entry.samples)
    }
}
