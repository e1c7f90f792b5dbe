internal import ArgumentParser
internal import AudioKit
internal import CallAgent
internal import CallControl
internal import CallPrograms
internal import ConfigReader
internal import DeviceControl
internal import Glibc
internal import Logging
internal import MediaEngine
internal import Monitoring
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import Core

/// `handset run`: the daemon.
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Log in, hold the connection and answer calls by policy.")

    @Option(help: "The device's configuration file.", completion: .file())
    var config: String

    @Option(
        help: "Base URL of the signaling server, instead of the configuration's.",
        transform: ServerURL.argument)
    var server: String?

    @Option(
        help: """
            Write what calls receive to this file, for `handset replay`; the second call to FILE-2 and so on, 100 calls \
            at most. It contains the speech, but no keys, names or addresses.
            """, completion: .file())
    var capture: String?

    @OptionGroup var draining: DrainOptions

    @OptionGroup var logs: LogOptions

    /// What webhooks may take at the end, and the history of events behind them.
    private static let lastWordsSeconds = 4

    func run() async throws {
        logs.bootstrap()
        let logger = Logger(label: "handset")
        LeftProcesses.adopt()
        let document = try ConfigDocument.read(path: config, fileChecks: .all)
        let configuration = try readAccounts(document, logger)
        // Before anything that others would notice: another device may be at work here.
        let locks = try AccountLocks(configuration, inFile: config)
        let sockets = try configuration.control.map { try ControlSockets($0) }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let traces = try CallTraces(configuration.traces, logger)
        let (accounts, media) = try AccountFactory.accounts(configuration, locks, tracing: traces, on: group, logger)
        let control = try await Self.listen(sockets, configuration.control, for: accounts, group, logger)
        let monitor = DeviceMonitor(accounts, media, control, traces)
        let monitoring = try await MonitoringServer.start(configuration.monitoring, of: monitor.process, logger)
        let unit = ServiceUnit(logger: logger)
        unit.notify(status: "Logging in")
        let status = AccountsStatus(accounts, unit, isNamed: configuration.isNamed)
        let reload = DeviceReload(
            path: config, server: server, capture: capture, document: document, configuration: configuration,
            accounts: accounts, control: control, unit: unit, logger: logger)
        Self.onHangUp { await reload.run { await status.text } }
        await Self.followNetwork(accounts, group, logger)
        let watchdog = unit.feedWatchdog { await accounts.isAlive() }
        let lastWords = configuration.control?.http == nil ? 0 : Self.lastWordsSeconds
        let ending = EndRequest(moreSeconds: draining.drain + lastWords)
        let reporter = AccountReporter(
            configuration, media: media, monitor: monitor, status: status, control: control, ending: ending,
            logger: logger)
        let listener = Task { await reporter.report(accounts.events) }
        await accounts.start()
        await ending.wait()
        if reporter.failure == nil { await end(accounts, unit, logger) }
        watchdog?.cancel()
        await accounts.shutDown()
        await listener.value
        await control?.close()
        await traces?.stop()
        await monitoring?.stop()
        LeftProcesses.finish()
        withExtendedLifetime(locks) {}
        if let failure = reporter.failure { throw failure }
        try? await group.shutdownGracefully()
    }

    /// Reads the accounts, and finds out whether what calls receive can be written where the command line says.
    private func readAccounts(_ document: ConfigSection, _ logger: Logger) throws -> AccountsConfiguration {
        try ConfigurationCheck.expect("run", document)
        let configuration = try AccountsConfiguration.read(document, server: server).capturing(capture)
        for warning in configuration.warnings { logger.warning("\(warning)") }
        if let capture { try AppendedFile.check(path: capture) }
        return configuration
    }

    /// Notifies the accounts when the network changes.
    private static func followNetwork(
        _ accounts: AccountSet, _ group: MultiThreadedEventLoopGroup, _ logger: Logger
    ) async {
        await NetworkListener.start(on: group, logger: logger) {
            logger.debug("The network has changed")
            Task { await accounts.networkChanged() }
        }
    }

    /// Lets calls continue for the time of `--drain`.
    private func end(_ accounts: AccountSet, _ unit: ServiceUnit, _ logger: Logger) async {
        unit.notify(.stopping, status: "Ending")
        if draining.drain > 0 {
            logger.info("Waiting for calls to end", metadata: ["seconds": "\(draining.drain)"])
            await accounts.finishCalls(within: .seconds(draining.drain))
        }
        logger.info("Disconnecting")
    }

    /// Has SIGHUP do something, once after the other. On a terminal it ends the process: it says that the terminal is gone.
    static func onHangUp(_ act: @escaping @Sendable () async -> Void) {
        guard isatty(STDIN_FILENO) == 0 else { return }
        // One more that waits is enough for any number that come meanwhile.
        let (reloads, reload) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        Task { for await _ in reloads { await act() } }
        Shutdown.onHangUp { reload.yield() }
    }

    /// Warns, before there is a call, if the media threads may wait for memory that was written out or dropped.
    static func checkLock(_ logger: Logger) {
        do throws(RealtimeError) {
            try ProcessMemory.checkLock()
        } catch {
            logger.notice("Memory is not locked during calls", metadata: ["error": "\(error)"])
        }
    }

    /// Lets programs on this machine act on the accounts, if the configuration has a socket for them.
    private static func listen(
        _ sockets: ControlSockets?, _ configuration: ControlConfiguration?, for accounts: AccountSet,
        _ group: MultiThreadedEventLoopGroup, _ logger: Logger
    ) async throws -> ControlInterfaces? {
        guard let sockets, let configuration else { return nil }
        return try await ControlInterfaces.start(
            sockets, configuration, accounts: accounts, version: HandsetVersion.current, group: group, logger: logger)
    }
}
