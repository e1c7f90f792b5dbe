internal import CallAgent
internal import Synchronization

/// The locks of all accounts of a process. They are taken before anything that others would notice, such as a control socket, media
/// sockets and the sound card: another process may be at work with the same accounts.
final class AccountLocks: Sendable {
    private struct State {
        /// Those of accounts that have had no device yet, by the accounts' names.
        var first: [String: (files: [String?], locks: DeviceLocks)] = [:]
        /// That of the configuration; nil while no account has its id there alone.
        var configuration: DeviceLocks?
    }

    private let path: String
    private let state = Mutex(State())

    /// Locks the logins and keys of all accounts, and the configuration itself if an account has its id there alone.
    ///
    /// - Throws: ``CommandFailure`` that names the file if another process has one of them.
    init(_ configuration: AccountsConfiguration, inFile path: String) throws {
        self.path = path
        for account in configuration.accounts {
            try lockConfiguration(for: account.configuration)
            let locks = try DeviceLocks(account.configuration)
            state.withLock { $0.first[account.name ?? ""] = (Self.files(account), locks) }
        }
    }

    /// The locks for a device that an account is about to have, for as long as that device lives.
    ///
    /// - Throws: ``CommandFailure`` that names the file if another process, or an earlier device, has one of them.
    func take(for account: AccountsConfiguration.Account) throws -> DeviceLocks {
        // One that came by a reload.
        try lockConfiguration(for: account.configuration)
        let first = state.withLock { $0.first.removeValue(forKey: account.name ?? "") }
        if let first, first.files == Self.files(account) { return first.locks }
        return try DeviceLocks(account.configuration)
    }

    /// The files that are locked with others in their places.
    private static func files(_ account: AccountsConfiguration.Account) -> [String?] {
        let settings = account.configuration.account
        return [settings.sessionFile, settings.keyFile, settings.instanceFile]
    }

    private func lockConfiguration(for configuration: DeviceConfiguration) throws {
        guard configuration.device.id != nil, configuration.account.sessionFile == nil else { return }
        try state.withLock { state in
            if state.configuration == nil { state.configuration = try DeviceLocks(idInFile: path) }
        }
    }
}
