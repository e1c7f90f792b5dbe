internal import ArgumentParser
internal import CallAgent
internal import ConfigReader
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceManager
internal import TrunkGateway

/// `handset trunk`: carries calls between an exchange and a SIP server.
struct TrunkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trunk", abstract: "Carry calls between an exchange and a SIP server.",
        discussion: """
            It logs in to both, as the account that `trunks` of the exchange's configuration names and as an account of the \
            SIP server, and joins calls: users of the exchange call telephones, and are called by them. docs/trunk.md says \
            how, and who may.
            """)

    @Option(help: "The trunk's configuration file.", completion: .file())
    var config: String

    @Option(
        help: """
            Seconds for which calls go on after SIGTERM, while new ones are refused as busy; with 0 they are hung up at \
            once. A second signal ends the process.
            """)
    var drain = 0

    @OptionGroup var logs: LogOptions

    func validate() throws {
        guard (0...86_400).contains(drain) else {
            throw ValidationError("--drain \(drain) is not a number of seconds from 0 to 86400.")
        }
    }

    func run() async throws {
        logs.bootstrap()
        let logger = Logger(label: "handset.trunk")
        try ConfigurationCheck.expect("trunk", path: config)
        let configuration = try TrunkConfiguration.read(path: config, fileChecks: .all)
        for warning in configuration.warnings { logger.warning("\(warning)") }
        let locks = try DeviceLocks(configuration.exchange)
        let exchange = try DeviceFactory(configuration: configuration.exchange, logger: logger).make()
        let network = try DeviceFactory(configuration: configuration.network, logger: logger).make()
        let gateway = TrunkGateway(
            configuration, exchange: exchange.device, network: network.device, logger: logger)
        let unit = ServiceUnit(logger: logger)
        unit.tell(status: "Logging in")
        await NetworkListener.start(on: exchange.group, logger: logger) { Task { await gateway.networkChanged() } }
        let watchdog = unit.feedWatchdog { await gateway.isAlive() }
        let ending = EndRequest(moreSeconds: drain)
        let connecting = Task { () -> SignalingError? in
            do throws(SignalingError) {
                try await gateway.connect()
                return nil
            } catch {
                return error
            }
        }
        let watching = Task {
            await ending.wait()
            if !Task.isCancelled { await gateway.shutDown() }
        }
        let failure = await connecting.value
        watching.cancel()
        if ending.isMade {
            await watching.value
            // It may have been cancelled at the moment at which it woke.
            return await gateway.shutDown()
        }
        if let failure { throw failure }
        logger.info("Ready")
        unit.tell(.ready, status: "Connected: carries calls")
        await ending.wait()
        unit.tell(.stopping, status: "Ending")
        if drain > 0 {
            logger.info("Waiting for calls to end", metadata: ["seconds": "\(drain)"])
            await gateway.finishCalls(within: .seconds(drain))
        }
        logger.info("Saying goodbye")
        watchdog?.cancel()
        await gateway.shutDown()
        try? await exchange.group.shutdownGracefully()
        try? await network.group.shutdownGracefully()
        withExtendedLifetime(locks) {}
    }
}
