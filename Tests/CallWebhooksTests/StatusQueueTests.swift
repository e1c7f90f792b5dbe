import BotWire
import CallParticipation
import Testing
import Core

@testable import CallWebhooks

@Suite("Status callbacks on their way")
struct StatusQueueTests {
    private struct Bench {
        var queue = StatusQueue()
        var now = Instant.zero
        /// The calls and what is sent of them.
        var sent: [(CallID, String)] = []
        var lost: [String] = []

        mutating func feed(_ input: StatusQueue.Input) {
            for output in queue.handle(input, at: now) {
                switch output {
                case .send(let news): sent.append((news.call, news.what))
                case .lost(_, let why): lost.append(why)
                }
            }
        }

        mutating func tell(_ call: CallID, _ status: TwilioWebhook.Status) throws {
            let address = try #require(WebAddress("http://bot.example/status", [.http]))
            let wireCall = WireCall(call: "CA\(call.number)", stream: "", account: "AC1", from: "a", to: "b")
            let request = try #require(TwilioWebhook(wireCall, status).request(to: Webhook(address), token: nil))
            feed(.add(StatusQueue.Report(call: call, what: status.rawValue, request: request)))
        }

        mutating func wait(_ time: Duration) {
            now = now.advanced(by: time)
            feed(.timerFired)
        }
    }

    @Test("Status callbacks of a call are sent one after the other, those of another call in parallel")
    func order() throws {
        var bench = Bench()
        try bench.tell(1, .ringing)
        try bench.tell(1, .completed)
        try bench.tell(2, .completed)
        #expect(bench.sent.map { $0.0 } == [1, 2] && bench.sent.map { $0.1 } == ["ringing", "completed"])
        bench.feed(.answered(call: 1, 204))
        #expect(bench.sent.last?.0 == 1 && bench.sent.last?.1 == "completed")
        bench.feed(.answered(call: 1, 200))
        bench.feed(.answered(call: 2, 200))
        #expect(bench.queue.isEmpty && bench.lost.isEmpty && bench.queue.nextDeadline == nil)
    }

    @Test("A server that fails, or is not there, is asked again after 1 s and after 4 s, and then no more")
    func retries() throws {
        var bench = Bench()
        try bench.tell(1, .completed)
        bench.feed(.answered(call: 1, 503))
        bench.wait(.milliseconds(999))
        #expect(bench.sent.count == 1)
        bench.wait(.milliseconds(1))
        #expect(bench.sent.count == 2)
        bench.feed(.failed(call: 1, "nothing listens"))
        bench.wait(.seconds(4))
        #expect(bench.sent.count == 3 && bench.lost.isEmpty)
        bench.feed(.answered(call: 1, 429))
        #expect(bench.lost == ["its answer has the status 429"] && bench.queue.isEmpty)
        bench.wait(.seconds(60))
        #expect(bench.sent.count == 3)
    }

    @Test("An answer that a retry cannot change drops the callback at once, and those behind it are sent")
    func refused() throws {
        for status in [301, 404] {
            var bench = Bench()
            try bench.tell(1, .ringing)
            try bench.tell(1, .completed)
            bench.feed(.answered(call: 1, status))
            #expect(bench.lost == ["its answer has the status \(status)"])
            #expect(bench.sent.map { $0.1 } == ["ringing", "completed"])
        }
    }

    @Test("At the end what waits for another try is sent at once, and failures are final")
    func finish() throws {
        var bench = Bench()
        try bench.tell(1, .completed)
        bench.feed(.failed(call: 1, "nothing listens"))
        bench.feed(.finish)
        #expect(bench.sent.count == 2 && !bench.queue.isEmpty)
        bench.feed(.failed(call: 1, "nothing listens"))
        #expect(bench.lost == ["nothing listens"] && bench.queue.isEmpty)
    }

    @Test("A server that does not answer gets 32 requests at a time, and 1,024 callbacks wait for it")
    func bounds() throws {
        var bench = Bench()
        for call in 0..<2_000 { try bench.tell(CallID(number: UInt64(call)), .completed) }
        #expect(bench.sent.count == StatusQueue.mostSending && bench.queue.count == StatusQueue.mostWaiting)
        #expect(bench.lost.count == 2_000 - StatusQueue.mostWaiting)
        bench.feed(.answered(call: 0, 200))
        #expect(bench.sent.count == StatusQueue.mostSending + 1)
    }
}

extension CallID: ExpressibleByIntegerLiteral {
    /// The call of this number.
    public init(integerLiteral number: UInt64) { self.init(number: number) }
}
