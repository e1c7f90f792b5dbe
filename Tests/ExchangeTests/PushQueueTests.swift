@testable import ExchangeCore
import SignalSupport
import SignalWire
import TestSupport
import Testing
import Core

/// A queue in virtual time, with webhooks that answer as a test says.
private struct QueueScenario {
    var timeline: Timeline<PushQueue>

    init(parallel: Int = 16, capacity: Int = 10_000, kinds: Set<PushKind> = ["apns", "fcm"], seed: UInt64 = 1) {
        var settings = PushQueue.Settings(PushConfiguration(kinds: kinds))
        settings.chosen.parallelRequests = parallel
        settings.capacity = capacity
        timeline = Timeline(PushQueue(settings, seed: seed))
    }

    var posts: [PushID] {
        timeline.outputs.compactMap { if case .post(let push) = $0 { push.id } else { nil } }
    }
    var deaths: [PushID] {
        timeline.outputs.compactMap {
            if case .died(let push, let reason, let detail) = $0 {
                "\(push.id) \(reason) \(detail ?? "-")"
            } else {
                nil
            }
        }
    }
    /// When each attempt began.
    var postTimes: [Duration] { timeline.log.filter { if case .post = $0.output { true } else { false } }.map(\.at) }

    mutating func add(
        _ id: PushID, kind: PushKind = "apns", invite: InviteID = "i", device: DeviceID = "phone", life: Double = 30,
        message: StoredPush.Message = .invite
    ) {
        let push = StoredPush(
            id: id, invite: invite, user: "bob", device: device, target: .init(kind: kind, token: Redacted("t")),
            message: message, inviter: "alice", expires: timeline.now.advanced(by: .seconds(life)), due: timeline.now)
        timeline.feed(.add(push))
    }

    mutating func answer(_ id: PushID, attempt: Int, _ answer: PushAnswer) {
        timeline.feed(.answered(id, attempt: attempt, answer))
    }

    mutating func advance(_ seconds: Double) { timeline.advance(by: .seconds(seconds), firing: .timer) }
}

extension PushConfiguration {
    /// Pushes to these kinds of tokens.
    init(kinds: Set<PushKind>) {
        self.init()
        webhooks = kinds.sorted().map { PushWebhook(kind: $0, url: "https://push.test", shape: .generic) }
    }
}

private let broken = PushAnswer.failed("500", wait: nil, isAboutAll: false)

@Suite struct PushQueueTests {
    @Test("Any number of pushes that end at once are given up in pieces, and all of them")
    func crowd() {
        var queue = QueueScenario(parallel: 1)
        for number in 0..<1_500 { queue.add(PushID(ours: "p\(number)"), invite: InviteID(ours: "i\(number)")) }
        queue.timeline.advance(by: .seconds(29), firing: .timer)
        var core = queue.timeline.core
        let due = queue.timeline.now.advanced(by: .seconds(1))
        var (pieces, dead) = (0, 0)
        while let next = core.nextDeadline, next <= due, pieces < 100 {
            var outbox: [PushQueue.Output] = []
            core.handle(.timer, at: due, into: &outbox)
            #expect(outbox.count <= 512)
            dead += outbox.count
            pieces += 1
        }
        // One is with its webhook.
        #expect(dead == 1_499)
    }

    @Test("DEV-4: A push is made at once, and only once when the webhook takes it")
    func once() {
        var queue = QueueScenario()
        queue.add("p")
        #expect(queue.posts == ["p"])
        queue.answer("p", attempt: 1, .taken)
        queue.answer("p", attempt: 1, .taken)
        queue.add("p again")
        queue.advance(3_600)
        #expect(queue.posts == ["p"] && queue.deaths.isEmpty)
        #expect(queue.timeline.core.open == 0 && queue.timeline.core.nextDeadline == nil)
    }

    @Test("DEV-4: A push that fails is tried again after waits whose bounds double, each somewhere below its bound")
    func backoff() {
        for seed in 0..<50 as Range<UInt64> {
            var queue = QueueScenario(seed: seed)
            queue.add("p", life: 3_600)
            for attempt in 1...10 {
                queue.answer("p", attempt: attempt, broken)
                queue.advance(30)
                #expect(queue.posts.count == attempt + 1)
                guard queue.postTimes.count == attempt + 1 else { return }
                let wait = queue.postTimes[attempt] - .seconds(30 * (attempt - 1))
                let bound = min(0.5 * Double(1 << (attempt - 1)), 30)
                #expect(wait <= .seconds(bound), "wait \(attempt) of seed \(seed)")
            }
        }
        func waits(_ seed: UInt64) -> [Duration] {
            var queue = QueueScenario(seed: seed)
            queue.add("p", life: 3_600)
            queue.answer("p", attempt: 1, broken)
            queue.advance(1)
            return queue.postTimes
        }
        #expect(Set((0..<20).map { waits($0) }).count == 20, "waits are spread out")
    }

    @Test("DEV-4: Retry-After is waited for, and no attempt is made that would come after the invite's end")
    func retryAfter() {
        var queue = QueueScenario()
        queue.add("p", life: 30)
        queue.answer("p", attempt: 1, .failed("429", wait: .seconds(12), isAboutAll: false))
        queue.advance(11.9)
        #expect(queue.posts == ["p"])
        queue.advance(0.2)
        #expect(queue.posts == ["p", "p"])
        queue.answer("p", attempt: 2, .failed("429", wait: .seconds(20), isAboutAll: false))
        #expect(queue.deaths == ["p expired 429"])
        queue.advance(100)
        #expect(queue.posts.count == 2)
    }

    @Test("DEV-4: A service that is unavailable is left alone until it said; other services are not")
    func hold() {
        var queue = QueueScenario()
        queue.add("p")
        queue.answer("p", attempt: 1, .failed("503", wait: .seconds(5), isAboutAll: true))
        queue.add("q", invite: "j")
        queue.add("r", kind: "fcm", invite: "j")
        #expect(queue.posts == ["p", "r"])
        queue.advance(4.9)
        #expect(queue.posts == ["p", "r"])
        queue.advance(0.2)
        #expect(queue.posts.sorted() == ["p", "p", "q", "r"])
    }

    @Test("DEV-4: A webhook that hangs holds up itself alone, with a bounded number of requests")
    func hang() {
        var queue = QueueScenario(parallel: 2)
        for number in 1...4 { queue.add("a\(number)", invite: "\(number)") }
        queue.add("f", kind: "fcm")
        #expect(queue.posts == ["a1", "a2", "f"])
        queue.answer("a2", attempt: 1, .taken)
        #expect(queue.posts == ["a1", "a2", "f", "a3"])
        queue.advance(31)
        #expect(queue.deaths == ["a4 expired -"], "it never had its turn")
        queue.answer("a1", attempt: 1, broken)
        #expect(queue.deaths == ["a4 expired -", "a1 expired 500"])
    }

    @Test("DEV-4: A push that is refused or has no device any more is given up at once, and said why")
    func givenUp() {
        var queue = QueueScenario()
        queue.add("p")
        queue.answer("p", attempt: 1, .refused("403"))
        queue.add("q", invite: "j")
        queue.answer("q", attempt: 1, .gone("410 Unregistered"))
        queue.advance(60)
        #expect(queue.posts == ["p", "q"])
        #expect(queue.deaths == ["p refused 403", "q gone 410 Unregistered"])
    }

    @Test("DEV-4: What waits is bounded, and one more is counted among the dead")
    func bound() {
        var queue = QueueScenario(parallel: 1, capacity: 3)
        for number in 1...4 { queue.add("p\(number)", invite: "\(number)") }
        #expect(queue.deaths == ["p4 overflow -"] && queue.timeline.core.open == 3)
        queue.answer("p1", attempt: 1, .taken)
        queue.add("p5", invite: "5")
        #expect(queue.deaths.count == 1)
    }

    @Test("DEV-4: With one token an invite's end is pushed only after the attempt to push the invite")
    func order() {
        var queue = QueueScenario()
        queue.add("p")
        let told = queue.timeline.core.end("i", for: "bob")
        #expect(told.map(\.id) == ["p"])
        queue.add("e", message: .ended)
        queue.add("other", device: "tablet", message: .ended)
        #expect(queue.posts == ["p", "other"])
        queue.answer("other", attempt: 1, .taken)
        queue.answer("p", attempt: 1, broken)
        #expect(queue.posts == ["p", "other", "e"])
        queue.answer("e", attempt: 1, .taken)
        queue.advance(60)
        #expect(queue.posts.count == 3, "the invite is not told again")
        #expect(queue.deaths.isEmpty && queue.timeline.core.open == 0)
    }

    @Test("DEV-4: A kind of token without a webhook is not pushed to, unless there is one for all others")
    func kinds() {
        var queue = QueueScenario()
        queue.add("p", kind: "web")
        #expect(queue.posts.isEmpty && queue.timeline.core.open == 0)
        queue = QueueScenario(kinds: ["*"])
        queue.add("p", kind: "web")
        #expect(queue.posts == ["p"])
    }
}
