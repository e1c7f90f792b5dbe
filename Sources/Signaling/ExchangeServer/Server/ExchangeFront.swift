import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import SignalWire

/// The exchange, as its listener sees it. Lives on the hub's event loop.
final class ExchangeFront: HTTPService {
    private let hub: ExchangeHub
    let admission: Admission
    private let service: RESTService
    private let sockets: WebSocket.Settings

    /// - Parameter thread: Checks passwords, and gives memory back.
    init(_ hub: ExchangeHub, _ configuration: ExchangeConfiguration, thread: NIOThreadPool, logger: Logger) {
        self.hub = hub
        sockets = SocketSession.settings(keepalive: TimeAmount(configuration.keepalive))
        let bounds = ConnectionBounds(
            total: configuration.connections, perAddress: configuration.connectionsPerAddress,
            descriptors: ReserveDescriptor.limit,
            outgoing: configuration.push.webhooks.count * configuration.push.parallelRequests)
        if bounds.isCut {
            logger.warning(
                "the limit on open files is too low for the configured connections; raise it or lower connections",
                metadata: ["connections": "\(bounds.total)", "open_files": "\(ReserveDescriptor.limit)"])
        }
        admission = Admission(configuration, bounds: bounds, loop: hub.loop, thread: thread, logger: logger)
        let hosts = HostRules(
            listen: configuration.host, certificate: ServerTLS.names(of: configuration.serverCertificate),
            webSocketURL: configuration.webSocketURL, allowed: configuration.allowedHosts)
        service = RESTService(
            hub: hub, configuration: configuration, admission: admission, hosts: hosts, passwordThread: thread,
            logger: logger)
    }

    /// What listens for this exchange.
    func listener(_ tls: NIOSSLContext?) -> HTTPListener {
        HTTPListener(
            self, tls: tls, budget: admission.strangers,
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
