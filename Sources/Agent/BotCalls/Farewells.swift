internal import NIOCore

/// Requests under way that end something at a bot's server: they get out before the loop ends.
final class Farewells: @unchecked Sendable {
    // Only the event loop uses it.
    private let loop: any EventLoop
    private var count = 0
    private var end: EventLoopPromise<Int>?

    init(on loop: any EventLoop) { self.loop = loop }

    /// A request has been sent, of which this is the answer.
    func add<Answer>(_ answer: EventLoopFuture<Answer>) {
        count += 1
        answer.assumeIsolated().whenComplete { [self] _ in
            count -= 1
            guard count == 0 else { return }
            end?.succeed(0)
            end = nil
        }
    }

    /// Completes once all are answered or have failed, after this time at the latest: with the number of those that are cut off.
    func finish(within limit: TimeAmount) -> EventLoopFuture<Int> {
        guard count > 0 else { return loop.makeSucceededFuture(0) }
        let promise = loop.makePromise(of: Int.self)
        end = promise
        let patience = loop.assumeIsolated().scheduleTask(in: limit) { [self] in
            end?.succeed(count)
            end = nil
        }
        promise.futureResult.whenComplete { _ in patience.cancel() }
        return promise.futureResult
    }
}
