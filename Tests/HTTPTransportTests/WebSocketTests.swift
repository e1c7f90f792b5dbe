import struct Core.TokenBucket
import HTTPTransport
import NIOCore
import NIOEmbedded
import NIOWebSocket
import Testing

/// One end of a WebSocket without a network, in virtual time.
private final class End {
    let loop = EmbeddedEventLoop()
    let channel: EmbeddedChannel
    let socket: WebSocket
    private let log: Log

    final class Log {
        var events: [String] = []
    }

    var events: [String] { log.events }

    init(_ settings: WebSocket.Settings, hasBegun: Bool = true) throws {
        let log = Log()
        self.log = log
        socket = WebSocket(settings) { event in
            switch event {
            case .opened: log.events.append("opened")
            case .text(let bytes): log.events.append("text \(String(decoding: bytes, as: UTF8.self))")
            case .binary(let bytes): log.events.append("binary \(bytes)")
            case .pong: log.events.append("pong")
            case .lifeSign: log.events.append("life sign")
            case .refused: log.events.append("refused")
            case .fault(let code): log.events.append("fault \(code)")
            case .silent: log.events.append("silent")
            case .closed(let code): log.events.append("closed \(code.map { "\($0)" } ?? "without code")")
            case .failed(let error): log.events.append("failed: \(error)")
            }
        }
        channel = EmbeddedChannel(handler: socket, loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        if hasBegun { socket.begin() }
    }

    func receive(_ opcode: WebSocketOpcode, _ bytes: [UInt8] = [], isMasked: Bool, isFinal: Bool = true) throws {
        let mask: WebSocketMaskingKey = [1, 2, 3, 4]
        var data = ByteBuffer(bytes: bytes)
        if isMasked { data.webSocketMask(mask) }
        try channel.writeInbound(
            WebSocketFrame(fin: isFinal, opcode: opcode, maskKey: isMasked ? mask : nil, data: data))
    }

    /// What was sent since last asked: opcode, whether it is masked, and the payload.
    func sent() throws -> [(opcode: WebSocketOpcode, isMasked: Bool, bytes: [UInt8])] {
        var frames: [(opcode: WebSocketOpcode, isMasked: Bool, bytes: [UInt8])] = []
        while let frame = try channel.readOutbound(as: WebSocketFrame.self) {
            // The encoder masks, so what is seen here is not masked yet.
            frames.append((frame.opcode, frame.maskKey != nil, Array(buffer: frame.data)))
        }
        return frames
    }
}

@Suite struct WebSocketTests {
    private let client = WebSocket.Settings(.client, messageBytes: 10)
    private let server = WebSocket.Settings(.server, messageBytes: 10)

    @Test("Text and binary messages go out as such, masked by a client and never by a server")
    func sending() throws {
        for settings in [client, server] {
            let end = try End(settings)
            end.socket.send([104, 105])
            end.socket.send(binary: [0, 255])
            end.socket.ping()
            let sent = try end.sent()
            #expect(sent.map(\.opcode) == [.text, .binary, .ping])
            #expect(sent.map(\.bytes) == [[104, 105], [0, 255], []])
            #expect(sent.allSatisfy { $0.isMasked == (settings === client) })
        }
    }

    @Test("What a server sends together with the end of the upgrade reaches the client after it has its socket")
    func earlyFrames() throws {
        let end = try End(client, hasBegun: false)
        try end.receive(.text, [104], isMasked: false)
        try end.receive(.ping, [7], isMasked: false)
        #expect(try end.events.isEmpty && end.sent().isEmpty)
        end.socket.begin()
        #expect(end.events == ["opened", "text h", "life sign"])
        #expect(try end.sent().map(\.opcode) == [.pong])
        end.socket.begin()
        #expect(end.events.count == 3)
    }

    @Test("Messages of both kinds arrive whole, pings are answered between their fragments, and pongs are reported")
    func receiving() throws {
        for settings in [client, server] {
            let isMasked = settings === server
            let end = try End(settings)
            try end.receive(.text, Array("he".utf8), isMasked: isMasked, isFinal: false)
            try end.receive(.ping, [7], isMasked: isMasked)
            try end.receive(.continuation, Array("llo".utf8), isMasked: isMasked)
            try end.receive(.binary, [1, 2], isMasked: isMasked)
            try end.receive(.pong, isMasked: isMasked)
            #expect(end.events == ["opened", "life sign", "life sign", "text hello", "binary [1, 2]", "pong"])
            let sent = try end.sent()
            #expect(sent.map(\.opcode) == [.pong] && sent.map(\.bytes) == [[7]])
        }
    }

    @Test("A client whose server breaks the protocol or the limit says so with a close frame, and has failed")
    func clientFaults() throws {
        let masked = try End(client)
        try masked.receive(.text, [1], isMasked: true)
        #expect(masked.events == ["opened", "failed: not a WebSocket frame"] && !masked.channel.isActive)
        #expect(try masked.sent().first?.bytes.prefix(2) == [0x03, 0xEA])
        let long = try End(client)
        try long.receive(.binary, [UInt8](repeating: 0, count: 11), isMasked: false)
        #expect(long.events == ["opened", "failed: messages have at most 10 bytes"] && !long.channel.isActive)
        #expect(try long.sent().first?.bytes.prefix(2) == [0x03, 0xF1])
    }

    @Test(
        "A server whose client breaks the protocol sends a close frame, and takes nothing more until the client closes")
    func serverFaults() throws {
        let end = try End(server)
        try end.receive(.text, [1], isMasked: false)
        try end.receive(.text, [1], isMasked: true)
        try end.receive(.ping, isMasked: true)
        #expect(end.events == ["opened", "fault 1002"] && end.channel.isActive)
        try end.receive(.connectionClose, [0x03, 0xEA], isMasked: true)
        #expect(end.events == ["opened", "fault 1002", "closed 1002"] && !end.channel.isActive)
    }

    @Test("A close frame is answered with its own code, and nothing is sent after it")
    func closing() throws {
        for payload in [[], [0x0F, 0xA1]] as [[UInt8]] {
            let end = try End(client)
            try end.receive(.connectionClose, payload, isMasked: false)
            end.socket.send([1])
            let sent = try end.sent()
            #expect(sent.map(\.opcode) == [.connectionClose] && sent.map(\.bytes) == [payload])
            #expect(end.events == ["opened", payload.isEmpty ? "closed without code" : "closed 4001"])
        }
    }

    @Test("A client that has said goodbye hears what the server had sent before, and closes after a second at most")
    func goodbye() throws {
        let end = try End(client)
        end.socket.close(1000, "done")
        end.socket.send([1])
        try end.receive(.text, [104], isMasked: false)
        #expect(try end.sent().map(\.opcode) == [.connectionClose])
        end.loop.advanceTime(by: .milliseconds(999))
        #expect(end.channel.isActive)
        end.loop.advanceTime(by: .milliseconds(1))
        #expect(end.events == ["opened", "text h", "closed without code"] && !end.channel.isActive)
    }

    @Test("With an interval of pings either end finds out that the other has gone")
    func keepalive() throws {
        for role in [WebSocket.Role.client, .server] {
            let end = try End(WebSocket.Settings(role, messageBytes: 10, keepalive: .seconds(5)))
            end.loop.advanceTime(by: .seconds(5))
            try end.receive(.pong, isMasked: role == .server)
            end.loop.advanceTime(by: .seconds(5))
            end.loop.advanceTime(by: .seconds(5))
            #expect(try end.sent().map(\.opcode) == [.ping, .ping])
            #expect(end.events == ["opened", "pong", "silent", "closed without code"] && !end.channel.isActive)
        }
    }

    @Test("A peer that sends more frames than the rate allows is notified")
    func frameRate() throws {
        let end = try End(
            WebSocket.Settings(.server, messageBytes: 10, frameRate: TokenBucket.Rate(burst: 3, perSecond: 1)))
        for _ in 0..<4 { try end.receive(.pong, isMasked: true) }
        let sent = try end.sent()
        #expect(sent.map(\.opcode) == [.connectionClose] && sent.first?.bytes.prefix(2) == [0x03, 0xF0])
        #expect(end.events == ["opened", "pong", "pong", "pong"])
    }

    @Test("An abandoned socket closes its connection and reports nothing more")
    func abandoning() throws {
        let end = try End(client)
        end.socket.abandon()
        #expect(end.events == ["opened"] && !end.channel.isActive)
    }
}
