internal import Synchronization

/// A wait-free single-producer single-consumer ring of audio samples (16-bit PCM, one channel).
///
/// Take the two halves and give one to each thread. Each is non-copyable and its operations are `mutating`, so a
/// second producer or a second consumer does not compile.
@frozen
public struct AudioRing: ~Copyable {
    /// The half that writes.
    public var producer: Producer
    /// The half that reads.
    public var consumer: Consumer

    /// - Parameter capacity: Samples the ring can hold; rounded up to a power of two. The only allocation it makes.
    public init(capacity: Int) {
        let storage = RingStorage<Int16>(capacity: capacity)
        producer = Producer(storage)
        consumer = Consumer(storage)
    }

    /// The writing half. One thread at a time.
    @safe
    public struct Producer: ~Copyable, @unchecked Sendable {
        // Keeps the slots alive. Untouched on the real-time path, so no retain there.
        private let storage: RingStorage<Int16>
        private let slots: RingSlots<Int16>

        fileprivate init(_ storage: RingStorage<Int16>) {
            self.storage = storage
            unsafe slots = storage.slots
        }

        /// Appends as much of `samples` as fits.
        ///
        /// - Returns: Samples taken. Fewer than `samples.count` is an overrun; the caller drops the rest and counts it.
        @_noAllocation @_noLocks
        public mutating func write(_ samples: Span<Int16>) -> Int {
            let end = unsafe slots.indices.pointee.written.load(ordering: .relaxed)
            let used = unsafe end &- slots.indices.pointee.consumed.load(ordering: .acquiring)
            let count = unsafe min(samples.count, slots.mask &+ 1 &- used)
            for index in 0..<count { unsafe slots.base[(end &+ index) & slots.mask] = samples[index] }
            unsafe slots.indices.pointee.written.store(end &+ count, ordering: .releasing)
            return count
        }

        /// Counts, for the reader, samples that were dropped because there was no space for them.
        @_noAllocation @_noLocks
        public mutating func noteRefused(_ count: Int) {
            let refused = unsafe slots.indices.pointee.refused.load(ordering: .relaxed)
            unsafe slots.indices.pointee.refused.store(refused &+ count, ordering: .relaxed)
        }

        /// Says that nothing more will be written.
        @_noAllocation @_noLocks
        public mutating func close() { unsafe slots.indices.pointee.closed.store(true, ordering: .releasing) }

        /// Samples that were ever written: where the next one goes, as ``Consumer/position`` counts.
        public var position: Int {
            @_noAllocation @_noLocks get { unsafe slots.indices.pointee.written.load(ordering: .relaxed) }
        }

        // Mutating, so that it can be called on an optional producer; see `Consumer.hasEnded()`.
        /// Whether `write` would take `count` samples now.
        @_noAllocation @_noLocks
        public mutating func hasSpace(for count: Int) -> Bool { space >= count }

        /// Samples that `write` would take now.
        public var space: Int {
            @_noAllocation @_noLocks get {
                let end = unsafe slots.indices.pointee.written.load(ordering: .relaxed)
                return unsafe slots.mask &+ 1 &- (end &- slots.indices.pointee.consumed.load(ordering: .acquiring))
            }
        }
    }

    /// The reading half. One thread at a time.
    @safe
    public struct Consumer: ~Copyable, @unchecked Sendable {
        // Keeps the slots alive; see Producer.
        private let storage: RingStorage<Int16>
        private let slots: RingSlots<Int16>

        fileprivate init(_ storage: RingStorage<Int16>) {
            self.storage = storage
            unsafe slots = storage.slots
        }

        /// Fills the front of `samples` and leaves the rest untouched: the caller decides what a gap sounds like.
        ///
        /// - Returns: Samples read.
        @_noAllocation @_noLocks
        public mutating func read(into samples: inout MutableSpan<Int16>) -> Int {
            let start = unsafe slots.indices.pointee.consumed.load(ordering: .relaxed)
            let available = unsafe slots.indices.pointee.written.load(ordering: .acquiring) &- start
            let count = min(samples.count, available)
            for index in 0..<count { samples[index] = unsafe slots.base[(start &+ index) & slots.mask] }
            unsafe slots.indices.pointee.consumed.store(start &+ count, ordering: .releasing)
            return count
        }

        /// Fills the front of `samples` with what comes `offset` samples after the next one, and leaves it in the ring.
        ///
        /// - Returns: Samples read.
        @_noAllocation @_noLocks
        public mutating func look(at offset: Int, into samples: inout MutableSpan<Int16>) -> Int {
            let start = unsafe slots.indices.pointee.consumed.load(ordering: .relaxed) &+ max(0, offset)
            let available = unsafe slots.indices.pointee.written.load(ordering: .acquiring) &- start
            let count = max(0, min(samples.count, available))
            for index in 0..<count { samples[index] = unsafe slots.base[(start &+ index) & slots.mask] }
            return count
        }

        /// Leaves out the next `count` samples, or as many as there are.
        @_noAllocation @_noLocks
        public mutating func skip(_ count: Int) {
            let start = unsafe slots.indices.pointee.consumed.load(ordering: .relaxed)
            let available = unsafe slots.indices.pointee.written.load(ordering: .acquiring) &- start
            unsafe slots.indices.pointee.consumed.store(start &+ max(0, min(count, available)), ordering: .releasing)
        }

        // Mutating, so that it can be called on an optional consumer: Swift does not borrow an optional in place
        // otherwise.
        /// Whether the producer has closed the ring and everything written was read.
        @_noAllocation @_noLocks
        public mutating func hasEnded() -> Bool {
            unsafe slots.indices.pointee.closed.load(ordering: .acquiring) && count == 0
        }

        /// Samples that the producer dropped (``Producer/noteRefused(_:)``).
        @_noAllocation @_noLocks
        public mutating func refused() -> Int { unsafe slots.indices.pointee.refused.load(ordering: .relaxed) }

        /// ``count``, for an optional consumer.
        @_noAllocation @_noLocks
        public mutating func available() -> Int { count }

        /// Samples that were ever read or left out: where the next one comes from.
        public var position: Int {
            @_noAllocation @_noLocks get { unsafe slots.indices.pointee.consumed.load(ordering: .relaxed) }
        }

        /// Samples waiting: the delay this ring adds.
        public var count: Int {
            @_noAllocation @_noLocks get {
                let start = unsafe slots.indices.pointee.consumed.load(ordering: .relaxed)
                return unsafe slots.indices.pointee.written.load(ordering: .acquiring) &- start
            }
        }
    }
}
