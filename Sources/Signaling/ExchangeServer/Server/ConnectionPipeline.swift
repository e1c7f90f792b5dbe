import ExchangeCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import SignalWire
import StreamGateway

/// What stands in each connection's pipeline, first for HTTP, then perhaps for a WebSocket.
struct ConnectionPipeline {
    let hub: ExchangeHub
    let admission: Admission
    let service: RESTService
    /// `nil` for plain text.
    let tls: NIOSSLContext?
    let keepalive: TimeAmount

    /// - Parameter thread: Checks passwords, and gives memory back.
    init(
        _ hub: ExchangeHub, _ configuration: ExchangeConfiguration, tls: NIOSSLContext?, thread: NIOThreadPool,
        logger: Logger
    ) {
        self.hub = hub
        self.tls = tls
        keepalive = TimeAmount(configuration.keepalive)
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
            listen: configuration.host, certificate: TLSContext.names(of: configuration.certificate),
            webSocketURL: configuration.webSocketURL, allowed: configuration.allowedHosts)
        service = RESTService(
            hub: hub, configuration: configuration, admission: admission, hosts: hosts, passwordThread: thread,
            logger: logger)
    }

    /// What one read takes at most, and so what each connection's buffer may keep: most messages are shorter than 2 KiB.
    static let receiveBuffer = AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2_048, maximum: 8_192)

    /// Sets up a connection that was just accepted, unless there are too many. On the hub's event loop.
    func configure(_ channel: any Channel) throws {
        let connection = try admission.admit(channel)
        hub.track(channel)
        let pipeline = channel.pipeline.syncOperations
        let outbound = OutboundMeter(hub.sendBuffers)
        try pipeline.addHandler(outbound)
        let timer = RequestTimer()
        try pipeline.addHandler(timer)
        if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
        let meter = InboundMeter(admission: admission, timer: timer)
        try pipeline.addHandler(meter)

        let parts = NIOLoopBound((self, connection, timer, meter, outbound), eventLoop: channel.eventLoop)
        let upgrader = NIOTypedWebSocketServerUpgrader<Void>(
            maxFrameSize: SignalLimits.messageBytes, enableAutomaticErrorHandling: false,
            shouldUpgrade: { channel, _ in
                channel.eventLoop.makeSucceededFuture(["Trace-Id": "\(TraceID())"])
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    let (own, _, timer, meter, outbound) = parts.value
                    let socket = SocketHandler(
                        hub: own.hub, keepalive: own.keepalive, meter: meter, outbound: outbound)
                    channel.pipeline.syncOperations.removeHandler(timer, promise: nil)
                    try channel.pipeline.syncOperations.addHandler(socket)
                }
            })
        let upgrade = NIOTypedHTTPServerUpgradeConfiguration<Void>(upgraders: [upgrader]) { channel in
            channel.eventLoop.makeCompletedFuture {
                let (own, connection, timer, meter, _) = parts.value
                let headers = SecurityHeaders(isEncrypted: own.tls != nil)
                try channel.pipeline.syncOperations.addHandler(
                    RESTHandler(
                        service: own.service, connection: connection, timer: timer, meter: meter, headers: headers))
            }
        }
        _ = try pipeline.configureUpgradableHTTPServerPipeline(
            configuration: NIOUpgradableHTTPServerPipelineConfiguration(upgradeConfiguration: upgrade))
        let upgrading = try pipeline.handler(type: NIOTypedHTTPServerUpgradeHandler<Void>.self)
        try pipeline.addHandler(UpgradeGate(service: service, connection: connection), position: .before(upgrading))
    }
}
