import Foundation
import TestSupport
import Testing

/// A process with accounts at two exchanges, and at a SIP server.
private struct AccountsSite {
    let (first, second): (Site, Site)
    var exchanges: [HandsetProcess] = []
    var addresses: [String] = []
    let sip: SIPPeer

    init() async throws {
        (first, second) = (try Site(), try Site())
        sip = try SIPPeer()
        for site in [first, second] {
            let exchange = try HandsetProcess(["serve", "--config", site.exchangeConfiguration, "--log-format", "json"])
            let line = try await exchange.line(containing: #""Listening""#)
            addresses.append(String(try #require(line.firstMatch(of: #/"url":"http:\/\/([^"]+)"/#)).1))
            exchanges.append(exchange)
        }
    }

    func remove() {
        sip.end()
        first.remove()
        second.remove()
    }

    var configuration: String { first.path("accounts.yaml") }
    var socket: String { first.path("control.sock") }

    /// An account at an exchange.
    func account(_ name: String, at number: Int, token: String? = nil, behaviour: String = "source: echo") -> String {
        let site = number == 0 ? first : second
        return """
              - name: \(name)
                account:
                  server: http://\(addresses[number])
                  app_key: tests
                  app_secret_file: \(site.path("app.secret"))
                  media_token_file: \(token ?? site.path("echo.secret"))
                  session_file: \(first.path(name + ".session"))
                behaviour:
                  \(behaviour)

            """
    }

    /// The account at the SIP server.
    var desk: String {
        """
          - name: desk
            account:
              kind: sip
              password_file: \(first.path("app.secret"))
              sip:
                address: sip:desk@127.0.0.1
                server: 127.0.0.1:\(sip.port)
            media:
              offers: plain
              allow_plain_rtp: true

        """
    }

    func write(_ accounts: String...) throws {
        try ("accounts:\n" + accounts.joined() + "control:\n  socket: control.sock\nmedia:\n  realtime_priority: 0\n")
            .write(toFile: configuration, atomically: true, encoding: .utf8)
    }

    func run(_ arguments: String..., environment: [String: String] = [:]) throws -> HandsetProcess {
        try HandsetProcess(
            ["run", "--config", configuration, "--log-format", "json"] + arguments, environment: environment)
    }

    /// Calls the account at an exchange, and waits until media flows.
    func call(at number: Int) async throws -> HandsetProcess {
        let site = number == 0 ? first : second
        let call = try HandsetProcess([
            "call", "echo", "--config", site.callerConfiguration, "--server", "http://\(addresses[number])",
            "--duration",
            "120", "--play", Site.speech,
        ])
        try await call.line(containing: "Media flows both ways")
        return call
    }

    func control(_ words: String...) async throws -> (code: Int32, output: String, error: String) {
        let command = try HandsetProcess(["control", "--socket", socket] + words)
        return (await command.ending(), command.outputText, command.errorText)
    }

    /// Waits for a status that is as it should be.
    func status(_ isRight: (Status) -> Bool) async throws -> Status {
        var last: Status?
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        for _ in 0..<400 {
            let answer = try await control("status", "--json")
            if answer.code == 0 {
                last = try decoder.decode(Answer.self, from: Data(answer.output.utf8)).status
                if let last, isRight(last) { return last }
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        return try #require(nil, "the status stays \(String(describing: last))")
    }

    private struct Answer: Decodable { let status: Status }

    struct Status: Decodable {
        struct Account: Decodable {
            let account, connection: String
            let callCount: Int
            let draining: Bool
            let failure: String?
        }

        struct Call: Decodable {
            let call: Int
            let account, state, peer: String
        }

        let accounts: [Account]
        let calls: [Call]
        let callCount: Int

        func connection(_ name: String) -> String? { accounts.first { $0.account == name }?.connection }

        /// The number of the call of an account that talks.
        func talking(_ name: String) -> Int? { calls.first { $0.account == name && $0.state == "talking" }?.call }
    }
}

@Suite("Several accounts in one process", .serialized, .timeLimit(.minutes(4)))
struct AccountsCommandTests {
    @Test(
        "Three accounts have calls at once; one's server is killed and comes back, and the calls of the others continue"
    )
    func outage() async throws {
        var site = try await AccountsSite()
        defer { site.remove() }
        try site.write(site.account("front", at: 0), site.account("back", at: 1), site.desk)
        let device = try site.run()
        for name in ["front", "back", "desk"] { try await eventually { isReady(name, in: device) } }

        let calls = [try await site.call(at: 0), try await site.call(at: 1)]
        try site.sip.call("one")
        let status = try await site.status {
            $0.callCount == 3 && $0.talking("desk") != nil && $0.talking("front") != nil
        }
        #expect(Set(status.calls.map(\.call)) == [1, 2, 3], "\(status)")
        #expect(status.accounts.map(\.account) == ["front", "back", "desk"])
        try await eventually { site.sip.isHeard("one") }

        site.exchanges[1].send(SIGKILL)
        #expect(await site.exchanges[1].ending() == -SIGKILL)
        let during = try await site.status { $0.connection("back") == "reconnecting" }
        #expect(during.connection("front") == "connected" && during.connection("desk") == "connected")
        #expect(during.talking("front") == status.talking("front") && during.talking("desk") == status.talking("desk"))
        site.exchanges[1] = try HandsetProcess([
            "serve", "--config", site.second.exchangeConfiguration, "--listen", site.addresses[1],
        ])
        _ = try await site.status { $0.connection("back") == "connected" }

        // The first calls end, by number: no account need be named.
        for name in ["front", "desk"] {
            let number = try #require(status.talking(name))
            #expect(try await site.control("hangup", "\(number)").output == "call \(number): hung up")
        }
        #expect(await calls[0].ending() == 0, "\(calls[0].errorText)")
        #expect(calls[0].outputText.contains("completed"), "\(calls[0].outputText)")

        // And there is a second one to each.
        let again = [try await site.call(at: 0), try await site.call(at: 1)]
        try site.sip.call("two")
        let second = try await site.status {
            $0.talking("desk") != nil && $0.talking("front") != nil && $0.talking("back") != nil
        }
        #expect(try #require(second.talking("desk")) > 3)
        try await eventually { site.sip.isHeard("two") }
        device.send(SIGTERM)
        #expect(await device.ending() == 0, "\(device.errorText)")
        for call in again { _ = await call.ending() }
    }

    @Test(
        "A reload adds, changes and removes accounts during a call of another, and refuses a file that is wrong")
    func reload() async throws {
        let site = try await AccountsSite()
        defer { site.remove() }
        try site.write(site.account("front", at: 0))
        let device = try site.run()
        try await eventually { isReady("front", in: device) }
        let call = try await site.call(at: 0)
        let number = try #require(try await site.status { $0.talking("front") != nil }.talking("front"))

        try site.write(site.account("back", at: 1), site.account("front", at: 0), site.desk)
        device.send(SIGHUP)
        _ = try await site.status { $0.connection("back") == "connected" && $0.connection("desk") == "connected" }
        #expect(try await site.control("status").output.contains("3 of 3 accounts connected"))
        let other = try await site.call(at: 1)
        _ = try await site.status { $0.talking("back") != nil }

        // A change for later calls, and one that needs another device, which waits for the call.
        let changed = site.account("back", at: 1, behaviour: "source: tone")
        try site.write(changed, site.account("front", at: 0), site.desk)
        device.send(SIGHUP)
        try await device.line(containing: #""adopted":"back""#)
        try site.write(
            changed.replacing("name: back", with: "name: back\n    device:\n      name: Rear"),
            site.account("front", at: 0), site.desk)
        device.send(SIGHUP)
        try await device.line(containing: #""log_in_again":"back""#)
        #expect(try await site.status { $0.accounts.first?.draining == true }.talking("back") != nil)
        other.send(SIGINT)
        _ = await other.ending()
        _ = try await site.status { $0.connection("back") == "connected" && $0.accounts.first?.draining == false }
        try await device.line(containing: #""device":"Rear""#)

        try site.write(site.account("front", at: 0), site.account("front", at: 1))
        device.send(SIGHUP)
        try await device.line(containing: "accounts[2].name: is the name of an earlier account: front")
        #expect(try await site.status { _ in true }.accounts.count == 3)

        try site.write(site.account("front", at: 0))
        device.send(SIGHUP)
        let last = try await site.status { $0.accounts.count == 1 }
        #expect(last.talking("front") == number)
        #expect(try await site.control("hangup").code == 0)
        #expect(await call.ending() == 0, "\(call.errorText)")
        #expect(!device.errorText.contains("next start"), "\(device.errorText)")
    }

    @Test("An account whose login is refused is tried again until it is taken, and the process is ready meanwhile")
    func refused() async throws {
        let site = try await AccountsSite()
        defer { site.remove() }
        let token = site.first.path("late.secret")
        try "wrong-token-0123456789".write(toFile: token, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: token)
        try site.write(site.account("front", at: 0), site.account("late", at: 1, token: token))
        let name = "@handset-\(UUID().uuidString)"
        let inbox = try DatagramInbox(name)
        let device = try site.run(environment: ["NOTIFY_SOCKET": name])
        try await eventually { inbox.texts.contains("READY=1\nSTATUS=1 of 2 accounts connected") }
        let status = try await site.status { $0.connection("late") == "waiting" }
        #expect(status.accounts.last?.failure?.contains("cannot log in") == true, "\(status)")
        let call = try await site.call(at: 0)

        let nobody = try await site.control("call", "caller", "--account", "late")
        #expect(nobody.code == 1 && nobody.error.contains("account late is not logged in"), "\(nobody)")
        let which = try await site.control("call", "caller")
        #expect(which.code == 1 && which.error.contains("say for which account: front, late"), "\(which)")
        let unknown = try await site.control("status", "--account", "lat")
        #expect(
            unknown.code == 1 && unknown.error.contains("there is no account lat; there are front, late"), "\(unknown)")

        // The file is read when the configuration is.
        let good = try String(contentsOfFile: site.second.path("echo.secret"), encoding: .utf8)
        try good.write(toFile: token, atomically: true, encoding: .utf8)
        device.send(SIGHUP)
        try await eventually { inbox.texts.contains { $0.hasSuffix("STATUS=2 of 2 accounts connected") } }
        #expect(try await site.status { _ in true }.talking("front") != nil)

        #expect(try await site.control("drain", "--account", "front").code == 0)
        #expect(try await site.status { _ in true }.accounts.map(\.draining) == [true, false])
        #expect(try await site.control("undrain").code == 0)
        #expect(try await site.status { _ in true }.accounts.map(\.draining) == [false, false])
        device.send(SIGTERM)
        #expect(await device.ending() == 0, "\(device.errorText)")
        _ = await call.ending()
        #expect(inbox.texts.last == "STOPPING=1\nSTATUS=Ending")
    }

    @Test("Events name their account, and a client that watches one account gets no other's")
    func watch() async throws {
        let site = try await AccountsSite()
        defer { site.remove() }
        try site.write(site.account("front", at: 0), site.account("back", at: 1))
        let device = try site.run()
        for name in ["front", "back"] { try await eventually { isReady(name, in: device) } }
        let all = try HandsetProcess(["control", "--socket", site.socket, "watch", "--json"])
        let one = try HandsetProcess(["control", "--socket", site.socket, "watch", "--account", "back"])
        try await eventually { all.outputText.contains(#""status""#) && one.outputText.contains("back") }
        let calls = [try await site.call(at: 0), try await site.call(at: 1)]
        try await eventually {
            all.outputText.contains(#""account":"front","at_ms""#)
                && all.outputText.contains(#""account":"back","at_ms""#)
                && one.outputText.contains("back: call 2 is established")
        }
        #expect(!one.outputText.contains("front"), "\(one.outputText)")

        // A request to watch that is refused leaves what is watched as it was.
        let client = try SocketClient(site.socket)
        client.write(#"{"request":"watch","account":"back"}"# + "\n")
        #expect(try client.line()?.contains(#""ok":true"#) == true)
        client.write(#"{"request":"watch","account":"nobody"}"# + "\n")
        #expect(try client.line()?.contains("no_such_account") == true)
        for call in ["1", "2"] { #expect(try await site.control("hangup", call).code == 0) }
        var news = ""
        while !news.contains(#""event":"ended""#) { news = try #require(try client.line()) }
        #expect(news.contains(#""account":"back""#), "\(news)")
        #expect(
            device.errorText.split(separator: "\n").contains {
                $0.contains("Media flows both ways") && $0.contains(#""account":"back""#)
            })
        device.send(SIGTERM)
        #expect(await device.ending() == 0)
        for call in calls { _ = await call.ending() }
    }

    @Test(
        "A second process with the accounts of one that runs says which file is locked, before it takes anything else")
    func second() async throws {
        let site = try await AccountsSite()
        defer { site.remove() }
        try site.write(site.account("front", at: 0), site.account("back", at: 1))
        let device = try site.run()
        for name in ["front", "back"] { try await eventually { isReady(name, in: device) } }
        let second = try site.run()
        #expect(await second.ending() == 1, "\(second.errorText)")
        #expect(second.errorText.contains("front.session.lock"), "\(second.errorText)")
        #expect(try await site.control("status").code == 0)
        // Another one, with one of the accounts alone.
        try site.write(site.account("back", at: 1))
        let third = try site.run()
        #expect(await third.ending() == 1, "\(third.errorText)")
        #expect(third.errorText.contains("back.session.lock"), "\(third.errorText)")
        device.send(SIGTERM)
        #expect(await device.ending() == 0, "\(device.errorText)")
    }

    private func isReady(_ name: String, in device: HandsetProcess) -> Bool {
        device.errorText.split(separator: "\n").contains {
            $0.contains(#""Ready""#) && $0.contains("\"account\":\"\(name)\"")
        }
    }
}
