/// Response times of a call, in fixed memory: a histogram whose classes are 3 % wide, up to a minute.
public struct ResponseTimes: Equatable, Sendable {
    /// Classes of an octave.
    private static var steps: Int { @_noAllocation @_noLocks get { 32 } }

    /// How often each class occurred: 32 classes of a millisecond, then 32 for each doubling.
    private var counts = InlineArray<384, UInt16>(repeating: 0)
    private let rateHz: Int
    /// Times added.
    public private(set) var count = 0
    /// The greatest of them, in samples.
    public private(set) var greatest = 0

    /// - Parameter rateHz: Samples a second, 8,000…48,000.
    @_noAllocation @_noLocks
    public init(rateHz: Int) { self.rateHz = rateHz }

    /// Adds a time in samples.
    @_noAllocation @_noLocks
    public mutating func add(_ samples: Int) {
        let milliseconds = max(0, samples) &* 1_000 / rateHz
        let index = Self.classOf(milliseconds)
        guard counts[index] < .max else { return }
        counts[index] &+= 1
        count &+= 1
        greatest = max(greatest, samples)
    }

    /// The least time that `percent` of all do not exceed, in samples, to 3 %; 0 if there is none.
    @_noAllocation @_noLocks
    public func percentile(_ percent: Int) -> Int {
        let rank = max(1, (count &* percent &+ 99) / 100)
        var passed = 0
        for index in 0..<384 {
            passed &+= Int(counts[index])
            if passed >= rank { return min(greatest, Self.milliseconds(of: index) &* rateHz / 1_000) }
        }
        return 0
    }

    @_noAllocation @_noLocks
    private static func classOf(_ milliseconds: Int) -> Int {
        guard milliseconds >= steps else { return milliseconds }
        let octave = (63 &- milliseconds.leadingZeroBitCount) &- 5
        return min(383, (octave &+ 1) &* steps &+ (milliseconds >> octave) &- steps)
    }

    /// The middle of a class.
    @_noAllocation @_noLocks
    private static func milliseconds(of index: Int) -> Int {
        let (octave, step) = index.quotientAndRemainder(dividingBy: steps)
        return octave == 0 ? step : (step + steps) << (octave - 1) + (1 << (octave - 1)) / 2
    }

    /// Whether both have the same times.
    public static func == (left: Self, right: Self) -> Bool {
        guard left.count == right.count, left.greatest == right.greatest, left.rateHz == right.rateHz else {
            return false
        }
        for index in 0..<384 where left.counts[index] != right.counts[index] { return false }
        return true
    }
}
