import Core
import Testing

@Suite("A token bucket")
struct TokenBucketTests {
    @Test("A burst is taken at once, later tokens at the rate, and a rest restores the burst")
    func rate() {
        let rate = TokenBucket.Rate(burst: 100, perSecond: 50)
        var bucket = TokenBucket()
        var now = Instant(nanoseconds: 5_000_000_000)
        func taken(of tokens: Int) -> Int { (0..<tokens).count { _ in bucket.take(rate, at: now) } }
        #expect(taken(of: 1_000) == 100)
        now = now.advanced(by: .milliseconds(19))
        #expect(taken(of: 10) == 0)
        now = now.advanced(by: .milliseconds(1))
        #expect(taken(of: 10) == 1)
        now = now.advanced(by: .seconds(1))
        #expect(taken(of: 1_000) == 50)
        now = now.advanced(by: .seconds(3_600))
        #expect(taken(of: 1_000) == 100)
    }

    @Test("An instant that lies before the last one is taken for it")
    func backwards() {
        let rate = TokenBucket.Rate(burst: 2, perSecond: 1)
        var bucket = TokenBucket()
        let first = bucket.take(rate, at: Instant(nanoseconds: 10_000_000_000))
        let second = bucket.take(rate, at: Instant(nanoseconds: 9_000_000_000))
        #expect(first && !second)
    }

    @Test("A token can be taken exactly when the bucket says so, at any rate", arguments: [1, 3, 7, 20, 300, 10_000])
    func waits(count: Int) {
        let rate = TokenBucket.Rate(count, within: .seconds(60))
        var bucket = TokenBucket()
        let start = Instant(nanoseconds: 123_456_789)
        let burst = (0...count).count { _ in bucket.take(rate, at: start) }
        #expect(burst == count)
        let wait = bucket.wait(rate, at: start)
        #expect(start.advanced(by: wait) == bucket.nextAt(rate))
        let early = bucket.take(rate, at: bucket.nextAt(rate).advanced(byNanoseconds: -1))
        let due = bucket.take(rate, at: bucket.nextAt(rate))
        #expect(!early && due)
        #expect(bucket.isFull(at: start.advanced(by: .seconds(60) + wait)) && !bucket.isFull(at: start))
    }

    @Test("Several tokens are taken together or not at all, and one that is put back can be taken again")
    func several() {
        let rate = TokenBucket.Rate(burst: 10, every: .milliseconds(5))
        var bucket = TokenBucket()
        let seven = bucket.take(7, rate, at: .zero)
        let four = bucket.take(4, rate, at: .zero)
        #expect(seven && !four && bucket.count(rate, at: .zero) == 3)
        let three = bucket.take(3, rate, at: .zero)
        let one = bucket.take(rate, at: .zero)
        #expect(three && !one)
        bucket.putBack(rate)
        let again = bucket.take(rate, at: .zero)
        #expect(again)
        bucket.empty(rate, at: .zero)
        #expect(bucket.count(rate, at: .zero) == 0 && bucket.wait(rate, at: .zero) == .milliseconds(5))
        for _ in 0..<100 { bucket.putBack(rate) }
        #expect(bucket.count(rate, at: .zero) == 10, "it holds no more than its burst")
    }

    @Test("A faster rate holds at once, also after a slower one was used up")
    func otherRate() {
        let slow = TokenBucket.Rate(burst: 500, perSecond: 1)
        let fast = TokenBucket.Rate(burst: 500, perSecond: 1_000)
        var bucket = TokenBucket()
        let all = bucket.take(500, slow, at: .zero)
        #expect(all)
        #expect(bucket.wait(fast, at: .zero) == .milliseconds(1))
    }

    @Test("Rates without tokens, and of more than 64 bits hold, do not trap")
    func extremes() {
        var bucket = TokenBucket()
        let empty = bucket.take(TokenBucket.Rate(burst: 0, perSecond: 1), at: .zero)
        let still = TokenBucket.Rate(burst: 1, perSecond: 0)
        let first = bucket.take(still, at: .zero)
        let second = bucket.take(still, at: Instant(nanoseconds: 1_000_000_000))
        #expect(!empty && first && !second)
        let huge = TokenBucket.Rate(burst: .max, perSecond: 1e12)
        #expect(bucket.wait(huge, at: .zero) == .zero)
        let endless = bucket.take(.max, TokenBucket.Rate(burst: 5, perSecond: 1), at: .zero)
        #expect(!endless)
    }
}
