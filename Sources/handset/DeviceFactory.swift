internal import BlockingWork
internal import CallAgent
internal import CallControl
internal import ConfigReader
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Core
internal import Realtime

/// Makes a device out of a configuration: its service, its sockets and its one event loop.
struct DeviceFactory {
    let configuration: DeviceConfiguration
    /// For one call: give up on the first failure to connect, rather than try again, and end the login that was made for it.
    var failsFast = false
    let logger: Logger

    /// A device that is not connected, and the event loop that carries it.
    func make() throws -> (device: Device, group: MultiThreadedEventLoopGroup) {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let service = try configuration.makeService(
            program: DeviceProgram(version: HandsetVersion.current), failsFast: failsFast, group: group, logger: logger)
        let device = try Device(
            configuration, service: service, mediaAddress: MediaAddress(for: configuration), logger: logger)
        return (device, group)
    }
}

/// Makes the devices of accounts: their services on one event loop, and one set of media workers for all.
struct AccountFactory: Sendable {
    private let media: SharedMedia
    private let locks: AccountLocks
    private let group: any EventLoopGroup
    private let traces: CallTraces?
    private let logger: Logger

    /// The accounts of a configuration, which are not started, and what they share.
    ///
    /// - Parameters:
    ///   - locks: Those of the accounts, which were taken before.
    ///   - traces: Where traces of their calls go; nil for nowhere.
    static func accounts(
        _ configuration: AccountsConfiguration, _ locks: AccountLocks, tracing traces: CallTraces?,
        on group: any EventLoopGroup, _ logger: Logger
    ) throws -> (AccountSet, SharedMedia) {
        let media: SharedMedia
        if !configuration.isNamed, let only = configuration.accounts.first?.configuration {
            media = try SharedMedia(for: only, at: MediaAddress(for: only), logger: logger)
        } else {
            media = try SharedMedia(for: configuration.accounts.map(\.configuration), logger: logger)
        }
        let factory = AccountFactory(media: media, locks: locks, group: group, traces: traces, logger: logger)
        let accounts = AccountSet(configuration, media: media, logger: logger) { try await factory.make($0) }
        return (accounts, media)
    }

    private func make(_ account: AccountsConfiguration.Account) async throws -> AccountDevice {
        let configuration = account.configuration
        let locks = try locks.take(for: account)
        var logger = logger
        if let name = account.name { logger[metadataKey: "account"] = "\(name)" }
        // A name may be looked up, which blocks.
        let address = await BlockingThreads.names.run { MediaAddress(for: configuration, in: media) }
        let service = try configuration.makeService(
            program: DeviceProgram(version: HandsetVersion.current), account: account.name ?? "", group: group,
            logger: logger)
        let device = try Device(
            configuration, service: service, mediaAddress: address, sharing: media, logger: logger)
        await traces?.trace(device, as: account.name ?? "")
        return AccountDevice(device, with: locks)
    }
}

extension AccountsConfiguration {
    /// The configuration with what the command line says of captures.
    func capturing(_ file: String?) -> AccountsConfiguration {
        var configuration = self
        for index in configuration.accounts.indices {
            configuration.accounts[index].configuration.behaviour.capture = file
        }
        return configuration
    }
}
