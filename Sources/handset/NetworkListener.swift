internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import Core

/// Listens to the kernel's messages about the network, on an event loop, as long as that runs.
enum NetworkListener {
    /// Bytes that are read at once; the kernel's messages are shorter.
    private static let bufferBytes = 32_768

    /// Calls `changed` on the event loop whenever a connection should be tried. Without netlink nothing happens, and the log says so.
    static func start(
        on group: any EventLoopGroup, logger: Logger, _ changed: @escaping @Sendable () -> Void
    ) async {
        do {
            let descriptor = try RouteSocket.open()
            _ = try await NIOPipeBootstrap(group: group)
                .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: bufferBytes))
                .takingOwnershipOfDescriptor(input: descriptor) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(NetworkHandler(changed))
                    }
                }
        } catch {
            logger.notice(
                "Changes of the network are not noticed at once", metadata: ["error": "\(error)"])
        }
    }
}

/// Gives a ``NetworkWatch`` its inputs.
private final class NetworkHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let changed: @Sendable () -> Void
    private var watch = NetworkWatch()
    private var timer: Scheduled<Void>?

    init(_ changed: @escaping @Sendable () -> Void) { self.changed = changed }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        feed(.messages(Array(unwrapInboundIn(data).readableBytesView)), context.eventLoop)
    }

    func channelInactive(context: ChannelHandlerContext) { timer?.cancel() }

    private func feed(_ input: NetworkWatch.Input, _ loop: any EventLoop) {
        var outbox: [NetworkWatch.Output] = []
        let now = NIODeadline.now()
        watch.handle(input, at: Instant(nanoseconds: Int64(clamping: now.uptimeNanoseconds)), into: &outbox)
        for output in outbox {
            switch output {
            case .changed: changed()
            }
        }
        timer?.cancel()
        timer = watch.nextDeadline.map { deadline in
            loop.assumeIsolated().scheduleTask(
                deadline: .uptimeNanoseconds(UInt64(clamping: deadline.nanoseconds))
            ) { [weak self] in self?.feed(.timerFired, loop) }
        }
    }
}
