import CallControl
import JSON
import Logging
import SIP
import SIPClient
import SIPSignaling
import SignalingClient
import Synchronization
import Testing
import TestSupport

/// Keeps what is logged.
private struct KeptLines: LogHandler {
    final class Lines: Sendable {
        private let lines = Mutex<[(message: String, metadata: Logger.Metadata)]>([])
        func add(_ message: String, _ metadata: Logger.Metadata) { lines.withLock { $0.append((message, metadata)) } }
        func metadata(of start: String) -> [Logger.Metadata] {
            lines.withLock { $0.filter { $0.message.hasPrefix(start) }.map(\.metadata) }
        }
    }

    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.add("\(event.message)", event.metadata ?? [:]) }
}

@Suite("A SIP account over real sockets", .timeLimit(.minutes(1)))
struct SIPServiceTests {
    private func service(
        _ server: ScriptedServer, _ transport: SIPTransport, localPort: UInt16 = 0, acceptsStrangers: Bool = false,
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) throws -> SIPService {
        let uri = try #require(AnyURI("sip:alice@sip.test"))
        var account = SIPAccountSettings(address: NameAddress(uri), username: "alice", password: "secret")
        account.acceptsStrangers = acceptsStrangers
        var configuration = SIPServiceConfiguration(
            account: account, server: .init(host: "127.0.0.1", port: server.port, transport: transport))
        configuration.localPort = localPort
        return try SIPService(configuration, logger: logger)
    }

    private static let offer = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"

    private func invite(branch: String = "z9hG4bKa", uri: String = "sip:alice@127.0.0.1") throws -> SIPMessage {
        let text =
            "INVITE \(uri) SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:9;rport;branch=\(branch)\r\nFrom: <sip:bob@sip.test>;tag=b\r\n"
            + "To: <sip:alice@sip.test>\r\nCall-ID: \(branch)\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\n"
            + "Contact: <sip:bob@127.0.0.1:9>\r\nContent-Type: application/sdp\r\n"
            + "Content-Length: \(Self.offer.utf8.count)\r\n\r\n\(Self.offer)"
        return try SIPMessage(parsing: Array(text.utf8))
    }

    /// The first event that `choose` takes.
    private func next<Value>(
        _ events: inout AsyncStream<SignalingEvent>.Iterator, _ choose: (SignalingEvent) -> Value?
    ) async throws -> Value {
        while let event = await events.next() {
            if let value = choose(event) { return value }
        }
        throw CancellationError()
    }

    @Test(
        "It registers with digest, takes a call, hangs up, and takes the registration back",
        arguments: [SIPTransport.udp, .tcp])
    func call(_ transport: SIPTransport) async throws {
        let server = try await ScriptedServer(transport)
        defer { server.close() }
        let service = try service(server, transport)
        var events = service.events.makeAsyncIterator()
        try await service.connect()
        #expect(await service.session?.user == "alice@sip.test")
        server.send(try invite())
        let invite = try await next(&events) { if case .inviteReceived(let invite) = $0 { invite } else { nil } }
        #expect(invite.inviter == "bob@sip.test" && invite.offer?.sdp == Self.offer)
        try await service.accept(invite.id, .call(.answer("v=0")))
        try await until {
            server.received.contains { if case .response(let response) = $0 { response.status == 200 } else { false } }
        }
        // On a busy machine 100 comes first (RFC 3261 §17.2.1), and the 200 is repeated before the ACK comes (§13.3.1.4).
        let responses = server.received.compactMap {
            if case .response(let response) = $0, response.status != 100 { response } else { nil }
        }
        let statuses = responses.map(\.status)
        #expect(statuses.prefix(2) == [180, 200] && statuses.dropFirst(2).allSatisfy { $0 == 200 }, "\(statuses)")
        let via = try #require(responses[0].headers.topVia)
        #expect(via.parameters["received"] == "127.0.0.1" && via.parameters["rport"] == "\(server.port)")
        guard case .request(let request) = try self.invite() else { return }
        var ack = SIPRequest(method: .ack, uri: request.uri, headers: request.headers)
        ack.headers.set("CSeq", "1 ACK")
        ack.headers.set("Content-Type", nil)
        ack.headers.set("Via", "SIP/2.0/UDP 192.0.2.1:9;branch=z9hG4bKack")
        ack.headers.set("To", responses[1].headers["To"])
        server.send(.request(ack))
        try await service.hangUp(CallHangUp(invite: invite.id, reason: .completed, duration: .zero))
        // It follows the ACK, which may come later than the order (RFC 3261 §15).
        try await until {
            server.received.contains { if case .request(let request) = $0 { request.method == .bye } else { false } }
        }
        await service.disconnect()
        let methods = server.received.compactMap { if case .request(let request) = $0 { request } else { nil } }
        #expect(methods.contains { $0.method == .bye })
        #expect(methods.last { $0.method == .register }?.headers["Expires"] == "0")
        try await next(&events) { $0 == .disconnected ? () : nil }
    }

    @Test("A connection that the server ends is made again, and the device registers by it")
    func reconnects() async throws {
        let server = try await ScriptedServer(.tcp)
        defer { server.close() }
        let service = try service(server, .tcp)
        var events = service.events.makeAsyncIterator()
        try await service.connect()
        server.drop()
        try await next(&events) { $0 == .reconnecting ? () : nil }
        try await next(&events) { $0 == .reconnected ? () : nil }
        #expect(server.connections == 2)
        await service.disconnect()
    }

    @Test("A call that rings while the server ends the connection is accepted by the next one")
    func ringsThroughReconnect() async throws {
        let server = try await ScriptedServer(.tcp)
        defer { server.close() }
        let service = try service(server, .tcp)
        var events = service.events.makeAsyncIterator()
        try await service.connect()
        server.send(try invite())
        let invite = try await next(&events) { if case .inviteReceived(let invite) = $0 { invite } else { nil } }
        server.drop()
        try await next(&events) { $0 == .reconnecting ? () : nil }
        try await service.accept(invite.id, .call(.answer("v=0")))
        try await next(&events) { $0 == .reconnected ? () : nil }
        try await until {
            server.received.contains { if case .response(let response) = $0 { response.status == 200 } else { false } }
        }
        #expect(server.connections == 2)
        await service.disconnect()
    }

    @Test("Datagrams of others than the server get no answer")
    func strangers() async throws {
        let server = try await ScriptedServer(.udp)
        let stranger = try await ScriptedServer(.udp, host: "127.0.0.2")
        defer {
            server.close()
            stranger.close()
        }
        let service = try service(server, .udp)
        try await service.connect()
        let registers = server.received.compactMap { if case .request(let request) = $0 { request } else { nil } }
        let contact = try #require(registers.last?.headers.contacts?.first?.uri.sip)
        let port = try #require(contact.port)
        stranger.send(try invite(branch: "z9hG4bKstranger").bytes, to: port)
        stranger.send(Array("no SIP at all".utf8), to: port)
        server.send(try invite())
        try await until {
            server.received.contains { if case .response(let response) = $0 { response.status == 180 } else { false } }
        }
        #expect(stranger.received.isEmpty)
        await service.disconnect()
    }

    @Test("Responses from another port than requests go to are logged with both addresses, once a minute")
    func misplaced() async throws {
        let other = try await ScriptedServer(.udp)
        let server = try await ScriptedServer(.udp) { message in
            // Its answers leave by the other port.
            guard case .request(let request) = message, let port = request.headers.topVia?.port,
                let answer = ScriptedServer.registrar(message)
            else { return nil }
            for _ in 0..<3 { other.send(answer.bytes, to: port) }
            return nil
        }
        defer {
            server.close()
            other.close()
        }
        let lines = KeptLines.Lines()
        let service = try service(server, .udp, logger: Logger(label: "test") { _ in KeptLines(lines: lines) })
        let connecting = Task { try? await service.connect() }
        let message = "A response of the SIP server was dropped"
        try await until { !lines.metadata(of: message).isEmpty && server.received.count > 1 }
        let told = lines.metadata(of: message)
        #expect(told.count == 1)
        #expect(told[0]["from"] == "127.0.0.1:\(other.port)" && told[0]["expected"] == "127.0.0.1:\(server.port)")
        await service.disconnect()
        await connecting.value
    }

    @Test("A response by a connection that has ended is logged and counted, with the call that it belongs to")
    func unsent() async throws {
        let server = try await ScriptedServer(.tcp)
        let lines = KeptLines.Lines()
        let service = try service(server, .tcp, logger: Logger(label: "test") { _ in KeptLines(lines: lines) })
        var events = service.events.makeAsyncIterator()
        try await service.connect()
        let invite = try invite()
        server.send(invite)
        while let event = await events.next() { if case .inviteReceived = event { break } }
        server.close()
        server.drop()
        while let event = await events.next() { if case .reconnecting = event { break } }
        let message = "A SIP message was not sent"
        #expect(lines.metadata(of: message).isEmpty)
        await service.disconnect()
        let told = lines.metadata(of: message)
        guard case .request(let request) = invite else { return }
        #expect(told.first?["message"] == "603 INVITE" && told.first?["unsent"] == "1")
        #expect(told.first?["invite"] == "\(request.headers.callID ?? "none")")
    }

    @Test("A server that pings without end gets few answers, and is served on")
    func pings() async throws {
        let server = try await ScriptedServer(.tcp)
        defer { server.close() }
        let service = try service(server, .tcp)
        try await service.connect()
        for _ in 0..<500 { server.send([13, 10, 13, 10]) }
        server.send(try invite())
        try await until {
            server.received.contains { if case .response(let response) = $0 { response.status == 180 } else { false } }
        }
        #expect((1...100).contains(server.pongs), "\(server.pongs)")
        await service.disconnect()
    }

    @Test("A server that reads nothing has a bounded part of our messages wait for it, and then no flow")
    func slowReader() async throws {
        let server = try await ScriptedServer(.tcp)
        defer { server.close() }
        let service = try service(server, .tcp)
        var events = service.events.makeAsyncIterator()
        try await service.connect()
        server.stopReading()
        // Each gets an answer of half a kilobyte or more: 20 MB in all, far beyond what the kernel holds.
        for number in 0..<40_000 {
            let text =
                "OPTIONS sip:alice@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TCP 192.0.2.1:9;branch=z9hG4bK\(number)\r\n"
                + "From: <sip:bob@sip.test>;tag=b\r\nTo: <sip:alice@sip.test>\r\nCall-ID: \(number)\r\n"
                + "CSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
            server.send(Array(text.utf8))
        }
        try await next(&events) { $0 == .reconnecting ? () : nil }
        await service.disconnect()
    }

    // MARK: Strangers

    /// Where an account that has registered over UDP is reached.
    private func port(at server: ScriptedServer) throws -> UInt16 {
        let contacts = server.received.compactMap { $0.headers.contacts?.first?.uri.sip?.port }
        return try #require(contacts.last)
    }

    private func request(_ method: String, _ branch: String, to: String, callID: String) -> [UInt8] {
        Array(
            ("\(method) sip:alice@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.9:9;rport;branch=z9hG4bK\(branch)\r\n"
                + "From: <sip:bob@sip.test>;tag=b\r\nTo: \(to)\r\nCall-ID: \(callID)\r\nCSeq: 2 \(method)\r\n"
                + "Max-Forwards: 70\r\nContent-Length: 0\r\n\r\n").utf8)
    }

    @Test("However much rubbish comes from elsewhere, each request of a host that sends few is answered")
    func rubbish() async throws {
        let server = try await ScriptedServer(.udp)
        let stranger = try await ScriptedServer(.udp, host: "127.0.0.2") { _ in nil }
        let flooder = try await ScriptedServer(.udp, host: "127.0.0.3") { _ in nil }
        defer { for peer in [server, stranger, flooder] { peer.close() } }
        let service = try service(server, .udp, acceptsStrangers: true)
        try await service.connect()
        let port = try port(at: server)
        for number in 1...40 {
            for round in 0..<60 {
                let rubbish =
                    round.isMultiple(of: 2)
                    ? [UInt8](repeating: 0x58, count: 500) : Array("OPTIONS sip:a SIP/2.0\r\nX: 1\r\n\r\n".utf8)
                flooder.send(rubbish, to: port)
            }
            let request = request("OPTIONS", "o\(number)", to: "<sip:alice@sip.test>", callID: "o\(number)")
            var due = ContinuousClock.now
            try await until {
                // Where the socket's buffer is full, the kernel drops what comes: so it is repeated (RFC 3261 §17.1.2.2).
                if ContinuousClock.now >= due {
                    stranger.send(request, to: port)
                    due += .milliseconds(500)
                }
                return stranger.received.contains { message in
                    if case .response(let response) = message {
                        response.headers["Call-ID"] == "o\(number)"
                    } else {
                        false
                    }
                }
            }
        }
        await service.disconnect()
    }

    @Test("A stranger who has read a call's names does not end it from another host, and the server's BYE does")
    func foreignBye() async throws {
        for acceptsStrangers in [false, true] {
            let server = try await ScriptedServer(.udp)
            let stranger = try await ScriptedServer(.udp, host: "127.0.0.2") { _ in nil }
            defer { for peer in [server, stranger] { peer.close() } }
            let service = try service(server, .udp, acceptsStrangers: acceptsStrangers)
            var events = service.events.makeAsyncIterator()
            try await service.connect()
            server.send(try invite())
            let invite = try await next(&events) { if case .inviteReceived(let invite) = $0 { invite } else { nil } }
            try await service.accept(invite.id, .call(.answer("v=0")))
            func accepted() -> SIPResponse? {
                server.received.lazy.compactMap {
                    if case .response(let response) = $0, response.status == 200 { response } else { nil }
                }.first
            }
            try await until { accepted() != nil }
            let to = try #require(accepted()?.headers["To"])
            let port = try port(at: server)
            stranger.send(request("BYE", "foreign", to: to, callID: "z9hG4bKa"), to: port)
            if acceptsStrangers {
                try await until { !stranger.received.isEmpty }
                guard case .response(let response)? = stranger.received.first else { throw CancellationError() }
                #expect(response.status == 481)
            }
            server.send(request("BYE", "own", to: to, callID: "z9hG4bKa"), to: port)
            let end = try await next(&events) { if case .callEnded(let end) = $0 { end } else { nil } }
            #expect(end.invite == invite.id)
            // What had been taken of the other one would have ended the call before, with this one refused.
            try await until {
                server.received.contains {
                    if case .response(let response) = $0 {
                        response.status == 200 && response.headers.sequence?.method == .bye
                    } else {
                        false
                    }
                }
            }
            #expect(stranger.received.isEmpty == !acceptsStrangers)
            await service.disconnect()
        }
    }
}
