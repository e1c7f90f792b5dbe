@testable import ExchangeCore
import Core
import SignalWire
import Testing

@Suite struct LoginGuardTests {
    private static let limits: FailedLogins = {
        var limits = FailedLogins()
        (limits.perAddress, limits.perAccount, limits.window) = (5, 20, .seconds(100))
        return limits
    }()

    private func address(_ text: String) throws -> ClientAddress { try #require(ClientAddress(text)) }
    private func at(_ seconds: Double) -> Instant { Instant.zero.advanced(by: .seconds(seconds)) }

    @Test("Failed logins from one address have to wait, those from others do not, and attempts come back evenly")
    func perAddress() throws {
        var guesses = LoginGuard(Self.limits)
        let (bad, good) = (try address("192.0.2.1"), try address("192.0.2.2"))
        for number in 0..<5 { #expect(guesses.begin("user \(number)", from: bad, at: at(0)) == nil) }
        #expect(guesses.begin("alice", from: bad, at: at(0)) == .seconds(20))
        #expect(guesses.begin(nil, from: bad, at: at(0)) == .seconds(20), "media tokens count as well")
        #expect(guesses.begin("alice", from: good, at: at(0)) == nil)
        #expect(guesses.begin("alice", from: bad, at: at(20)) == nil)
        #expect(guesses.begin("alice", from: bad, at: at(20)) == .seconds(20))
    }

    @Test("Logins that succeed cost nothing, and neither do those that were not looked at")
    func success() throws {
        var guesses = LoginGuard(Self.limits)
        let home = try address("192.0.2.1")
        for second in 0..<100 {
            #expect(guesses.begin("alice", from: home, at: at(Double(second) / 100)) == nil)
            guesses.succeeded("alice", from: home, at: at(Double(second) / 100))
            #expect(guesses.begin("bob", from: home, at: at(Double(second) / 100)) == nil)
            guesses.abandoned("bob", from: home, at: at(Double(second) / 100))
        }
    }

    @Test(
        "Guessing at one account from everywhere is slowed down, and its owner still gets in from where it was before")
    func perAccount() throws {
        var guesses = LoginGuard(Self.limits)
        let home = try address("192.0.2.1")
        #expect(guesses.begin("alice", from: home, at: at(0)) == nil)
        guesses.succeeded("alice", from: home, at: at(0))
        var admitted = 0
        for number in 0..<200 {
            let stranger = try address("198.51.100.\(number)")
            if guesses.begin("alice", from: stranger, at: at(1)) == nil { admitted += 1 }
        }
        #expect(admitted == 20)
        #expect(guesses.begin("alice", from: home, at: at(1)) == nil)
        let new = try address("203.0.113.1")
        #expect(guesses.begin("alice", from: new, at: at(1)) == .seconds(5))
        #expect(guesses.begin("bob", from: new, at: at(1)) == nil)
        #expect(guesses.begin("alice", from: new, at: at(6)) == nil, "nobody is locked out for good")
    }

    @Test("Failed addresses are remembered up to a limit, the worst of them always")
    func memory() throws {
        let rate = TokenBucket.Rate(burst: 3, perSecond: 0.001)
        var buckets = TokenBuckets<Int>(rate, capacity: 100)
        for _ in 0..<3 { buckets.take(-1, at: at(0)) }
        for key in 0..<5_000 { buckets.take(key, at: at(0)) }
        #expect(buckets.count == 100)
        #expect(buckets.wait(-1, at: at(0)) > .zero, "one that has failed more often is kept before others")
        for key in 0..<100 { buckets.putBack(key, at: at(1e6)) }
        var single = TokenBuckets<Int>(rate)
        single.take(1, at: at(0))
        single.putBack(1, at: at(0))
        #expect(single.count == 0, "a full bucket is not kept")
    }
}
