public import CallControl
internal import ConfigReader
internal import FoundationEssentials
public import Logging
public import NIOCore
internal import NIOPosix
internal import SIP
internal import SIPClient
internal import SIPSignaling
public import SignalingClient

extension DeviceConfiguration {
    /// Makes the signaling service that the account is at.
    ///
    /// - Parameters:
    ///   - failsFast: For one call: give up on the first failure to connect, rather than try again, and end the login that was
    ///     made for it.
    ///   - registers: Whether a SIP account registers. If not, its registrar is asked for the bindings that there are, which needs the same
    ///     login and changes none; it is for a trial beside a device that runs.
    ///   - account: Its name among the accounts of this process, under which a SIP account without an `instance_file` is the same
    ///     device to its server each time that it is started; nil makes it another device each time.
    ///   - group: Its event loops; nil for those that all such services share.
    public func makeService(
        program: DeviceProgram, failsFast: Bool = false, registers: Bool = true, account name: String? = nil,
        group: (any EventLoopGroup)? = nil, logger: Logger
    ) throws(SignalingError) -> any SignalingService {
        let group = group ?? MultiThreadedEventLoopGroup.singleton
        if var settings = account.sip {
            settings.trustRootFile = account.trustRoots
            settings.account.agent.callees = account.callees ?? CalleeList()
            settings.account.agent.product = "\(program.name)/\(program.version)"
            settings.account.givesUpAtOnce = failsFast
            if !registers {
                settings.account.isTrial = true
                settings.account.acceptsStrangers = false
                settings.localPort = 0
            }
            // A call of a moment is no device to be known again, and must not take the place of one that runs.
            let file = failsFast ? nil : settings.instanceFile
            let instance =
                if let name, file == nil, !failsFast {
                    SIPInstance(ofAccount: "\(name) \(settings.account.address.uri)")
                } else {
                    SIPInstance(keptIn: file, logger: logger)
                }
            settings.account.instance = instance.name
            return try SIPService(settings, group: group, logger: logger)
        }
        var settings = try HandsetServiceConfiguration(self, program: program)
        if failsFast {
            settings.loginPatience = .zero
            settings.connection.firstAttempts = 1
            settings.endsLogin = true
        }
        return try HandsetService(settings, group: group, logger: logger)
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
        moreServers = account.moreServers
        sessionStore = store
        start = configuration.invites.start
        plainText = account.allowsPlainText ? .allowed : .loopbackOnly
        trustRootFile = account.trustRoots
    }
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

extension DeviceConfiguration {
    /// The rooms to join after each login, the account's session first.
    var allRooms: [RoomName] { (account.session.map { [$0] } ?? []) + rooms }
}
