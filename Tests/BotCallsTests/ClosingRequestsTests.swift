import NIOCore
import NIOEmbedded
import Testing

@testable import BotCalls

@Suite("Requests that end something")
struct ClosingRequestsTests {
    @Test("The end waits until all are answered or have failed")
    func waits() throws {
        let loop = EmbeddedEventLoop()
        let closingRequests = ClosingRequests(on: loop)
        #expect(try closingRequests.finish(within: .seconds(1)).wait() == 0, "nothing is under way")
        let (first, second) = (loop.makePromise(of: Int.self), loop.makePromise(of: String.self))
        closingRequests.add(first.futureResult)
        closingRequests.add(second.futureResult)
        var left: Int?
        closingRequests.finish(within: .seconds(1)).assumeIsolated().whenSuccess { left = $0 }
        loop.advanceTime(by: .milliseconds(400))
        first.succeed(1)
        #expect(left == nil)
        second.fail(ChannelError.ioOnClosedChannel)
        #expect(left == 0)
        loop.advanceTime(by: .seconds(2))
        #expect(left == 0)
    }

    @Test("The end waits no longer than its limit, and reports how many are cut off")
    func limit() {
        let loop = EmbeddedEventLoop()
        let closingRequests = ClosingRequests(on: loop)
        let answers = (0..<3).map { _ in loop.makePromise(of: Void.self) }
        for answer in answers { closingRequests.add(answer.futureResult) }
        var left: Int?
        closingRequests.finish(within: .seconds(1)).assumeIsolated().whenSuccess { left = $0 }
        loop.advanceTime(by: .milliseconds(999))
        answers[0].succeed(())
        #expect(left == nil)
        loop.advanceTime(by: .milliseconds(1))
        #expect(left == 2)
        for answer in answers.dropFirst() { answer.succeed(()) }
        #expect(left == 2)
    }
}
