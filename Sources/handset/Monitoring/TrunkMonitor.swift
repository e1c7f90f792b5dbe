internal import CallAgent
internal import Monitoring
internal import Synchronization
internal import TrunkGateway

/// The two accounts of a trunk, for its monitoring server. In metrics they are called as in the trunk's configuration: `exchange` and
/// `network`. A call that is carried is one call of each.
final class TrunkMonitor: Sendable {
    private let devices: [(side: TrunkSide, device: Device)]
    private let traces: CallTraces?
    private let tally = Mutex(CallTally())

    init(exchange: Device, network: Device, _ traces: CallTraces?) {
        devices = [(.exchange, exchange), (.network, network)]
        self.traces = traces
    }

    /// Counts an event of the device of a side.
    func note(_ event: DeviceEvent, of side: TrunkSide) { tally.withLock { $0.note(event, of: side.rawValue) } }

    /// What the server checks and measures.
    func process(of gateway: TrunkGateway, _ control: TrunkControl?) -> MonitoredProcess {
        MonitoredProcess(
            measure: { await self.measure(gateway, control, &$0) }, isAlive: { await gateway.isAlive() },
            obstacles: { await self.obstacles(gateway) })
    }

    private func measure(_ gateway: TrunkGateway, _ control: TrunkControl?, _ page: inout MetricPage) async {
        await state(gateway).add(to: &page)
        tally.withLock { $0 }.add(to: &page)
        MediaMetrics(media, takesCalls: await !gateway.isFull).add(to: &page)
        if let figures = await control?.figures() { ControlMetrics.add(figures, to: &page) }
        traces?.add(to: &page)
    }

    private func obstacles(_ gateway: TrunkGateway) async -> [String] {
        let full = await gateway.isFull ? ["the trunk is full: it carries max_calls, and more are refused as busy"] : []
        return await state(gateway).obstacles + full + MediaMetrics(media).obstacles
    }

    private var media: [SharedMedia] { devices.map(\.device.sharedMedia) }

    private func state(_ gateway: TrunkGateway) async -> AccountMetrics {
        let isTrunkDraining = await gateway.isDraining
        var accounts: [MonitoredAccount] = []
        for (side, device) in devices {
            accounts.append(
                MonitoredAccount(
                    name: side.rawValue, device: device, isDraining: await device.isDraining || isTrunkDraining))
        }
        return await AccountMetrics(accounts)
    }
}
