import Foundation
import TestSupport
import Testing

/// `handset control`, `exchange` and `trunk` at a control interface on TCP with TLS.
@Suite("Control over TLS", .serialized, .timeLimit(.minutes(3)))
struct ControlTLSTests {
    private static let token = "a-control-token-0123456789"
    /// The interface on TCP, with the certificate of the site, which is its own authority.
    private static let network = [
        "listen: \"127.0.0.1:0\"", "token_file: control.token", "chain_file: certificate.pem", "key_file: key.pem",
    ]

    private func site(_ http: [String] = []) throws -> Site {
        let site = try Site(isEncrypted: true, isControlled: !http.isEmpty, http: http)
        for (name, token) in [("control.token", Self.token), ("wrong.token", "another-token-0123456789")] {
            try token.write(toFile: site.path(name), atomically: true, encoding: .utf8)
        }
        return site
    }

    /// Checks that a command is answered if name, authority and token are right, and refused with the cause if one is wrong.
    ///
    /// - Parameter words: A command that changes nothing.
    private func check(_ words: [String], at url: String, _ site: Site) async throws {
        let port = try #require(url.split(separator: ":").last).filter(\.isNumber)
        func ask(_ host: String, _ token: String = "control.token", _ roots: [String]) async throws -> CommandResult {
            try await CommandResult(
                words + ["--url", "https://\(host):\(port)", "--token-file", site.path(token)] + roots)
        }
        let roots = ["--trust-roots", site.path("certificate.pem")]
        for host in ["127.0.0.1", "localhost"] {
            let good = try await ask(host, "control.token", roots)
            #expect(good.code == 0 && !good.output.isEmpty, "\(words) \(good)")
        }
        // The address 127.0.0.1 by a name that the certificate does not have.
        let misnamed = try await ask("127.1", "control.token", roots)
        let unknown = try await ask("localhost", "control.token", [])
        for (refused, cause) in [(misnamed, "misnamed"), (unknown, "unknown authority")] {
            #expect(refused.code == 15 && refused.output.isEmpty, "\(words) \(cause): \(refused)")
            #expect(refused.error.contains("ertificate"), "\(words) \(cause): \(refused)")
        }
        let guessed = try await ask("localhost", "wrong.token", roots)
        #expect(guessed.code == 1 && guessed.error.contains("token_file"), "\(words) \(guessed)")
        for result in [misnamed, unknown, guessed] {
            #expect(!result.error.contains(Self.token) && !result.error.contains("another-token"), "\(result)")
        }
    }

    @Test("A device answers the right name, authority and token, and the cause of each refusal is named")
    func device() async throws {
        let site = try site(Self.network)
        defer { site.remove() }
        let running = try await RunningSite(site)
        let line = #/"Listening to programs, over HTTP".*"url":"([^"]+)"/#
        let url = try #require(running.device.errorText.firstMatch(of: line)).1
        try await check(["control", "status"], at: String(url), site)
    }

    @Test("An exchange answers the right name, authority and token, and the cause of each refusal is named")
    func exchange() async throws {
        let site = try site()
        defer { site.remove() }
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        let control = "control: { socket: operator.sock, \(Self.network.joined(separator: ", ")) }"
        try "\(text)\n\(control)\n".write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        try await check(["exchange", "users"], at: try await exchange.controlURL(), site)
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0, "\(exchange.errorText)")
    }

    @Test("A trunk answers the right name, authority and token, and the cause of each refusal is named")
    func trunk() async throws {
        let site = try site()
        defer { site.remove() }
        let sip = try SIPPeer()
        defer { sip.end() }
        // It listens before it logs in, and nothing listens at port 9.
        let control = "control: { socket: operator.sock, \(Self.network.joined(separator: ", ")) }"
        let trunk = try site.trunk(exchange: "http://localhost:9", sip: sip, control)
        try await check(["trunk", "status"], at: try await trunk.controlURL(), site)
        trunk.send(SIGTERM)
        _ = await trunk.ending()
    }
}
