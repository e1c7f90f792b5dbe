import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOPosix
import Synchronization
import Testing

@testable import HTTPTransport

/// Answers without an end, and the connections of a server that have one.
@Suite struct HTTPStreamTests {
    /// Answers every request with a stream, at once or when it is told to.
    private final class StreamService: PlainService {
        let acceptLog = AcceptLog(.init(label: "streams") { _ in SwiftLogNoOpLogHandler() }, for: "streams")
        let answersLate: Bool
        private(set) var begun = 0
        private(set) var ended = 0
        private var reply: ((HTTPAnswer) -> Void)?

        init(answersLate: Bool) { self.answersLate = answersLate }

        func accept(_ channel: any Channel) -> any ConnectionService { self }

        func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
            self.reply = reply
            if !answersLate { stream() }
        }

        func refusal(
            _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
        ) -> HTTPAnswer { HTTPAnswer(status: .payloadTooLarge, body: []) }

        func stream() {
            var answer = HTTPAnswer(status: .ok, contentType: "text/event-stream", body: Array("retry: 1\n\n".utf8))
            let own = NIOLoopBound(self, eventLoop: EmbeddedEventLoop())
            answer.stream = { stream in
                let service = own.value
                service.begun += 1
                stream.onClose { service.ended += 1 }
            }
            reply?(answer)
            reply = nil
        }
    }

    /// A socket whose peer has reset the connection, which the first write finds out.
    private final class ResetSocket: ChannelOutboundHandler {
        typealias OutboundIn = NIOAny

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            promise?.fail(ChannelError.ioOnClosedChannel)
            context.close(promise: nil)
        }
    }

    private func connection(_ service: StreamService, behind socket: (any ChannelHandler)? = nil) throws
        -> EmbeddedChannel
    {
        let channel = EmbeddedChannel()
        let timer = RequestTimer()
        let bounds = StrangerBounds(bodyBytes: 10, messageBytes: 1)
        let meter = InboundMeter(InboundBudget(limit: 1_000), admitted: nil, bounds, timer: timer)
        if let socket { try channel.pipeline.syncOperations.addHandler(socket) }
        try channel.pipeline.syncOperations.addHandler(
            RequestHandler(
                service, bounds, timer: timer, meter: meter, headers: SecurityHeaders(isEncrypted: false)))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        try channel.writeInbound(HTTPServerRequestPart.head(head))
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
        return channel
    }

    @Test("A stream's owner learns that its client goes")
    func goes() throws {
        let service = StreamService(answersLate: false)
        let channel = try connection(service)
        #expect(service.begun == 1 && service.ended == 0)
        channel.close(promise: nil)
        channel.embeddedEventLoop.run()
        #expect(service.ended == 1)
    }

    @Test("An answer that comes when its client has gone begins no stream")
    func gone() throws {
        let service = StreamService(answersLate: true)
        let channel = try connection(service)
        channel.close(promise: nil)
        // The connection's handlers are still there.
        service.stream()
        channel.embeddedEventLoop.run()
        #expect(service.begun == service.ended)
    }

    @Test("A client whose connection fails while the stream begins is not kept")
    func fails() throws {
        let service = StreamService(answersLate: false)
        let channel = try connection(service, behind: ResetSocket())
        channel.embeddedEventLoop.run()
        #expect(service.begun == 1 && service.ended == 1)
    }

    @Test(
        "At the limit the oldest stranger makes room, an admitted client never, and without strangers a new one is refused"
    )
    func room() throws {
        let connections = OpenChannels(most: 3)
        let channels = (0..<6).map { _ in EmbeddedChannel() }
        for channel in channels { try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait() }
        func track(_ index: Int) -> Bool {
            defer { for channel in channels { channel.embeddedEventLoop.run() } }
            return connections.track(channels[index])
        }
        for index in 0..<3 { #expect(track(index)) }
        connections.admit(channels[0])
        connections.admit(channels[0])
        #expect(track(3))
        #expect(channels.map(\.isActive) == [true, false, true, true, true, true] && connections.count == 3)
        connections.admit(channels[3])
        #expect(track(4))
        #expect(channels.map(\.isActive) == [true, false, false, true, true, true] && connections.count == 3)
        connections.admit(channels[4])
        #expect(!track(5) && connections.count == 3)
        channels[0].close(promise: nil)
        channels[0].embeddedEventLoop.run()
        #expect(track(5) && connections.count == 3)
    }

    @Test("A server that does not wait 15 minutes for a client that vanished says so to the system")
    func vanished() async throws {
        final class Watch: Sendable {
            let values = Mutex<[Int]>([])
        }
        let watch = Watch()
        let group = MultiThreadedEventLoopGroup.singleton
        for patience in [Duration.seconds(45), nil] {
            let loop = group.next()
            let listener = try await loop.submit {
                NIOLoopBound(
                    HTTPListener(
                        OptionService { value in watch.values.withLock { $0.append(value) } }, tls: nil,
                        budget: InboundBudget(limit: 1_000), bounds: StrangerBounds(bodyBytes: 1, messageBytes: 1),
                        messageBytes: 1), eventLoop: loop)
            }.get()
            let address = try ListenAddress(host: "127.0.0.1", port: 0).resolve()
            let server = try await HTTPListener.listen(at: address, with: listener, patience: patience, on: loop)
            let client = try await ClientBootstrap(group: group)
                .connect(host: "127.0.0.1", port: server.localAddress?.port ?? 0).get()
            // It is closed when the option was looked at.
            try await client.closeFuture.get()
            try await server.close()
        }
        #expect(watch.values.withLock { $0 } == [45_000, 0])
    }

    /// Looks at the option of a connection, and closes it.
    private final class OptionService: PlainService {
        let acceptLog = AcceptLog(.init(label: "options") { _ in SwiftLogNoOpLogHandler() }, for: "options")
        private let note: (Int) -> Void

        init(_ note: @escaping (Int) -> Void) { self.note = note }

        func accept(_ channel: any Channel) throws -> any ConnectionService {
            let value = try channel.syncOptions?.getOption(HTTPListener.userTimeout) ?? -1
            note(value & 0xFFFF_FFFF)
            throw ConnectionRefusal.full
        }

        func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {}

        func refusal(
            _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
        ) -> HTTPAnswer { HTTPAnswer(status: .payloadTooLarge, body: []) }
    }
}
