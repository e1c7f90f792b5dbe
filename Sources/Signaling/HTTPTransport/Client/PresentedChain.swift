internal import NIOCore
internal import NIOPosix
package import NIOSSL

/// The certificates that a server shows, whoever has signed them: to be looked at, and not to be talked under.
package enum PresentedChain {
    private struct NothingShown: Error {}

    /// Begins a handshake, and breaks it off once the server has shown its certificates. Nothing else is sent.
    ///
    /// - Returns: The server's own certificate first.
    package static func fetch(from endpoint: HTTPEndpoint) async throws -> [NIOSSLCertificate] {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: [NIOSSLCertificate].self)
        let context = try NIOSSLContext(configuration: .makeClientConfiguration())
        let name = endpoint.isAddress ? nil : endpoint.host
        let connecting = ClientBootstrap(group: loop)
            .connectTimeout(.seconds(5))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = try NIOSSLClientHandler(
                        context: context, serverHostname: name,
                        customVerificationCallback: { certificates, verdict in
                            promise.succeed(certificates)
                            verdict.succeed(.failed)
                        })
                    try channel.pipeline.syncOperations.addHandlers([tls, FailureHandler(promise)])
                }
            }
            .connect(host: endpoint.host, port: endpoint.port)
        connecting.cascadeFailure(to: promise)
        let deadline = loop.scheduleTask(in: .seconds(10)) { promise.fail(HTTPFetch.Failure.tooLate) }
        promise.futureResult.whenComplete { _ in
            deadline.cancel()
            connecting.whenSuccess { $0.close(promise: nil) }
        }
        let chain = try await promise.futureResult.get()
        guard !chain.isEmpty else { throw NothingShown() }
        return chain
    }

    /// A handshake that fails before that says why.
    private final class FailureHandler: ChannelInboundHandler {
        typealias InboundIn = NIOAny
        private let promise: EventLoopPromise<[NIOSSLCertificate]>

        init(_ promise: EventLoopPromise<[NIOSSLCertificate]>) { self.promise = promise }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            promise.fail(error)
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { promise.fail(HTTPFetch.Failure.closed) }
    }
}
