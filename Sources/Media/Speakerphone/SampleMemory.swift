/// A ring of samples in memory that is taken once: the last ones of what was written, by how long ago they were.
@safe
struct SampleMemory: ~Copyable, @unchecked Sendable {
    // Sendable: the memory has this one owner.
    private let base: UnsafeMutablePointer<Int16>
    private let mask: Int
    private var written = 0

    /// - Parameter minimumCount: Samples kept, rounded up to a power of two.
    init(minimumCount: Int) {
        var count = 1
        while count < minimumCount { count *= 2 }
        unsafe base = .allocate(capacity: count)
        unsafe base.initialize(repeating: 0, count: count)
        mask = count - 1
    }

    deinit { unsafe base.deallocate() }

    var count: Int { @_noAllocation @_noLocks get { mask + 1 } }

    @_noAllocation @_noLocks
    mutating func append(_ sample: Int16) {
        unsafe base[written & mask] = sample
        written &+= 1
    }

    /// The sample that was written `age` samples before the latest one.
    @_noAllocation @_noLocks
    func sample(age: Int) -> Int16 { unsafe base[(written &- 1 &- age) & mask] }
}

/// Numbers in memory that is taken once.
@safe
struct FloatMemory: ~Copyable, @unchecked Sendable {
    // Sendable: the memory has this one owner.
    private let base: UnsafeMutablePointer<Float>
    let count: Int

    init(count: Int) {
        unsafe base = .allocate(capacity: count)
        unsafe base.initialize(repeating: 0, count: count)
        self.count = count
    }

    deinit { unsafe base.deallocate() }

    subscript(index: Int) -> Float {
        @_noAllocation @_noLocks get {
            precondition(index >= 0 && index < count, "an index within the memory")
            return unsafe base[index]
        }
        @_noAllocation @_noLocks set {
            precondition(index >= 0 && index < count, "an index within the memory")
            unsafe base[index] = newValue
        }
    }
}
