internal import Core

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
        fileprivate var block: UInt8 = 0

        @_noAllocation @_noLocks
        init() {}
    }

    /// The stored form of an entry: 32 bytes, where an entry has 48.
    private struct Place: BitwiseCopyable {
        var timestamp: Int64 = 0
        var arrivalNanoseconds: Int64 = 0
        /// The lower half of the number: others that share it are 2³² packets away.
        var sequence: UInt32 = 0
        // No payload has more than 1 280 bytes, and none more than 120 ms: 5 760 samples.
        var length: UInt16 = 0
        var samples: UInt16 = 0
        var restorableSamples: UInt16 = 0
        var format: UInt8 = 0
        var block: UInt8 = 0
        var isDiscontinuous = false
        var isNoise = false
        var isUsed = false

        @_noAllocation @_noLocks
        init() {}

        @_noAllocation @_noLocks
        init(_ entry: Entry, block: UInt8, length: Int) {
            timestamp = entry.timestamp
            arrivalNanoseconds = entry.arrivalNanoseconds
            sequence = UInt32(truncatingIfNeeded: entry.sequence)
            self.length = UInt16(clamping: length)
            samples = UInt16(clamping: entry.samples)
            restorableSamples = UInt16(clamping: entry.restorableSamples)
            format = entry.format
            self.block = block
            isDiscontinuous = entry.isDiscontinuous
            isNoise = entry.isNoise
            isUsed = true
        }

        @_noAllocation @_noLocks
        func holds(_ number: Int64) -> Bool { isUsed && sequence == UInt32(truncatingIfNeeded: number) }

        /// The entry in that slot, if it has this number.
        @_noAllocation @_noLocks
        func entry(_ number: Int64) -> Entry {
            var entry = Entry()
            entry.sequence = number
            entry.timestamp = timestamp
            entry.arrivalNanoseconds = arrivalNanoseconds
            entry.length = Int32(length)
            entry.samples = Int32(samples)
            entry.restorableSamples = Int32(restorableSamples)
            entry.isDiscontinuous = isDiscontinuous
            entry.isNoise = isNoise
            entry.format = format
            entry.block = block
            return entry
        }
    }

    private let inPlace = InPlace()
    private var places = InlineArray<128, Place>(repeating: Place())
    private var freeBlocks = InlineArray<128, UInt8>(repeating: 0)
    private var freeCount = PacketStore.capacity
    private var payloads = PayloadMemory(blocks: PacketStore.capacity, of: PacketStore.blockSize)
    /// One past the highest sequence number stored since the last `removeAll`.
    private(set) var end: Int64 = .min

    init() {
        for index in 0..<Self.capacity { freeBlocks[index] = UInt8(Self.capacity - 1 - index) }
    }

    /// The lowest number that has a place beside the highest stored; nil before the first.
    var firstStorable: Int64? {
        @_noAllocation @_noLocks get { end == .min ? nil : end &- Int64(Self.capacity) }
    }

    /// Packets waiting.
    var count: Int {
        @_noAllocation @_noLocks get { Self.capacity &- freeCount }
    }

    @_noAllocation @_noLocks
    func entry(_ sequence: Int64) -> Entry? {
        let place = places[Int(sequence & 127)]
        return place.holds(sequence) ? place.entry(sequence) : nil
    }

    /// Whether the packet waits.
    @_noAllocation @_noLocks
    func contains(_ sequence: Int64) -> Bool { places[Int(sequence & 127)].holds(sequence) }

    /// The packet with the lowest sequence number from `sequence` on.
    @_noAllocation @_noLocks
    func first(from sequence: Int64) -> Entry? {
        var candidate = max(sequence, end &- Int64(Self.capacity))
        while candidate < end {
            if contains(candidate) { return entry(candidate) }
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
        let givesWay = places[index].isUsed
        if givesWay { clear(index) }
        freeCount &-= 1
        let block = freeBlocks[freeCount]
        places[index] = Place(entry, block: block, length: payload.byteCount)
        end = max(end, entry.sequence &+ 1)
        payloads.write(payload, to: Int(block))
        return givesWay
    }

    @_noAllocation @_noLocks
    mutating func remove(_ sequence: Int64) {
        let index = Int(sequence & 127)
        if places[index].holds(sequence) { clear(index) }
    }

    @_noAllocation @_noLocks
    private mutating func clear(_ index: Int) {
        places[index].isUsed = false
        freeBlocks[freeCount] = places[index].block
        freeCount &+= 1
    }

    @_noAllocation @_noLocks
    mutating func removeAll() {
        for index in 0..<Self.capacity where places[index].isUsed { clear(index) }
        end = .min
    }
}

/// Blocks of a fixed size for packets' payloads: allocated once, freed with the owner.
///
/// Blocks have no value until written, and their pages, except the first few, take no memory until touched.
@safe
struct PayloadMemory: ~Copyable, @unchecked Sendable {
    // Not shared: the owner is non-copyable, so it may move between threads.
    private let base: UnsafeMutableRawPointer
    private let blockSize: Int
    private let blocks: Int

    init(blocks: Int, of blockSize: Int) {
        unsafe base = .allocate(byteCount: blocks * blockSize, alignment: 16)
        unsafe base.initializeMemory(as: UInt8.self, repeating: 0, count: min(blocks, 4) * blockSize)
        self.blockSize = blockSize
        self.blocks = blocks
    }

    deinit { unsafe base.deallocate() }

    /// Copies `payload`, which fits, to the front of a block. (Copying memory neither allocates nor locks.)
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func write(_ payload: RawSpan, to block: Int) {
        precondition(block >= 0 && block < blocks && payload.byteCount <= blockSize, "the payload fits its block")
        let target = unsafe base + block * blockSize
        unsafe payload.withUnsafeBytes { source in
            if let bytes = source.baseAddress { unsafe target.copyMemory(from: bytes, byteCount: source.count) }
        }
    }

    /// The first `length` bytes of a block, which have been written. (The checker takes making a span for an allocation.)
    @_lifetime(borrow self) @_semantics("no_performance_analysis") @inline(__always)
    func payload(_ block: Int, length: Int) -> RawSpan {
        precondition(block >= 0 && block < blocks && length >= 0 && length <= blockSize, "the payload is in its block")
        let span = unsafe RawSpan(_unsafeStart: base + block * blockSize, byteCount: length)
        return unsafe _overrideLifetime(span, borrowing: self)
    }
}
