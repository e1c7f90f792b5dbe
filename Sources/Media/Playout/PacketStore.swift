/// The packets that wait to be played: fixed memory, found by sequence number in constant time.
///
/// Freed blocks are used again first, so that only as much memory becomes resident as packets ever waited at once.
struct PacketStore: ~Copyable {
    /// Packets it can hold: 1.28 s of 10 ms packets, 2.56 s of 20 ms ones.
    static var capacity: Int { @_noAllocation @_noLocks get { 128 } }
    /// The largest payload it takes; an Opus frame has at most 1 275 bytes (RFC 6716 §3.2.1).
    static var blockSize: Int { @_noAllocation @_noLocks get { 1_280 } }

    /// One waiting packet, without its payload.
    struct Entry {
        var sequence: Int64 = 0
        var timestamp: Int64 = 0
        var arrivalNanoseconds: Int64 = 0
        var length: Int32 = 0
        /// Samples it decodes to.
        var samples: Int32 = 0
        /// Samples before it that its forward error correction can restore; 0 if it has none.
        var restorableSamples: Int32 = 0
        /// Too small to hold sound: the sender is silent.
        var isDiscontinuous = false
        /// It describes noise, and holds no sound.
        var isNoise = false
        /// Which of the stream's formats it is of.
        var format: UInt8 = 0
        fileprivate var isUsed = false
        fileprivate var block: UInt8 = 0

        @_noAllocation @_noLocks
        init() {}
    }

    private var entries = InlineArray<128, Entry>(repeating: Entry())
    private var freeBlocks = InlineArray<128, UInt8>(repeating: 0)
    private var freeCount = PacketStore.capacity
    private var payloads = PayloadMemory(blocks: PacketStore.capacity, of: PacketStore.blockSize)
    /// One past the highest sequence number stored since the last `removeAll`.
    private(set) var end: Int64 = .min

    init() {
        for index in 0..<Self.capacity { freeBlocks[index] = UInt8(Self.capacity - 1 - index) }
    }

    /// Packets waiting.
    var count: Int {
        @_noAllocation @_noLocks get { Self.capacity &- freeCount }
    }

    @_noAllocation @_noLocks
    func entry(_ sequence: Int64) -> Entry? {
        let entry = entries[Int(sequence & 127)]
        return entry.isUsed && entry.sequence == sequence ? entry : nil
    }

    /// Whether the packet waits.
    @_noAllocation @_noLocks
    func contains(_ sequence: Int64) -> Bool {
        guard case .some = entry(sequence) else { return false }
        return true
    }

    /// The packet with the lowest sequence number from `sequence` on.
    @_noAllocation @_noLocks
    func first(from sequence: Int64) -> Entry? {
        var candidate = max(sequence, end &- Int64(Self.capacity))
        while candidate < end {
            if let entry = entry(candidate) { return entry }
            candidate &+= 1
        }
        return nil
    }

    /// The payload of `entry`, which must be stored.
    @_lifetime(borrow self) @_noAllocation @_noLocks
    func payload(_ entry: Entry) -> RawSpan {
        payloads.payload(Int(entry.block), length: Int(entry.length))
    }

    /// Stores a copy of `payload`, which has at most ``blockSize`` bytes; its number must not be stored already.
    ///
    /// - Returns: Whether a packet 128 numbers older had to give way.
    @_noAllocation @_noLocks
    mutating func insert(_ entry: Entry, payload: RawSpan) -> Bool {
        let index = Int(entry.sequence & 127)
        let old = entries[index]
        if old.isUsed { remove(old.sequence) }
        freeCount &-= 1
        var stored = entry
        stored.isUsed = true
        stored.block = freeBlocks[freeCount]
        stored.length = Int32(truncatingIfNeeded: payload.byteCount)
        entries[index] = stored
        end = max(end, entry.sequence &+ 1)
        payloads.write(payload, to: Int(stored.block))
        return old.isUsed
    }

    @_noAllocation @_noLocks
    mutating func remove(_ sequence: Int64) {
        let index = Int(sequence & 127)
        guard entries[index].isUsed, entries[index].sequence == sequence else { return }
        entries[index].isUsed = false
        freeBlocks[freeCount] = entries[index].block
        freeCount &+= 1
    }

    @_noAllocation @_noLocks
    mutating func removeAll() {
        for index in 0..<Self.capacity where entries[index].isUsed { remove(entries[index].sequence) }
        end = .min
    }
}
