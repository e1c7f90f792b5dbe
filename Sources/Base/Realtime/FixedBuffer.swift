/// A fixed number of values in separate memory: allocated once, never moved, freed with its owner.
///
/// It is not copyable, so one thread at a time reaches the memory. Uses in place neither allocate nor lock: elements and spans are
/// inlined into the caller, and what works on many elements is written for `Int16` and `Float`.
@safe @frozen
public struct FixedBuffer<Element: AdditiveArithmetic & BitwiseCopyable>: ~Copyable, @unchecked Sendable {
    // Sendable: only the owner reaches the memory; it may move with its owner to another thread.
    @usableFromInline let base: UnsafeMutablePointer<Element>
    /// Elements it holds.
    public let capacity: Int

    /// Takes memory for `capacity` elements.
    ///
    /// - Parameters:
    ///   - capacity: At least one.
    ///   - zeros: How many at the front are zero; nil: all. The others have no value until they are written, and their pages
    ///     cost nothing until then.
    public init(capacity: Int, zeros: Int? = nil) {
        precondition(capacity > 0, "a buffer holds at least one element")
        self.capacity = capacity
        unsafe base = .allocate(capacity: capacity)
        unsafe base.initialize(repeating: .zero, count: max(0, min(zeros ?? capacity, capacity)))
    }

    @inlinable
    deinit { unsafe base.deallocate() }

    /// The element at an index below ``capacity``.
    public subscript(index: Int) -> Element {
        @inlinable @inline(__always)
        get {
            precondition(index >= 0 && index < capacity, "the buffer has that element")
            return unsafe base[index]
        }
        @inlinable @inline(__always)
        set {
            precondition(index >= 0 && index < capacity, "the buffer has that element")
            unsafe base[index] = newValue
        }
    }
}

/// 16-bit samples.
public typealias SampleBuffer = FixedBuffer<Int16>

/// Numbers to compute in.
public typealias FloatBuffer = FixedBuffer<Float>
