/// A value in memory of its own, which one thread hands to another through a ring.
///
/// It is a plain value, so rings carry it. The thread that has it uses it alone: one that hands it on keeps no copy. The control side
/// makes it and, when the real-time thread has handed it back, frees it.
@safe @frozen
public struct HandedValue<Value: ~Copyable & Sendable>: BitwiseCopyable, @unchecked Sendable {
    // Sendable: one thread at a time uses the memory; the ring orders the uses.
    @usableFromInline let memory: UnsafeMutablePointer<Value>

    /// Takes memory, and puts `value` into it.
    public init(_ value: consuming Value) {
        unsafe memory = .allocate(capacity: 1)
        unsafe memory.initialize(to: value)
    }

    /// Frees the memory. No copy of this may be used afterwards.
    public func free() {
        unsafe memory.deinitialize(count: 1)
        unsafe memory.deallocate()
    }

    /// Whether both are the same memory.
    @inlinable @inline(__always)
    public func isSame(as other: HandedValue<Value>) -> Bool { unsafe memory == other.memory }

    /// The value, in place.
    public var value: Value {
        @inlinable @inline(__always)
        unsafeAddress { unsafe UnsafePointer(memory) }
        @inlinable @inline(__always)
        nonmutating unsafeMutableAddress { unsafe memory }
    }
}
