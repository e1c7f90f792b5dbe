import Foundation
import TestSupport
import Testing

/// Daemons as units of a service manager, which a test's socket stands for.
@Suite("Units of a service manager", .serialized, .timeLimit(.minutes(3)))
struct ServiceUnitTests {
    private let inbox: DatagramInbox
    private let environment: [String: String]

    init() throws {
        let name = "@handset-\(UUID().uuidString)"
        inbox = try DatagramInbox(name)
        environment = ["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "150000"]
    }

    private func count(_ text: String) -> Int { inbox.texts.count { $0 == text } }

    @Test("An exchange tells that it is ready, feeds the watchdog, and tells that it ends")
    func exchange() async throws {
        let exchange = try HandsetProcess(["serve", "--listen", "127.0.0.1:0"], environment: environment)
        try await eventually { count("WATCHDOG=1") >= 3 }
        let first = try #require(inbox.texts.first)
        #expect(first.hasPrefix("READY=1\nSTATUS=Listening at http://127.0.0.1:"), "\(first)")
        exchange.send(SIGTERM)
        #expect(await exchange.ending() == 0, "\(exchange.errorText)")
        #expect(inbox.texts.last == "STOPPING=1\nSTATUS=Telling clients to go")
    }

    @Test(
        "A device is ready once it can be called, feeds the watchdog without and during a call, and tells that it ends")
    func device() async throws {
        let running = try await RunningSite(Site(behaviour: "card"), environment: environment)
        defer { running.site.remove() }
        #expect(inbox.texts.first == "STATUS=Logging in")
        try await eventually { count("READY=1\nSTATUS=Connected: can be called") == 1 && count("WATCHDOG=1") >= 3 }
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        let before = count("WATCHDOG=1")
        try await eventually { count("WATCHDOG=1") >= before + 3 }
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        #expect(inbox.texts.last == "STOPPING=1\nSTATUS=Ending")
        #expect(!running.device.errorText.contains("watchdog"), "\(running.device.errorText)")
    }

    @Test("A device whose exchange is not there counts as started after five seconds, and logs in when it is there")
    func exchangeAbsent() async throws {
        let site = try Site()
        defer { site.remove() }
        let first = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        let line = try await first.line(containing: #""Listening""#)
        let address = try #require(line.firstMatch(of: #/"url":"http:\/\/([^"]+)"/#)).1
        first.send(SIGTERM)
        #expect(await first.ending() == 0)
        let device = try HandsetProcess(
            ["run", "--config", site.deviceConfiguration, "--server", "http://\(address)"], environment: environment)
        try await eventually {
            inbox.texts.contains("READY=1\nSTATUS=Logging in: the service has not answered yet")
        }
        #expect(count("WATCHDOG=1") > 0)
        let second = try HandsetProcess(
            ["serve", "--config", site.exchangeConfiguration, "--listen", String(address), "--log-format", "json"])
        try await second.line(containing: #""Listening""#)
        try await eventually { inbox.texts.contains("READY=1\nSTATUS=Connected: can be called") }
        device.send(SIGTERM)
        #expect(await device.ending() == 0, "\(device.errorText)")
    }

    @Test("With --drain a call goes on after SIGTERM until it ends, and a new one is refused as busy")
    func drain() async throws {
        let running = try await RunningSite(Site(), arguments: ["--drain", "60"])
        defer { running.site.remove() }
        let call = try running.call(["--play", Site.speech, "--duration", "60", "--log-format", "json"])
        try await call.line(containing: "Media flows both ways")
        running.device.send(SIGTERM)
        try await running.device.line(containing: "Waiting for calls to end")
        let refused = try running.call(["--play", Site.speech])
        #expect(await refused.ending() == 10, "\(refused.errorText)")
        #expect(refused.outputText.contains("busy"), "\(refused.outputText)")
        call.send(SIGINT)
        #expect(await call.ending() == 130, "\(call.errorText)")
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        #expect(running.device.errorText.contains(#""reason":"completed""#), "\(running.device.errorText)")
    }

    @Test("When the time of --drain is over, the call that is left is hung up and the device ends in order")
    func drainEnds() async throws {
        let running = try await RunningSite(Site(), arguments: ["--drain", "1"])
        defer { running.site.remove() }
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        #expect(running.device.errorText.contains("Saying goodbye"))
        _ = await call.ending()
    }

    @Test("A second device with the same stored login ends at once and says why; after the first one's end it starts")
    func twoDevices() async throws {
        let site = try Site()
        var text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        text = text.replacingOccurrences(of: "account:\n", with: "account:\n  session_file: session.json\n")
        try text.write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        defer { running.site.remove() }
        let arguments = ["run", "--config", site.deviceConfiguration, "--server", running.server]
        let second = try HandsetProcess(arguments)
        #expect(await second.ending() == 1)
        #expect(second.errorText.contains("session.json.lock"), "\(second.errorText)")
        #expect(second.errorText.contains("another process has locked it"), "\(second.errorText)")
        running.device.send(SIGKILL)
        #expect(await running.device.ending() == -SIGKILL)
        let third = try HandsetProcess(arguments)
        try await third.line(containing: "Ready")
    }
}
