// Realtime: what a real-time thread may use to speak with others, to wait, to keep time, and to send and receive.

public import Synchronization

/// A wait-free single-producer single-consumer queue of plain values: commands to a media worker, events from it.
///
/// Take the two halves and give one to each thread. Each is non-copyable and its operations are `mutating`, so a
/// second producer or a second consumer does not compile.
@frozen
public struct SPSCRing<Element: BitwiseCopyable>: ~Copyable {
    /// The half that appends.
    public var producer: Producer
    /// The half that takes.
    public var consumer: Consumer

    /// - Parameter capacity: Elements the ring can hold; rounded up to a power of two. The only allocation it makes.
    public init(capacity: Int) {
        let storage = RingStorage<Element>(capacity: capacity)
        producer = Producer(storage)
        consumer = Consumer(storage)
    }

    /// The appending half. One thread at a time.
    @safe @frozen
    public struct Producer: ~Copyable, @unchecked Sendable {
        // Keeps the slots alive. Untouched on the real-time path, so no retain there.
        @usableFromInline let storage: RingStorage<Element>
        @usableFromInline let slots: RingSlots<Element>

        @usableFromInline
        init(_ storage: RingStorage<Element>) {
            self.storage = storage
            unsafe slots = storage.slots
        }

        /// Appends `element`.
        ///
        /// - Returns: False when the ring is full; the caller counts it as dropped.
        @inlinable @inline(__always)
        public mutating func push(_ element: Element) -> Bool {
            let end = unsafe slots.indices.pointee.written.load(ordering: .relaxed)
            let start = unsafe slots.indices.pointee.consumed.load(ordering: .acquiring)
            guard unsafe end &- start <= slots.mask else { return false }
            unsafe slots.base[end & slots.mask] = element
            unsafe slots.indices.pointee.written.store(end &+ 1, ordering: .releasing)
            return true
        }

        /// Has the ring's memory there, if nothing is in it, so that no later ``push(_:)`` waits for it.
        @inlinable @inline(__always)
        public mutating func touch() {
            let end = unsafe slots.indices.pointee.written.load(ordering: .relaxed)
            guard unsafe slots.indices.pointee.consumed.load(ordering: .acquiring) == end else { return }
            let bytes = unsafe UnsafeMutableRawPointer(slots.base)
            var offset = 0
            while unsafe offset < (slots.mask &+ 1) &* MemoryLayout<Element>.stride {
                unsafe bytes.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self)
                offset &+= 4_096
            }
        }
    }

    /// The taking half. One thread at a time.
    @safe @frozen
    public struct Consumer: ~Copyable, @unchecked Sendable {
        // Keeps the slots alive; see Producer.
        @usableFromInline let storage: RingStorage<Element>
        @usableFromInline let slots: RingSlots<Element>

        @usableFromInline
        init(_ storage: RingStorage<Element>) {
            self.storage = storage
            unsafe slots = storage.slots
        }

        /// Takes the oldest element; nil when there is none.
        @inlinable @inline(__always)
        public mutating func pop() -> Element? {
            let start = unsafe slots.indices.pointee.consumed.load(ordering: .relaxed)
            guard unsafe slots.indices.pointee.written.load(ordering: .acquiring) != start else { return nil }
            let element = unsafe slots.base[start & slots.mask]
            unsafe slots.indices.pointee.consumed.store(start &+ 1, ordering: .releasing)
            return element
        }
    }
}

/// The two counters of a ring, each on its own cache line; they only grow, and wrap after centuries.
@frozen @usableFromInline
struct RingIndices: ~Copyable {
    @usableFromInline let written = Atomic<Int>(0)
    /// Written by the producer: what it had no space for.
    @usableFromInline let refused = Atomic<Int>(0)
    @usableFromInline let padding = InlineArray<14, Int>(repeating: 0)
    @usableFromInline let consumed = Atomic<Int>(0)
    /// Set once, by the producer: nothing more will be written.
    @usableFromInline let closed = Atomic<Bool>(false)

    @usableFromInline
    init() {}
}

/// The memory of a ring.
@frozen @unsafe @usableFromInline
struct RingSlots<Element: BitwiseCopyable> {
    @usableFromInline let base: UnsafeMutablePointer<Element>
    @usableFromInline let mask: Int
    @usableFromInline let indices: UnsafeMutablePointer<RingIndices>

    @usableFromInline
    init(base: UnsafeMutablePointer<Element>, mask: Int, indices: UnsafeMutablePointer<RingIndices>) {
        unsafe self.base = base
        unsafe self.mask = mask
        unsafe self.indices = indices
    }
}

/// Owns a ring's memory; freed with the last of the two halves.
@safe @usableFromInline
final class RingStorage<Element: BitwiseCopyable>: Sendable {
    @usableFromInline nonisolated(unsafe) let slots: RingSlots<Element>

    @usableFromInline
    init(capacity: Int) {
        precondition(capacity > 0 && capacity <= 1 << 30, "a ring needs a capacity between 1 and 2^30")
        var size = 1
        while size < capacity { size <<= 1 }
        let indices = UnsafeMutablePointer<RingIndices>.allocate(capacity: 1)
        unsafe indices.initialize(to: RingIndices())
        unsafe slots = RingSlots(base: .allocate(capacity: size), mask: size - 1, indices: indices)
    }

    deinit {
        unsafe slots.indices.deinitialize(count: 1)
        unsafe slots.indices.deallocate()
        unsafe slots.base.deallocate()
    }
}
