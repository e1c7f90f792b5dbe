import Foundation
import TestSupport
import Testing

/// A device that runs, and programs that act on it over HTTP with curl.
@Suite("Control over HTTP", .serialized, .timeLimit(.minutes(3)))
struct ControlHTTPCommandTests {
    private static let folder = ["history_folder: events"]
    private static let network = folder + ["listen: 127.0.0.1:0", "token_file: control.token"]
    private static let token = "a-control-token-0123456789"

    private func site(_ http: [String], behaviour: String = "echo") throws -> Site {
        let site = try Site(behaviour: behaviour, isControlled: true, http: http)
        try Self.token.write(toFile: site.path("control.token"), atomically: true, encoding: .utf8)
        return site
    }

    /// The status of an answer, its fields and its text.
    private struct Answer {
        let status: Int
        let fields: String
        let text: String
    }

    private func curl(_ site: Site, _ arguments: [String]) throws -> HandsetProcess {
        try HandsetProcess(
            ["curl", "--silent", "--show-error", "--max-time", "20", "--unix-socket", site.path("control-http.sock")]
                + arguments, executable: "/usr/bin/env")
    }

    private func ask(_ site: Site, _ arguments: String...) async throws -> Answer {
        try await answer(of: curl(site, ["--include"] + arguments))
    }

    private func answer(of process: HandsetProcess) async throws -> Answer {
        #expect(await process.ending() == 0, "\(process.errorText)")
        let text = process.outputText.replacing("\r\n", with: "\n")
        let parts = text.components(separatedBy: "\n\n")
        let status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return Answer(status: status, fields: parts[0], text: parts.dropFirst().joined(separator: "\n\n"))
    }

    private func post(_ site: Site, _ path: String, _ body: String, _ more: String...) async throws -> Answer {
        let arguments = [
            "--include", "http://device\(path)", "--header", "Content-Type: application/json", "--data", body,
        ]
        return try await answer(of: curl(site, arguments + more))
    }

    @Test("A call is placed once, however often its request is sent, is listed, and is hung up; events report it")
    func call() async throws {
        let site = try site(Self.folder)
        defer { site.remove() }
        let running = try await RunningSite(site)
        let events = try curl(site, ["--no-buffer", "http://device/v1/events?after=oldest"])
        let first = try await post(site, "/v1/calls", #"{"to":"caller@localhost"}"#, "--header", "Idempotency-Key: 7")
        #expect(first.status == 201 && first.fields.contains("Location: /v1/calls/1"), "\(first)")
        let second = try await post(site, "/v1/calls", #"{"to":"caller@localhost"}"#, "--header", "Idempotency-Key: 7")
        #expect(second.status == 201 && second.text == first.text, "\(second)")
        let other = try await post(site, "/v1/calls", #"{"to":"echo@localhost"}"#, "--header", "Idempotency-Key: 7")
        #expect(other.status == 422 && other.text.contains("idempotency_mismatch"), "\(other)")
        let list = try await ask(site, "http://device/v1/calls")
        #expect(list.status == 200 && list.text.contains(#""peer":"caller@localhost""#), "\(list)")
        #expect(try await ask(site, "http://device/v1/calls/1").text.contains(#""state":"calling""#))
        let ended = try await post(site, "/v1/calls/1/hangup", "{}")
        #expect(ended.status == 200 && ended.text == #"{"call":1}"#, "\(ended)")
        try await eventually { events.outputText.contains("event: ended") }
        #expect(events.outputText.contains("event: calling"), "\(events.outputText)")
        // The other interface's requests are events here, too.
        #expect(try await running.control("call", "caller@localhost").code == 0)
        try await eventually { events.outputText.contains(#""call":2,"event":"calling""#) }
    }

    @Test("An incoming call is answered, plays, presses keys and ends by requests; levels come only if they are wanted")
    func incoming() async throws {
        let site = try Site(answer: "ring", behaviour: "card", isControlled: true, http: ["socket: default"])
        defer { site.remove() }
        let running = try await RunningSite(site)
        let plain = try curl(site, ["--no-buffer", "http://device/v1/events"])
        let metered = try curl(site, ["--no-buffer", "http://device/v1/events?levels=true"])
        let call = try running.call(["--duration", "60"])
        try await eventually { plain.outputText.contains("event: incoming") }
        #expect(try await post(site, "/v1/calls/1/answer", "{}").status == 200)
        try await call.line(containing: "Media flows both ways")
        try await eventually { metered.outputText.contains("event: levels") }
        #expect(try await post(site, "/v1/sound/volume", #"{"playback_db":-6}"#).text.contains(#""volume_db":-6"#))
        #expect(try await post(site, "/v1/sound/mute", "{}").text.contains(#""muted":true"#))
        #expect(try await ask(site, "http://device/v1/sound").text.contains(#""muted":true"#))
        #expect(try await post(site, "/v1/calls/1/play", #"{"file":"\#(Site.speech)"}"#).status == 200)
        #expect(try await post(site, "/v1/calls/1/dtmf", #"{"keys":"5#"}"#).status == 200)
        try await call.line(containing: "The peer pressed #")
        #expect(try await post(site, "/v1/calls/1/hangup", "{}").status == 200)
        #expect(await call.ending() == 0, "\(call.errorText)")
        try await eventually { plain.outputText.contains("event: ended") }
        #expect(!plain.outputText.contains("event: levels"))
    }

    @Test("Events are there after a restart; a crash is a gap, and so is a cursor of another machine")
    func restart() async throws {
        let site = try site(Self.folder)
        defer { site.remove() }
        let running = try await RunningSite(site)
        #expect(try await post(site, "/v1/calls", #"{"to":"caller@localhost"}"#).status == 201)
        #expect(try await post(site, "/v1/calls/1/hangup", "{}").status == 200)
        let status = try await ask(site, "http://device/v1/status").text
        let cursor = try #require(status.firstMatch(of: #/"cursor":"([^"]+)"/#)).1
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        let arguments = ["run", "--config", site.deviceConfiguration, "--server", running.server]
        let second = try HandsetProcess(arguments)
        try await second.line(containing: "Ready")
        let all = try curl(site, ["--no-buffer", "http://device/v1/events?after=oldest"])
        try await eventually { all.outputText.contains("event: calling") }
        let after = try curl(site, ["--no-buffer", "http://device/v1/events", "--header", "Last-Event-ID: \(cursor)"])
        try await eventually { after.outputText.contains("event: connection") }
        #expect(!after.outputText.contains("event: gap") && !after.outputText.contains("event: calling"))
        second.send(SIGKILL)
        #expect(await second.ending() == -SIGKILL)
        // What a crash leaves of a line.
        let log = try FileHandle(forWritingTo: URL(fileURLWithPath: site.path("events/events.log")))
        try log.seekToEnd()
        try log.write(contentsOf: Data("event 2199023255".utf8))
        try log.close()
        let third = try HandsetProcess(arguments)
        try await third.line(containing: "Ready")
        let crashed = try curl(site, ["--no-buffer", "http://device/v1/events?after=\(cursor)"])
        try await eventually { crashed.outputText.contains(#"{"event":"gap","reason":"interrupted"}"#) }
        let foreign = try curl(site, ["--no-buffer", "http://device/v1/events?after=00000000000000aa-5"])
        try await eventually { foreign.outputText.contains("event: calling") }
        #expect(foreign.outputText.contains(#"{"event":"gap","reason":"unknown_cursor"}"#))
    }

    @Test(
        "On TCP a token is needed, in its field; foreign hosts, pages and long bodies are refused, and the device continues"
    )
    func refusals() async throws {
        let site = try site(Self.network)
        defer { site.remove() }
        let running = try await RunningSite(site)
        let line = #/"Listening to programs, over HTTP".*"url":"([^"]+)"/#
        try await until { running.device.errorText.firstMatch(of: line) != nil }
        let url = String(try #require(running.device.errorText.firstMatch(of: line)).1)
        func ask(_ path: String, _ arguments: String..., token: String? = Self.token) async throws -> Answer {
            let known = token.map { ["--header", "Authorization: Bearer \($0)"] } ?? []
            let all = ["curl", "--silent", "--include", "--max-time", "20", url + path] + known + arguments
            return try await answer(of: HandsetProcess(all, executable: "/usr/bin/env"))
        }
        #expect(try await ask("/v1/status").status == 200)
        let stranger = try await ask("/v1/status", token: nil)
        #expect(stranger.status == 401 && stranger.fields.contains("WWW-Authenticate: Bearer"), "\(stranger)")
        #expect(stranger.fields.lowercased().contains("connection: close"), "\(stranger)")
        #expect(try await ask("/v1/status", token: "a-control-token-012345678X").status == 401)
        for token in [Self.token, nil] {
            #expect(try await ask("/v1/status?token=\(Self.token)", token: token).text.contains("token_in_url"))
        }
        #expect(try await ask("/v1/status", "--header", "Host: evil.example.org").status == 421)
        let page = try await ask("/v1/drain", "--request", "POST", "--header", "Origin: https://evil.example.org")
        #expect(page.status == 403 && page.text.contains("foreign_origin"), "\(page)")
        let long = site.path("long")
        try Data(repeating: UInt8(ascii: "x"), count: 10_000_000).write(to: URL(fileURLWithPath: long))
        let body = try await ask("/v1/calls", "--header", "Content-Type: application/json", "--data-binary", "@\(long)")
        #expect(body.text.contains("too_long"), "\(body)")
        let method = try await ask("/v1/calls", "--request", "DELETE")
        #expect(method.status == 405 && method.fields.contains("Allow: GET, HEAD, POST"), "\(method)")
        #expect(try await ask("/v1/openapi.json").text.contains(#""openapi":"3.1.0""#))
        let status = try await ask("/v1/status").text
        #expect(status.contains(#""draining":false"#))
        for secret in [Self.token, "app-secret", "echo-token"] {
            #expect(!status.contains(secret) && !running.device.errorText.contains(secret))
        }
    }

    @Test(
        "Pages of listed origins are let in before their token is known, and read answers, problems and events; others do not"
    )
    func origins() async throws {
        let desk = "https://desk.example.org"
        let site = try site(Self.network + ["allowed_origins: [\"\(desk)\"]"])
        defer { site.remove() }
        let running = try await RunningSite(site)
        let line = #/"Listening to programs, over HTTP".*"url":"([^"]+)"/#
        try await until { running.device.errorText.firstMatch(of: line) != nil }
        let url = String(try #require(running.device.errorText.firstMatch(of: line)).1)
        func ask(_ path: String, from origin: String, _ arguments: String..., isKnown: Bool = true) async throws
            -> Answer
        {
            let known = isKnown ? ["--header", "Authorization: Bearer \(Self.token)"] : []
            let all = [
                "curl", "--silent", "--include", "--max-time", "20", "--header", "Origin: \(origin)", url + path,
            ]
            return try await answer(of: HandsetProcess(all + known + arguments, executable: "/usr/bin/env"))
        }
        let preflight = ["--request", "OPTIONS", "--header", "Access-Control-Request-Method: POST"]
        let allowed = try await ask(
            "/v1/calls", from: desk, preflight[0], preflight[1], preflight[2], preflight[3], isKnown: false)
        #expect(allowed.status == 204, "\(allowed)")
        for field in [
            "Access-Control-Allow-Origin: \(desk)", "Access-Control-Allow-Methods: GET, HEAD, POST",
            "Access-Control-Allow-Headers: Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, If-Range",
            "Access-Control-Max-Age: 600", "Vary: Origin",
        ] { #expect(allowed.fields.contains(field), "\(field)") }
        let long = String(repeating: "x", count: 9_000)
        for (path, arguments, isKnown, status) in [
            ("/v1/status", ["--max-time", "20"], true, 200), ("/v1/calls/7", ["--max-time", "20"], true, 404),
            ("/v1/status", ["--max-time", "20"], false, 401), ("/v1/calls", ["--data", long], true, 413),
        ] {
            let answer = try await ask(path, from: desk, arguments[0], arguments[1], isKnown: isKnown)
            #expect(
                answer.status == status && answer.fields.contains("Access-Control-Allow-Origin: \(desk)"), "\(answer)")
        }
        let events = try HandsetProcess(
            [
                "curl", "--silent", "--include", "--no-buffer", "--header", "Origin: \(desk)", "--header",
                "Authorization: Bearer \(Self.token)", url + "/v1/events",
            ], executable: "/usr/bin/env")
        try await until { events.outputText.contains("retry: 2000") }
        #expect(events.outputText.contains("Access-Control-Allow-Origin: \(desk)"))
        let foreign = try await ask("/v1/status", from: "https://evil.example.org")
        #expect(foreign.status == 403 && !foreign.fields.contains("Access-Control"), "\(foreign)")
        let asked = try await ask(
            "/v1/calls", from: "https://evil.example.org", preflight[0], preflight[1], preflight[2], preflight[3],
            isKnown: false)
        #expect(asked.status == 403 && !asked.fields.contains("Access-Control"), "\(asked)")
    }

    @Test("A token that can be guessed is refused with file, line and key")
    func shortToken() async throws {
        let site = try site(Self.network)
        defer { site.remove() }
        for (token, words) in [("hunter2", "7 bytes"), ("012345678901234", "15 bytes"), ("0123456789012345", "")] {
            try token.write(toFile: site.path("control.token"), atomically: true, encoding: .utf8)
            let check = try HandsetProcess(["check", site.deviceConfiguration])
            #expect(await check.ending() == (words.isEmpty ? 0 : 3))
            let text = check.outputText + check.errorText
            #expect(words.isEmpty || (text.contains(words) && text.contains("control.http.token_file")), "\(text)")
            #expect(!text.contains(token), "the token is shown")
        }
    }

    @Test("A configuration without token, or without TLS off loopback, is refused with file, line and key")
    func configuration() async throws {
        for (lines, words) in [
            (["listen: 127.0.0.1:0"], "needs token_file"),
            (["listen: 0.0.0.0:0", "token_file: control.token"], "chain_file"),
            (["token_file: control.token"], "give listen"), (["lisen: 127.0.0.1:0"], "listen"),
        ] {
            let site = try site(lines)
            defer { site.remove() }
            let check = try HandsetProcess(["check", site.deviceConfiguration])
            #expect(await check.ending() == 3)
            let text = check.outputText + check.errorText
            #expect(text.contains(words) && text.contains("device.yaml:"), "\(text)")
        }
    }
}
