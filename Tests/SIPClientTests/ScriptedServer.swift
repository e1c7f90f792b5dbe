import HTTPTransport
import NIOCore
import NIOPosix
import SIP
import Synchronization
import TLS

/// A SIP server at a port of this machine that answers by a script, and sends what a test gives it to whoever spoke last.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (SIPMessage) -> SIPMessage?

    private struct State {
        var received: [SIPMessage] = []
        var connection: (any Channel)?
        var peer: NIOCore.SocketAddress?
        var connections = 0
        var pongs = 0
    }

    private let state = Mutex(State())
    private let script: Script
    private let channel = Mutex<(any Channel)?>(nil)

    /// - Parameter tls: What connections are protected by; nil leaves them in the clear.
    init(
        _ transport: SIPTransport, host: String = "127.0.0.1", tls: TLSContext? = nil,
        script: @escaping Script = registrar
    ) async throws {
        self.script = script
        let group = MultiThreadedEventLoopGroup.singleton
        let opened: any Channel
        if transport == .udp {
            opened = try await DatagramBootstrap(group: group)
                .channelInitializer { [self] channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Datagrams(self))
                    }
                }.bind(host: host, port: 0).get()
        } else {
            opened = try await ServerBootstrap(group: group)
                .childChannelInitializer { [self] channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let tls { try channel.pipeline.syncOperations.addTLS(tls) }
                        try channel.pipeline.syncOperations.addHandler(Stream(self))
                    }
                }.bind(host: host, port: 0).get()
        }
        channel.withLock { $0 = opened }
    }

    var port: UInt16 { UInt16(channel.withLock { $0?.localAddress?.port } ?? 0) }

    var received: [SIPMessage] { state.withLock { $0.received } }

    var connections: Int { state.withLock { $0.connections } }

    /// Answers to our pings.
    var pongs: Int { state.withLock { $0.pongs } }

    /// Reads nothing more from whoever spoke last.
    func stopReading() { _ = state.withLock { $0.connection }?.setOption(.autoRead, value: false) }

    func close() { channel.withLock { $0?.close(promise: nil) } }

    /// Ends the connection of whoever spoke last.
    func drop() { state.withLock { $0.connection }?.close(promise: nil) }

    /// Sends a message; by a connection in three pieces.
    func send(_ message: SIPMessage) { send(message.bytes) }

    func send(_ bytes: [UInt8], to port: UInt16? = nil) {
        let (connection, peer) = state.withLock { ($0.connection, $0.peer) }
        if let connection {
            for piece in [bytes.prefix(10), bytes.dropFirst(10).prefix(100), bytes.dropFirst(110)] {
                connection.writeAndFlush(ByteBuffer(bytes: piece), promise: nil)
            }
        } else if let channel = channel.withLock({ $0 }) {
            let address = port.flatMap { try? NIOCore.SocketAddress(ipAddress: "127.0.0.1", port: Int($0)) } ?? peer
            guard let address else { return }
            channel.writeAndFlush(
                AddressedEnvelope(remoteAddress: address, data: ByteBuffer(bytes: bytes)), promise: nil)
        }
    }

    /// Grants every registration that has credentials, and takes every BYE.
    static let registrar: Script = { message in
        guard case .request(let request) = message else { return nil }
        switch request.method {
        case .register where request.headers["Authorization"] == nil:
            var response = SIPResponse(401, to: request, toTag: "server")
            response.headers.append("WWW-Authenticate", "Digest realm=\"sip.test\", nonce=\"abc\", qop=\"auth\"")
            return .response(response)
        case .register:
            var response = SIPResponse(200, to: request, toTag: "server")
            for line in request.headers.lines("Contact") { response.headers.append("Contact", line) }
            return .response(response)
        case .bye: return .response(SIPResponse(200, to: request))
        default: return nil
        }
    }

    private func take(_ bytes: [UInt8]) -> SIPMessage? {
        guard let message = try? SIPMessage(parsing: bytes) else { return nil }
        state.withLock { $0.received.append(message) }
        return script(message)
    }

    private final class Datagrams: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        private let server: ScriptedServer
        init(_ server: ScriptedServer) { self.server = server }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = unwrapInboundIn(data)
            server.state.withLock { $0.peer = envelope.remoteAddress }
            if let answer = server.take(Array(envelope.data.readableBytesView)) { server.send(answer) }
        }
    }

    private final class Stream: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let server: ScriptedServer
        private var framer = SIPStreamFramer()
        init(_ server: ScriptedServer) { self.server = server }

        func channelActive(context: ChannelHandlerContext) {
            server.state.withLock {
                $0.connections += 1
                $0.connection = context.channel
            }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var elements: [SIPStreamFramer.Element] = []
            try? framer.take(Array(unwrapInboundIn(data).readableBytesView), into: &elements)
            for element in elements {
                switch element {
                case .message(let bytes): if let answer = server.take(bytes) { server.send(answer) }
                case .ping:
                    // Two answers in one piece look like a ping.
                    server.state.withLock { $0.pongs += 2 }
                    server.send([13, 10])
                case .pong: server.state.withLock { $0.pongs += 1 }
                }
            }
        }
    }
}
