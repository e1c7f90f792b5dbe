internal import ControlPlane
internal import ControlWire
internal import Monitoring

/// What the control interface of a device, an exchange or a trunk has counted, for its monitoring server.
enum ControlMetrics {
    static func add(_ figures: ControlFigures, to page: inout MetricPage) {
        if let dropped = figures.droppedClients { page.add(droppedClients, dropped) }
        page.add(failedEventWrites, figures.failedWrites)
        for webhook in figures.webhooks { add(webhook, to: &page) }
    }

    private static func add(_ webhook: WebhookFigures, to page: inout MetricPage) {
        for (result, count) in [
            ("delivered", webhook.delivered), ("failed", webhook.failed), ("lost", webhook.lost), ("gap", webhook.gaps),
        ] {
            page.add(webhookEvents, count, [webhook.server, result])
        }
        page.add(webhookDelay, webhook.delaySeconds ?? 0, [webhook.server])
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

    static let all = [droppedClients, failedEventWrites, webhookEvents, webhookDelay]
}
