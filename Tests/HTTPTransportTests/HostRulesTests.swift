import HTTPTransport
import NIOHTTP1
import Testing

@Suite struct HostRulesTests {
    private let rules = HostRules(
        listen: "10.0.0.5", certificate: ["calls.example.org", "*.example.net", "2001:db8:0:0:0:0:0:9"],
        webSocketURL: "wss://[2001:db8::1]:8443/v1/rtc", allowed: ["intercom.lan", "*.office.example"])

    private func admits(
        _ hosts: String..., version: HTTPVersion = .http1_1, reached: String? = "10.0.0.5", by rules: HostRules? = nil
    ) -> Bool {
        (rules ?? self.rules).admit(HTTPHeaders(hosts.map { ("Host", $0) }), version, reached: reached)
    }

    @Test(
        "A server answers to loopback's names, its own address, its certificate, its WebSocket and what is configured",
        arguments: [
            "localhost", "LOCALHOST:8555", "localhost.", "phone.localhost", "127.0.0.1", "127.8.7.6:80", "[::1]:8555",
            "10.0.0.5", "10.0.0.5:8555", "calls.example.org", "Calls.Example.ORG.:443", "a.example.net",
            "[2001:db8::9]", "[2001:db8::1]:8443", "[2001:DB8:0::1]", "intercom.lan:1", "intercom.lan:",
            "door.office.example", "[::ffff:10.0.0.5]",
        ])
    func good(host: String) { #expect(admits(host)) }

    @Test(
        "It answers to no name that a page could give its address, and to nothing that is not a host",
        arguments: [
            "evil.example", "evil.example:8555", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost",
            "example.net", "a.b.example.net", "xexample.net", "10.0.0.6", "0.0.0.0", "[::]", "[2001:db8::2]", "",
            ":8555", "localhost:99999", "localhost:+1", "localhost:80:80", "::1", "[::1", "[::1]x",
            "[127.0.0.1]", "local host", "localhost/", "user@localhost", "localhost,evil.example", "local\u{0}host",
            "\u{FF4C}ocalhost", ".", "..", "localhost..", String(repeating: "a", count: 70_000),
        ])
    func bad(host: String) { #expect(!admits(host)) }

    @Test("Two hosts are none; no host is good enough only for programs that are older than the header")
    func count() {
        #expect(!admits("localhost", "localhost") && !admits("localhost", "evil.example"))
        #expect(!admits() && admits(version: .http1_0) && !admits("evil.example", version: .http1_0))
    }

    @Test("An exchange that listens on all addresses answers to the one that it was reached at, and not to that of all")
    func wildcard() {
        for listen in ["0.0.0.0", "::"] {
            let rules = HostRules(listen: listen)
            #expect(admits("192.0.2.8:8555", reached: "192.0.2.8", by: rules))
            #expect(admits("[2001:db8::8]", reached: "2001:db8::8", by: rules))
            #expect(admits("192.0.2.8", reached: "::ffff:192.0.2.8", by: rules))
            #expect(!admits("192.0.2.9", reached: "192.0.2.8", by: rules))
            #expect(!admits("192.0.2.8", reached: nil, by: rules))
            #expect(!admits("0.0.0.0", reached: "127.0.0.1", by: rules))
            #expect(rules.summary == "localhost")
        }
    }

    @Test("What may be asked for is listed once each")
    func summary() {
        let rules = HostRules(
            listen: "calls.example.org", certificate: ["calls.example.org", "localhost"],
            webSocketURL: "wss://calls.example.org/v1/rtc", allowed: ["*.lan"])
        #expect(rules.summary == "localhost, calls.example.org, *.lan")
    }
}
