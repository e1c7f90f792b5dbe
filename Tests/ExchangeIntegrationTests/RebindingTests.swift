@testable import ExchangeServer
import SignalWire
import Testing

/// A page from elsewhere whose name stands for this machine's address.
@Suite(.timeLimit(.minutes(5))) struct RebindingTests {
    private func ask(
        _ port: Int, _ host: String?, _ request: String = "GET / HTTP/1.1", _ more: String = ""
    ) async throws -> RawClient.Response {
        let client = try await RawClient.connect(port: port)
        defer { client.close() }
        client.send(Array("\(request)\r\n\(host.map { "Host: \($0)\r\n" } ?? "")\(more)\r\n".utf8))
        return await client.response()
    }

    private static let upgrade =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

    @Test("Pages, REST, WebSockets and streams alike refuse a Host that is not the exchange's, and say what is")
    func foreignHosts() async throws {
        var configuration = ServerFixture.configuration()
        configuration.showsWebPhone = true
        configuration.allowedHosts = ["calls.example.org"]
        try await ServerFixture.withServer(configuration) { server in
            let evil = "evil.example:\(server.port)"
            let cases = [
                ("GET / HTTP/1.1", ""), ("GET /v1/web-config HTTP/1.1", ""), ("GET /v1/connection HTTP/1.1", ""),
                ("POST /v1.1/login HTTP/1.1", "Content-Length: 0\r\n"), ("POST /whip/bob HTTP/1.1", ""),
                ("OPTIONS /whep/bob HTTP/1.1", "Origin: http://\(evil)\r\n"), ("GET / HTTP/1.0", ""),
                ("GET /v1/rtc HTTP/1.1", Self.upgrade),
                ("GET /v1/rtc HTTP/1.1", Self.upgrade + "Origin: http://\(evil)\r\n"),
            ]
            for (request, more) in cases {
                let response = try await ask(server.port, evil, request, more)
                #expect(response.status == 421, "\(request) \(more)")
                #expect(response.body.contains("misdirected") && response.body.contains("calls.example.org"))
                #expect(response.body.contains("allowed_hosts"))
            }
            for host in ["localhost:\(server.port)", "127.0.0.1", "[::1]:1", "calls.example.org", "CALLS.example.org."]
            {
                #expect(try await ask(server.port, host).status == 200, "\(host)")
                #expect(try await ask(server.port, host, "GET /v1/rtc HTTP/1.1", Self.upgrade).status == 101, "\(host)")
            }
            #expect(try await ask(server.port, nil, "GET / HTTP/1.0").status == 200, "older than the header")
            #expect(try await ask(server.port, nil).status != 200)
            #expect(try await ask(server.port, "localhost", "GET / HTTP/1.1", "Host: \(evil)\r\n").status != 200)
        }
    }
}
