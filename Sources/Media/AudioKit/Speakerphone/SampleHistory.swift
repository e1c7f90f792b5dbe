internal import Realtime

/// The last samples of what was written, by how long ago they were: a ring in memory that is taken once.
struct SampleHistory: ~Copyable {
    private var memory: SampleBuffer
    private let mask: Int
    private var written = 0

    /// - Parameter minimumCount: Samples kept, rounded up to a power of two.
    init(minimumCount: Int) {
        var count = 1
        while count < minimumCount { count *= 2 }
        memory = SampleBuffer(capacity: count)
        mask = count - 1
    }

    var count: Int { @_noAllocation @_noLocks get { mask + 1 } }

    @_noAllocation @_noLocks
    mutating func append(_ sample: Int16) {
        memory[written & mask] = sample
        written &+= 1
    }

    /// The sample that was written `age` samples before the latest one.
    @_noAllocation @_noLocks
    func sample(age: Int) -> Int16 { memory[(written &- 1 &- age) & mask] }
}
