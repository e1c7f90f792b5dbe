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

    @_noAllocation @_noLocks
    mutating func scale(by factor: Float) {
        var index = 0
        while index < count {
            unsafe base[index] *= factor
            index &+= 1
        }
    }

    /// Adds as many of another's numbers as there are here, those from `start` on, each so many times. Written so that the
    /// compiler does several at once.
    @_noAllocation @_noLocks
    mutating func add(_ other: borrowing FloatMemory, from start: Int, times factor: Float) {
        precondition(start >= 0 && start <= other.count - count, "numbers within the other memory")
        let theirs = unsafe other.base + start
        var index = 0
        while index < count {
            unsafe base[index] += factor * theirs[index]
            index &+= 1
        }
    }

    /// Moves all except the first `places` that far to the front; the last ones must then be rewritten.
    @_noAllocation @_noLocks
    mutating func shift(by places: Int) {
        precondition(places >= 0 && places <= count, "no further than the memory is long")
        var index = places
        while index < count {
            unsafe base[index &- places] = base[index]
            index &+= 1
        }
    }
}
