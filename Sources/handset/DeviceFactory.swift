internal import CallAgent
internal import CallControl
internal import ConfigReader
internal import Datagrams
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import SignalingClient

/// Makes a device out of a configuration: its service, its sockets and its one event loop.
struct DeviceFactory {
    let configuration: DeviceConfiguration
    /// Give up on the first failure to connect, rather than try again.
    var failsFast = false
    let logger: Logger

    /// A device that is not connected, and the event loop that carries it.
    func make() throws -> (device: Device, group: MultiThreadedEventLoopGroup) {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let service = try HandsetService(serviceConfiguration, group: group, logger: logger)
        let device = try Device(
            configuration, service: service, mediaAddress: try MediaAddress(for: configuration), logger: logger)
        return (device, group)
    }

    private var serviceConfiguration: HandsetServiceConfiguration {
        let account = configuration.account
        var service = HandsetServiceConfiguration(
            addresses: .init(
                authentication: account.authURL, identity: account.identityURL, events: account.eventsURL),
            application: .init(
                name: "Handset", version: HandsetVersion.current, system: "Linux", key: account.appKey,
                secret: account.appSecret.revealed),
            credentials: account.credential.forService,
            device: .init(id: DeviceID(configuration.device.id ?? Self.newDeviceID()), name: configuration.device.name))
        service.plainText = account.allowsPlainText ? .allowed : .loopbackOnly
        if failsFast {
            service.loginPatience = .zero
            service.connection.firstAttempts = 1
        }
        service.trustRootFile = account.trustRoots
        return service
    }

    private static func newDeviceID() -> String {
        var generator = SystemRandomNumberGenerator()
        return "handset-" + String(generator.next() as UInt64, radix: 36)
    }
}

extension AccountConfiguration.Credential {
    fileprivate var forService: HandsetServiceConfiguration.Credentials {
        switch self {
        case .mediaToken(let token): .mediaToken(token.revealed)
        case .password(let user, let password): .password(user: user, password.revealed)
        case .anonymous(let name): .anonymous(name: name)
        }
    }
}
