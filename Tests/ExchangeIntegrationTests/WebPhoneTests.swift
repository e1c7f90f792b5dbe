import ExchangeServer
import Foundation
import SignalSupport
import SignalWire
import Testing

@Suite(.timeLimit(.minutes(1))) struct WebPhoneTests {
    private func configuration(_ change: (inout ExchangeConfiguration) -> Void = { _ in }) -> ExchangeConfiguration {
        var configuration = ServerFixture.configuration()
        configuration.showsWebPhone = true
        change(&configuration)
        return configuration
    }

    @Test("The page comes with its type and with rules that let nothing foreign run, load, frame or listen")
    func page() async throws {
        try await ServerFixture.withServer(configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            let page = await client.request("GET", "/")
            #expect(page.status == 200)
            #expect(page.headers["content-type"] == "text/html; charset=utf-8")
            #expect(page.body.hasPrefix("<!doctype html>"))
            let policy = try #require(page.headers["content-security-policy"])
            for rule in [
                "default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'",
                "base-uri 'none'", "form-action 'none'", "connect-src 'self' ws://localhost wss://localhost;",
            ] { #expect(policy.contains(rule), "\(rule)") }
            #expect(!policy.contains("unsafe"))
            #expect(page.headers["x-content-type-options"] == "nosniff")
            #expect(page.headers["referrer-policy"] == "no-referrer")
            #expect(page.headers["permissions-policy"]?.contains("microphone=(self)") == true)
            #expect(page.headers["trace-id"]?.count == 16)
            client.close()
        }
    }

    @Test("Everything that the page and its scripts name is there, with the type that browsers insist on")
    func files() async throws {
        try await ServerFixture.withServer(configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            var waiting = ["/"]
            var types: [String: String] = [:]
            while let path = waiting.popLast() {
                let file = await client.request("GET", path)
                #expect(file.status == 200, "\(path)")
                types[path] = file.headers["content-type"]
                let links = file.body.matches(of: #/(?:(?:href|src)="phone/|from '\./)([a-z-]+\.[a-z]+)["']/#)
                for link in links where types["/phone/\(link.1)"] == nil { waiting.append("/phone/\(link.1)") }
            }
            #expect(types.count > 10)
            for (path, type) in types {
                if path.hasSuffix(".js") { #expect(type == "text/javascript; charset=utf-8") }
                if path.hasSuffix(".css") { #expect(type == "text/css; charset=utf-8") }
                if path.hasSuffix(".svg") { #expect(type == "image/svg+xml") }
            }
            client.close()
        }
    }

    @Test("A file that a browser has already is not sent again, and HEAD sends none")
    func unchanged() async throws {
        try await ServerFixture.withServer(configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            let first = await client.request("GET", "/phone/phone.css")
            let tag = try #require(first.headers["etag"])
            for header in [tag, "W/\(tag)", "\"other\", \(tag)", "*"] {
                let again = await client.request("GET", "/phone/phone.css", ["If-None-Match": header])
                #expect(again.status == 304)
                #expect(again.headers["etag"] == tag && again.headers["content-length"] == nil)
            }
            let other = await client.request("GET", "/phone/phone.css", ["If-None-Match": "\"other\""])
            #expect(other.status == 200 && other.body == first.body)

            client.send(Array("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            client.send(Array("GET /v1/web-config HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            // The head has a length and no body: what follows it is the next answer.
            let ends = await client.headOnly()
            #expect(ends.status == 200 && ends.headers["content-length"] != "0")
            #expect(await client.response().body.contains("app_key"))
            client.close()
        }
    }

    @Test("For a missing file people get a page and programs get JSON, for any path")
    func missing() async throws {
        try await ServerFixture.withServer(configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            for path in ["/phone/", "/phone/nothing.js", "/phone/../../etc/passwd", "/phone/%2e%2e/x", "//", "/phone"] {
                let json = await client.request("GET", path)
                #expect(json.status == 404 && json.headers["content-type"] == "application/json; charset=utf-8")
                let page = await client.request("GET", path, ["Accept": "text/html,*/*"])
                #expect(page.status == 404 && page.headers["content-type"] == "text/html; charset=utf-8")
                #expect(page.headers["content-security-policy"] != nil)
            }
            #expect(await client.request("POST", "/").status == 404)
            client.close()
        }
    }

    @Test("The page's application logs users in with what web-config says, and takes no anonymous logins")
    func login() async throws {
        try await ServerFixture.withServer(configuration()) { server in
            let client = try await RawClient.connect(port: server.port)
            let answer = await client.request("GET", "/v1/web-config")
            let config = try SignalCoding.decode(WebConfiguration.self, from: Array(answer.body.utf8))
            #expect(config.guests.isEmpty)
            #expect(answer.headers["cache-control"] == "no-store")
            let basic = ["Authorization": "Basic \(base64("\(config.appKey):\(config.appSecret)"))"]
            let body = #"{"type":"Cima","media_token":"media-token-of-bob"}"#
            #expect(await client.request("POST", "/v1.1/login", basic, body: body).status == 200)
            let guest = await client.request("POST", "/v1.1/login/anonymous", basic, body: #"{"user_id":"guest"}"#)
            #expect(guest.status == 401)
            let wrong = ["Authorization": "Basic \(base64("\(config.appKey):\(config.appSecret)x"))"]
            #expect(await client.request("POST", "/v1.1/login", wrong, body: body).status == 401)
            client.close()
        }
    }

    @Test("Without the web phone there is no page, no configuration for it and no application")
    func off() async throws {
        try await ServerFixture.withServer { server in
            let client = try await RawClient.connect(port: server.port)
            for path in ["/", "/phone/main.js", "/v1/web-config"] {
                let answer = await client.request("GET", path, ["Accept": "text/html"])
                #expect(answer.status == 404 && answer.headers["content-type"] == "application/json; charset=utf-8")
            }
            client.close()
        }
    }

    @Test("A web page opens the WebSocket only if it came from here or is allowed by name; a program says nothing")
    func origins() async throws {
        let strict = configuration { $0.allowedOrigins = ["https://calls.example.org"] }
        try await ServerFixture.withServer(strict) { server in
            let expected: [String?: Int] = [
                nil: 101, "http://localhost": 101, "https://localhost": 101, "https://calls.example.org": 101,
                "http://calls.example.org": 403, "https://evil.example": 403, "null": 403, "http://localhost:81": 403,
                "http://localhost.evil.example": 403, "file://localhost": 403,
            ]
            for (origin, status) in expected {
                let client = try await RawClient.connect(port: server.port)
                let given = await client.upgrade(origin: origin)
                #expect(given == status, "\(origin ?? "no origin")")
                client.close()
            }
        }
    }

    @Test("The page's address has a name that a browser can open, or is that of a proxy; without a phone there is none")
    func address() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("phone-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func address(_ change: (inout ExchangeConfiguration) -> Void) async throws -> String? {
            var address: String?
            try await ServerFixture.withServer(configuration(change)) { server in
                address = server.webPhoneURL?.replacing(":\(server.port)/", with: ":PORT/")
            }
            return address
        }
        #expect(try await address { _ in } == "http://127.0.0.1:PORT/")
        #expect(try await address { ($0.host, $0.plainText) = ("0.0.0.0", .allowed) } == "http://localhost:PORT/")
        let own = OwnAuthority(folder: folder, names: ["calls.example.org", "127.0.0.1"])
        let named = try await address { ($0.host, $0.ownAuthority) = ("0.0.0.0", own) }
        #expect(named == "https://calls.example.org:PORT/")
        #expect(try await address { $0.ownAuthority = own } == "https://127.0.0.1:PORT/")
        let proxied = try await address { $0.webSocketURL = "wss://example.org/calls/v1/rtc" }
        #expect(proxied == "https://example.org/calls/")
        #expect(try await address { $0.showsWebPhone = false } == nil)
    }

    @Test("A request that asks for another protocol in passing, or for a WebSocket where there is none, is answered")
    func otherUpgrades() async throws {
        try await ServerFixture.withServer(configuration()) { server in
            for (path, upgrade, status) in [
                ("/", "h2c", 200), ("/v1/rtc", "h2c", 400), ("/v1/nothing", "websocket", 404),
            ] {
                let client = try await RawClient.connect(port: server.port)
                let answer = await client.request("GET", path, ["Connection": "Upgrade", "Upgrade": upgrade])
                #expect(answer.status == status, "\(upgrade) at \(path)")
                #expect(answer.headers["connection"] == "close")
                client.close()
            }
        }
    }

    /// base64 of a text, by hand: tests of the wire depend on nothing that the wire is made of.
    private func base64(_ text: String) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        let bytes = Array(text.utf8)
        return stride(from: 0, to: bytes.count, by: 3).map { start in
            let part = bytes[start..<min(start + 3, bytes.count)]
            let bits = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
            let coded = (0..<4).map { $0 <= part.count ? digits[bits >> (18 - 6 * $0) & 63] : "=" }
            return String(coded)
        }.joined()
    }
}
