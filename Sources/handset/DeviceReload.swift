internal import CallAgent
internal import ConfigReader
internal import Logging
internal import Realtime
internal import ServiceManager
internal import Timekeeping

/// Reads a running device's configuration again, when SIGHUP asks for it. One that is wrong changes nothing.
actor DeviceReload {
    private let path: String
    private let server: String?
    private let device: Device
    private let unit: ServiceUnit
    private let logger: Logger
    /// What the device goes by, as it was written.
    private var document: ConfigSection

    /// - Parameter document: The file's contents at the device's start.
    init(
        path: String, server: String?, document: ConfigSection, device: Device, unit: ServiceUnit, logger: Logger
    ) {
        self.path = path
        self.server = server
        self.document = document
        self.device = device
        self.unit = unit
        self.logger = logger
    }

    /// Takes what can be taken while calls go on, and says what waits for the next start.
    ///
    /// - Parameter status: What the device is doing, for the service manager, when that is over.
    func run(status: () async -> String) async {
        unit.tell(.reloading(at: MonotonicClock.now), status: "Reading the configuration again")
        do {
            // Read once: what is compared and taken is what was checked.
            let document = try ConfigDocument.read(path: path)
            try ConfigurationCheck.expect("run", document)
            let new = try DeviceConfiguration.read(document, server: server)
            for warning in new.warnings { logger.warning("\(warning)") }
            let isBehaviourTaken = await device.adopt(new)
            let changed = document.differences(from: self.document)
            let waiting = changed.filter { !Self.isAdopted($0, isBehaviourTaken) }
            logger.info(
                "The configuration was read again",
                metadata: ["changed": "\(Self.list(changed))", "at_next_start": "\(Self.list(waiting))"])
            // What waits is told each time, until it holds.
            if waiting.isEmpty { self.document = document }
        } catch {
            logger.error(
                "The configuration is wrong, so the earlier one goes on", metadata: ["error": "\(error)"])
        }
        unit.tell(.ready, status: await status())
    }

    private static func isAdopted(_ key: String, _ isBehaviourTaken: Bool) -> Bool {
        let section = key.prefix { $0 != "." }
        return DeviceConfiguration.adoptedSections.contains(String(section))
            && (section != "behaviour" || isBehaviourTaken)
    }

    private static func list(_ keys: [String]) -> String { keys.isEmpty ? "nothing" : keys.joined(separator: ", ") }
}
