internal import CallAgent
internal import Monitoring

/// An account of a process, as its monitoring server sees it.
struct MonitoredAccount: Sendable {
    /// As it is called in metrics.
    let name: String
    /// Its device; nil while there is none.
    let device: Device?
    /// Whether it takes no more calls.
    var isDraining = false
    /// Why it failed last; nil if it has not failed, or has connected since.
    var failure: String?
}

/// Metrics and obstacles of a process's accounts, which every process with accounts has.
struct AccountMetrics: Sendable {
    private let accounts: [(account: MonitoredAccount, status: DeviceStatus?)]

    /// Looks at the accounts as they are now.
    init(_ accounts: [MonitoredAccount]) async {
        var all: [(MonitoredAccount, DeviceStatus?)] = []
        for account in accounts { all.append((account, await account.device?.status)) }
        self.accounts = all
    }

    /// Adds their states to a page.
    func add(to page: inout MetricPage) {
        for (account, status) in accounts {
            page.add(Self.connected, status?.connection == .connected ? 1 : 0, [account.name])
        }
        for (account, status) in accounts {
            let calls = status?.calls ?? []
            let established = calls.count { if case .established = $0.progress { true } else { false } }
            page.add(Self.calls, established, [account.name, "established"])
            page.add(Self.calls, calls.count - established, [account.name, "beginning"])
        }
    }

    /// What keeps the accounts from being called, in sentences.
    var obstacles: [String] {
        accounts.flatMap { account, status in
            let name = account.name.isEmpty ? "" : "account \(account.name): "
            let draining = account.isDraining ? ["draining: it takes no more calls"] : []
            return (draining + Self.obstacle(account, status)).map { name + $0 }
        }
    }

    private static func obstacle(_ account: MonitoredAccount, _ status: DeviceStatus?) -> [String] {
        if let status {
            return status.connection == .connected
                ? [] : ["not connected to the service (\(status.connection.rawValue))"]
        }
        return [account.failure.map { "failed, and tries again: \($0)" } ?? "starting"]
    }
}

extension AccountMetrics {
    private static let connected = Metric(
        "handset_account_connected", .gauge, "1 if the account is connected, and can be called", by: ["account"])
    private static let calls = Metric(
        "handset_calls", .gauge, "Calls that have not ended: established, or still beginning", by: ["account", "state"])

    /// All of them.
    static let metrics = [connected, calls]
}
