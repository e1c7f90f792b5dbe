public import CallControl
internal import ConfigReader
internal import FoundationEssentials
public import Logging
internal import Realtime
public import SignalingClient

/// The program that a device is part of, as sent to the service.
public struct DeviceProgram: Sendable {
    /// Its name.
    public var name: String
    /// Its version.
    public var version: String

    /// Makes a program's name.
    public init(name: String = "Handset", version: String) {
        self.name = name
        self.version = version
    }
}

// Making a device out of a configuration.
extension Device {
    /// Logs in, and returns when the device can be called.
    ///
    /// Events from the login on wait in ``events`` for the first listener.
    ///
    /// - Throws: ``SignalingError``: why the device is not logged in; it has been shut down.
    public static func login(
        _ configuration: DeviceConfiguration, program: DeviceProgram = DeviceProgram(version: "1"),
        logger: Logger = Logger(label: "handset.device")
    ) async throws(SignalingError) -> Device {
        let service = try configuration.makeService(program: program, logger: logger)
        let device: Device
        do {
            device = try Device(
                configuration, service: service, mediaAddress: MediaAddress(for: configuration), logger: logger)
        } catch {
            throw SignalingError(.mediaFailed, activity: "open the media sockets", cause: "\(error)")
        }
        do throws(SignalingError) {
            try await device.connect()
        } catch {
            await device.shutDown()
            throw error
        }
        return device
    }
}

extension HandsetServiceConfiguration {
    /// The service settings of a device's configuration.
    ///
    /// Reads the stored login of an earlier run: a device without a configured id keeps its earlier one. The stored
    /// data of another application is removed (contract AUTH-8).
    public init(_ configuration: DeviceConfiguration, program: DeviceProgram) throws(SignalingError) {
        let account = configuration.account
        let store = account.sessionStore
        var device = configuration.device.id
        switch try store?.look() {
        case .login(let id, _)?: device = device ?? id
        case .foreign?: try store?.clear()
        case .nothing?, nil: break
        }
        self.init(
            addresses: .init(
                authentication: account.authURL, identity: account.identityURL, events: account.eventsURL),
            application: .init(
                name: program.name, version: program.version, system: "Linux", key: account.appKey,
                secret: account.appSecret.revealed),
            credentials: account.credential.forService,
            device: .init(
                id: device ?? DeviceID(ours: "handset-\(UUID().uuidString.lowercased())"),
                name: configuration.device.name,
                push: configuration.device.push?.map { .init(kind: $0.kind, token: $0.token.revealed) }))
        sessionStore = store
        start = configuration.invites.start
        plainText = account.allowsPlainText ? .allowed : .loopbackOnly
        trustRootFile = account.trustRoots
    }
}

extension DeviceConfiguration {
    /// The rooms to join after each login, the account's session first.
    var allRooms: [RoomName] { (account.session.map { [$0] } ?? []) + rooms }
}

extension AccountConfiguration.Credential {
    fileprivate var forService: HandsetServiceConfiguration.Credentials {
        switch self {
        case .mediaToken(let token): .mediaToken(token.revealed)
        case .password(let user, let password): .password(user: user, password.revealed)
        case .accessToken(let user, let source): .accessToken(user: user, source)
        case .sessionToken(let user, let source): .sessionToken(user: user, source)
        case .key(let user, let key): .key(user: user, key)
        case .anonymous(let name): .anonymous(name: name)
        case .kept: .kept
        }
    }
}
