internal import CallAgent
internal import Synchronization

/// Reports to the service manager how the accounts are connected.
final class AccountsStatus: Sendable {
    private struct State {
        /// Accounts that can be called now; the only one without a name as nil.
        var connected: Set<String?> = []
        /// Whether one has ever been connected.
        var hasConnected = false
        var isReady = false
    }

    private let accounts: AccountSet
    private let unit: ServiceUnit
    private let isNamed: Bool
    private let state = Mutex(State())

    init(_ accounts: AccountSet, _ unit: ServiceUnit, isNamed: Bool) {
        self.accounts = accounts
        self.unit = unit
        self.isNamed = isNamed
    }

    /// In one line.
    var text: String {
        get async {
            let (connected, hasConnected) = state.withLock { ($0.connected, $0.hasConnected) }
            if isNamed { return "\(connected.count) of \(await accounts.members.count) accounts connected" }
            if !connected.isEmpty { return "Connected: can be called" }
            return hasConnected
                ? "Not connected: cannot be called, and tries again" : "Logging in: the service has not answered yet"
        }
    }

    /// An account has logged in.
    ///
    /// - Returns: Whether it is the first.
    func connected(_ account: String?) async -> Bool {
        let (isFirst, isReady) = state.withLock { state in
            state.connected.insert(account)
            defer { state.hasConnected = true }
            return (!state.hasConnected, state.isReady)
        }
        if isReady { unit.notify(.ready, status: await text) }
        return isFirst
    }

    /// An account has lost its connection, or has it again.
    func note(_ account: String?, isConnected: Bool) async {
        let isChange = state.withLock { state in
            isConnected ? state.connected.insert(account).inserted : state.connected.remove(account) != nil
        }
        if isChange { unit.notify(status: await text) }
    }

    /// The process has started; accounts may still be connecting.
    func becomeReady() async {
        state.withLock { $0.isReady = true }
        unit.notify(.ready, status: await text)
    }

    /// The accounts wait for this.
    func wait(for what: String) { unit.notify(status: what) }
}
