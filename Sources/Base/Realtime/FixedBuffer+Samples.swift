// The checker of real-time functions takes the making of a span for an allocation, and unoptimised code's copy of one for
// reference counting. What only does that is not analysed.
extension FixedBuffer where Element == Int16 {
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

    /// Samples `range`, to read; within ``capacity``.
    @_semantics("no_performance_analysis") @inline(__always)
    @_lifetime(borrow self)
    public func span(_ range: Range<Int>) -> Span<Int16> {
        precondition(isInside(range.lowerBound, range.count), "the range is within the buffer")
        let span = unsafe Span(_unsafeStart: UnsafePointer(base) + range.lowerBound, count: range.count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// Samples `range`, to read and write; within ``capacity``.
    @_semantics("no_performance_analysis") @inline(__always)
    @_lifetime(&self)
    public mutating func mutableSpan(_ range: Range<Int>) -> MutableSpan<Int16> {
        precondition(isInside(range.lowerBound, range.count), "the range is within the buffer")
        let span = unsafe MutableSpan(_unsafeStart: base + range.lowerBound, count: range.count)
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Sets `length` samples from `start` on to zero.
    @_semantics("no_performance_analysis") @inline(__always)
    public mutating func clear(_ start: Int, _ length: Int) {
        precondition(isInside(start, length), "the range is within the buffer")
        unsafe (base + start).update(repeating: 0, count: length)
    }

    /// Copies the samples from `start` on to all of `output`.
    @_semantics("no_performance_analysis") @inline(__always)
    public func copy(from start: Int, to output: inout MutableSpan<Int16>) {
        precondition(isInside(start, output.count), "the range is within the buffer")
        unsafe output.withUnsafeMutableBufferPointer { target in
            _ = unsafe target.update(fromContentsOf: UnsafeBufferPointer(start: base + start, count: target.count))
        }
    }

    /// Copies `length` samples from `source` to `target`; the two may overlap.
    @_semantics("no_performance_analysis") @inline(__always)
    public mutating func move(_ length: Int, from source: Int, to target: Int) {
        precondition(isInside(source, length), "the range is within the buffer")
        precondition(isInside(target, length), "the range is within the buffer")
        unsafe (base + target).update(from: base + source, count: length)
    }

    @_noAllocation @_noLocks
    private func isInside(_ start: Int, _ length: Int) -> Bool {
        guard start >= 0, length >= 0 else { return false }
        return start &+ length <= capacity
    }
}
