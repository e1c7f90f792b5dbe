internal import AudioDevices
internal import CallAgent
internal import CallControl
internal import Core
internal import Logging
internal import MediaEngine
internal import Monitoring
internal import Synchronization

/// How the accounts of a process are doing, for its monitoring server.
final class DeviceMonitor: Sendable {
    private let accounts: AccountSet
    private let media: SharedMedia
    private let tally = Mutex(CallTally())

    init(_ accounts: AccountSet, _ media: SharedMedia) {
        self.accounts = accounts
        self.media = media
    }

    /// Counts an event of an account's device.
    func note(_ event: DeviceEvent, of account: String?) { tally.withLock { $0.note(event, of: account) } }

    /// What the server asks.
    var process: MonitoredProcess {
        MonitoredProcess(
            measure: { await self.measure(&$0) }, isAlive: { await self.accounts.isAlive() },
            obstacles: { await self.obstacles() })
    }

    private func measure(_ page: inout MetricPage) async {
        await measureAccounts(&page)
        tally.withLock { $0 }.add(to: &page)
        measureMedia(&page)
    }

    private func measureAccounts(_ page: inout MetricPage) async {
        var states: [(name: String, status: DeviceStatus?)] = []
        for member in await accounts.members { states.append((member.name ?? "", await member.device?.status)) }
        for (name, status) in states {
            page.add(Self.connected, status?.connection == .connected ? 1 : 0, [name])
        }
        for (name, status) in states {
            let calls = status?.calls ?? []
            let established = calls.count { if case .established = $0.progress { true } else { false } }
            page.add(Self.calls, established, [name, "established"])
            page.add(Self.calls, calls.count - established, [name, "beginning"])
        }
    }

    private func measureMedia(_ page: inout MetricPage) {
        let load = media.load
        for (index, worker) in load.workers.enumerated() { page.add(Self.load, worker.share, ["\(index)"]) }
        page.add(Self.takesCalls, load.takesCalls ? 1 : 0)
        page.add(Self.complexity, load.complexityLimit)
        guard let card = media.cardStatistics else { return }
        page.add(Self.cardRuns, card.isRunning ? 1 : 0)
        for (direction, line) in [("playback", card.playback), ("capture", card.capture)] {
            page.add(Self.xruns, line.xruns, [direction])
        }
        for (direction, line) in [("playback", card.playback), ("capture", card.capture)] {
            page.add(Self.missing, Double(line.missingSamples) / 48_000, [direction])
        }
        page.add(Self.lateness, card.worstLatenessMilliseconds / 1_000)
    }

    /// What keeps the accounts from being called.
    private func obstacles() async -> [String] {
        var obstacles: [String] = []
        for member in await accounts.members {
            let name = member.name.map { "account \($0): " } ?? ""
            if member.isDraining { obstacles.append(name + "draining: it takes no more calls") }
            if let connection = await member.device?.status.connection {
                if connection != .connected {
                    obstacles.append(name + "not connected to the service (\(connection.rawValue))")
                }
            } else {
                obstacles.append(name + "failed, and tries again" + (member.failure.map { ": \($0)" } ?? ""))
            }
        }
        if !media.load.takesCalls { obstacles.append("the machine is full: calls are refused as busy") }
        if media.cardStatistics?.isRunning == false, media.cardStatistics?.losses ?? 0 > 0 {
            obstacles.append("the sound card is gone")
        }
        return obstacles
    }
}

extension DeviceMonitor {
    static let connected = Metric(
        "handset_account_connected", .gauge, "1 if the account is connected, and can be called", by: ["account"])
    static let calls = Metric(
        "handset_calls", .gauge, "Calls that have not ended: established, or still beginning", by: ["account", "state"])
    static let load = Metric(
        "handset_worker_load_ratio", .gauge, "Share of time that a media worker's core is busy", by: ["worker"])
    static let takesCalls = Metric(
        "handset_takes_calls", .gauge, "0 while calls are refused because the machine is full")
    static let complexity = Metric(
        "handset_encoder_complexity_limit", .gauge,
        "The highest complexity that Opus encoders may use now; 10 limits nothing")
    static let cardRuns = Metric("handset_card_running", .gauge, "1 while the sound card is there and runs")
    static let xruns = Metric(
        "handset_card_xruns_total", .counter, "Times the card ran out of samples, or of room", by: ["direction"])
    static let missing = Metric(
        "handset_card_missing_seconds_total", .counter, "Sound that was missing when it was due", by: ["direction"])
    static let lateness = Metric(
        "handset_card_lateness_seconds", .gauge, "How late the card's thread was at the worst in its last report")

    /// All of a device's metrics.
    static let metrics =
        [connected, calls] + CallTally.metrics + [load, takesCalls, complexity, cardRuns, xruns, missing, lateness]
}
