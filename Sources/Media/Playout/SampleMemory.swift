/// A fixed number of samples: allocated once, never moved, freed with its owner.
@safe
struct SampleMemory: ~Copyable, @unchecked Sendable {
    // Not shared: the owner is non-copyable, so it may move between threads.
    private let base: UnsafeMutablePointer<Int16>
    let count: Int

    /// Memory for `count` samples, of which the first `zeros` are zero. The others have no value until they are written, and
    /// their pages cost nothing until then.
    init(count: Int, zeros: Int) {
        unsafe base = .allocate(capacity: count)
        unsafe base.initialize(repeating: 0, count: min(zeros, count))
        self.count = count
    }

    deinit { unsafe base.deallocate() }

    subscript(index: Int) -> Int16 {
        @_noAllocation @_noLocks get {
            precondition(isInside(index, 1), "index within the memory")
            return unsafe base[index]
        }
        @_noAllocation @_noLocks set {
            precondition(isInside(index, 1), "index within the memory")
            unsafe base[index] = newValue
        }
    }

    /// Samples `range`, to read. (The checker takes the making of a span for an allocation, here and below.)
    @_lifetime(borrow self) @_semantics("no_performance_analysis") @inline(__always)
    func span(_ range: Range<Int>) -> Span<Int16> {
        precondition(isInside(range.lowerBound, range.count), "range within the memory")
        let span = unsafe Span(_unsafeStart: base + range.lowerBound, count: range.count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// Samples `range`, to read and write.
    @_lifetime(&self) @_semantics("no_performance_analysis") @inline(__always)
    mutating func mutableSpan(_ range: Range<Int>) -> MutableSpan<Int16> {
        precondition(isInside(range.lowerBound, range.count), "range within the memory")
        let span = unsafe MutableSpan(_unsafeStart: base + range.lowerBound, count: range.count)
        return unsafe _overrideLifetime(span, mutating: &self)
    }

    /// Sets `length` samples from `start` on to zero.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func clear(_ start: Int, _ length: Int) {
        precondition(isInside(start, length), "range within the memory")
        unsafe (base + start).update(repeating: 0, count: length)
    }

    /// Copies the samples from `start` on to all of `output`.
    @_semantics("no_performance_analysis") @inline(__always)
    func copy(from start: Int, to output: inout MutableSpan<Int16>) {
        precondition(isInside(start, output.count), "range within the memory")
        unsafe output.withUnsafeMutableBufferPointer { target in
            _ = unsafe target.update(fromContentsOf: UnsafeBufferPointer(start: base + start, count: target.count))
        }
    }

    /// Copies `length` samples from `source` to `target`; the two may overlap.
    @_semantics("no_performance_analysis") @inline(__always)
    mutating func move(_ length: Int, from source: Int, to target: Int) {
        precondition(isInside(source, length), "range within the memory")
        precondition(isInside(target, length), "range within the memory")
        unsafe (base + target).update(from: base + source, count: length)
    }

    @_noAllocation @_noLocks
    private func isInside(_ start: Int, _ length: Int) -> Bool {
        guard start >= 0, length >= 0 else { return false }
        return start &+ length <= count
    }
}
