internal import BotCalls
internal import CallVoicemail
public import ConfigReader
public import Monitoring
internal import SIPClient

/// What `handset run` reads: one account, or several that share a process.
public struct AccountsConfiguration: Sendable {
    /// Accounts that one process may have.
    public static let mostAccounts = 32

    /// One account.
    public struct Account: Sendable {
        /// What it is called; nil for the only account of a file that names none.
        public let name: String?
        /// The account's own sections, and those of the process.
        public var configuration: DeviceConfiguration
        fileprivate let section: KeyedSection<AccountEntry.Keys>?

        /// Makes an account.
        public init(name: String? = nil, _ configuration: DeviceConfiguration) {
            self.init(name: name, configuration, nil)
        }

        fileprivate init(
            name: String?, _ configuration: DeviceConfiguration, _ section: KeyedSection<AccountEntry.Keys>?
        ) {
            self.name = name
            self.configuration = configuration
            self.section = section
        }

        /// The keys of the account whose values are other ones than in `other`, such as `behaviour.source`.
        public func differences(from other: Account) -> [String] {
            guard let section, let others = other.section else { return [] }
            let differences = section.differences(from: others)
            // The holidays' file, or the tz database, may have changed while its name has not.
            let isTableSame = configuration.answer.table.calendar == other.configuration.answer.table.calendar
            return isTableSame || !differences.isEmpty ? differences : ["answer.holidays_file"]
        }
    }

    /// At least one, in the order of the file.
    public var accounts: [Account]
    /// Warnings for the owner; the configuration can be used nevertheless.
    public private(set) var warnings: [ConfigProblem] = []
    /// What the accounts of a file that lists them have in common.
    private var process: ProcessSections?

    /// Whether the file lists accounts, which have names.
    public var isNamed: Bool { accounts.contains { $0.name != nil } }

    /// Where programs on this machine act on the devices; nil for nowhere.
    public var control: ControlConfiguration? { accounts.first?.configuration.control }

    /// Where the process shows how it is doing; nil for nowhere.
    public var monitoring: MonitoringConfiguration? { accounts.first?.configuration.monitoring }

    /// Where the process sends traces of its calls; nil for nowhere.
    public var traces: TraceConfiguration? { accounts.first?.configuration.traces }

    /// Takes accounts, which have the sections of the process in common.
    public init(_ accounts: [Account]) { self.accounts = accounts }

    /// Reads and checks a configuration file. `handset run` and `handset check` both do so, with ``FileChecks/all``.
    ///
    /// - Parameters:
    ///   - fileChecks: Which of the files that it names are checked.
    ///   - server: Base URL of the server of the only account; it replaces those in the file, which are not checked then.
    /// - Throws: ``ConfigError`` with every problem that the file has.
    public static func read(
        path: String, fileChecks: FileChecks = .inputs, server: String? = nil
    ) throws(ConfigError) -> AccountsConfiguration {
        try read(ConfigDocument.read(path: path, fileChecks: fileChecks), server: server)
    }

    /// Checks a configuration file that was read, whose contents may be compared with those of another time.
    ///
    /// - Throws: ``ConfigError`` with every problem that the file has.
    public static func read(
        _ document: ConfigSection, server: String? = nil
    ) throws(ConfigError) -> AccountsConfiguration {
        var problems: [ConfigProblem] = []
        var configuration = AccountsConfiguration(document, server: server, &problems)
        let warnings = try problems.verdict()
        configuration.warnings = warnings
        for index in configuration.accounts.indices {
            configuration.accounts[index].configuration.note(warnings: warnings)
        }
        return configuration
    }

    /// Reads a whole file's tree, noting every problem.
    init(_ document: ConfigSection, server: String? = nil, _ problems: inout [ConfigProblem]) {
        guard document.keys.contains("accounts") else {
            accounts = [Account(DeviceConfiguration(document, server: server, &problems))]
            return
        }
        let root = KeyedSection(document, DeviceConfiguration.Keys.self, &problems)
        let process = ProcessSections(root, &problems)
        self.process = process
        Self.rejectOwnSections(root, &problems)
        let entries = root.value(\.accounts, &problems) ?? []
        if server != nil {
            problems.append(
                root.problem(
                    \.accounts, "is given together with a server on the command line, which is for one account"))
        }
        if !(1...Self.mostAccounts).contains(entries.count), root.isList(\.accounts) {
            let message = "has \(entries.count) accounts; 1 to \(Self.mostAccounts) are allowed"
            problems.append(root.problem(\.accounts, message))
        }
        accounts = entries.map { entry in
            var configuration = process.configuration
            configuration.readAccount(entry, server: nil, &problems)
            configuration.withhold(document.secretVariables)
            process.apply(to: &configuration, entry, &problems)
            configuration.warnOfKeys(entry, &problems)
            return Account(name: entry.value(\.name, &problems) ?? "", configuration, entry)
        }
        if root.has(\.audio), !accounts.contains(where: \.configuration.usesCard) {
            problems.append(
                root.warning(
                    \.audio, "is for behaviour.source: card, which no account has; `handset run` does not use it"))
        }
        DeviceConfiguration.checkPorts(root, for: accounts.map(\.configuration), &problems)
        AccountCollisions.find(in: accounts.compactMap { account in account.section.map { (account, $0) } }, &problems)
    }

    /// The account of this name, or without one the only one.
    ///
    /// - Throws: ``ConfigError`` if there is none, or there are several.
    public func account(_ name: String?, in document: ConfigSection) throws(ConfigError) -> DeviceConfiguration {
        func fault(_ message: String) -> ConfigError {
            ConfigError([ConfigProblem(file: document.file, key: isNamed ? "accounts" : "account", message: message)])
        }
        let names = accounts.compactMap(\.name).joined(separator: ", ")
        if let name {
            if let account = accounts.first(where: { $0.name == name }) { return account.configuration }
            throw fault("has no account \"\(name)\"; it has " + (isNamed ? names : "one account without a name"))
        }
        guard accounts.count == 1, let only = accounts.first else {
            throw fault("has several accounts: \(names); say which one with --account")
        }
        return only.configuration
    }

    /// These accounts with the process's sections as an earlier reading has them, which hold as long as the process runs.
    public func keepingProcess(of earlier: AccountsConfiguration) -> AccountsConfiguration {
        var kept = self
        for index in accounts.indices {
            if let process = earlier.process, let section = accounts[index].section {
                var ignored: [ConfigProblem] = []  // Reported where the file is read.
                process.apply(to: &kept.accounts[index].configuration, section, &ignored)
            } else if !earlier.isNamed, let only = earlier.accounts.first?.configuration {
                kept.accounts[index].configuration.takeProcess(of: only)
            }
        }
        kept.process = earlier.process
        return kept
    }

    /// Whether the holidays, or the clocks of the tz database, of the account of a file with one are other ones than in `other`.
    public func hasOtherCalendar(than other: AccountsConfiguration) -> Bool {
        guard !isNamed, let new = accounts.first, let old = other.accounts.first else { return false }
        return new.configuration.answer.table.calendar != old.configuration.answer.table.calendar
    }

    private static func rejectOwnSections(
        _ root: KeyedSection<DeviceConfiguration.Keys>, _ problems: inout [ConfigProblem]
    ) {
        let reason = "belongs to each account; give it in the entries of accounts"
        root.rejectIdle(\.account, "is given together with accounts; keep one of them", &problems)
        root.rejectIdle(\.device, reason, &problems)
        root.rejectIdle(\.rooms, reason, &problems)
        root.rejectIdle(\.invites, reason, &problems)
        root.rejectIdle(\.answer, reason, &problems)
        root.rejectIdle(\.behaviour, reason, &problems)
        root.rejectIdle(\.behaviours, reason, &problems)
    }
}

/// What the accounts of a process have in common.
private struct ProcessSections: Sendable {
    /// It, and nothing of an account.
    let configuration: DeviceConfiguration
    /// Whether the file says what calls offer, for all accounts.
    private let saysOffers: Bool

    init(_ root: KeyedSection<DeviceConfiguration.Keys>, _ problems: inout [ConfigProblem]) {
        var process = DeviceConfiguration(account: AccountConfiguration(server: AccountConfiguration.defaultServer))
        process.readProcess(root, &problems)
        configuration = process
        var ignored: [ConfigProblem] = []  // Read above.
        saysOffers = root.value(\.media, &ignored)?.has(\.offers) ?? false
    }

    /// Gives it to an account, with what the account has of its own in `media`.
    func apply(
        to account: inout DeviceConfiguration, _ entry: KeyedSection<AccountEntry.Keys>,
        _ problems: inout [ConfigProblem]
    ) {
        account.takeProcess(of: configuration)
        // Telephones know no ICE.
        if account.account.sip != nil, !saysOffers { account.media.offers = .sdes }
        if let media = entry.value(\.media, &problems) { AccountMedia.read(media, into: &account.media, &problems) }
    }
}

extension DeviceConfiguration {
    /// Takes from another configuration what belongs to the process.
    fileprivate mutating func takeProcess(of other: DeviceConfiguration) {
        profile = other.profile
        audio = other.audio
        media = other.media
        control = other.control
        monitoring = other.monitoring
        traces = other.traces
    }
}

/// Finds what two accounts of one process must not share: names, files, ports and the id at an exchange.
private struct AccountCollisions {
    typealias Entry = (account: AccountsConfiguration.Account, section: KeyedSection<AccountEntry.Keys>)

    private var problems: [ConfigProblem] = []

    static func find(in entries: [Entry], _ problems: inout [ConfigProblem]) {
        var collisions = AccountCollisions()
        for (index, entry) in entries.enumerated() {
            for earlier in entries[..<index] { collisions.compare(entry, with: earlier.account) }
        }
        problems += collisions.problems
    }

    private mutating func compare(_ entry: Entry, with earlier: AccountsConfiguration.Account) {
        let (own, other) = (entry.account.configuration, earlier.configuration)
        let section = entry.section
        let name = earlier.name ?? ""
        if let ownName = entry.account.name, ownName == name, !ownName.isEmpty {
            return problems.append(section.problem(\.name, "is the name of an earlier account: \(name)"))
        }
        var ignored: [ConfigProblem] = []  // Reported where the sections are read.
        let account = section.value(\.account, &ignored)
        let device = section.value(\.device, &ignored)
        let behaviour = section.value(\.behaviour, &ignored)
        let checks = section.fileChecks
        func isShared(_ path: String?, _ paths: [String?]) -> Bool {
            guard let path else { return false }
            return paths.contains { $0.map { DeviceConfiguration.areSame(path, $0, checks) } ?? false }
        }
        let files = [other.account.sessionFile, other.account.instanceFile, other.device.callRecords]
        if let account, isShared(own.account.sessionFile, files) {
            problems.append(
                account.problem(\.sessionFile, "is a file of account \(name) already; give each a file of its own"))
        }
        if let account, isShared(own.account.instanceFile, files) {
            let message = "has as instance_file a file of account \(name) already; give each a file of its own"
            problems.append(account.problem(\.sip, message))
        }
        if let account, isShared(own.account.keyFile, [other.account.keyFile]) {
            problems.append(
                account.problem(\.keyFile, "is the key of account \(name) already; a key is one device's"))
        }
        if let device, isShared(own.device.callRecords, files) {
            problems.append(
                device.problem(\.callRecords, "is a file of account \(name) already; give each a file of its own"))
        }
        let folders = other.allBehaviours.map(\.behaviour.recordingFolder)
        let mailboxes = other.mailboxes.map { $0.plan.folder as String? }
        let named = section.value(\.behaviours, &ignored) ?? []
        for behaviour in (behaviour.map { [$0] } ?? []) + named {
            let message = "is the folder of account \(name) already; give each a folder of its own"
            if isShared(behaviour.value(\.recordFolder, &ignored), folders + mailboxes) {
                problems.append(behaviour.problem(\.recordFolder, message))
            }
            if let voicemail = behaviour.value(\.voicemail, &ignored),
                isShared(voicemail.value(\.folder, &ignored), folders)
            {
                problems.append(voicemail.problem(\.folder, message))
            }
        }
        if let device, let id = own.device.id, id == other.device.id, own.account.eventsURL == other.account.eventsURL {
            problems.append(
                device.problem(
                    \.id, "is that of account \(name) at the same server; they would end each other's sessions"))
        }
        if let account, let port = own.account.sip?.localPort, port != 0, port == other.account.sip?.localPort {
            problems.append(
                account.value(\.sip, &ignored)?.problem(\.port, "is the port of account \(name) already")
                    ?? account.problem(\.sip, "has the port of account \(name)"))
        }
        if let behaviour, let listen = own.bot?.requests?.listen, listen.port != 0,
            listen == other.bot?.requests?.listen
        {
            problems.append(
                behaviour.problem(\.bot, "listens at \(listen), where the bot of account \(name) does already"))
        }
    }
}
