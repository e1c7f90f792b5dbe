internal import AudioKit

/// Delay over time in bounded memory: as fine as fits, and coarser by halves as time passes.
public struct DelayHistory: Equatable, Sendable {
    /// A stretch of time.
    public struct Point: Equatable, Sendable {
        /// Number of the first captured sample in it.
        public var position: Int
        /// Least delay in it, in samples.
        public var least: Double
        /// Greatest delay in it, in samples.
        public var greatest: Double
        /// Mean delay in it, in samples.
        public var mean: Double { sum / Double(count) }
        /// Mean gain in it, in dB.
        public var meanGainDB: Double { gainSum / Double(count) }
        var sum: Double
        var gainSum: Double
        var count: Int
    }

    /// The stretches, oldest first.
    public private(set) var points: [Point] = []
    /// Captured samples in one stretch: 20 ms at first.
    public private(set) var span = 960
    private let capacity: Int

    /// - Parameter capacity: Most stretches kept, 16 or more.
    public init(capacity: Int = 2_000) { self.capacity = max(16, capacity) }

    mutating func add(_ reading: CarrierReading) {
        let delay = reading.delaySamples
        if let last = points.last, reading.position < last.position + span {
            points[points.count - 1].least = min(last.least, delay)
            points[points.count - 1].greatest = max(last.greatest, delay)
            points[points.count - 1].sum += delay
            points[points.count - 1].gainSum += reading.gainDB
            points[points.count - 1].count += 1
            return
        }
        if points.count >= capacity { coarsen() }
        points.append(
            Point(
                position: reading.position, least: delay, greatest: delay, sum: delay, gainSum: reading.gainDB,
                count: 1))
    }

    /// The same stretches with other delays.
    func mapped(_ change: (Point) -> Point) -> DelayHistory {
        var history = self
        history.points = points.map(change)
        return history
    }

    /// A carrier that is further from its speed is found by chance, and its delays mean nothing.
    private static let followedChange = 0.02

    /// Whether most of the delay's slopes are those that this speed makes: a delay that swings has few of them.
    func agrees(withSpeed speed: Double) -> Bool {
        let slope = 1 - speed
        guard abs(slope) < Self.followedChange else { return true }
        let slopes = zip(points, points.dropFirst()).compactMap { first, second -> Double? in
            let distance = second.position - first.position
            return distance > 0 && distance <= 2 * span ? (second.mean - first.mean) / Double(distance) : nil
        }
        return slopes.count < 10 || 2 * slopes.count { abs($0 - slope) < abs(slope) / 4 } > slopes.count
    }

    private mutating func coarsen() {
        span *= 2
        var merged: [Point] = []
        for point in points {
            if let last = merged.last, point.position < last.position + span {
                merged[merged.count - 1] = Point(
                    position: last.position, least: min(last.least, point.least),
                    greatest: max(last.greatest, point.greatest), sum: last.sum + point.sum,
                    gainSum: last.gainSum + point.gainSum,
                    count: last.count + point.count)
            } else {
                merged.append(point)
            }
        }
        points = merged
    }
}

/// Drift as one slope through all readings, in which jumps of the delay do not count.
struct DriftEstimate: Equatable, Sendable {
    private var count = 0.0
    private var (sumX, sumY, sumXX, sumXY, sumYY) = (0.0, 0.0, 0.0, 0.0, 0.0)
    private var (pooledXX, pooledXY, pooledYY) = (0.0, 0.0, 0.0)
    private var pooledCount = 0.0
    private var origin: (x: Double, y: Double)?
    private var last: Double?
    /// A delay that moves by more from one reading to the next, in samples, has jumped: clocks part by a thousandth of that.
    private static let most = 8.0

    static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.sumXY == right.sumXY && left.pooledXY == right.pooledXY
    }

    mutating func add(_ reading: CarrierReading) {
        // A reading may come before the event that says so.
        if let last, abs(reading.delaySamples - last) > Self.most { jump() }
        last = reading.delaySamples
        let start = origin ?? (Double(reading.position), reading.delaySamples)
        origin = start
        let (x, y) = (Double(reading.position) - start.x, reading.delaySamples - start.y)
        count += 1
        sumX += x
        sumY += y
        sumXX += x * x
        sumXY += x * y
        sumYY += y * y
    }

    /// The delay jumped: what follows is another line with the same slope.
    mutating func jump() {
        last = nil
        guard count > 1 else {
            (count, sumX, sumY, sumXX, sumXY, sumYY) = (0, 0, 0, 0, 0, 0)
            origin = nil
            return
        }
        pooledXX += sumXX - sumX * sumX / count
        pooledXY += sumXY - sumX * sumY / count
        pooledYY += sumYY - sumY * sumY / count
        pooledCount += count - 2
        (count, sumX, sumY, sumXX, sumXY, sumYY) = (0, 0, 0, 0, 0, 0)
        origin = nil
    }

    /// How much faster the capturing clock is than the playing one, in ppm of the capturing clock, with its standard
    /// error; nil while there is too little data.
    var ppm: (value: Double, error: Double)? {
        fit.map { ($0.slope * 1e6, ($0.rest / $0.spread).squareRoot() * 1e6) }
    }

    /// How far the delay is from its line, the root of the mean square, in samples.
    var wanderSamples: Double? { fit?.rest.squareRoot() }

    private var fit: (slope: Double, rest: Double, spread: Double)? {
        var all = self
        all.jump()
        guard all.pooledCount > 20, all.pooledXX > 0 else { return nil }
        let slope = all.pooledXY / all.pooledXX
        return (slope, max(0, all.pooledYY - slope * all.pooledXY) / all.pooledCount, all.pooledXX)
    }
}
