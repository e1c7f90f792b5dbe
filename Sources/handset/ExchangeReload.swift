internal import ConfigReader
internal import ExchangeServer
internal import Logging
internal import Realtime
internal import Core

/// Reads a running exchange's configuration again, when SIGHUP asks for it. One that is wrong changes nothing.
actor ExchangeReload {
    private let path: String
    private let listen: ConfigEndpoint?
    private let server: ExchangeServer
    private let unit: ServiceUnit
    private let logger: Logger
    /// What the exchange goes by, as it was written.
    private var document: ConfigSection

    /// - Parameter document: The file's contents at the exchange's start.
    init(
        path: String, listen: ConfigEndpoint?, document: ConfigSection, server: ExchangeServer, unit: ServiceUnit,
        logger: Logger
    ) {
        self.path = path
        self.listen = listen
        self.document = document
        self.server = server
        self.unit = unit
        self.logger = logger
    }

    /// Applies what can change during sessions and calls, and reports what waits for the next start.
    func run() async {
        unit.notify(.reloading(at: MonotonicClock.now), status: "Reading the configuration again")
        do {
            try ConfigurationCheck.expect("serve", path: path)
            let document = try ConfigDocument.read(path: path)
            let new = try ExchangeConfiguration.read(path: path, fileChecks: .inputs, listen: listen)
            for warning in new.warnings { logger.warning("\(warning)") }
            let takesCertificate = try await server.adopt(new)
            let areWebhooksTaken = await server.adoptWebhooks(of: new)
            let changed = document.differences(from: self.document)
            let waiting = changed.filter { key in
                if key == "control.webhooks" { return !areWebhooksTaken }
                let section = String(key.prefix { $0 != "." && $0 != "[" })
                return !ExchangeConfiguration.adoptedKeys.contains(section)
                    || (section == "certificate" && !takesCertificate)
            }
            logger.info(
                "The configuration was read again",
                metadata: ["changed": "\(Self.list(changed))", "at_next_start": "\(Self.list(waiting))"])
            // What waits is reported at each reload, until it applies.
            if waiting.isEmpty { self.document = document }
        } catch {
            logger.error(
                "The configuration is wrong, so the earlier one stays in use", metadata: ["error": "\(error)"])
        }
        unit.notify(.ready, status: "Listening at \(server.url)")
    }

    private static func list(_ keys: [String]) -> String { keys.isEmpty ? "nothing" : keys.joined(separator: ", ") }
}
