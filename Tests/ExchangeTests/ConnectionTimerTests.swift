@testable import ExchangeCore
@testable import ExchangeServer
import HTTPTransport
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOWebSocket
import Testing

@Suite struct ConnectionTimerTests {
    private let loop = EmbeddedEventLoop()

    private func makeHub() -> ExchangeHub {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return ExchangeHub(loop: loop, configuration: ExchangeConfiguration(), logger: logger)
    }

    private func webSocket(of hub: ExchangeHub, keepalive: TimeAmount) -> WebSocket {
        SocketSession.makeWebSocket(SocketSession.settings(keepalive: keepalive), hub: hub)
    }

    private func makeChannel(_ handler: any ChannelHandler) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: handler, loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    private func frame(_ opcode: WebSocketOpcode) -> WebSocketFrame {
        WebSocketFrame(fin: true, opcode: opcode, maskKey: [1, 2, 3, 4], data: ByteBuffer())
    }

    @Test(
        "CONN-4: A link on which a ping goes unanswered for a whole interval is dropped and counted; one that answers stays"
    )
    func keepalive() throws {
        let hub = makeHub()
        let answering = try makeChannel(webSocket(of: hub, keepalive: .seconds(3)))
        let dead = try makeChannel(webSocket(of: hub, keepalive: .seconds(3)))
        for _ in 0..<3 {
            loop.advanceTime(by: .seconds(3))
            let ping = try answering.readOutbound(as: WebSocketFrame.self)
            #expect(ping?.opcode == .ping)
            try answering.writeInbound(frame(.pong))
        }
        #expect(answering.isActive)
        #expect(!dead.isActive)
        #expect(hub.snapshot().deadLinks == 1)
    }

    @Test("A client that does not answer a close frame is dropped a second later")
    func closing() throws {
        let socket = webSocket(of: makeHub(), keepalive: .seconds(25))
        let channel = try makeChannel(socket)
        socket.close(CloseReason.goingDown.code, CloseReason.goingDown.text)
        let close = try #require(try channel.readOutbound(as: WebSocketFrame.self))
        #expect(close.opcode == .connectionClose)
        #expect(close.unmaskedData.getInteger(at: 0, as: UInt16.self) == 1001)
        loop.advanceTime(by: .milliseconds(999))
        #expect(channel.isActive)
        loop.advanceTime(by: .milliseconds(1))
        #expect(!channel.isActive)
    }

    @Test("A connection that sends its request slower than ten seconds is dropped, however steadily it sends")
    func slowRequest() throws {
        let timer = RequestTimer()
        let channel = try makeChannel(timer)
        for _ in 0..<9 {
            loop.advanceTime(by: .seconds(1))
            try channel.writeInbound(ByteBuffer(string: "x"))
        }
        #expect(channel.isActive)
        loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }

    @Test("A connection may rest between requests for as long as it is given, and no longer")
    func idle() throws {
        let timer = RequestTimer()
        let channel = try makeChannel(timer)
        loop.advanceTime(by: .seconds(9))
        timer.restart(nil)
        loop.advanceTime(by: .hours(1))
        #expect(channel.isActive)
        timer.restart(RequestTimer.idleTime)
        loop.advanceTime(by: .seconds(29))
        #expect(channel.isActive)
        loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }
}
