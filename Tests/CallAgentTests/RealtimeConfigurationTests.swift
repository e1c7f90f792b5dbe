import BotCalls
import BotWire
import ConfigReader
import Testing

@testable import CallAgent

@Suite("The configuration of realtime sessions") struct RealtimeConfigurationTests {
    private func read(_ keys: String) throws -> (BotPlan?, [ConfigProblem]) {
        let text = "account:\n  anonymous: a\nbehaviour:\n  source: bot\n  bot:\n    wire: realtime\n" + keys
        var problems: [ConfigProblem] = []
        let section = try ConfigDocument.read(text: text, environment: { $0 })
        let configuration = AccountsConfiguration(section, &problems).accounts.first?.configuration
        guard case .bot(let plan)? = configuration?.behaviour.source else { return (nil, problems) }
        return (plan, problems)
    }

    private func keys(_ keys: String...) -> String { keys.map { "    \($0)\n" }.joined() }

    @Test("The URL decides between a WebRTC leg and a WebSocket")
    func address() throws {
        #expect(try read(keys("url: https://bot.example/v1/realtime/calls")).0?.wire == .leg(.realtime(session: nil)))
        let (plan, problems) = try read(keys("url: wss://bot.example/v1/realtime?model=m", "auth_token_env: KEY"))
        #expect(problems.isEmpty && plan?.wire == .realtime(.init()) && plan?.token?.revealed == "KEY")
        #expect(plan?.address?.target == "/v1/realtime?model=m")
        let (_, wrong) = try read(keys("url: tcp://bot.example:1"))
        #expect(wrong.first?.description.contains("http://, https://, ws://, wss://") == true, "\(wrong)")
    }

    @Test("A session over a WebSocket has its keys, and the encoding decides the rate")
    func session() throws {
        let (plan, problems) = try read(
            keys(
                "url: ws://localhost:1/", "auth_token_env: KEY", "session: '{\"voice\": \"v\"}'", "encoding: mulaw",
                "realtime_version: beta", "speaks_first: true", "hang_up_function: end_call", "barge_in: local"))
        let settings = RealtimeWire.Settings(
            format: .pcmu, version: .beta, session: #"{"voice": "v"}"#, speaksFirst: true, hangUpFunction: "end_call")
        #expect(problems.isEmpty && plan?.wire == .realtime(settings), "\(problems)")
        for (keys, format) in [
            (keys("encoding: alaw"), RealtimeWire.Format.pcma), (keys("rate_hz: 24000"), .pcm),
            (keys("encoding: mulaw", "rate_hz: 8000"), .pcmu),
        ] {
            #expect(try read(self.keys("url: wss://bot.example/") + keys).0?.wire == .realtime(.init(format: format)))
        }
    }

    @Test("A session may be written in several lines")
    func lines() throws {
        let session = """
                session: >-
                  {"instructions": "Be brief.",
                   "tools": [{"type": "function", "name": "end_call",
                              "parameters": {"type": "object", "properties": {}}}]}

            """
        let (plan, problems) = try read(keys("url: wss://bot.example/") + session)
        guard case .realtime(let settings)? = plan?.wire else { return #expect(Bool(false), "\(problems)") }
        #expect(problems.isEmpty && RealtimeWire.isSession(settings.session ?? ""))
    }

    @Test("A key that would cross a network in plain text is warned of, and what a session does not have is refused")
    func refusals() throws {
        let (plan, warnings) = try read(keys("url: ws://bot.example/", "auth_token_env: KEY"))
        #expect(plan != nil && warnings.map(\.key) == ["behaviour.bot.url"] && warnings.allSatisfy(\.isWarning))
        #expect(try read(keys("url: ws://bot.example/")).1.isEmpty, "there is no key")
        let nested = String(repeating: "{\"a\":", count: 16) + "1" + String(repeating: "}", count: 16)
        for (more, key) in [
            ("rate_hz: 8000", "rate_hz"), ("encoding: mulaw\n    rate_hz: 24000", "rate_hz"),
            ("parameters: [a=b]", "parameters"),
            ("transfer_by: handover", "transfer_by"), ("session: '\(nested)'", "session"),
            ("requests: { listen: \"127.0.0.1:0\", password_env: P }", "requests"),
        ] {
            let (plan, problems) = try read(keys("url: wss://bot.example/", more))
            #expect(plan == nil && problems.map(\.key) == ["behaviour.bot.\(key)"], "\(problems)")
        }
        for key in ["speaks_first: true", "hang_up_function: f", "realtime_version: ga"] {
            let (_, problems) = try read(keys("url: https://bot.example/", key))
            #expect(problems.count == 1, "\(problems)")
        }
    }
}
