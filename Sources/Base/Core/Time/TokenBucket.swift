/// A rate limit: a burst, and an even refill.
package struct TokenBucket: Hashable, Sendable {
    /// The size of a bucket, and how fast it fills.
    package struct Rate: Hashable, Sendable {
        /// At once.
        package let burst: Double
        /// Sustained, per second.
        package let perSecond: Double

        /// Sets both.
        package init(burst: Double, perSecond: Double) {
            self.burst = burst
            self.perSecond = perSecond
        }

        /// `count` at once, and as many evenly within `window`.
        package init(_ count: Int, within window: Duration) {
            self.init(burst: Double(count), perSecond: Double(count) / window.seconds)
        }
    }

    private var level: Double
    private var asOf: Instant

    /// A full one.
    package init(_ rate: Rate, at now: Instant) {
        level = rate.burst
        asOf = now
    }

    /// Takes one out, if there is one.
    package mutating func take(_ rate: Rate, at now: Instant) -> Bool {
        fill(rate, at: now)
        guard level >= 1 else { return false }
        level -= 1
        return true
    }

    /// Puts one back.
    package mutating func putBack(_ rate: Rate) { level = min(level + 1, rate.burst) }

    /// How long until there is one; zero if there is.
    package mutating func wait(_ rate: Rate, at now: Instant) -> Duration {
        fill(rate, at: now)
        return level >= 1 ? .zero : .seconds((1 - level) / rate.perSecond)
    }

    /// Whether as much is there as fits in, so that the bucket need not be remembered.
    package mutating func isFull(_ rate: Rate, at now: Instant) -> Bool {
        fill(rate, at: now)
        return level >= rate.burst
    }

    private mutating func fill(_ rate: Rate, at now: Instant) {
        guard asOf < now else { return }
        level = min(rate.burst, level + asOf.duration(to: now).seconds * rate.perSecond)
        asOf = now
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
    package mutating func wait(_ key: Key, at now: Instant) -> Duration { buckets[key]?.wait(rate, at: now) ?? .zero }

    /// Takes one out for `key`, if there is one.
    @discardableResult
    package mutating func take(_ key: Key, at now: Instant) -> Bool {
        if buckets[key] == nil {
            if buckets.count >= capacity { makeRoom(at: now) }
            buckets[key] = TokenBucket(rate, at: now)
        }
        return buckets[key]?.take(rate, at: now) ?? false
    }

    /// Puts one back for `key`.
    package mutating func putBack(_ key: Key, at now: Instant) {
        buckets[key]?.putBack(rate)
        if buckets[key]?.isFull(rate, at: now) == true { buckets[key] = nil }
    }

    private mutating func makeRoom(at now: Instant) {
        // A dictionary's order differs in each process, so a client cannot predict which ones are examined.
        var best: (key: Key, wait: Duration)?
        for (key, bucket) in buckets.prefix(16) {
            var bucket = bucket
            if bucket.isFull(rate, at: now) {
                buckets[key] = nil
                return
            }
            let wait = bucket.wait(rate, at: now)
            if best.map({ wait < $0.wait }) ?? true { best = (key, wait) }
        }
        if let best { buckets[best.key] = nil }
    }
}
