import Foundation
import Testing

/// What `handset serve` reports when it starts.
@Suite("handset serve", .timeLimit(.minutes(5)))
struct ServeCommandTests {
    @Test("The demonstration's log has the address of the web phone, and who may sign in there without a password")
    func demonstration() async throws {
        let exchange = try HandsetProcess(["serve", "--listen", "127.0.0.1:0"])
        let listening = try await exchange.line(containing: "Listening")
        let url = try #require(listening.firstMatch(of: #/url=(http://127\.0\.0\.1:[0-9]+)/#)).1
        let phone = try await exchange.line(containing: "Serving the web phone")
        #expect(phone.contains("url=\(url)/") && phone.contains("guests=\"alice, bob\""), "\(phone)")
        #expect(!exchange.errorText.contains("demo-token"))
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0, "\(exchange.errorText)")
    }

    @Test("An exchange with accounts of its own reports no guests, and without the web phone no address of it")
    func own() async throws {
        let site = try Site()
        defer { site.remove() }
        for servesPhone in [true, false] {
            var text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
            if servesPhone { text = "web_phone: true\n" + text }
            let file = site.path("serve-\(servesPhone).yaml")
            try text.write(toFile: file, atomically: true, encoding: .utf8)
            let exchange = try HandsetProcess(["serve", "--config", file])
            // What follows the web phone in the log.
            try await exchange.line(containing: "A browser on another machine")
            #expect(exchange.errorText.contains("Serving the web phone") == servesPhone)
            #expect(!exchange.errorText.contains("guests="))
            exchange.send(SIGTERM)
            #expect(await exchange.ending() == 0, "\(exchange.errorText)")
        }
    }

    @Test("Where /proc is another namespace's, with which Swift's runtime would end the process, no command runs")
    func foreignProcessFiles() async throws {
        let own = try Self.inNewNamespace("--mount-proc", ["serve", "--listen", "127.0.0.1:0"])
        try await own.line(containing: "Listening")
        let foreign = try Self.inNewNamespace(nil, ["serve", "--listen", "127.0.0.1:0"])
        #expect(await foreign.ending() == 1)
        #expect(foreign.errorText.contains("/proc is missing, or belongs to another namespace"), "\(foreign.errorText)")
        #expect(foreign.errorText.contains("--mount-proc") && !foreign.errorText.contains("Listening"))
        let help = try Self.inNewNamespace(nil, ["serve", "--help"])
        #expect(await help.ending() == 0, "\(help.errorText)")
    }

    /// Starts `handset` in a namespace of processes that ends with it.
    private static func inNewNamespace(_ option: String?, _ arguments: [String]) throws -> HandsetProcess {
        let options = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"] + [option].compactMap(\.self)
        return try HandsetProcess(
            options + [try HandsetProcess.executable().path] + arguments, executable: "/usr/bin/unshare")
    }
}
