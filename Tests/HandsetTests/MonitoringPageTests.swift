import Foundation
import Monitoring
import Testing

@testable import handset

@Suite("Metrics on pages, dashboards and alerts")
struct MonitoringPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let all = DeviceMonitor.metrics + ExchangeMonitor.metrics + ProcessMetrics.all

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test("docs/monitoring.md has each metric with its kind, its labels and what it says, and no other one")
    func page() throws {
        let rows = try text("docs/monitoring.md").split(separator: "\n").filter {
            $0.hasPrefix("| `handset_") || $0.hasPrefix("| `process_")
        }
        let expected = Self.all.map { metric in
            let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
            return
                "| `\(metric.name)` | \(metric.kind.rawValue) | \(labels.isEmpty ? "" : labels + " ")| \(metric.help) |"
        }
        let (missing, other) = (
            expected.filter { !rows.contains(Substring($0)) }, rows.filter { !expected.contains(String($0)) }
        )
        #expect(missing.isEmpty, "missing:\n\(missing.joined(separator: "\n"))")
        #expect(other.isEmpty, "not a metric:\n\(other.joined(separator: "\n"))")
    }

    @Test(
        "Each name in the dashboard and the alerts is a metric's",
        arguments: [
            "config/monitoring/grafana-dashboard.json", "config/monitoring/alerts.yaml",
            "config/monitoring/alerts-test.yaml",
        ])
    func queries(file: String) throws {
        let names = try text(file).matches(of: /\b(?:handset|process)_[a-z_]+/).map { String($0.output) }
        #expect(names.count > 5)
        let known = Set(
            Self.all.flatMap { metric in
                metric.kind == .histogram ? ["", "_bucket", "_sum", "_count"].map { metric.name + $0 } : [metric.name]
            })
        #expect(Set(names).subtracting(known) == [])
    }

    @Test("The dashboard shows every metric")
    func complete() throws {
        let dashboard = try text("config/monitoring/grafana-dashboard.json")
        #expect(
            Self.all.filter { !dashboard.contains($0.name) }.map(\.name) == [])
    }

    @Test("Names follow Prometheus' rules, and no label can be a user, a call or an address")
    func names() {
        #expect(Set(Self.all.map(\.name)).count == Self.all.count)
        for metric in Self.all {
            #expect(metric.name.wholeMatch(of: /[a-z][a-z0-9_]*/) != nil)
            #expect(metric.name.hasSuffix("_total") == (metric.kind == .counter), "\(metric.name)")
            #expect(!metric.help.hasSuffix("."))
            // Those of a configuration, such as its eight webhooks at most, are few.
            let bounded: Set = [
                "account", "direction", "reason", "state", "worker", "result", "for", "version", "webhook",
            ]
            #expect(bounded.isSuperset(of: metric.labels), "\(metric.name)")
        }
    }

    @Test("An exchange that has not started lives, shows no figures of its own, and says why it is not ready")
    func standby() async {
        let monitor = ExchangeMonitor()
        var page = MetricPage()
        await monitor.process.measure(&page)
        #expect(page.metrics.isEmpty)
        #expect(await monitor.process.isAlive())
        #expect(await monitor.process.obstacles() == ["the exchange has not started yet"])
        monitor.noteOwner("exchange@site")
        #expect(
            await monitor.process.obstacles() == ["this exchange is a standby: exchange@site owns the database"])
    }

    @Test("A page of calls with every reason has a bounded number of lines")
    func bounded() {
        var page = MetricPage()
        CallTally().add(to: &page)
        #expect(page.text.split(separator: "\n").count < 300)
    }
}
