internal import BotWire
internal import HTTPTransport
package import NIOCore
internal import Realtime
internal import Core

/// Sends what a ``StatusQueue`` asks for.
package final class StatusCourier: @unchecked Sendable {
    // Only the event loop uses it.
    private let sender: WebhookSender
    private let report: @Sendable (_ what: String, _ leftOut: Int) -> Void
    private var queue = StatusQueue()
    private var timer: Scheduled<Void>?
    private var warnings = LogLimit(burst: 5, perSecond: 0.2)
    private var end: EventLoopPromise<Void>?

    /// - Parameter warn: Reports a failure to the operator, with the number of those before it that were left out.
    package init(_ sender: WebhookSender, warn: @escaping @Sendable (_ what: String, _ leftOut: Int) -> Void) {
        self.sender = sender
        report = warn
    }

    package func report(_ report: StatusQueue.Report) { feed(.add(report)) }

    /// Completes once everything is delivered or lost, after this time at the latest.
    package func finish(within limit: TimeAmount) -> EventLoopFuture<Void> {
        let promise = sender.loop.makePromise(of: Void.self)
        end = promise
        feed(.finish)
        let patience = sender.loop.scheduleTask(in: limit) { [self] in
            report("\(queue.count) status callbacks were not sent: the device stops", 0)
            end = nil
            promise.succeed()
        }
        promise.futureResult.whenComplete { _ in patience.cancel() }
        return promise.futureResult
    }

    private func feed(_ input: StatusQueue.Input) {
        for output in queue.handle(input, at: MonotonicClock.now) {
            switch output {
            case .send(let report): send(report)
            case .lost(let report, let why): warn(report, why)
            }
        }
        timer?.cancel()
        timer = queue.nextDeadline.map { deadline in
            let wait = max(0, MonotonicClock.now.nanoseconds(to: deadline))
            return sender.loop.scheduleTask(in: .nanoseconds(wait)) { [weak self] in self?.feed(.timerFired) }
        }
        if queue.isEmpty {
            end?.succeed()
            end = nil
        }
    }

    private func send(_ report: StatusQueue.Report) {
        sender.send(report.request).assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let answer): feed(.answered(call: report.call, answer.status))
            case .failure(let error):
                feed(.failed(call: report.call, sender.explain(error, report.request.webhook.address)))
            }
        }
    }

    private func warn(_ report: StatusQueue.Report, _ why: String) {
        guard let leftOut = warnings.admit(at: MonotonicClock.now) else { return }
        self.report("the status callback \"\(report.what)\" has failed: \(why)", leftOut)
    }
}
