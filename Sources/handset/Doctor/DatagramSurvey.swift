internal import Core
internal import NIOCore
internal import NIOPosix

/// Asks servers over UDP, all from one socket, and takes their answers.
enum DatagramSurvey {
    /// What is sent to a server, again after 0.5 and 1.5 s.
    struct Question: Sendable {
        let address: Core.SocketAddress
        let bytes: [UInt8]
    }

    /// The answers.
    struct Result<Answer: Sendable>: Sendable {
        /// By the question's number.
        var answers: [Int: Answer] = [:]
        /// The port of the socket.
        var port: UInt16 = 0
    }

    /// Asks all questions, over IPv4, and returns when all are answered, or after ``DoctorBounds/datagrams`` seconds.
    ///
    /// - Parameters:
    ///   - ask: Makes the questions for a socket with this port.
    ///   - take: Reads a datagram: the number of its question, and the answer; nil if it is none.
    /// - Throws: What the system says against the socket.
    static func run<Answer: Sendable>(
        _ ask: @escaping @Sendable (_ port: UInt16) -> [Question],
        _ take: @escaping @Sendable ([UInt8]) -> (Int, Answer)?
    ) async throws -> Result<Answer> {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: Result<Answer>.self)
        let bound = DatagramBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(ask, take, promise))
                }
            }
            .bind(host: "0.0.0.0", port: 0)
        bound.cascadeFailure(to: promise)
        promise.futureResult.whenComplete { _ in bound.whenSuccess { $0.close(promise: nil) } }
        return try await promise.futureResult.get()
    }

    private final class Handler<Answer: Sendable>: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        typealias OutboundOut = AddressedEnvelope<ByteBuffer>

        private let ask: @Sendable (UInt16) -> [Question]
        private let take: @Sendable ([UInt8]) -> (Int, Answer)?
        private let promise: EventLoopPromise<Result<Answer>>
        private var questions: [Question] = []
        private var result = Result<Answer>()
        private var timers: [Scheduled<Void>] = []

        init(
            _ ask: @escaping @Sendable (UInt16) -> [Question], _ take: @escaping @Sendable ([UInt8]) -> (Int, Answer)?,
            _ promise: EventLoopPromise<Result<Answer>>
        ) {
            self.ask = ask
            self.take = take
            self.promise = promise
        }

        func channelActive(context: ChannelHandlerContext) {
            result.port = UInt16(clamping: context.localAddress?.port ?? 0)
            questions = ask(result.port)
            send(context)
            let loop = context.eventLoop.assumeIsolated()
            for milliseconds: Int64 in [500, 1_500] {
                timers.append(loop.scheduleTask(in: .milliseconds(milliseconds)) { self.send(context) })
            }
            timers.append(loop.scheduleTask(in: .seconds(Int64(DoctorBounds.datagrams))) { self.finish() })
        }

        private func send(_ context: ChannelHandlerContext) {
            for (index, question) in questions.enumerated() where result.answers[index] == nil {
                let address = question.address
                guard let target = try? NIOCore.SocketAddress(ipAddress: address.host, port: Int(address.port)) else {
                    continue
                }
                let envelope = AddressedEnvelope(remoteAddress: target, data: ByteBuffer(bytes: question.bytes))
                context.write(wrapOutboundOut(envelope), promise: nil)
            }
            context.flush()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard let (index, answer) = take(Array(unwrapInboundIn(data).data.readableBytesView)),
                result.answers[index] == nil
            else { return }
            result.answers[index] = answer
            if result.answers.count == questions.count { finish() }
        }

        private func finish() {
            for timer in timers { timer.cancel() }
            timers = []
            promise.succeed(result)
        }
    }
}
