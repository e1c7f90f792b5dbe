internal import ExchangeServer
internal import Logging
internal import Monitoring
internal import Synchronization

/// An exchange, for its monitoring server. That answers before the exchange listens: a standby may wait for days.
final class ExchangeMonitor: Sendable {
    private enum State {
        case starting
        case standby(owner: String)
        case running(ExchangeServer)
    }

    private let state = Mutex(State.starting)
    private let traces: CallTraces?

    init(_ traces: CallTraces? = nil) { self.traces = traces }

    /// Another exchange owns the database, and this one waits for it.
    func noteOwner(_ owner: String) { state.withLock { $0 = .standby(owner: owner) } }

    /// The exchange listens.
    func noteStart(_ server: ExchangeServer) { state.withLock { $0 = .running(server) } }

    /// What the server checks and measures.
    var process: MonitoredProcess {
        MonitoredProcess(
            measure: { page in
                guard let server = self.server else { return }
                let counters = await server.counters()
                Self.add(counters, to: &page)
                if let figures = await server.controlFigures() { ControlMetrics.add(figures, to: &page) }
                self.traces?.add(to: &page, overflowed: counters.droppedTraces)
            },
            isAlive: {
                // One that is stuck does not answer.
                _ = await self.server?.counters()
                return true
            },
            obstacles: { await self.obstacles() })
    }

    private var server: ExchangeServer? {
        if case .running(let server) = state.withLock({ $0 }) { server } else { nil }
    }

    private func obstacles() async -> [String] {
        switch state.withLock({ $0 }) {
        case .starting: ["the exchange has not started yet"]
        case .standby(let owner): ["this exchange is a standby: \(owner) owns the database"]
        case .running(let server): await server.obstacles()
        }
    }

    /// Adds an exchange's counters to a page.
    static func add(_ counters: ExchangeCounters, to page: inout MetricPage) {
        for (metric, value) in values { page.add(metric, value(counters)) }
        for (kind, value) in memory { page.add(bytes, value(counters), [kind]) }
        for (reason, value) in refused { page.add(refusals, value(counters), [reason]) }
        for (reason, value) in dropped { page.add(drops, value(counters), [reason]) }
    }

    /// All of an exchange's metrics.
    static var metrics: [Metric] { values.map(\.0) + [bytes, refusals, drops] }

    private typealias Value = @Sendable (ExchangeCounters) -> Int

    private static let values: [(Metric, Value)] = [
        (Metric("handset_exchange_connections", .gauge, "Open TCP connections, logged in or not"), \.openConnections),
        (Metric("handset_exchange_sessions", .gauge, "Sessions with a connection"), \.openSessions),
        (Metric("handset_exchange_calls", .gauge, "Calls that have not ended"), \.openCalls),
        (Metric("handset_exchange_streams", .gauge, "Streams over WHIP and WHEP, ringing or up"), \.openStreams),
        (Metric("handset_exchange_connections_total", .counter, "TCP connections that were accepted"), \.connections),
        (Metric("handset_exchange_logins_total", .counter, "Logins that were given a token"), \.logins),
        (Metric("handset_exchange_sessions_total", .counter, "Sessions that were started"), \.sessions),
        (Metric("handset_exchange_requests_total", .counter, "Requests on WebSockets that could be read"), \.requests),
        (
            Metric("handset_exchange_failed_requests_total", .counter, "Of those, the ones answered with an error"),
            \.refusals
        ),
        (Metric("handset_exchange_events_total", .counter, "Events that were sent"), \.events),
        (
            Metric(
                "handset_exchange_unkept_events_total", .counter,
                "Events that were sent and not kept for devices that resume, because there was no room"), \.unkeptEvents
        ),
        (Metric("handset_exchange_invites_total", .counter, "Invites that were sent"), \.invites),
        (Metric("handset_exchange_accepted_invites_total", .counter, "Invites that were accepted"), \.calls),
        (Metric("handset_exchange_pushes_total", .counter, "Pushes that a webhook took"), \.pushes),
        (Metric("handset_exchange_dead_pushes_total", .counter, "Pushes that could not be made"), \.deadPushes),
        (Metric("handset_exchange_commits_total", .counter, "Transactions of the database"), \.commits),
        (
            Metric(
                "handset_exchange_late_candidates_total", .counter,
                "Candidates of devices that arrived too late to reach a stream's client"), \.lateCandidates
        ),
    ]

    private static let bytes = Metric(
        "handset_exchange_memory_bytes", .gauge,
        "What is kept for users, and what waits for the disk, for clients that read slowly, and for its turn",
        by: ["for"])
    private static let memory: [(String, Value)] = [
        ("kept", \.keptBytes), ("disk", \.journalBytes), ("clients", \.sendBufferBytes), ("turns", \.turnBytes),
    ]

    private static let refusals = Metric(
        "handset_exchange_refused_total", .counter,
        "What was refused: connections, logins, requests that are none, and requests beyond a limit", by: ["reason"])
    private static let refused: [(String, Value)] = [
        ("connections", \.refusedConnections), ("descriptors", \.shedConnections), ("login", \.refusedLogins),
        ("malformed", \.malformed), ("login_memory", \.crowdedOut), ("turns", \.crowdedTurns),
        ("user_budget", \.overBudget), ("total_budget", \.overload), ("disk", \.crowdedDisk),
    ]

    private static let drops = Metric(
        "handset_exchange_dropped_connections_total", .counter, "Connections that the exchange closed", by: ["reason"])
    private static let dropped: [(String, Value)] = [
        ("bad_frames", \.badFrames), ("slow", \.slowClients), ("silent", \.deadLinks),
    ]
}

extension MonitoringServer {
    /// Starts one if the configuration has a section for it.
    static func start(
        _ configuration: MonitoringConfiguration?, of process: MonitoredProcess, _ logger: Logger
    ) async throws -> MonitoringServer? {
        guard let configuration else { return nil }
        return try await start(configuration, of: process, version: HandsetVersion.current, logger: logger)
    }
}
