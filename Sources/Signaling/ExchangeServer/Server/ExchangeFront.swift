import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import NIOPosix
import Realtime
import SignalWire
import TLS

/// The exchange, as its listener sees it. Lives on the hub's event loop.
final class ExchangeFront: HTTPService {
    private let hub: ExchangeHub
    let admission: Admission
    private let service: RESTService
    private var configuration: ExchangeConfiguration
    /// Those of the certificate.
    private var names: [String]
    private let sockets: WebSocket.Settings

    /// - Parameter thread: Checks passwords, and gives memory back.
    init(
        _ hub: ExchangeHub, _ configuration: ExchangeConfiguration, _ certificate: PreparedCertificate,
        thread: NIOThreadPool, logger: Logger
    ) {
        self.hub = hub
        self.configuration = configuration
        names = certificate.identity?.names ?? []
        sockets = SocketSession.settings(keepalive: TimeAmount(configuration.core.keepalive))
        let bounds = configuration.connectionBounds(isEncrypted: certificate.identity != nil)
        if bounds.isCut {
            logger.warning(
                "The limit on open files is too low for the configured connections; raise it or lower connections",
                metadata: ["connections": "\(bounds.total)", "open_files": "\(ReserveDescriptor.limit)"])
        }
        admission = Admission(configuration, bounds: bounds, loop: hub.loop, thread: thread, logger: logger)
        service = RESTService(
            hub: hub, configuration: configuration, admission: admission, hosts: Self.hosts(configuration, names),
            passwordThread: thread, logger: logger)
        service.root = certificate.issued?.root
    }

    private static func hosts(_ configuration: ExchangeConfiguration, _ names: [String]) -> HostRules {
        HostRules(
            listen: configuration.host, certificate: names, webSocketURL: configuration.webSocketURL,
            allowed: configuration.allowedHosts)
    }

    /// There is another certificate, for these names.
    func use(names: [String]) {
        self.names = names
        service.hosts = Self.hosts(configuration, names)
    }

    /// Serves this root certificate to every client.
    func show(root: [UInt8]?) { service.root = root }

    /// What may change while the exchange runs is as here from now on.
    func adopt(_ configuration: ExchangeConfiguration) {
        self.configuration = configuration
        service.adopt(configuration)
        use(names: names)
    }

    /// What listens for this exchange.
    func listener(_ tls: TLSContext?) -> HTTPListener {
        HTTPListener(
            self, tls: tls, budget: admission.strangers, admitted: admission.messages,
            bounds: StrangerBounds(bodyBytes: SignalLimits.loginBytes, messageBytes: SignalLimits.sessionStartBytes),
            messageBytes: SignalLimits.messageBytes)
    }

    func accept(_ channel: any Channel) throws -> any ConnectionService {
        let addresses = try admission.admit(channel)
        hub.track(channel)
        return RESTConnection(addresses, hub: hub, service: service, sockets: sockets)
    }

    func failedToAccept(_ error: IOError) { admission.failedToAccept(error) }

    func countShed() { admission.countShed() }
}

extension ExchangeConfiguration {
    /// How many connections there may be on this machine.
    func connectionBounds(isEncrypted: Bool) -> ConnectionBounds {
        ConnectionBounds(
            total: connections, perAddress: connectionsPerAddress, fromThisMachine: connectionsFromThisMachine,
            descriptors: ReserveDescriptor.limit, outgoing: push.webhooks.count * push.parallelRequests,
            memory: MachineMemory.limitBytes, isEncrypted: isEncrypted)
    }
}
