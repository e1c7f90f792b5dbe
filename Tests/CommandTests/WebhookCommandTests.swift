import Foundation
import TestSupport
import Testing

/// A device that runs, and a server in a process of its own that is sent its events.
@Suite("Webhooks of a device", .serialized, .timeLimit(.minutes(3)))
struct WebhookCommandTests {
    private static let secret = "a-webhook-secret-0123456789"

    /// A server in Python, so that the signature is checked by another program. It notes each request, and answers as the file `mode`
    /// says: with a status, or `hang`, which is no answer.
    private struct Receiver {
        struct Request {
            let id: Substring
            let type: Substring
            let isSigned: Bool
        }

        private static let program = """
            import base64, hashlib, hmac, http.server, json, pathlib, sys, time
            folder = pathlib.Path(sys.argv[2])
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def do_POST(self):
                    body = self.rfile.read(int(self.headers["content-length"]))
                    name, time_sent = self.headers["webhook-id"], self.headers["webhook-timestamp"]
                    secret = (folder / "hook.secret").read_bytes()
                    code = hmac.new(secret, f"{name}.{time_sent}.".encode() + body, hashlib.sha256).digest()
                    given = self.headers["webhook-signature"].split(" ")
                    right = "v1," + base64.b64encode(code).decode() in given and abs(time.time() - int(time_sent)) < 300
                    with open(folder / "received", "a") as file:
                        print(name, json.loads(body)["type"], right, file=file)
                    mode = (folder / "mode").read_text()
                    if mode == "hang": time.sleep(3600)
                    self.send_response(int(mode))
                    self.send_header("content-length", "0")
                    self.end_headers()
                def log_message(self, *arguments): pass
            server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
            print("Listening", server.server_port, file=sys.stderr, flush=True)
            server.serve_forever()
            """

        let process: HandsetProcess
        let port: Int
        private let site: Site

        init(_ site: Site, port: Int = 0) async throws {
            self.site = site
            process = try HandsetProcess(
                ["python3", "-c", Self.program, "\(port)", site.folder.path], executable: "/usr/bin/env")
            let line = try await process.line(containing: "Listening")
            self.port = try #require(line.split(separator: " ").last.flatMap { Int($0) })
        }

        func answer(_ mode: String) throws {
            try mode.write(toFile: site.path("mode"), atomically: true, encoding: .utf8)
        }

        var requests: [Request] {
            let text = (try? String(contentsOfFile: site.path("received"), encoding: .utf8)) ?? ""
            return text.split(separator: "\n").map { line in
                let words = line.split(separator: " ")
                return Request(id: words[0], type: words[1], isSigned: words[2] == "True")
            }
        }

        var types: [Substring] { requests.map(\.type) }
    }

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
    private func begin(_ site: Site, answering answer: String) async throws -> (Receiver, RunningSite) {
        let receiver = try await Receiver(site)
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
        let again = try await Receiver(site, port: receiver.port)
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
}
