import Cryptography
import HTTPTransport
import NIOCore
import NIOEmbedded
import NIOTLS
import TLS
import Testing

@Suite("TLS in a channel's pipeline, in virtual time")
struct TLSHandlerTests {
    /// What reaches the end of a pipeline.
    private final class Log: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        var text = ""
        var handshakes: [String?] = []
        var errors: [TLSError.Code?] = []
        var hasEnded = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { text += String(buffer: unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { hasEnded = true }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { errors.append((error as? TLSError)?.code) }
        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .handshakeCompleted(let name)? = event as? TLSUserEvent { handshakes.append(name) }
        }
    }

    /// Two channels, and the bytes between them.
    private final class Link {
        let (client, server) = (EmbeddedChannel(), EmbeddedChannel())
        let (atClient, atServer) = (Log(), Log())

        init() throws {
            let authority = try CertificateAuthority.make(name: "Test", from: 1_700_000_000, to: 4_000_000_000)
            let leaf = try CertificateAuthority.issue(
                for: ["exchange.test"], from: 1_700_000_000, to: 4_000_000_000, by: authority)
            let root = try #require(TLSCertificate.list(pem: authority.certificate))
            let chain = try #require(TLSCertificate.list(pem: leaf.certificate))
            let key = try #require(TLSPrivateKey(pem: leaf.key))
            let identity = try #require(TLSIdentity(chain: chain, key: key))
            try client.pipeline.syncOperations.addTLS(
                to: "exchange.test", in: .client(trusting: .only(root)), protocols: ["http/1.1"])
            try client.pipeline.syncOperations.addHandler(atClient)
            try server.pipeline.syncOperations.addTLS(.server(identity, protocols: ["http/1.1"]))
            try server.pipeline.syncOperations.addHandler(atServer)
            client.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
            server.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 2), promise: nil)
        }

        /// Carries what both have sent until neither has anything to send, in pieces of so many bytes.
        func run(piece: Int = .max) throws {
            while true {
                let hasCarried = [
                    try carry(from: client, to: server, piece), try carry(from: server, to: client, piece),
                ].contains(true)
                if !hasCarried { return }
            }
        }

        private func carry(from one: EmbeddedChannel, to other: EmbeddedChannel, _ piece: Int) throws -> Bool {
            var hasCarried = false
            while var bytes = try one.readOutbound(as: ByteBuffer.self) {
                hasCarried = true
                while let part = bytes.readSlice(length: min(piece, bytes.readableBytes)), part.readableBytes > 0 {
                    guard other.isActive else { break }
                    // Errors are the log's.
                    _ = try? other.writeInbound(part)
                }
            }
            return hasCarried
        }
    }

    @Test(
        "What is written before the handshake is complete arrives after it, regardless of the pieces",
        arguments: [1, 100, .max])
    func early(piece: Int) throws {
        let link = try Link()
        let long = String(repeating: "x", count: 50_000)
        let (first, second) = (
            link.client.eventLoop.makePromise(of: Void.self), link.client.eventLoop.makePromise(of: Void.self)
        )
        var isWritten = [false, false]
        first.futureResult.whenSuccess { isWritten[0] = true }
        second.futureResult.whenSuccess { isWritten[1] = true }
        link.client.write(ByteBuffer(string: "hello "), promise: first)
        link.client.writeAndFlush(ByteBuffer(string: long), promise: second)
        #expect(isWritten == [false, false])
        try link.run(piece: piece)
        #expect(link.atServer.text == "hello \(long)" && isWritten == [true, true])
        #expect(link.atServer.handshakes == ["http/1.1"] && link.atClient.handshakes == ["http/1.1"])
    }

    @Test("A close waits for the peer's close_notify, and both ends close without an error")
    func closing() throws {
        let link = try Link()
        try link.run()
        link.client.writeAndFlush(ByteBuffer(string: "bye"), promise: nil)
        let closed = link.client.close()
        #expect(link.client.isActive)
        try link.run()
        try closed.wait()
        #expect(link.atServer.text == "bye")
        #expect(!link.client.isActive && !link.server.isActive)
        #expect(link.atClient.errors.isEmpty && link.atServer.errors.isEmpty)
    }

    @Test("A peer that does not answer close_notify is waited for five seconds, and no longer after a second close")
    func silence() throws {
        for isImpatient in [false, true] {
            let link = try Link()
            try link.run()
            let closed = link.client.close()
            let late = link.client.writeAndFlush(ByteBuffer(string: "late"))
            #expect(throws: ChannelError.self) { try late.wait() }
            link.client.embeddedEventLoop.advanceTime(by: .milliseconds(4_999))
            #expect(link.client.isActive)
            if isImpatient {
                try link.client.close().wait()
            } else {
                link.client.embeddedEventLoop.advanceTime(by: .milliseconds(1))
            }
            #expect(!link.client.isActive)
            try closed.wait()
        }
    }

    @Test("A peer that vanishes is an error before the end: in the handshake, and after it without close_notify")
    func vanishing() throws {
        let early = try Link()
        let waiting = early.server.writeAndFlush(ByteBuffer(string: "never"))
        early.server.pipeline.fireChannelInactive()
        #expect(early.atServer.errors == [.closedInHandshake] && early.atServer.hasEnded)
        #expect(throws: TLSError.self) { try waiting.wait() }
        let late = try Link()
        try late.run()
        late.server.pipeline.fireChannelInactive()
        #expect(late.atServer.errors == [.truncated] && late.atServer.hasEnded)
    }

    @Test("A peer that speaks no TLS is one error, and the channel is closed")
    func noise() throws {
        let link = try Link()
        _ = try? link.server.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"))
        #expect(link.atServer.errors == [.plainText] && !link.server.isActive)
        #expect(link.atServer.text.isEmpty)
    }
}
