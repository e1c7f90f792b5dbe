internal import CallAgent
internal import ExchangeServer
internal import Logging
internal import Monitoring
internal import Tracing

/// Where a process sends traces of its calls, and what became of them.
struct CallTraces: Sendable {
    private let configuration: TraceConfiguration
    private let exporter: TraceExporter

    /// - Returns: Nil without a configuration.
    init?(_ configuration: TraceConfiguration?, _ logger: Logger) throws {
        guard let configuration else { return nil }
        self.configuration = configuration
        exporter = try TraceExporter(configuration, version: HandsetVersion.current, logger: logger)
    }

    /// Has the calls of a device traced.
    ///
    /// - Parameter account: As its account is called in traces; empty for the only one.
    func trace(_ device: Device, as account: String) async {
        await device.traceCalls(with: CallTracer(configuration, account: account) { [exporter] in exporter.take($0) })
    }

    /// Has the exchange's part of calls traced.
    func trace(_ server: ExchangeServer) { server.traceCalls { [exporter] in exporter.take($0) } }

    /// Sends what waits, for a moment at most.
    func stop() async { await exporter.stop() }

    /// Adds what became of traces to a page.
    ///
    /// - Parameter others: Traces for which there was no room before they were complete.
    func add(to page: inout MetricPage, overflowed others: Int = 0) {
        let counts = exporter.counts
        page.add(Self.exported, counts.exported)
        for (reason, count) in [
            ("overflow", counts.overflowed + others), ("refused", counts.refused), ("unreachable", counts.unreachable),
        ] {
            page.add(Self.dropped, count, [reason])
        }
    }
}

extension CallTraces {
    private static let exported = Metric(
        "handset_traces_exported_total", .counter, "Traces of calls that the collector has taken")
    private static let dropped = Metric(
        "handset_traces_dropped_total", .counter,
        "Traces of calls that were dropped: no room, refused by the collector, or not delivered", by: ["reason"])

    /// All of them.
    static let metrics = [exported, dropped]
}
