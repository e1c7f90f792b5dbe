import Foundation
import TestSupport
import Testing

/// What browsers get from a device: the page, and the records that it shows.
@Suite("The page of a device's calls, and its history", .serialized, .timeLimit(.minutes(3)))
struct ControlPageTests {
    private static let token = "a-control-token-0123456789"

    private func site(_ records: String? = "calls.jsonl", behaviour: String = "echo") throws -> Site {
        let site = try Site(
            behaviour: behaviour, isControlled: true, http: ["listen: 127.0.0.1:0", "token_file: control.token"])
        try Self.token.write(toFile: site.path("control.token"), atomically: true, encoding: .utf8)
        guard let records else { return site }
        let configuration = try String(contentsOfFile: site.deviceConfiguration, encoding: .utf8)
        try (configuration + "\ndevice:\n  call_records: \(records)\n")
            .write(toFile: site.deviceConfiguration, atomically: true, encoding: .utf8)
        return site
    }

    private func url(_ running: RunningSite) async throws -> String {
        let line = #/"Listening to programs, over HTTP".*"url":"([^"]+)"/#
        try await until { running.device.errorText.firstMatch(of: line) != nil }
        return String(try #require(running.device.errorText.firstMatch(of: line)).1)
    }

    private func curl(_ arguments: String...) async throws -> String {
        let process = try HandsetProcess(
            ["curl", "--silent", "--show-error", "--include", "--max-time", "20"] + arguments,
            executable: "/usr/bin/env")
        #expect(await process.ending() == 0, "\(process.errorText)")
        return process.outputText
    }

    /// Asks until the answer is what is expected, 20 s at most.
    private func eventually(_ condition: () async throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < end {
            if try await condition() { return }
        }
        Issue.record("it has not come true within 20 s")
    }

    private func ask(_ url: String, _ path: String) async throws -> String {
        try await curl(url + path, "--header", "Authorization: Bearer \(Self.token)")
    }

    @Test(
        "On TCP a browser gets every file of the page without a token, under a strict policy; on the socket there are none"
    )
    func files() async throws {
        let site = try Site(
            isControlled: true, http: ["socket: page.sock", "listen: 127.0.0.1:0", "token_file: control.token"])
        defer { site.remove() }
        try Self.token.write(toFile: site.path("control.token"), atomically: true, encoding: .utf8)
        let running = try await RunningSite(site)
        let url = try await url(running)
        let page = try await curl(url + "/")
        #expect(page.hasPrefix("HTTP/1.1 200") && page.contains("Content-Type: text/html"), "\(page)")
        #expect(page.contains("Content-Security-Policy: default-src 'none'; script-src 'self'"))
        #expect(page.contains("; media-src blob:; "))
        #expect(!page.contains("<script>") && !page.contains(" style="))
        var paths = page.matches(of: /(?:src|href)="((?:console|phone)\/[\w.-]+)"/).map { "/\($0.1)" }
        #expect(paths.count >= 4)
        // The modules that those import, and so on.
        var seen: Set<String> = []
        while let path = paths.popLast() {
            guard seen.insert(path).inserted else { continue }
            let file = try await curl(url + path)
            #expect(file.hasPrefix("HTTP/1.1 200") && file.contains("nosniff"), "\(path)")
            for found in file.matches(of: /from '(\.\.?)\/((?:phone\/)?[\w.-]+)'/) {
                let folder =
                    found.1 == ".."
                    ? "/" : path.prefix { $0 != "." }.split(separator: "/").first.map { "/\($0)/" } ?? "/"
                paths.append(folder + found.2)
            }
        }
        #expect(seen.contains("/console/timeline.js") && seen.contains("/phone/plot.js"), "\(seen)")
        let tag = try #require(page.firstMatch(of: /ETag: (\S+)/)).1
        #expect(try await curl(url + "/", "--header", "If-None-Match: \(tag)").hasPrefix("HTTP/1.1 304"))
        #expect(try await curl(url + "/console/none.js").hasPrefix("HTTP/1.1 401"))
        #expect(try await curl(url + "/", "--header", "Host: evil.example.org").hasPrefix("HTTP/1.1 421"))
        let socket = try await curl("--unix-socket", site.path("page.sock"), "http://device/")
        #expect(socket.hasPrefix("HTTP/1.1 404"), "\(socket)")
    }

    @Test("A call has figures of its sound while it runs; afterwards its record has what handset explain says")
    func history() async throws {
        let site = try site()
        defer { site.remove() }
        let running = try await RunningSite(site)
        let url = try await url(running)
        #expect(try await ask(url, "/v1/history").hasSuffix(#"{"history":[]}"#))
        let call = try running.call(["--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        let figures = #/"media":{"accelerated_ms":\d+.*"delay_ms":[0-9.]+.*"received":[1-9].*"sent_dbfs":-?[0-9.]+/#
        try await eventually { try await ask(url, "/v1/calls").contains(figures) }
        let top = try HandsetProcess(["top", "--socket", site.controlSocket])
        #expect(await top.ending() == 0 && top.outputText.contains("< caller "), "\(top.outputText)")
        #expect(
            try await curl(
                url + "/v1/calls/1/hangup", "--header", "Authorization: Bearer \(Self.token)", "--header",
                "Content-Type: application/json", "--data", "{}"
            ).hasPrefix("HTTP/1.1 200"))
        #expect(await call.ending() == 0, "\(call.errorText)")
        try await eventually { try await ask(url, "/v1/history?search=CALLER").contains(#""record":""#) }
        let list = try await ask(url, "/v1/history?outcome=completed&limit=1")
        let name = try #require(list.firstMatch(of: #/"record":"([\w-]+)"/#)).1
        let record = try await ask(url, "/v1/history/\(name)")
        #expect(record.contains(#""outcome":"The call from caller lasted "#), "\(record)")
        #expect(record.contains(#""media":{"#) && !list.contains(#""media":{"#))
        let explain = try HandsetProcess(["explain", "--config", site.deviceConfiguration, "--json"])
        #expect(await explain.ending() == 0)
        let sentence = try #require(explain.outputText.firstMatch(of: #/"outcome": "([^"]+)"/#)).1
        #expect(record.contains(sentence))
        #expect(try await ask(url, "/v1/history?search=nobody").hasSuffix(#"{"history":[]}"#))
        #expect(try await ask(url, "/v1/history/unknown").hasPrefix("HTTP/1.1 404"))
    }

    @Test(
        "The record of a recorded call has its counters and moments, and names its recording, which is sent in whole and in part"
    )
    func recording() async throws {
        let site = try site(behaviour: "echo\n  record_folder: kept\n  record_channels: 2")
        defer { site.remove() }
        let running = try await RunningSite(site)
        let url = try await url(running)
        let call = try running.call(["--play", Site.speech, "--duration", "3"])
        #expect(await call.ending() == 0, "\(call.errorText)")
        try await eventually { try await ask(url, "/v1/history?search=CALLER").contains(#""record":""#) }
        let list = try await ask(url, "/v1/history?limit=1")
        #expect(!list.contains("timeline") && !list.contains("recordings") && !list.contains("moments"))
        let name = try #require(list.firstMatch(of: #/"record":"([\w-]+)"/#)).1
        let record = try await ask(url, "/v1/history/\(name)")
        #expect(record.contains(#/"timeline":\{"begins":\d+.*"delay_ms":"\d.*"received":"\d/#), "\(record)")
        #expect(
            record.contains(#""kind":"answered""#)
                && record.contains(#/"recordings":\[\{"began_ms":\d+,"file":"[^"]+\.wav","number":1\}\]/#))
        let path = "/v1/history/\(name)/recording"
        // The disk may still complete the file.
        try await eventually { try await ask(url, path).hasPrefix("HTTP/1.1 200") }
        let folder = try FileManager.default.contentsOfDirectory(atPath: site.path("kept")).filter {
            $0.hasSuffix(".wav")
        }
        let file = try Data(contentsOf: URL(fileURLWithPath: site.path("kept/\(try #require(folder.first))")))
        let known = ["--header", "Authorization: Bearer \(Self.token)"]
        let copy = site.path("copy.wav")
        let part = try HandsetProcess(
            ["curl", "--silent", "--range", "1000-70999", "--output", copy, url + path] + known,
            executable: "/usr/bin/env")
        #expect(await part.ending() == 0)
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == file[1_000..<71_000])
        let whole = try HandsetProcess(
            ["curl", "--silent", "--output", copy, url + path] + known, executable: "/usr/bin/env")
        #expect(await whole.ending() == 0)
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == file)
        #expect(try await curl(url + path).hasPrefix("HTTP/1.1 401"))
        #expect(try await curl(url + path + "?token=\(Self.token)").hasPrefix("HTTP/1.1 400"))
        try FileManager.default.removeItem(atPath: site.path("kept/\(try #require(folder.first))"))
        let gone = try await ask(url, path)
        #expect(gone.hasPrefix("HTTP/1.1 404") && gone.contains("no_such_recording"), "\(gone)")
    }

    @Test("Without records of calls the history says which key is missing")
    func without() async throws {
        let site = try site(nil)
        defer { site.remove() }
        let running = try await RunningSite(site)
        let url = try await url(running)
        let answer = try await ask(url, "/v1/history")
        #expect(answer.hasPrefix("HTTP/1.1 409") && answer.contains("device.call_records"), "\(answer)")
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
    }
}
