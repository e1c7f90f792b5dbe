internal import BlockingWork
package import ControlWire
internal import Core
internal import Files
internal import FoundationEssentials
package import Logging
package import NIOCore
internal import Synchronization

/// The webhooks of a process: a courier for each, so that a server that hangs holds up no other one.
///
/// The history of events is the queue of all. A file beside it has what was delivered to a webhook. It is removed with the webhook, so
/// that one that comes again begins with new events.
package final class WebhookOffice: Sendable {
    /// For what waits at the end of the process, such as the ends of its last calls.
    static let endPatience = Duration.seconds(2)

    private struct State {
        var couriers: [WebhookCourier] = []
        /// Of webhooks that are gone.
        var former: [WebhookFigures] = []
    }

    private let state = Mutex(State())
    private let store: EventStore
    private let folder: String
    private let loop: any EventLoop
    private let logger: Logger

    /// - Parameter folder: That of the history.
    package init(_ store: EventStore, folder: String, on loop: any EventLoop, logger: Logger) {
        self.store = store
        self.folder = folder
        self.loop = loop
        self.logger = logger
    }

    /// There may be new events.
    package func wake() { for courier in couriers { courier.wake() } }

    /// Has these webhooks from now on. One with the address of an earlier one continues where that is.
    package func adopt(_ webhooks: [ControlWebhook]) async {
        let earlier = couriers
        let gone = earlier.filter { !webhooks.contains($0.webhook) }
        for courier in gone { await courier.stop(within: .zero) }
        await removeFiles(butOf: webhooks)
        let new = webhooks.filter { webhook in !earlier.contains { $0.webhook == webhook } }
            .map { WebhookCourier($0, of: store, in: folder, on: loop, logger: logger) }
        state.withLock { state in
            state.couriers.removeAll { courier in gone.contains { $0 === courier } }
            state.couriers += new
            state.former = Self.sums(state.former + gone.map { $0.figures.withoutDelay })
        }
        for courier in new { courier.start() }
    }

    /// Since the start, by server.
    package var figures: [WebhookFigures] {
        let (couriers, former) = state.withLock { ($0.couriers, $0.former) }
        return Self.sums(former + couriers.map { $0.figures })
    }

    /// Stops all, at once. What was not delivered is sent after the next start.
    package func stop() async {
        await withTaskGroup { group in
            for courier in couriers { group.addTask { await courier.stop(within: Self.endPatience) } }
        }
    }

    private var couriers: [WebhookCourier] { state.withLock { $0.couriers } }

    private static func sums(_ figures: [WebhookFigures]) -> [WebhookFigures] {
        figures.reduce(into: []) { sums, figures in
            if let index = sums.firstIndex(where: { $0.server == figures.server }) {
                sums[index].add(figures)
            } else {
                sums.append(figures)
            }
        }
    }

    private func removeFiles(butOf webhooks: [ControlWebhook]) async {
        // Until the history is open the folder may be another device's.
        guard store.durableCursor != nil else { return }
        let known = Set(webhooks.map(WebhookCourier.fileName))
        await BlockingThreads.files.run { [folder] in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            for name in names where name.hasPrefix(WebhookCourier.filePrefix) && !known.contains(name) {
                try? PrivateFile.remove("\(folder)/\(name)")
            }
        }
    }
}

extension WebhookFigures {
    /// Those of a webhook that is gone, for which nothing waits.
    fileprivate var withoutDelay: Self {
        var figures = self
        figures.delaySeconds = nil
        return figures
    }
}
