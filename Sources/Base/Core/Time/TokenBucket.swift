/// A rate limit: a burst, and an even refill.
///
/// Stored as the instant at which it is full again, so that it is exact to a nanosecond (the generic cell rate algorithm
/// of ITU-T I.371).
package struct TokenBucket: Hashable, Sendable {
    /// The size of a bucket, and how fast it fills.
    package struct Rate: Hashable, Sendable {
        /// At once.
        package let burst: Int
        /// Sustained, per second.
        package let perSecond: Double
        /// Nanoseconds from one token to the next.
        fileprivate let interval: Int64
        /// Nanoseconds in which an empty bucket fills.
        fileprivate let capacity: Int64

        private init(_ burst: Int, _ perSecond: Double, interval: Int64) {
            self.burst = max(0, burst)
            self.perSecond = perSecond
            self.interval = min(max(1, interval), Self.longest)
            let (product, isOverflow) = self.interval.multipliedReportingOverflow(by: Int64(self.burst))
            capacity = isOverflow ? .max / 4 : min(product, .max / 4)
        }

        /// `burst` at once, and `perSecond` sustained.
        package init(burst: Int, perSecond: Double) {
            self.init(burst, perSecond, interval: Int64(min(1e9 / max(perSecond, 1e-9), Double(Self.longest))))
        }

        /// `burst` at once, and one more after each `interval`.
        package init(burst: Int, every interval: Duration) {
            self.init(burst, 1 / interval.seconds, interval: interval.nanoseconds)
        }

        /// `count` at once, and as many evenly within `window`.
        package init(_ count: Int, within window: Duration) {
            self.init(
                count, Double(count) / window.seconds, interval: window.nanoseconds / Int64(max(1, count)))
        }

        /// A rate of nearly zero: one token in 30 years.
        private static let longest: Int64 = 1_000_000_000_000_000_000
    }

    /// In the past if the bucket is full.
    private var fullAt = Instant(nanoseconds: .min / 2)

    /// A full one.
    package init() {}

    /// Takes one out, if there is one.
    package mutating func take(_ rate: Rate, at now: Instant) -> Bool { take(1, rate, at: now) }

    /// Takes `count` out, if there are as many.
    package mutating func take(_ count: Int, _ rate: Rate, at now: Instant) -> Bool {
        let (cost, isOverflow) = rate.interval.multipliedReportingOverflow(by: Int64(count))
        let missing = missing(rate, at: now)
        guard !isOverflow, cost <= rate.capacity - missing else { return false }
        fullAt = now.advanced(byNanoseconds: missing + cost)
        return true
    }

    /// Puts one back.
    package mutating func putBack(_ rate: Rate) { fullAt = fullAt.advanced(byNanoseconds: -rate.interval) }

    /// Takes all out.
    package mutating func empty(_ rate: Rate, at now: Instant) {
        fullAt = now.advanced(byNanoseconds: rate.capacity)
    }

    /// How many there are.
    package func count(_ rate: Rate, at now: Instant) -> Int {
        Int((rate.capacity - missing(rate, at: now)) / rate.interval)
    }

    /// When there is one; in the past if there is.
    package func nextAt(_ rate: Rate) -> Instant { fullAt.advanced(byNanoseconds: rate.interval - rate.capacity) }

    /// How long until there is one; zero if there is.
    package func wait(_ rate: Rate, at now: Instant) -> Duration {
        .nanoseconds(max(0, missing(rate, at: now) + rate.interval - rate.capacity))
    }

    /// Whether as much is there as fits in, so that the bucket need not be remembered.
    package func isFull(at now: Instant) -> Bool { fullAt <= now }

    /// Nanoseconds until it is full; never more than an empty one needs, also if the rate was another before.
    private func missing(_ rate: Rate, at now: Instant) -> Int64 {
        min(max(0, now.nanoseconds(to: fullAt)), rate.capacity)
    }
}

/// A bucket for each of many keys, of which the full ones are not remembered.
///
/// Capacity: ``capacity`` keys; past it one of a few is forgotten, the one that has the most left.
package struct TokenBuckets<Key: Hashable & Sendable>: Sendable {
    package let rate: TokenBucket.Rate
    package let capacity: Int
    private var buckets: [Key: TokenBucket] = [:]

    package init(_ rate: TokenBucket.Rate, capacity: Int = 20_000) {
        self.rate = rate
        self.capacity = capacity
    }

    /// How many keys are remembered.
    package var count: Int { buckets.count }

    /// How long until there is one for `key`; zero if there is.
    package func wait(_ key: Key, at now: Instant) -> Duration { buckets[key]?.wait(rate, at: now) ?? .zero }

    /// Takes one out for `key`, if there is one.
    @discardableResult
    package mutating func take(_ key: Key, at now: Instant) -> Bool {
        if buckets[key] == nil {
            if buckets.count >= capacity { makeRoom(at: now) }
            buckets[key] = TokenBucket()
        }
        return buckets[key]?.take(rate, at: now) ?? false
    }

    /// Puts one back for `key`.
    package mutating func putBack(_ key: Key, at now: Instant) {
        buckets[key]?.putBack(rate)
        if buckets[key]?.isFull(at: now) == true { buckets[key] = nil }
    }

    private mutating func makeRoom(at now: Instant) {
        // A dictionary's order differs in each process, so a client cannot predict which ones are examined.
        var best: (key: Key, wait: Duration)?
        for (key, bucket) in buckets.prefix(16) {
            if bucket.isFull(at: now) {
                buckets[key] = nil
                return
            }
            let wait = bucket.wait(rate, at: now)
            if best.map({ wait < $0.wait }) ?? true { best = (key, wait) }
        }
        if let best { buckets[best.key] = nil }
    }
}
