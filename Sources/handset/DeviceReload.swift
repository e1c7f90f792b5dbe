internal import CallAgent
internal import ConfigReader
internal import ControlPlane
internal import DeviceControl
internal import Logging
internal import Realtime
internal import Core

/// Reads a running device's configuration again, when SIGHUP asks for it. One that is wrong changes nothing.
actor DeviceReload {
    private let path: String
    private let server: String?
    private let capture: String?
    private let accounts: AccountSet
    private let control: ControlInterfaces?
    private let isNamed: Bool
    private let unit: ServiceUnit
    private let logger: Logger
    /// What the device goes by, as it was written.
    private var document: ConfigSection
    /// The same, as it was read, with the contents of files that it names.
    private var configuration: AccountsConfiguration
    /// Those that the device sends events to.
    private var webhooks: [ControlWebhook]

    /// - Parameter document: The file's contents at the device's start.
    init(
        path: String, server: String?, capture: String?, document: ConfigSection,
        configuration: AccountsConfiguration, accounts: AccountSet, control: ControlInterfaces?, unit: ServiceUnit,
        logger: Logger
    ) {
        self.path = path
        self.server = server
        self.capture = capture
        self.accounts = accounts
        self.control = control
        webhooks = configuration.control?.webhooks ?? []
        isNamed = configuration.isNamed
        self.configuration = configuration
        self.unit = unit
        self.logger = logger
        self.document = document
    }

    /// Applies what can change during calls, and reports what waits for the next start.
    ///
    /// - Parameter status: What the device is doing afterwards, for the service manager.
    func run(status: () async -> String) async {
        unit.notify(.reloading(at: MonotonicClock.now), status: "Reading the configuration again")
        do {
            // Read once: what is compared and taken is what was checked.
            let document = try ConfigDocument.read(path: path)
            try ConfigurationCheck.expect("run", document)
            let new = try AccountsConfiguration.read(document, server: server).capturing(capture)
            for warning in new.warnings { logger.warning("\(warning)") }
            if new.isNamed == isNamed {
                await take(new, document)
            } else {
                logger.error(
                    "The configuration has another form, account or accounts, so the earlier one stays in use until the next start"
                )
            }
        } catch {
            logger.error(
                "The configuration is wrong, so the earlier one stays in use", metadata: ["error": "\(error)"])
        }
        unit.notify(.ready, status: await status())
    }

    private func take(_ new: AccountsConfiguration, _ document: ConfigSection) async {
        let changes = await accounts.adopt(new)
        let changed = changedKeys(in: new, document)
        let areWebhooksTaken = await adoptWebhooks(of: new)
        let waiting = changed.filter { key in
            key == "control.webhooks" ? !areWebhooksTaken : !isTaken(key, isBehaviourTaken: !changes.adopted.isEmpty)
        }
        var metadata: Logger.Metadata = ["changed": "\(Self.list(changed))", "at_next_start": "\(Self.list(waiting))"]
        let names = [
            ("added", changes.added), ("removed", changes.removed), ("log_in_again", changes.restarted),
            ("adopted", isNamed ? changes.adopted : []),
        ]
        for (key, names) in names where !names.isEmpty { metadata[key] = "\(Self.list(names))" }
        logger.info("The configuration was read again", metadata: metadata)
        for (name, error) in changes.refused {
            logger.error(
                "An account waits for the next start", metadata: ["account": "\(name)", "error": "\(error)"])
        }
        // What waits is reported at each reload, until it applies.
        if waiting.isEmpty, changes.refused.isEmpty { (self.document, configuration) = (document, new) }
    }

    /// Has the device send events to other webhooks from now on.
    private func adoptWebhooks(of new: AccountsConfiguration) async -> Bool {
        // Without the section it is all of control that waits.
        guard let control, let section = new.control, section.http != nil else { return false }
        guard section.webhooks != webhooks else { return true }
        guard await control.adopt(section.webhooks) else { return false }
        webhooks = section.webhooks
        return true
    }

    /// The keys that have changed; the file of holidays may have while its name has not.
    private func changedKeys(in new: AccountsConfiguration, _ document: ConfigSection) -> [String] {
        let keys = document.differences(from: self.document)
        let ofCalendar = ["answer", "answer.time_zone", "answer.holidays_file"]
        guard new.hasOtherCalendar(than: configuration), !keys.contains(where: ofCalendar.contains) else { return keys }
        return keys + ["answer.holidays_file"]
    }

    /// Whether a key holds from now on.
    private func isTaken(_ key: String, isBehaviourTaken: Bool) -> Bool {
        if isNamed { return key.prefix { $0 != "." } == "accounts" }
        return DeviceConfiguration.takes(key, isBehaviourTaken: isBehaviourTaken)
    }

    private static func list(_ keys: [String]) -> String { keys.isEmpty ? "nothing" : keys.joined(separator: ", ") }
}
