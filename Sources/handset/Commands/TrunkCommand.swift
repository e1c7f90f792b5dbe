internal import ArgumentParser
internal import CallAgent
internal import ConfigReader
internal import ControlPlane
internal import Logging
internal import Monitoring
internal import NIOCore
internal import NIOPosix
internal import TrunkGateway

/// `handset trunk`: carries calls between an exchange and a SIP server.
struct TrunkCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trunk", abstract: "Carry calls between an exchange and a SIP server.",
        discussion: """
            It logs in to both, as the account that `trunks` of the exchange's configuration names and as an account of the \
            SIP server, and joins calls: users of the exchange call telephones, and telephones call them. docs/trunk.md says \
            how, and who may. The commands from `status` to `events` act on a trunk that runs, if its configuration has \
            `control: socket:`; docs/trunk-control.md says more.
            """,
        subcommands: [
            Run.self, Status.self, Calls.self, HangUp.self, Drain.self, Undrain.self, Events.self,
        ], defaultSubcommand: Run.self)

    /// `handset trunk run`, which `handset trunk` alone is, too.
    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run", abstract: "Carry calls. `handset trunk` without a subcommand does the same.")

        @Option(help: "The trunk's configuration file.", completion: .file())
        var config: String

        @OptionGroup var draining: DrainOptions

        @OptionGroup var logs: LogOptions

        func run() async throws {
            logs.bootstrap()
            let logger = Logger(label: "handset.trunk")
            try ConfigurationCheck.expect("trunk", path: config)
            let configuration = try TrunkConfiguration.read(path: config, fileChecks: .all)
            for warning in configuration.warnings { logger.warning("\(warning)") }
            // Before anything else that others would notice.
            let socket = try Self.socket(configuration.control)
            let locks = try [configuration.exchange, configuration.network].map { try DeviceLocks($0) }
            let exchange = try DeviceFactory(configuration: configuration.exchange, logger: logger).make()
            let network = try DeviceFactory(configuration: configuration.network, logger: logger).make()
            let traces = try CallTraces(configuration.traces, logger)
            await traces?.trace(exchange.device, as: TrunkSide.exchange.rawValue)
            await traces?.trace(network.device, as: TrunkSide.network.rawValue)
            let monitor = TrunkMonitor(exchange: exchange.device, network: network.device, traces)
            let gateway = TrunkGateway(
                configuration, exchange: exchange.device, network: network.device, logger: logger
            ) { monitor.note($0, of: $1) }
            // Before the logins, which may take as long as a server is away.
            var control: TrunkControl?
            if let socket {
                control = try await TrunkControl.start(
                    socket, configuration, of: gateway, version: HandsetVersion.current, logger: logger)
            }
            let monitoring = try await MonitoringServer.start(
                configuration.monitoring, of: monitor.process(of: gateway, control), logger)
            let unit = ServiceUnit(logger: logger)
            unit.notify(status: "Logging in")
            await NetworkListener.start(on: exchange.group, logger: logger) { Task { await gateway.networkChanged() } }
            let watchdog = unit.feedWatchdog { await gateway.isAlive() }
            let ending = EndRequest(moreSeconds: draining.drain)
            let isConnected = try await ending.connect { () async throws(SignalingError) in
                try await gateway.connect()
            } shutDown: {
                await gateway.shutDown()
            }
            guard isConnected else {
                await traces?.stop()
                await monitoring?.stop()
                await control?.close()
                return
            }
            logger.info("Ready")
            unit.notify(.ready, status: "Connected: carries calls")
            await ending.wait()
            unit.notify(.stopping, status: "Ending")
            if draining.drain > 0 {
                logger.info("Waiting for calls to end", metadata: ["seconds": "\(draining.drain)"])
                await gateway.finishCalls(within: .seconds(draining.drain))
            }
            logger.info("Disconnecting")
            watchdog?.cancel()
            await gateway.shutDown()
            await traces?.stop()
            await monitoring?.stop()
            await control?.close()
            try? await exchange.group.shutdownGracefully()
            try? await network.group.shutdownGracefully()
            withExtendedLifetime(locks) {}
        }

        /// The control socket; nil without the section `control`.
        private static func socket(_ section: ControlSection?) throws -> ControlSocket? {
            guard let section else { return nil }
            do throws(ControlSocketError) {
                return try ControlSocket(path: section.path, access: section.access)
            } catch {
                var error = error
                error.owner = .trunk
                throw error
            }
        }
    }
}
