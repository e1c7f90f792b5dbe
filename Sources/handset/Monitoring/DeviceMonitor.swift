internal import CallAgent
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
        if let figures = await control?.figures() { ControlMetrics.add(figures, to: &page) }
        traces?.add(to: &page)
    }

    private func state() async -> AccountMetrics {
        await AccountMetrics(
            accounts.members.map { member in
                MonitoredAccount(
                    name: member.name ?? "", device: member.device, isDraining: member.isDraining,
                    failure: member.failure)
            })
    }

    /// All metrics of a process with accounts.
    static let metrics =
        AccountMetrics.metrics + CallTally.metrics + MediaMetrics.metrics + CallTraces.metrics
        + ControlMetrics.all
}
