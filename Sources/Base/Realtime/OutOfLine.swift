/// A large value in separate memory, which a real-time thread uses in place: its owner stays small, and no use copies
/// the memory's contents.
@safe @frozen
public struct OutOfLine<Value: ~Copyable & Sendable>: ~Copyable, @unchecked Sendable {
    // Sendable: the memory has this one owner.
    @usableFromInline let memory: UnsafeMutablePointer<Value>

    /// Takes the memory and puts `value` into it.
    public init(_ value: consuming Value) {
        unsafe memory = .allocate(capacity: 1)
        unsafe memory.initialize(to: value)
    }

    @inlinable
    deinit {
        unsafe memory.deinitialize(count: 1)
        unsafe memory.deallocate()
    }

    /// The value, in place.
    public var value: Value {
        @inlinable @inline(__always)
        unsafeAddress { unsafe UnsafePointer(memory) }
        @inlinable @inline(__always)
        unsafeMutableAddress { unsafe memory }
    }
}
