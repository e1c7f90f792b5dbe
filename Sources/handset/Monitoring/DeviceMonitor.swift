internal import CallAgent
internal import ControlWire
internal import DeviceControl
internal import Monitoring
internal import Synchronization

/// The accounts of a process, for its monitoring server.
final class DeviceMonitor: Sendable {
    private let accounts: AccountSet
    private let media: SharedMedia
    private let control: ControlInterfaces?
    private let traces: CallTraces?
    private let tally = Mutex(CallTally())

    init(_ accounts: AccountSet, _ media: SharedMedia, _ control: ControlInterfaces?, _ traces: CallTraces?) {
        self.accounts = accounts
        self.media = media
        self.control = control
        self.traces = traces
    }

    /// Counts an event of an account's device.
    func note(_ event: DeviceEvent, of account: String?) { tally.withLock { $0.note(event, of: account) } }

    /// What the server checks and measures.
    var process: MonitoredProcess {
        MonitoredProcess(
            measure: { await self.measure(&$0) }, isAlive: { await self.accounts.isAlive() },
            obstacles: { await self.state().obstacles + MediaMetrics([self.media]).obstacles })
    }

    private func measure(_ page: inout MetricPage) async {
        await state().add(to: &page)
        tally.withLock { $0 }.add(to: &page)
        MediaMetrics([media]).add(to: &page)
        if let dropped = await control?.droppedEventClients() { page.add(Self.droppedClients, dropped) }
        if let failed = control?.failedEventWrites { page.add(Self.failedEventWrites, failed) }
        for webhook in control?.webhookFigures ?? [] { Self.add(webhook, to: &page) }
        traces?.add(to: &page)
    }

    private static func add(_ webhook: WebhookFigures, to page: inout MetricPage) {
        for (result, count) in [
            ("delivered", webhook.delivered), ("failed", webhook.failed), ("lost", webhook.lost), ("gap", webhook.gaps),
        ] {
            page.add(webhookEvents, count, [webhook.server, result])
        }
        page.add(webhookDelay, webhook.delaySeconds ?? 0, [webhook.server])
    }

    private func state() async -> AccountMetrics {
        await AccountMetrics(
            accounts.members.map { member in
                MonitoredAccount(
                    name: member.name ?? "", device: member.device, isDraining: member.isDraining,
                    failure: member.failure)
            })
    }

    private static let droppedClients = Metric(
        "handset_control_dropped_clients_total", .counter,
        "Clients of events over HTTP that were disconnected because they did not read")

    private static let failedEventWrites = Metric(
        "handset_control_failed_event_writes_total", .counter,
        "Writes of events, and of what webhooks have, to the folder of the history that failed")

    private static let webhookEvents = Metric(
        "handset_webhook_events_total", .counter,
        "Events for webhooks: delivered, failed and tried again, lost, or perhaps missing before one (gap)",
        by: ["webhook", "result"])

    private static let webhookDelay = Metric(
        "handset_webhook_delay_seconds", .gauge,
        "Age of the event that a webhook is sent or that waits for its next try; 0 if none waits", by: ["webhook"])

    /// All metrics of a process with accounts.
    static let metrics =
        AccountMetrics.metrics + CallTally.metrics + MediaMetrics.metrics + CallTraces.metrics
        + [droppedClients, failedEventWrites, webhookEvents, webhookDelay]
}
