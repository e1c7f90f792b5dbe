import ExchangeServer
import Foundation
import NIOPosix
import SignalSupport
import SignalWire
import TLS
import Testing

@Suite(.timeLimit(.minutes(5))) struct ListenTests {
    private func start(_ configuration: ExchangeConfiguration) async throws -> ExchangeServer {
        try await ExchangeServer.start(
            configuration, on: MultiThreadedEventLoopGroup.singleton, logger: LogCapture().makeLogger())
    }

    private func failure(_ configuration: ExchangeConfiguration) async -> ExchangeError? {
        do {
            await (try start(configuration)).stop()
            return nil
        } catch { return error as? ExchangeError }
    }

    @Test(
        "With a certificate everything is served over TLS: a client that trusts it gets in, one that does not is safe")
    func tls() async throws {
        var configuration = ServerFixture.configuration()
        let certificate = try TestCertificate.make(
            in: FileManager.default.temporaryDirectory.appendingPathComponent("exchange-\(UUID())").path)
        defer {
            try? FileManager.default.removeItem(atPath: (certificate.keyPath as NSString).deletingLastPathComponent)
        }
        configuration.certificate = certificate
        try await ServerFixture.withServer(configuration) { server in
            #expect(server.url == "https://127.0.0.1:\(server.port)")
            let trusting = try TLSContext.client(trusting: .file(certificate.chainPath))
            let client = try await RawClient.connect(port: server.port, tls: trusting)
            let body = try SignalCoding.encode(LoginRequest(mediaToken: Redacted("media-token-of-bob")))
            let response = await client.request(
                "POST", "/v1.1/login", ["Authorization": ServerFixture.basic],
                body: String(decoding: body, as: UTF8.self))
            let token = try SignalCoding.decode(LoginResponse.self, from: Array(response.body.utf8)).token.secret
            let resources = await client.request("GET", "/v1/connection", ["Authorization": "Bearer \(token)"])
            #expect(resources.body.contains("wss://localhost/v1/rtc"))
            client.close()

            let socket = try await RPCClient(RawClient.connect(port: server.port, tls: trusting))
            _ = try await socket.call(Ping())
            socket.raw.close()

            let stranger = try await RawClient.connect(port: server.port, tls: .client(trusting: .system))
            #expect(await stranger.request("GET", "/").status == 0)
            let plain = try await RawClient.connect(port: server.port)
            #expect(await plain.request("GET", "/").status == 0)
        }
    }

    @Test("Without TLS an exchange listens on loopback only, unless more is allowed by name")
    func plainText() async throws {
        var configuration = ServerFixture.configuration()
        configuration.host = "0.0.0.0"
        let error = await failure(configuration)
        #expect(error?.code == .plainTextRefused)
        #expect(error?.description.contains("plain_text: allowed") == true)
        configuration.plainText = .allowed
        #expect(await failure(configuration) == nil)
        for host in ["127.0.0.1", "localhost"] {
            configuration.plainText = .loopback
            configuration.host = host
            #expect(await failure(configuration) == nil)
        }
    }

    @Test("A port in use, an address that is none, and a certificate that is none each have an error that helps")
    func errors() async throws {
        try await ServerFixture.withServer { server in
            var configuration = ServerFixture.configuration()
            configuration.port = server.port
            let error = await failure(configuration)
            #expect(error?.code == .portInUse)
            #expect(error?.description.contains("127.0.0.1:\(server.port)") == true)
        }
        var configuration = ServerFixture.configuration()
        configuration.host = "192.0.2.1"
        configuration.plainText = .allowed
        #expect(await failure(configuration)?.code == .addressNotUsable)
        configuration = ServerFixture.configuration()
        configuration.certificate = .init(chainPath: "/nonexistent/chain.pem", keyPath: "/nonexistent/key.pem")
        let error = await failure(configuration)
        #expect(error?.code == .certificateNotUsable)
        #expect(error?.description.contains("/nonexistent/chain.pem") == true)
    }
}
