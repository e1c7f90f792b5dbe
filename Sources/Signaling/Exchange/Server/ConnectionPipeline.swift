import NIOCore
import NIOHTTP1
import NIOSSL
import NIOWebSocket
import SignalWire

/// What stands in each connection's pipeline, first for HTTP, then perhaps for a WebSocket.
struct ConnectionPipeline {
    /// Bytes that may wait for a client that reads slowly; past the high mark it is dropped.
    static let outboundLimit = ChannelOptions.Types.WriteBufferWaterMark(low: 256 << 10, high: 1 << 20)

    let hub: ExchangeHub
    let service: RESTService
    /// `nil` for plain text.
    let tls: NIOSSLContext?
    let keepalive: TimeAmount
    /// Web pages that may open a WebSocket, beside the exchange's own.
    let allowedOrigins: [String]

    /// Sets up a connection that was just accepted. On the hub's event loop.
    func configure(_ channel: any Channel) throws {
        hub.track(channel)
        let pipeline = channel.pipeline.syncOperations
        let timer = RequestTimer()
        try pipeline.addHandler(timer)
        if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }

        let parts = NIOLoopBound((pipeline: self, timer: timer), eventLoop: channel.eventLoop)
        let upgrader = NIOTypedWebSocketServerUpgrader<Void>(
            maxFrameSize: SignalLimits.messageBytes, enableAutomaticErrorHandling: false,
            shouldUpgrade: { channel, _ in
                channel.eventLoop.makeSucceededFuture(["Trace-Id": "\(TraceID())"])
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    let (own, timer) = parts.value
                    let socket = SocketHandler(hub: own.hub, keepalive: own.keepalive)
                    channel.pipeline.syncOperations.removeHandler(timer, promise: nil)
                    try channel.pipeline.syncOperations.addHandler(socket)
                }
            })
        let upgrade = NIOTypedHTTPServerUpgradeConfiguration<Void>(upgraders: [upgrader]) { channel in
            channel.eventLoop.makeCompletedFuture {
                let (own, timer) = parts.value
                let headers = SecurityHeaders(isEncrypted: own.tls != nil)
                try channel.pipeline.syncOperations.addHandler(
                    RESTHandler(service: own.service, timer: timer, headers: headers))
            }
        }
        _ = try pipeline.configureUpgradableHTTPServerPipeline(
            configuration: NIOUpgradableHTTPServerPipelineConfiguration(upgradeConfiguration: upgrade))
        let upgrading = try pipeline.handler(type: NIOTypedHTTPServerUpgradeHandler<Void>.self)
        try pipeline.addHandler(UpgradeGate(allowedOrigins: allowedOrigins), position: .before(upgrading))
    }
}
