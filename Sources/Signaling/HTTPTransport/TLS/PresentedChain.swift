internal import NIOCore
internal import NIOPosix
package import TLS

/// The certificates that a server presents, trusted or not: for inspection only, never for a connection that is used.
package enum PresentedChain {
    /// Begins a handshake, and breaks it off once the server has shown its certificates. Nothing else is sent.
    ///
    /// - Returns: The server's own certificate first.
    package static func fetch(from endpoint: HTTPEndpoint) async throws -> [TLSCertificate] {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: [TLSCertificate].self)
        let connecting = ClientBootstrap(group: loop)
            .connectTimeout(.seconds(5))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let context = try TLSContext.client(trusting: .only([]))
                    let session = try TLSSession(to: endpoint.host, in: context, check: .shown)
                    try channel.pipeline.syncOperations.addHandler(ChainHandler(session, promise))
                }
            }
            .connect(host: endpoint.host, port: endpoint.port)
        connecting.cascadeFailure(to: promise)
        let deadline = loop.scheduleTask(in: .seconds(10)) { promise.fail(HTTPFetch.Failure.tooLate) }
        promise.futureResult.whenComplete { _ in
            deadline.cancel()
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        return try await promise.futureResult.get()
    }

    /// Drives a handshake that fails once there are certificates.
    private final class ChainHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private var session: TLSSession
        private let promise: EventLoopPromise<[TLSCertificate]>

        init(_ session: consuming TLSSession, _ promise: EventLoopPromise<[TLSCertificate]>) {
            self.session = session
            self.promise = promise
        }

        func channelActive(context: ChannelHandlerContext) { transmit(context) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var nothing: [UInt8] = []
            let bytes = unwrapInboundIn(data)
            do throws(TLSError) {
                try session.receive(bytes.readableBytesUInt8Span, into: &nothing)
            } catch {
                let chain = session.presentedCertificates
                if chain.isEmpty { promise.fail(error) } else { promise.succeed(chain) }
            }
            transmit(context)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            promise.fail(error)
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { promise.fail(HTTPFetch.Failure.closed) }

        private func transmit(_ context: ChannelHandlerContext) {
            var bytes: [UInt8] = []
            session.takeOutgoing(into: &bytes)
            if !bytes.isEmpty { context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil) }
        }
    }
}
