import Foundation
import Testing

/// A device that runs, and somebody who acts on it: with `handset control`, and with bytes of all kinds.
@Suite("handset control", .serialized)
struct ControlCommandTests {
    private func running(answer: String = "ring", behaviour: String = "card") async throws -> RunningSite {
        try await RunningSite(Site(answer: answer, behaviour: behaviour, isControlled: true))
    }

    /// Waits until the device's status, as JSON, holds `text`.
    private func status(_ running: RunningSite, has text: String) async throws {
        for _ in 0..<200 {
            if try await running.control("status", "--json").output.contains(text) { return }
            try await Task.sleep(for: .milliseconds(50))
        }
        Issue.record("no status with \(text): \(try await running.control("status", "--json"))")
    }

    @Test("A call rings until it is answered by hand; mute, volume, keys, levels and its end are reported to watchers")
    func byHand() async throws {
        let running = try await running()
        defer { running.site.remove() }
        let watch = try HandsetProcess(["control", "--config", running.site.deviceConfiguration, "watch", "--json"])
        try await eventually { watch.outputText.contains(#""status""#) }
        let call = try running.call(["--play", Site.speech, "--duration", "60", "--json"])
        try await eventually { watch.outputText.contains(#""call":1,"event":"incoming","from":"caller"}"#) }
        let ringing = try await running.control("status")
        #expect(ringing.code == 0 && ringing.output.contains("call 1      from caller: ringing"), "\(ringing)")
        #expect(ringing.output.contains("connected as echo at localhost:"))

        let answered = try await running.control("answer")
        #expect(answered.code == 0 && answered.output == "call 1: answered", "\(answered)")
        try await call.line(containing: "Media flows both ways")
        try await status(running, has: #""state":"talking""#)
        try await eventually { watch.outputText.contains(#""event":"levels","#) }

        #expect(try await running.control("mute").output == "muted, volume 0 dB, microphone 0 dB")
        #expect(try await running.control("volume", "-6").output == "muted, volume -6 dB, microphone 0 dB")
        #expect(try await running.control("volume", "microphone", "3.5").output.hasSuffix("microphone 3.5 dB"))
        try await status(running, has: #""sound":{"microphone_db":3.5,"muted":true,"volume_db":-6}"#)
        #expect(try await running.control("unmute").output.hasPrefix("not muted"))
        #expect(try await running.control("dtmf", "5#").code == 0)
        try await call.line(containing: "The peer pressed #")

        let ended = try await running.control("hangup", "1")
        #expect(ended.code == 0 && ended.output == "call 1: hung up", "\(ended)")
        #expect(await call.ending() == 0, "\(call.errorText)")
        try await eventually { watch.outputText.contains(#""reason":"completed""#) }
        // Levels end with the call, and are told to have ended.
        try await eventually { watch.outputText.contains(#","event":"levels"}"#) }
        for text in [#""muted":true"#, #""volume_db":-6"#, #""event":"established""#] {
            #expect(watch.outputText.contains(text), "\(text)")
        }
        watch.send(SIGINT)
        #expect(await watch.ending() == 0, "\(watch.errorText)")
    }

    @Test("The socket is its owner's alone, and goes with the device; without one a request ends with 15")
    func permissions() async throws {
        let running = try await running()
        defer { running.site.remove() }
        let attributes = try FileManager.default.attributesOfItem(atPath: running.site.controlSocket)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let json = try await running.control("status", "--json").output
        for secret in ["app-secret", "echo-token"] { #expect(!json.contains(secret)) }
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0)
        #expect(!FileManager.default.fileExists(atPath: running.site.controlSocket))
        let nobody = try await running.control("status")
        #expect(nobody.code == 15 && nobody.error.contains(running.site.controlSocket), "\(nobody)")
    }

    @Test("A second device at the same socket ends with 7 and says whose it is; that of a killed one is replaced")
    func twoDevices() async throws {
        let running = try await running()
        defer { running.site.remove() }
        let arguments = ["run", "--config", running.site.deviceConfiguration, "--server", running.server]
        let second = try HandsetProcess(arguments)
        #expect(await second.ending() == 7)
        #expect(second.errorText.contains("process \(running.device.identifier) (handset)"), "\(second.errorText)")
        running.device.send(SIGKILL)
        #expect(await running.device.ending() == -SIGKILL)
        #expect(FileManager.default.fileExists(atPath: running.site.controlSocket))
        #expect(try await running.control("status").code == 15)
        let third = try HandsetProcess(arguments)
        try await third.line(containing: "Ready")
        #expect(try await running.control("status").code == 0)
    }

    @Test("INV-11: A call is declined, or refused as busy, by hand", arguments: ["reject", "busy"])
    func rejects(word: String) async throws {
        let running = try await running()
        defer { running.site.remove() }
        let call = try running.call(["--json"])
        try await status(running, has: #""state":"ringing""#)
        #expect(try await running.control(word).code == 0)
        #expect(await call.ending() == 10)
        #expect(
            call.outputText.contains(#""outcome": "\#(word == "busy" ? "busy" : "declined")""#), "\(call.outputText)")
    }

    @Test("A device calls on request, and a request that makes no sense at that moment ends with 1 and an explanation")
    func calls() async throws {
        let running = try await running()
        defer { running.site.remove() }
        for words in [["answer"], ["hangup"], ["dtmf", "1"], ["hangup", "7"], ["card", "7"]] {
            let command = try HandsetProcess(["control", "--socket", running.site.controlSocket] + words)
            #expect(await command.ending() == 1, "\(words)")
            #expect(command.errorText.contains("there is no call"), "\(command.errorText)")
        }
        let text = try String(contentsOfFile: running.site.callerConfiguration, encoding: .utf8)
        try text.replacing("mode: reject", with: "mode: auto")
            .write(toFile: running.site.callerConfiguration, atomically: true, encoding: .utf8)
        let peer = try HandsetProcess([
            "run", "--config", running.site.callerConfiguration, "--server", running.server,
        ])
        try await peer.line(containing: "Ready")
        let call = try await running.control("call", "caller@localhost")
        #expect(call.code == 0 && call.output == "calling caller@localhost: call 1", "\(call)")
        try await status(running, has: #""state":"talking""#)
        #expect(try await running.control("card", "1").output == "call 1: has the card")
        #expect(try await running.control("hangup").output == "call 1: hung up")
        try await peer.line(containing: "completed")
    }

    @Test("A device without a sound card says so when it is muted, and does the rest")
    func noCard() async throws {
        let running = try await running(answer: "auto", behaviour: "echo")
        defer { running.site.remove() }
        for words in [["mute"], ["volume", "0"]] {
            let command = try HandsetProcess(["control", "--socket", running.site.controlSocket] + words)
            #expect(await command.ending() == 1)
            #expect(command.errorText.contains("no sound card"), "\(command.errorText)")
        }
        let call = try running.call(["--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        try await status(running, has: #""state":"talking""#)
        #expect(try await running.control("hangup").code == 0)
        #expect(await call.ending() == 0, "\(call.errorText)")
    }

    @Test("The old socket of lines still answers, and the log says once that it goes; commands do not use it")
    func oldSocket() async throws {
        let running = try await running(answer: "auto", behaviour: "echo")
        defer { running.site.remove() }
        #expect(try await running.control("status").code == 0)
        #expect(!running.device.errorText.contains("old control socket"))
        for _ in 0..<2 {
            let client = try SocketClient(running.site.controlSocket)
            client.write("{\"request\":\"status\"}\n")
            #expect(try client.line()?.contains(#""ok":true"#) == true)
        }
        try await eventually { running.device.errorText.contains("old control socket") }
        #expect(running.device.errorText.components(separatedBy: "old control socket").count == 2)
        // The socket for HTTP can be named itself, and the old one alone is reached by no command.
        let named = try HandsetProcess(["control", "--socket", running.site.path("control-http.sock"), "status"])
        #expect(await named.ending() == 0, "\(named.errorText)")
        try FileManager.default.removeItem(atPath: running.site.path("control-http.sock"))
        let old = try await running.control("status")
        #expect(old.code == 15 && old.error.contains("does not speak HTTP"), "\(old)")
    }

    @Test("A device on TCP is reached with its token, and with another one it refuses")
    func network() async throws {
        let site = try Site(isControlled: true, http: ["listen: 127.0.0.1:0", "token_file: control.token"])
        defer { site.remove() }
        for (name, token) in [("control", "a-control-token-0123456789"), ("wrong", "another-token-0123456789")] {
            try token.write(toFile: site.path("\(name).token"), atomically: true, encoding: .utf8)
        }
        let running = try await RunningSite(site)
        let line = #/"Listening to programs, over HTTP".*"url":"([^"]+)"/#
        let url = String(try #require(running.device.errorText.firstMatch(of: line)).1)
        let place = ["--url", url, "--token-file", site.path("control.token")]
        let status = try await CommandResult(["control"] + place + ["status"])
        #expect(status.code == 0 && status.output.contains("connected as echo"), "\(status)")
        #expect(try await CommandResult(["top", "--once"] + place).code == 0)
        #expect(try await CommandResult(["conference", "list"] + place).code == 0)
        let refused = try await CommandResult(
            ["control", "--url", url, "--token-file", site.path("wrong.token"), "hangup"])
        #expect(refused.code == 1 && refused.error.contains("token_file"), "\(refused)")
    }

    @Test("What makes no sense ends with 2, and a configuration without a socket with 3")
    func usage() async throws {
        for words in [[], ["dance"], ["volume", "99"], ["volume"], ["card"], ["status", "now"], ["answer", "-1"]] {
            let command = try HandsetProcess(["control"] + words)
            #expect(await command.ending() == 2, "\(words)")
        }
        let site = try Site()
        defer { site.remove() }
        let command = try HandsetProcess(["control", "--config", site.deviceConfiguration, "status"])
        #expect(await command.ending() == 3)
        #expect(command.errorText.contains("control.socket"))
    }
}

/// The wire itself, with clients that do as they please.
@Suite("The control socket", .serialized)
struct ControlSocketWireTests {
    private func running() async throws -> RunningSite {
        try await RunningSite(Site(behaviour: "card", isControlled: true))
    }

    @Test(
        "Each line gets its answer in its order: nonsense and lines that are too long an error, and the rest what it asks"
    )
    func badInput() async throws {
        let running = try await running()
        defer { running.site.remove() }
        let client = try SocketClient(running.site.controlSocket)
        client.write("{\"id\":1,\"request\":\"mute\"}\nnonsense\n\u{0}\u{1}\n\n{\"id\":2,\"request\":\"dance\"}\n")
        client.write(String(repeating: "x", count: 200_000) + "\n")
        // In two parts, the last without a line break.
        client.write("{\"id\":3,\"req")
        client.write("uest\":\"unmute\"}")
        client.finishWriting()
        var lines: [String] = []
        while let line = try client.line() { lines.append(line) }
        #expect(lines.count == 6, "\(lines)")
        let expected = [
            #""id":1,"ok":true"#, #""code":"malformed""#, #""code":"malformed""#, #""code":"unknown_request""#,
            #""code":"too_long""#, #""id":3,"ok":true"#,
        ]
        for (line, text) in zip(lines, expected) { #expect(line.contains(text), "\(line)") }
        #expect(lines.last?.contains(#""muted":false"#) == true)
    }

    @Test("A client that asks and asks and reads later is read no faster than it reads, and gets every answer")
    func backPressure() async throws {
        let running = try await running()
        defer { running.site.remove() }
        let client = try SocketClient(running.site.controlSocket)
        let count = 5_000
        let writing = Thread {
            for id in 0..<count { client.write("{\"id\":\(id),\"request\":\"status\"}\n") }
            client.finishWriting()
        }
        writing.start()
        // Others are served meanwhile.
        for _ in 0..<3 { #expect(try await running.control("status").code == 0) }
        for id in 0..<count {
            let line = try #require(try client.line())
            #expect(line.contains("\"id\":\(id),"), "\(line)")
        }
        #expect(try client.line() == nil)
    }

    @Test("A client that watches and does not read is disconnected when too much waits for it, and no other notices")
    func deafWatcher() async throws {
        let running = try await running()
        defer { running.site.remove() }
        let deaf = try SocketClient(running.site.controlSocket)
        deaf.write("{\"request\":\"watch\"}\n")
        let good = try SocketClient(running.site.controlSocket)
        let watcher = try SocketClient(running.site.controlSocket)
        watcher.write("{\"request\":\"watch\",\"levels\":false}\n")
        _ = try watcher.line()
        let changes = 6_000
        for number in 0..<changes {
            good.write("{\"id\":\(number),\"request\":\"\(number % 2 == 0 ? "mute" : "unmute")\"}\n")
            #expect(try good.line()?.contains("\"ok\":true") == true)
            var news = try #require(try watcher.line())
            // The connection may have something to tell, too.
            while !news.contains("\"event\":\"sound\"") { news = try #require(try watcher.line()) }
            #expect(news.contains("\"muted\":\(number % 2 == 0)"))
        }
        try await running.device.line(containing: "too slow")
        var told = 0
        while try deaf.line() != nil { told += 1 }
        #expect(told < changes)
        #expect(try await running.control("status").code == 0)
    }

    @Test("Clients past the limit are notified, and take nothing from the others")
    func manyClients() async throws {
        let running = try await running()
        defer { running.site.remove() }
        var clients: [SocketClient] = []
        for _ in 0..<32 {
            let client = try SocketClient(running.site.controlSocket)
            client.write("{\"request\":\"status\"}\n{\"half a")
            #expect(try client.line()?.contains("\"ok\":true") == true)
            clients.append(client)
        }
        let refusal = try SocketClient(running.site.controlSocket).line()
        #expect(refusal?.contains("32 clients") == true, "\(refusal ?? "nothing")")
        // The command is no client of this socket.
        #expect(try await running.control("status").code == 0)
        clients.removeFirst()
        for _ in 0..<100 {
            let client = try SocketClient(running.site.controlSocket)
            client.write("{\"request\":\"status\"}\n")
            if try client.line()?.contains("\"ok\":true") == true { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("the place of a client that has gone stays taken")
    }

    @Test("A client that watches and goes, with or without a word, is forgotten")
    func watchersGo() async throws {
        let running = try await running()
        defer { running.site.remove() }
        for round in 0..<100 {
            let client = try SocketClient(running.site.controlSocket)
            client.write("{\"request\":\"watch\"}\n")
            if round % 2 == 0 { client.finishWriting() }
            #expect(try client.line()?.contains("\"ok\":true") == true, "\(round)")
        }
    }
}
