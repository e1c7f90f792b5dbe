internal import NIOCore
internal import NIOPosix
internal import NIOTLS
internal import TLS

/// A TLS handshake as a connection would make it, which shows whether a server's certificate is trusted. Nothing else is sent.
package enum TrialHandshake {
    /// Connects, completes the handshake, and closes.
    ///
    /// - Parameter seconds: From now to the end of the handshake.
    /// - Throws: What ``TransportFailure`` explains; ``HTTPFetch/Failure/tooLate`` if the server has not answered in time.
    package static func run(
        to endpoint: HTTPEndpoint, trusting trust: TLSTrust, withinSeconds seconds: Int64
    ) async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: Void.self)
        let connecting = ClientBootstrap(group: loop)
            .connectTimeout(.seconds(seconds))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addTLS(to: endpoint.host, trusting: trust)
                    try pipeline.addHandler(HandshakeWatch(promise))
                }
            }
            .connect(host: endpoint.host, port: endpoint.port)
        connecting.cascadeFailure(to: promise)
        let deadline = loop.scheduleTask(in: .seconds(seconds)) { promise.fail(HTTPFetch.Failure.tooLate) }
        promise.futureResult.whenComplete { _ in
            deadline.cancel()
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        try await promise.futureResult.get()
    }

    /// Reports the end of a handshake.
    private final class HandshakeWatch: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let promise: EventLoopPromise<Void>

        init(_ promise: EventLoopPromise<Void>) { self.promise = promise }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event is TLSUserEvent { promise.succeed() }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            promise.fail(error)
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { promise.fail(HTTPFetch.Failure.closed) }
    }
}
