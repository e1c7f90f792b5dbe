import NIOCore
import NIOEmbedded
import NIOWebSocket
import TestSupport
import Testing

@testable import HTTPTransport

/// A server's end of a WebSocket, from its bytes on, whose peer is admitted.
private final class AdmittedSocket {
    let budget: InboundBudget
    private let channel = EmbeddedChannel()
    private(set) var messages = 0
    private(set) var isCrowdedOut = false
    private var socket: WebSocket?

    init(_ budget: InboundBudget) throws {
        self.budget = budget
        let meter = InboundMeter(
            InboundBudget(limit: 0), admitted: budget, StrangerBounds(bodyBytes: 1, messageBytes: 1),
            timer: RequestTimer())
        let settings = WebSocket.Settings(.server, messageBytes: 65_536)
        let socket = WebSocket(settings, meter: meter) { [unowned self] event in
            switch event {
            case .opened(let socket):
                self.socket = socket
                socket.admit()
            case .text, .binary: messages += 1
            case .refused(.crowded): isCrowdedOut = true
            default: break
            }
        }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandlers([
            meter, ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: 65_536)), WebSocketFrameEncoder(), socket,
        ])
    }

    func receive(_ bytes: some Sequence<UInt8>) throws { try channel.writeInbound(ByteBuffer(bytes: bytes)) }

    /// Begins the closing handshake, as a server that has a reason to.
    func beginToClose() { socket?.close(1008, "too many messages") }

    func close() {
        _ = try? channel.finish()
        socket = nil
    }

    static func frame(_ opcode: UInt8, _ count: Int, isFinal: Bool = true) -> [UInt8] {
        let length: [UInt8] =
            count < 126 ? [0x80 | UInt8(count)] : [0xFE, UInt8(count >> 8), UInt8(count & 255)]
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        bytes += length
        // A mask of zeros.
        bytes += [UInt8](repeating: 0, count: 4)
        return bytes + [UInt8](repeating: 32, count: count)
    }
}

@Suite("Bytes of messages that are not complete")
struct InboundMeterTests {
    @Test("An admitted peer's bytes count until their message is complete, however they are cut, also between pings")
    func counted() throws {
        var generator = SeededGenerator(seed: 71)
        let socket = try AdmittedSocket(InboundBudget(limit: 1 << 20))
        /// What was sent and not yet received, with the length of the message's beginning after each byte.
        var (bytes, counts): ([UInt8], [Int]) = ([], [])
        var (sent, begun) = (0, 0)
        for _ in 0..<400 {
            let isPing = Int.random(in: 0..<3, using: &generator) == 0
            let isFinal = isPing || Bool.random(using: &generator)
            let count = isPing ? 20 : Int.random(in: 0..<3_000, using: &generator)
            let frame = AdmittedSocket.frame(isPing ? 9 : begun == 0 ? 1 : 0, count, isFinal: isFinal)
            bytes += frame
            counts += (1...frame.count).map { begun + $0 }
            if !isPing {
                begun = isFinal ? 0 : begun + frame.count
                sent += isFinal ? 1 : 0
            }
            counts[counts.count - 1] = begun
        }
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + Int.random(in: 1...5_000, using: &generator))
            try socket.receive(bytes[start..<end])
            #expect(socket.budget.held == counts[end - 1])
            start = end
        }
        #expect(socket.messages == sent && sent > 50 && !socket.isCrowdedOut)
        socket.close()
        #expect(socket.budget.held == 0 && socket.budget.count == 0)
    }

    @Test("Past the budget the peer whose message has been incomplete the longest is refused")
    func crowded() throws {
        let budget = InboundBudget(limit: 10_000)
        let sockets = try (0..<3).map { _ in try AdmittedSocket(budget) }
        try sockets[0].receive(AdmittedSocket.frame(1, 4_000, isFinal: false))
        try sockets[1].receive(AdmittedSocket.frame(1, 4_000, isFinal: false))
        // A message that follows one that is complete is a new one.
        try sockets[0].receive(AdmittedSocket.frame(0, 10) + AdmittedSocket.frame(1, 3_000, isFinal: false))
        try sockets[2].receive(AdmittedSocket.frame(1, 5_000).dropLast())
        #expect(sockets.map(\.isCrowdedOut) == [false, true, false] && budget.crowdedOut == 1)
        try sockets[2].receive([32])
        #expect(sockets[2].messages == 1 && budget.held == 3_008)
        for socket in sockets { socket.close() }
    }

    @Test("A stranger that exceeds the budget by itself is refused, and holds nothing")
    func stranger() throws {
        let budget = InboundBudget(limit: 1_000)
        let bounds = StrangerBounds(bodyBytes: 10_000, messageBytes: 10_000)
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandler(
            InboundMeter(budget, admitted: nil, bounds, timer: RequestTimer()))
        for _ in 0..<2 { try channel.writeInbound(ByteBuffer(repeating: 32, count: 600)) }
        #expect(budget.crowdedOut == 1 && budget.count == 0)
        let answer = try #require(try channel.readOutbound(as: ByteBuffer.self))
        #expect(String(buffer: answer).hasPrefix("HTTP/1.1 503 "))
        #expect(throws: ChannelError.alreadyClosed) { _ = try channel.finish() }
    }

    /// The server's end of a connection whose client has not logged in.
    private func connect(_ budget: InboundBudget) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        let bounds = StrangerBounds(bodyBytes: 10_000, messageBytes: 10_000)
        try channel.pipeline.syncOperations.addHandler(
            InboundMeter(budget, admitted: nil, bounds, timer: RequestTimer()))
        return channel
    }

    @Test("A stranger's head counts with what is kept of each line besides its text")
    func lines() throws {
        let budget = InboundBudget(limit: 1 << 20)
        let channel = try connect(budget)
        let line = "X-A: " + String(repeating: "y", count: 90) + "\r\n"
        for _ in 0..<100 { try channel.writeInbound(ByteBuffer(string: line)) }
        #expect(budget.held == 100 * (2 * 97 + InboundMeter.lineCost))
        _ = try channel.finish()
        #expect(budget.held == 0 && budget.count == 0)
    }

    @Test("A head that is refused counts until its connection is closed, which is at once when others need the memory")
    func refused() throws {
        let budget = InboundBudget(limit: 50_000)
        let long = try connect(budget)
        for _ in 0..<2 { try long.writeInbound(ByteBuffer(repeating: 32, count: 10_000)) }
        let answer = try #require(try long.readOutbound(as: ByteBuffer.self))
        #expect(String(buffer: answer).hasPrefix("HTTP/1.1 431 "))
        #expect(budget.held == 20_000)
        let other = try connect(budget)
        try other.writeInbound(ByteBuffer(repeating: 32, count: 16_000))
        #expect(budget.held == 32_000 && budget.crowdedOut == 1)
        #expect(throws: ChannelError.alreadyClosed) { _ = try long.finish() }
        #expect(try other.readOutbound(as: ByteBuffer.self) == nil)
        _ = try other.finish()
        #expect(budget.held == 0 && budget.count == 0)
    }

    @Test("An admitted peer that exceeds the budget by itself is refused")
    func alone() throws {
        let socket = try AdmittedSocket(InboundBudget(limit: 10_000))
        try socket.receive(AdmittedSocket.frame(1, 6_000, isFinal: false))
        #expect(!socket.isCrowdedOut)
        try socket.receive(AdmittedSocket.frame(0, 6_000, isFinal: false))
        #expect(socket.isCrowdedOut && socket.budget.held == 0 && socket.budget.count == 0)
        socket.close()
    }

    @Test("A ping between the parts of a message does not make the message younger")
    func pings() throws {
        let budget = InboundBudget(limit: 10_000)
        let sockets = try (0..<3).map { _ in try AdmittedSocket(budget) }
        let ping = AdmittedSocket.frame(9, 20)
        try sockets[0].receive(AdmittedSocket.frame(1, 4_000, isFinal: false) + ping.prefix(10))
        try sockets[1].receive(AdmittedSocket.frame(1, 4_000, isFinal: false))
        try sockets[0].receive(ping.dropFirst(10))
        #expect(budget.held == 8_016)
        try sockets[2].receive(AdmittedSocket.frame(1, 4_000, isFinal: false))
        #expect(sockets.map(\.isCrowdedOut) == [true, false, false])
        for socket in sockets { socket.close() }
    }

    @Test("Lengths in more bytes than they need do not add up")
    func longLengths() throws {
        let socket = try AdmittedSocket(InboundBudget(limit: 10_000))
        let frame: [UInt8] = [0x81, 0xFE, 0, 10, 0, 0, 0, 0] + [UInt8](repeating: 32, count: 10)
        for _ in 0..<1_000 { try socket.receive(frame) }
        #expect(socket.messages == 1_000 && socket.budget.held <= frame.count)
        socket.close()
    }
    @Test("What a socket drops that closes, or whose bytes are no frame, is not counted")
    func dropped() throws {
        for isFault in [false, true] {
            let socket = try AdmittedSocket(InboundBudget(limit: 10_000))
            try socket.receive(AdmittedSocket.frame(1, 3_000, isFinal: false))
            if isFault {
                // A length of 8 MiB.
                try socket.receive([0x80, 0xFF, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0])
            } else {
                socket.beginToClose()
            }
            for _ in 0..<20 { try socket.receive(AdmittedSocket.frame(1, 3_000)) }
            #expect(!socket.isCrowdedOut && socket.messages == 0)
            #expect(socket.budget.held <= (isFault ? 0 : 3_008))
            socket.close()
        }
    }
}
