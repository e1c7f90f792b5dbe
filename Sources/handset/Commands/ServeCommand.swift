internal import ArgumentParser
internal import ConfigReader
internal import ExchangeCore
internal import ExchangeServer
internal import Logging
internal import Monitoring
internal import NIOCore
internal import NIOPosix
internal import SignalWire
internal import Core
internal import Glibc
internal import Synchronization

/// `handset serve`: the embedded exchange.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the embedded signaling exchange.",
        discussion: """
            Without --config it listens on 127.0.0.1:8555 for the accounts of the demonstration, "echo", "caller",
            "alice" and "bob", whose media tokens are no secrets: good for trying things out on one machine, and refused
            elsewhere. A browser finds a phone there, at http://127.0.0.1:8555.

            SIGUSR1 asks all devices to connect again within 30 seconds; their calls continue. So they move to another
            exchange once its address is given out in place of this one's.

            On SIGHUP it reads the configuration and the certificate again, unless it was started from a terminal; sessions
            and calls continue. A wrong file is refused, with file, line and key.
            """)

    @Option(help: "The exchange's configuration file.", completion: .file())
    var config: String?

    @Option(help: "HOST:PORT to listen on, instead of the configuration's; port 0 takes any.")
    var listen: String?

    @OptionGroup var logs: LogOptions

    func validate() throws {
        if let listen, ConfigEndpoint(listen) == nil {
            let hint = listen.hasPrefix("*") ? " \(ConfigEndpoint.allAddresses)." : ""
            throw ValidationError("--listen \(listen) is not HOST:PORT, such as 127.0.0.1:8555 or [::1]:0.\(hint)")
        }
    }

    func run() async throws {
        logs.bootstrap()
        let connections = DescriptorLimit.raise()
        let logger = Logger(label: "handset.exchange")
        let document = try config.map { try ConfigDocument.read(path: $0) }
        let configuration = try readConfiguration()
        for warning in configuration.warnings { logger.warning("\(warning)") }
        let ending = EndRequest(moreSeconds: Self.diskSeconds)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let unit = ServiceUnit(logger: logger)
        let traces = try CallTraces(configuration.traces, logger)
        let monitor = ExchangeMonitor(traces)
        let monitoring = try await MonitoringServer.start(configuration.monitoring, of: monitor.process, logger)
        let started: ExchangeServer?
        do {
            started = try await start(configuration, on: group, unit, monitor, ending, logger)
        } catch {
            await monitoring?.stop()
            await traces?.stop()
            throw error
        }
        guard let server = started else {
            await monitoring?.stop()
            await traces?.stop()
            return
        }
        monitor.noteStart(server)
        traces?.trace(server)
        let takeover = Takeover(ending)
        server.whenTakenOver { takeover.happened($0) }
        logger.info("Listening", metadata: ["url": "\(server.url)", "open_files": "\(connections)"])
        if let phone = server.webPhoneURL {
            var details: Logger.Metadata = ["url": "\(phone)"]
            if !configuration.guests.isEmpty {
                details["guests"] = "\(configuration.guests.map(\.user.text).joined(separator: ", "))"
            }
            logger.info("Serving the web phone", metadata: details)
        }
        Shutdown.onUserSignal {
            logger.info("Asking devices to reconnect", metadata: ["within": "\(Self.movingTime.text)"])
            server.requestMoves(within: Self.movingTime)
        }
        logger.info("\(server.browserAdvice)")
        if let config, let document {
            let reload = ExchangeReload(
                path: config, listen: listen.flatMap { ConfigEndpoint($0) }, document: document, server: server,
                unit: unit, logger: logger)
            RunCommand.onHangUp { await reload.run() }
        }
        // From here on a reload may come, whose signal must not end the process.
        unit.notify(.ready, status: "Listening at \(server.url)")
        let watchdog = unit.feedWatchdog {
            _ = await server.counters()
            return true
        }
        await ending.wait()
        unit.notify(.stopping, status: "Closing client connections")
        watchdog?.cancel()
        logger.info("Closing client connections")
        await monitoring?.stop()
        await server.stop()
        await traces?.stop()
        try? await group.shutdownGracefully()
        if let error = takeover.error { throw error }
    }

    /// Starts the exchange. If another one owns its database, this one waits for that as a standby.
    ///
    /// - Returns: Nil if the process was asked to end while it waited.
    private func start(
        _ configuration: ExchangeConfiguration, on group: MultiThreadedEventLoopGroup, _ unit: ServiceUnit,
        _ monitor: ExchangeMonitor, _ ending: EndRequest, _ logger: Logger
    ) async throws -> ExchangeServer? {
        if configuration.postgres != nil {
            // A standby is a running service, which a reload must not end.
            RunCommand.onHangUp { logger.notice("A standby reads its configuration when it is started again") }
        }
        let starting = Task {
            try await ExchangeServer.start(
                configuration, on: group, logger: logger, version: HandsetVersion.current
            ) { owner in
                monitor.noteOwner("\(owner)")
                unit.notify(.ready, status: "Standing by: \(owner) owns the database")
            }
        }
        let watchdog = configuration.postgres == nil ? nil : unit.feedWatchdog { true }
        let ended = Task {
            await ending.wait()
            starting.cancel()
        }
        defer {
            ended.cancel()
            watchdog?.cancel()
        }
        do {
            return try await starting.value
        } catch {
            if ending.isMade { return nil }
            throw error
        }
    }

    private func readConfiguration() throws -> ExchangeConfiguration {
        let endpoint = listen.flatMap { ConfigEndpoint($0) }
        if let config {
            try ConfigurationCheck.expect("serve", path: config)
            return try .read(path: config, fileChecks: .all, listen: endpoint)
        }
        var configuration = ExchangeConfiguration.demonstration
        if let endpoint { (configuration.host, configuration.port) = (endpoint.host, endpoint.port) }
        try Self.refuseStrangers(configuration)
        return configuration
    }

    /// How long its end waits for a slow disk beyond what every command has. The unit's `TimeoutStopSec` is longer than both together.
    private static let diskSeconds = 6

    /// How long devices have to move once SIGUSR1 has come.
    private static let movingTime = Duration.seconds(30)

    /// The demonstration's tokens are public: with them only this machine may connect.
    private static func refuseStrangers(_ configuration: ExchangeConfiguration) throws {
        guard ["127.0.0.1", "::1", "localhost"].contains(configuration.host) else {
            throw CommandFailure(
                .configuration,
                "without --config the accounts are the demonstration's, known to all; so it listens on this machine "
                    + "only, not on \(configuration.host). Give --config with accounts of your own.")
        }
    }
}

extension ExchangeConfiguration {
    /// What `handset serve` is without a configuration.
    static var demonstration: ExchangeConfiguration {
        var configuration = ExchangeConfiguration()
        (configuration.host, configuration.port) = ("127.0.0.1", 8_555)
        configuration.apps = [RegisteredApp(key: "demo", secret: SecretDigest(of: "demo"))]
        configuration.users = (["echo", "caller", "alice", "bob"] as [UserID]).map { name in
            Account(
                id: name, publicIDs: [UserID(ours: "\(name)@localhost")],
                mediaTokens: [SecretDigest(of: "\(name)-demo-token")],
                streamTokens: [SecretDigest(of: "\(name)-demo-token")])
        }
        configuration.showsWebPhone = true
        configuration.guests = ["alice", "bob"].map { name in
            WebConfiguration.Guest(user: name, mediaToken: Redacted("\(name)-demo-token"))
        }
        return configuration
    }
}

/// Remembers that another exchange has taken the database over, and ends this process for it.
private final class Takeover: Sendable {
    private let ending: EndRequest
    private let state = Mutex<StoreError?>(nil)

    init(_ ending: EndRequest) { self.ending = ending }

    var error: StoreError? { state.withLock { $0 } }

    func happened(_ error: StoreError) {
        state.withLock { $0 = error }
        ending.make()
    }
}

/// How many connections a process may have.
private enum DescriptorLimit {
    /// Raises the limit on open files as far as the system lets this process: systems start programs with a low one for
    /// the sake of those that use `select`, and none here does.
    ///
    /// - Returns: The limit now.
    @discardableResult
    static func raise() -> UInt {
        var limit = rlimit()
        // Both calls fill in or read the one structure that they are given.
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        let before = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return UInt(before) }
        return UInt(limit.rlim_cur)
    }
}
