import Foundation
import TestSupport
import Testing

/// A device, an exchange or a trunk that runs, and a server in a process of its own that is sent its events.
@Suite("Webhooks of a device, an exchange and a trunk", .serialized, .timeLimit(.minutes(3)))
struct WebhookCommandTests {
    private static let secret = "a-webhook-secret-0123456789"

    private static let ofCall: [Substring] = ["call.started", "call.answered", "call.ended"]

    private func site() throws -> Site {
        let site = try Site(isControlled: true, http: ["history_folder: events"])
        try Self.secret.write(toFile: site.path("hook.secret"), atomically: true, encoding: .utf8)
        return site
    }

    /// Has the configuration send events to a port.
    private func configure(_ site: Site, port: Int, _ more: String = "") throws {
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        let before = text.components(separatedBy: "\n  webhooks:")[0]
        let webhooks =
            "\n  webhooks:\n    - url: http://127.0.0.1:\(port)/calls\n      secret_file: hook.secret\(more)\n"
        try (before + webhooks).write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
    }

    private func call(_ running: RunningSite) async throws {
        let call = try running.call(["--duration", "1"])
        #expect(await call.ending() == 0, "\(call.errorText)")
    }

    /// A receiver that answers so, and a device that sends it the events of its calls.
    private func begin(_ site: Site, answering answer: String) async throws -> (WebhookReceiver, RunningSite) {
        let receiver = try await WebhookReceiver(site)
        try receiver.answer(answer)
        try configure(site, port: receiver.port)
        let running = try await RunningSite(site)
        try await call(running)
        return (receiver, running)
    }

    /// How many events of this name are on disk.
    private func count(_ name: String, _ site: Site) -> Int {
        let log = (try? String(contentsOfFile: site.path("events/events.log"), encoding: .utf8)) ?? ""
        return log.split(separator: "\n").count { $0.contains(#""event":"\#(name)""#) }
    }

    @Test("A device that is killed before a server has taken its events sends them after its start, with the same ids")
    func crash() async throws {
        let site = try site()
        defer { site.remove() }
        let (receiver, running) = try await begin(site, answering: "200")
        try await until { receiver.types == Self.ofCall }
        try receiver.answer("hang")
        try await call(running)
        try await until { count("ended", site) == 2 && receiver.requests.count == 4 }
        running.device.send(SIGKILL)
        #expect(await running.device.ending() == -SIGKILL)
        try receiver.answer("200")
        let second = try HandsetProcess(
            ["run", "--config", site.deviceConfiguration, "--server", running.server, "--log-format", "json"])
        try await second.line(containing: #""Ready""#)
        try await until { receiver.requests.count == 7 }
        let requests = receiver.requests
        #expect(receiver.types == Self.ofCall + ["call.started"] + Self.ofCall)
        #expect(requests[3].id == requests[4].id && Set(requests.map(\.id)).count == 6)
        #expect(requests.count { !$0.isSigned } == 0)
        second.send(SIGTERM)
        #expect(await second.ending() == 0, "\(second.errorText)")
        #expect(!second.errorText.contains(Self.secret))
    }

    @Test("A server that fails or has died is tried again, in order, while calls continue")
    func outage() async throws {
        let site = try site()
        defer { site.remove() }
        let (receiver, running) = try await begin(site, answering: "500")
        let line = try await running.device.line(containing: "A webhook does not take an event; it is tried again")
        #expect(line.contains("its answer has the status 500") && line.contains("127.0.0.1:\(receiver.port)"))
        #expect(!line.contains("/calls"))
        let curl = try HandsetProcess(
            ["curl", "--silent", "--unix-socket", site.path("control-http.sock"), "http://device/v1/status"],
            executable: "/usr/bin/env")
        #expect(await curl.ending() == 0)
        let state =
            #"\{"delay_s":[^,]+,"delivered":0,"failed":[1-9],"gaps":0,"lost":0,"server":"127.0.0.1:\#(receiver.port)"\}"#
        #expect(curl.outputText.firstMatch(of: try Regex(state)) != nil, "\(curl.outputText)")
        receiver.process.send(SIGKILL)
        #expect(await receiver.process.ending() == -SIGKILL)
        try await call(running)
        let again = try await WebhookReceiver(site, port: receiver.port)
        try again.answer("204")
        try await until { again.requests.last?.type == "call.ended" && again.types.count { $0 == "call.ended" } == 2 }
        var delivered: [Substring] = []
        for id in again.requests.map(\.id) where !delivered.contains(id) { delivered.append(id) }
        #expect(delivered.count == 6 && again.requests.count { !$0.isSigned } == 0)
        let types = delivered.compactMap { id in again.requests.first { $0.id == id }?.type }
        #expect(types == Self.ofCall + Self.ofCall)
    }

    @Test("SIGHUP reads webhooks again: another secret with the previous one, then none; a wrong one changes nothing")
    func reload() async throws {
        let site = try site()
        defer { site.remove() }
        let (receiver, running) = try await begin(site, answering: "200")
        try await until { receiver.types == Self.ofCall }
        // The server has the former secret for a while.
        try "another-webhook-secret-0123".write(toFile: site.path("new.secret"), atomically: true, encoding: .utf8)
        let both = "\n      previous_secret_file: hook.secret\n      events: [call.ended]"
        try configure(site, port: receiver.port, both)
        let text = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        try text.replacing("      secret_file: hook.secret", with: "      secret_file: new.secret")
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        running.device.send(SIGHUP)
        let taken = try await running.device.line(containing: "The configuration was read again")
        #expect(taken.contains(#""changed":"control.webhooks""#) && taken.contains(#""at_next_start":"nothing""#))
        try await call(running)
        try await until { receiver.types == Self.ofCall + ["call.ended"] }
        #expect(receiver.requests.count { !$0.isSigned } == 0)
        // The secret's file has changed, and its name has not.
        try "a-third-webhook-secret-0123".write(toFile: site.path("new.secret"), atomically: true, encoding: .utf8)
        running.device.send(SIGHUP)
        let third = try await running.device.line(containing: "The configuration was read again")
        #expect(third.contains(#""changed":"control.webhooks""#))
        try "short".write(toFile: site.path("new.secret"), atomically: true, encoding: .utf8)
        running.device.send(SIGHUP)
        try await running.device.line(containing: "must hold at least 24 bytes")
        try await call(running)
        try await until { receiver.types == Self.ofCall + ["call.ended", "call.ended"] }
    }

    // MARK: - Exchange and trunk

    /// A section `control` that sends events to a receiver.
    private func section(_ receiver: WebhookReceiver, _ more: String = "") -> String {
        let hook = "{ url: \"http://127.0.0.1:\(receiver.port)/calls\", secret_file: hook.secret\(more) }"
        return "control: { socket: operator.sock, history_folder: kept, webhooks: [\(hook)] }"
    }

    private func exchangeSite(_ receiver: (Site) async throws -> WebhookReceiver) async throws -> (
        Site, WebhookReceiver
    ) {
        let site = try Site()
        try Self.secret.write(toFile: site.path("hook.secret"), atomically: true, encoding: .utf8)
        return (site, try await receiver(site))
    }

    private func curl(_ arguments: String...) async throws -> String {
        let curl = try HandsetProcess(["curl", "--silent", "--max-time", "20"] + arguments, executable: "/usr/bin/env")
        _ = await curl.ending()
        return curl.outputText
    }

    @Test("A server that hangs holds up no call of an exchange, which sends the rest after a kill, with the same ids")
    func exchange() async throws {
        let (site, receiver) = try await exchangeSite { try await WebhookReceiver($0) }
        defer { site.remove() }
        try receiver.answer("200")
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        try (text + "\n\(section(receiver))\n")
            .write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        try await call(running)
        try await until { receiver.types == Self.ofCall }
        try receiver.answer("hang")
        try await call(running)
        func kept() -> Int {
            let log = (try? String(contentsOfFile: site.path("kept/events.log"), encoding: .utf8)) ?? ""
            return log.split(separator: "\n").count { $0.contains(#""event":"call_ended""#) }
        }
        try await until { kept() == 2 && receiver.requests.count == 4 }
        let status = try await curl(
            "--unix-socket", site.path("operator.sock"), "http://exchange/v1/status")
        #expect(
            status.contains(#""server":"127.0.0.1:\#(receiver.port)""#) && status.contains(#""delay_s":"#), "\(status)")
        running.exchange.send(SIGKILL)
        #expect(await running.exchange.ending() == -SIGKILL)
        try receiver.answer("200")
        let second = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
        try await until { receiver.requests.count == 7 }
        let requests = receiver.requests
        #expect(receiver.types == Self.ofCall + ["call.started"] + Self.ofCall)
        #expect(requests[3].id == requests[4].id && Set(requests.map(\.id)).count == 6)
        #expect(requests.count { !$0.isSigned } == 0)
        second.send(SIGTERM)
        #expect(await second.ending() == 0, "\(second.errorText)")
        #expect(!second.errorText.contains(Self.secret))
    }

    @Test("An exchange whose disk takes no events sends them all the same; the log and the metrics report it")
    func fullDisk() async throws {
        let (site, receiver) = try await exchangeSite { try await WebhookReceiver($0) }
        defer { site.remove() }
        try receiver.answer("204")
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        let more = "\(section(receiver))\nmonitoring: { listen: \"127.0.0.1:0\" }\n"
        try "\(text)\n\(more)".write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        try await until {
            (try? FileManager.default.contentsOfDirectory(atPath: site.path("kept")))?.contains {
                $0.hasPrefix("webhook-") && !$0.hasSuffix(".new")
            } == true
        }
        // What is written to a folder fails, as on a full disk.
        try FileManager.default.removeItem(atPath: site.path("kept/events.log"))
        try FileManager.default.createDirectory(
            atPath: site.path("kept/events.log/x"), withIntermediateDirectories: true)
        try await call(running)
        try await until { receiver.types == Self.ofCall }
        try await running.exchange.line(containing: "Events are not on disk")
        let listening = #/"Showing metrics and health".*"url":"([^"]+)"/#
        let url = try #require(running.exchange.errorText.firstMatch(of: listening)).1
        let metrics = try await curl("\(url)/metrics")
        let failed = try #require(
            metrics.firstMatch(of: #/handset_control_failed_event_writes_total (\d+)/#), "\(metrics)")
        #expect((Int(failed.1) ?? 0) > 0)
        let delivered =
            #"handset_webhook_events_total{webhook="127.0.0.1:\#(receiver.port)",result="delivered"} 3"#
        #expect(metrics.contains(delivered), "\(metrics)")
    }

    @Test(
        "SIGHUP has an exchange take webhooks; kinds of events that it never sends, and a missing folder, are problems")
    func exchangeReload() async throws {
        let (site, receiver) = try await exchangeSite { try await WebhookReceiver($0) }
        defer { site.remove() }
        try receiver.answer("200")
        let text = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        func write(_ control: String) throws {
            try "\(text)\n\(control)\n"
                .write(toFile: site.exchangeConfiguration, atomically: true, encoding: .utf8)
        }
        try write("control: { socket: operator.sock, history_folder: kept }")
        let running = try await RunningSite(site)
        try write(section(receiver, ", events: [call.ended]"))
        running.exchange.send(SIGHUP)
        let taken = try await running.exchange.line(containing: "The configuration was read again")
        #expect(taken.contains("control.webhooks") && taken.contains(#""at_next_start":"nothing""#), "\(taken)")
        try await call(running)
        try await until { receiver.types == ["call.ended"] }
        for (control, words) in [
            (
                section(receiver, ", events: [call.recorded]"),
                "control.webhooks[1].events: \"call.recorded\" is sent by devices"
            ),
            (section(receiver).replacing(", history_folder: kept", with: ""), "needs control.history_folder"),
        ] {
            try write(control)
            let checked = try await CommandResult(["check", site.exchangeConfiguration])
            #expect(checked.code == 3 && checked.error.contains(words), "\(checked)")
        }
    }

    @Test(
        "A trunk's calls are sent, from the caller's call to its end; what it was not sent before its end comes later")
    func trunk() async throws {
        let site = try Site()
        defer { site.remove() }
        try Self.secret.write(toFile: site.path("hook.secret"), atomically: true, encoding: .utf8)
        try site.admitTrunk()
        let receiver = try await WebhookReceiver(site)
        try receiver.answer("503")
        let running = try await RunningSite(site)
        let sip = try SIPPeer()
        defer { sip.end() }
        let process = try site.trunk(exchange: running.server, sip: sip, section(receiver))
        try await process.line(containing: #""Ready""#)
        try sip.call("one", to: "200")
        try await until { sip.isHeard("one") }
        try await process.line(containing: "A webhook does not take an event; it is tried again")
        #expect(try await CommandResult(["trunk", "hangup", "1", "--config", site.trunkConfiguration]).code == 0)
        process.send(SIGTERM)
        #expect(await process.ending() == 0, "\(process.errorText)")
        let refused = receiver.requests.count
        #expect(refused > 0 && Set(receiver.types) == ["call.started"])
        try receiver.answer("200")
        let second = try site.trunk(exchange: running.server, sip: sip, section(receiver))
        try await until { receiver.requests.count == refused + 3 }
        #expect(Array(receiver.types.suffix(3)) == Self.ofCall)
        #expect(receiver.requests.count { !$0.isSigned } == 0)
        #expect(receiver.requests[0].id == receiver.requests[refused].id)
        second.send(SIGTERM)
        #expect(await second.ending() == 0, "\(second.errorText)")
    }
}
