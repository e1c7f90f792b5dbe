import Foundation
import HTTPTransport
import NIOCore
import NIOHTTP1
import TLS
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct ConnectingTests {
    private func failure(_ open: () async throws -> EchoClient) async throws -> TransportFailure {
        let error = await #expect(throws: TransportFailure.self) { _ = try await open() }
        return try #require(error)
    }

    @Test("Text, binary messages and pings go to a server and back, over one connection")
    func echo() async throws {
        try await withEchoServer { server in
            let client = try await EchoClient.open("ws://127.0.0.1:\(server.port)/echo")
            #expect(client.subprotocol == nil)
            let long = [UInt8](repeating: 9, count: 300_000)
            client.send("grüße")
            client.perform { $0.send(binary: long) }
            client.perform { $0.ping() }
            try await until { client.heard.count == 3 }
            #expect(client.heard == [.text("grüße"), .binary(long), .pong])
            client.perform { $0.close(1_000) }
            try await until { client.heard.last == .closed(1_000) }
            #expect(try await server.closed() == [1_000])
        }
    }

    @Test("A machine without a route to the server gets an error in words, and not in those of a system call")
    func noRoute() throws {
        let endpoint = try HTTPEndpoint("https://192.0.2.1:8443")
        for errno in [ENETUNREACH, EHOSTUNREACH] {
            let failure = TransportFailure(
                IOError(errnoCode: errno, reason: "connect(descriptor:addr:size:)"), to: endpoint)
            #expect(failure.kind == .noServer)
            #expect("\(failure)".contains("no route leads from this machine to 192.0.2.1:8443"))
            #expect(!"\(failure)".contains("descriptor"))
        }
    }

    @Test("What a client sends as soon as its socket is open arrives")
    func greeting() async throws {
        try await withEchoServer { server in
            let client = try await EchoClient.open("ws://127.0.0.1:\(server.port)/echo", greeting: "hello")
            try await until { !client.heard.isEmpty }
            #expect(client.heard == [.text("hello")])
            client.perform { $0.abandon() }
        }
    }

    @Test("The server's choice among the subprotocols is reported, and one that was not offered is refused")
    func subprotocols() async throws {
        try await withEchoServer { server in
            let url = "ws://127.0.0.1:\(server.port)/echo"
            let client = try await EchoClient.open(url, subprotocols: ["audio.v2", "audio.v1"])
            #expect(client.subprotocol == "audio.v1")
            client.perform { $0.abandon() }
            let rude = try await failure { try await EchoClient.open(url, subprotocols: ["rude"]) }
            #expect(rude.kind == .fault && rude.cause.contains("the subprotocol \"another\""))
        }
    }

    @Test("A server that closes says why, and one that vanishes or ends its half has closed without a code")
    func endings() async throws {
        try await withEchoServer { server in
            for (order, code) in [("close", 4_001), ("vanish", nil), ("end", nil)] as [(String, UInt16?)] {
                let client = try await EchoClient.open("ws://127.0.0.1:\(server.port)/echo")
                client.send(order)
                try await until { !client.heard.isEmpty }
                #expect(client.heard == [.closed(code)], "\(order)")
            }
        }
    }

    @Test("A message that is longer than the client's limit ends its socket, and the server gets the reason")
    func messageLimit() async throws {
        try await withEchoServer { server in
            let client = try await EchoClient.open("ws://127.0.0.1:\(server.port)/echo", messageBytes: 1_000)
            let (fits, isTooLong) = ([UInt8](repeating: 1, count: 1_000), [UInt8](repeating: 1, count: 1_001))
            client.perform { $0.send(binary: fits) }
            client.perform { $0.send(binary: isTooLong) }
            try await until { client.heard.count == 2 }
            #expect(client.heard.first == .binary(fits))
            guard case .failed(let error) = client.heard.last else {
                Issue.record("the socket has not failed")
                return
            }
            #expect(error.contains("messages have at most 1000 bytes"))
            try await until { try await !server.closed().isEmpty }
            #expect(try await server.closed() == [1_009])
        }
    }

    @Test("A client that does not read is dropped by the server, and one whose server does not read fails")
    func slowReaders() async throws {
        try await withEchoServer { server in
            let url = "ws://127.0.0.1:\(server.port)/echo"
            let deaf = try await EchoClient.open(url)
            deaf.perform {
                $0.pause()
                $0.send(Array("flood".utf8))
            }
            try await until { try await server.dropped() == 1 }
            deaf.perform { $0.abandon() }

            let loud = try await EchoClient.open(url, outboundBytes: 1 << 20)
            loud.perform {
                $0.send(Array("pause".utf8))
                for _ in 0..<512 { $0.send(binary: [UInt8](repeating: 1, count: 65_536)) }
            }
            try await until { !loud.heard.isEmpty }
            guard case .failed(let error) = loud.heard.last else {
                Issue.record("the socket has not failed")
                return
            }
            #expect(error.contains("more than 1048576 bytes wait"))
        }
    }

    @Test("What answers with something other than a WebSocket is named with its status, and a redirect is not followed")
    func refusals() async throws {
        try await withEchoServer { server in
            let missing = try await failure { try await EchoClient.open("ws://127.0.0.1:\(server.port)/elsewhere") }
            #expect(missing.kind == .notUpgraded(status: 404))
        }
        let redirect = "HTTP/1.1 307 Moved\r\nLocation: ws://192.0.2.1/x\r\nContent-Length: 0\r\n\r\n"
        try await RawServer.with(answer: redirect) { port in
            let moved = try await failure { try await EchoClient.open("ws://127.0.0.1:\(port)/echo") }
            #expect(moved.kind == .notUpgraded(status: 307))
            #expect(moved.description.contains("redirects to ws://192.0.2.1/x"))
        }
    }

    @Test("A server that answers an upgrade with provisional answers without end is given up behind 64 KiB")
    func endless() async throws {
        let answer = String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 10_000)
        try await RawServer.with(answer: answer) { port in
            let endless = try await failure {
                try await EchoClient.open("ws://127.0.0.1:\(port)/", openingTime: .seconds(30))
            }
            #expect(endless.kind == .fault && endless.cause.contains("65536 bytes that are no answer"))
        }
        // A few are nothing: the status of the answer behind them is reported.
        let late =
            String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 20)
            + "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
        try await RawServer.with(answer: late) { port in
            let missing = try await failure { try await EchoClient.open("ws://127.0.0.1:\(port)/") }
            #expect(missing.kind == .notUpgraded(status: 404))
        }
    }

    @Test(
        "A server that accepts connections and never answers is given up after the time for opening",
        .witnessed(slack: .milliseconds(50)))
    func silence() async throws {
        try await RawServer.with(answer: "") { port in
            for scheme in ["ws", "wss"] {
                let silent = try await failure {
                    try await EchoClient.open("\(scheme)://127.0.0.1:\(port)/", openingTime: .milliseconds(50))
                }
                #expect(silent.kind == .unreachable && silent.cause.contains("did not open a WebSocket in time"))
            }
        }
    }

    @Test("A server that hangs up, speaks no HTTP or does not listen is distinguished")
    func nobody() async throws {
        try await RawServer.with(answer: nil) { port in
            let closed = try await failure { try await EchoClient.open("ws://127.0.0.1:\(port)/") }
            #expect(closed.kind == .closed && closed.advice.contains("use https and wss"))
        }
        try await RawServer.with(answer: "220 mail.example ESMTP\r\n") { port in
            let mail = try await failure { try await EchoClient.open("ws://127.0.0.1:\(port)/") }
            #expect(mail.kind == .notHTTP)
        }
        let listener = LoopbackListener()
        close(listener.descriptor)
        let nobody = try await failure { try await EchoClient.open("ws://127.0.0.1:\(listener.port)/") }
        #expect(nobody.kind == .noServer && nobody.cause.contains("nothing listens"))
    }

    @Test(
        "TLS works with its own trust root, and fails with what to do about it without one, by another name or in plain text"
    )
    func tls() async throws {
        let (certificate, context) = try selfSigned()
        try await withEchoServer(tls: context) { server in
            let client = try await EchoClient.open("wss://localhost:\(server.port)/echo", trustRootFile: certificate)
            client.perform { $0.send(binary: [1]) }
            try await until { client.heard == [.binary([1])] }
            client.perform { $0.abandon() }

            let untrusted = try await failure { try await EchoClient.open("wss://localhost:\(server.port)/echo") }
            #expect(untrusted.kind == .untrusted && untrusted.advice.contains("trust root"))
            let other = try await failure {
                try await EchoClient.open("wss://127.0.0.1:\(server.port)/echo", trustRootFile: certificate)
            }
            #expect(other.kind == .wrongName)
        }
        try await RawServer.with(answer: "HTTP/1.1 400 Bad Request\r\n\r\n") { port in
            let plain = try await failure { try await EchoClient.open("wss://127.0.0.1:\(port)/") }
            #expect(plain.kind == .plainText)
        }
        try await RawServer.with(answer: nil) { port in
            let closed = try await failure { try await EchoClient.open("wss://127.0.0.1:\(port)/") }
            #expect(closed.kind == .handshake && closed.advice.contains("use http and ws"))
            #expect(!closed.cause.contains("OpenSSL"))
        }
    }

    /// A certificate for `localhost` that signed itself: its file, and a server's context with it.
    private func selfSigned() throws -> (certificate: String, context: TLSContext) {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("handset-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let (key, certificate) = (folder.path + "/key.pem", folder.path + "/certificate.pem")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        let context = try #require(
            try ServerTLS.load(CertificateFiles(chainPath: certificate, keyPath: key)))
        return (certificate, context)
    }
}
