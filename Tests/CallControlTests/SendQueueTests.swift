import CallControl
import Testing
import Core

@Suite("SendQueue")
struct SendQueueTests {
    private typealias Queue = SendQueue<Int>

    private func offer(
        _ ticket: Int, _ manner: Queue.Manner = .waits(patience: nil), to queue: inout Queue,
        while state: ConnectionState = .reconnecting
    ) -> String {
        switch queue.offer(ticket, manner, while: state, doing: "send a signal", at: .zero) {
        case .send: "send"
        case .kept: "kept"
        case .fail(let error): "\(error.code)"
        }
    }

    @Test("CONN-6: What is sent while reconnecting is kept in order, and goes straight out otherwise or fails")
    func order() {
        var queue = Queue()
        #expect(offer(1, to: &queue, while: .connected) == "send")
        for ticket in 2...5 { #expect(offer(ticket, to: &queue) == "kept") }
        #expect(queue.takeAll() == [2, 3, 4, 5])
        #expect(queue.takeAll() == [])
        for state in ConnectionState.allCases where state != .connected && state != .reconnecting {
            #expect(offer(6, to: &queue, while: state) == "disconnected")
        }
        #expect(queue.count == 0)
    }

    @Test("CONN-6: What must not be sent later fails at once while reconnecting")
    func atOnce() {
        var queue = Queue()
        #expect(offer(1, .failsAtOnce, to: &queue) == "disconnected")
        #expect(offer(2, .failsAtOnce, to: &queue, while: .connected) == "send")
        #expect(queue.takeAll() == [])
    }

    @Test("CONN-6: The queue is bounded; past it a send fails with an error that gives the number")
    func bound() {
        var queue = Queue(capacity: 2)
        _ = offer(1, to: &queue)
        _ = offer(2, to: &queue)
        guard
            case .fail(let error) = queue.offer(
                3, .waits(patience: nil), while: .reconnecting, doing: "send a signal", at: .zero)
        else {
            Issue.record("a third is taken")
            return
        }
        #expect(error.code == .tooManyRequests)
        #expect("\(error)".contains("and 2 messages wait for it already"))
        #expect(queue.refusedCount == 1)
        #expect(queue.takeAll() == [1, 2])
    }

    @Test("CONN-6: When the connection is given up everything kept fails")
    func givenUp() {
        var queue = Queue()
        _ = offer(1, to: &queue)
        _ = offer(2, to: &queue)
        #expect(queue.giveUp().map { "\($0.ticket) \($0.error.code)" } == ["1 disconnected", "2 disconnected"])
        #expect(queue.count == 0)
    }

    @Test("AUTH-7: An answer waits for the connection for a limited time")
    func patience() {
        var queue = Queue()
        _ = offer(1, .waits(patience: .seconds(5)), to: &queue)
        _ = offer(2, to: &queue)
        #expect(queue.nextDeadline == Instant.zero.advanced(by: .seconds(5)))
        #expect(queue.takeExpired(at: Instant.zero.advanced(by: .milliseconds(4_999))).isEmpty)
        let late = queue.takeExpired(at: Instant.zero.advanced(by: .seconds(5)))
        #expect(late.map { "\($0.ticket) \($0.error.code)" } == ["1 timedOut"])
        #expect(queue.nextDeadline == nil)
        #expect(queue.takeAll() == [2])
    }
}
