/// A fixed block of 16-bit samples that a thread owns and works in.
@safe
public struct SampleBuffer: ~Copyable, @unchecked Sendable {
    // Only the owner reaches the memory; it may move with its owner to another thread.
    private let base: UnsafeMutablePointer<Int16>
    /// Samples it holds.
    public let capacity: Int

    /// Takes memory for `capacity` samples, all zero.
    public init(capacity: Int) {
        precondition(capacity > 0, "a sample buffer holds at least one sample")
        self.capacity = capacity
        unsafe base = .allocate(capacity: capacity)
        unsafe base.initialize(repeating: 0, count: capacity)
    }

    deinit { unsafe base.deallocate() }

    // Copying a span is a plain copy; unoptimised code counts it as reference counting, so it is not analysed.
    /// The first `count` samples, to read; at most ``capacity``.
    @_semantics("no_performance_analysis") @inline(__always)
    @_lifetime(borrow self)
    public func samples(_ count: Int) -> Span<Int16> {
        let span = unsafe Span(_unsafeStart: UnsafePointer(base), count: max(0, min(count, capacity)))
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// The first `count` samples, to write; at most ``capacity``.
    @_noAllocation @_noLocks
    @_lifetime(&self)
    public mutating func mutableSamples(_ count: Int) -> MutableSpan<Int16> {
        let span = unsafe MutableSpan(_unsafeStart: base, count: max(0, min(count, capacity)))
        return unsafe _overrideLifetime(span, mutating: &self)
    }
}
