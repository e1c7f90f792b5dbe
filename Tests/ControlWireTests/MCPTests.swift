import Core
import JSON
import Testing

@testable import ControlWire

/// A door on virtual time, a client that writes lines, and a device that answers as the test says.
private struct Agent {
    private var door: MCPDoor
    private(set) var now = Instant.zero
    /// What the door has done.
    private(set) var outputs: [MCPDoor.Output] = []

    init(readOnly: Bool = false, admits: @escaping @Sendable (String, String?) -> Bool = { _, _ in true }) {
        door = MCPDoor(version: "1.2.3", isReadOnly: readOnly, admits: admits)
    }

    /// One whose handshake is over.
    static func ready(
        readOnly: Bool = false, admits: @escaping @Sendable (String, String?) -> Bool = { _, _ in true }
    ) -> Agent {
        var agent = Agent(readOnly: readOnly, admits: admits)
        agent.send(#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#)
        agent.outputs = []
        return agent
    }

    mutating func take(_ input: MCPDoor.Input) { door.handle(input, at: now, into: &outputs) }

    mutating func send(_ line: String) { take(.line(.whole(Array(line.utf8)))) }

    mutating func call(_ id: Int, _ tool: String, _ arguments: String = "{}") {
        send(
            #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"\#(tool)","arguments":\#(arguments)}}"#
        )
    }

    mutating func event(_ line: String) { take(.event(Array(line.utf8))) }

    /// Time passes until the door's next deadline.
    mutating func waitForDeadline() throws {
        now = try #require(door.nextDeadline)
        take(.timerFired)
    }

    /// The messages that were sent so far.
    var messages: [JSONValue] {
        outputs.compactMap { output in
            guard case .send(let line) = output else { return nil }
            return ControlCoding.decode(JSONValue.self, from: line)
        }
    }

    /// The last message.
    var last: JSONValue { messages.last ?? .null }

    /// The requests to the device.
    var requests: [(call: Int, action: ControlRequest.Action)] {
        outputs.compactMap { if case .ask(let call, let request) = $0 { (call, request.action) } else { nil } }
    }

    var nextDeadline: Instant? { door.nextDeadline }

    /// Whether the door has closed.
    var hasEnded: Bool { outputs.contains { if case .end = $0 { true } else { false } } }
}

extension JSONValue {
    fileprivate var text: String? {
        guard case .array(let content)? = self["result"]?["content"] else { return nil }
        return content.first?["text"]?.string
    }
    fileprivate var structured: JSONValue { self["result"]?["structuredContent"] ?? .null }
    fileprivate var isError: Bool { self["result"]?["isError"] == true }
    fileprivate var code: Int64? { self["error"]?["code"]?.integer }
}

private let ended =
    #"{"at_ms":1,"call":7,"duration_s":2.5,"ended_by":"remote","event":"ended","invite":"inv-7","peer":"bob@x","reason":"completed"}"#
private let established = #"{"at_ms":1,"call":7,"established_ms":20,"event":"established"}"#

@Suite("The Model Context Protocol")
struct MCPProtocolTests {
    @Test("A handshake agrees on the version that the client names if it is known, and else on the newest")
    func versions() {
        for (wanted, agreed) in [
            ("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-11-25"), ("1999-01-01", "2025-11-25"),
        ] {
            var agent = Agent()
            agent.send(
                #"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"\#(wanted)"}}"#)
            #expect(agent.last["id"] == "a")
            #expect(agent.last["result"]?["protocolVersion"] == .string(agreed))
            #expect(agent.last["result"]?["serverInfo"]?["version"] == "1.2.3")
            #expect(agent.last["result"]?["capabilities"] == ["tools": [:]])
        }
    }

    @Test("Tools are listed after the handshake, and with 2026-07-28 without one")
    func list() {
        var agent = Agent()
        agent.send(#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)
        #expect(agent.last.code == -32_600)
        let meta = #""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#
        agent.send(#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{\#(meta)}}"#)
        #expect(agent.last["result"]?["resultType"] == "complete")
        #expect(agent.last["result"]?["cacheScope"] == "private")
        guard case .array(let tools)? = agent.last["result"]?["tools"] else { return #expect(Bool(false)) }
        #expect(tools.compactMap { $0["name"]?.string } == MCPTool.allCases.map(\.rawValue))
        for tool in tools {
            #expect(tool["inputSchema"]?["type"] == "object")
            #expect(tool["inputSchema"]?["additionalProperties"] == false)
            #expect(tool["description"]?.string?.hasSuffix(".") == true)
        }
        agent.send(#"{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{\#(meta)}}"#)
        #expect(agent.last["result"]?["ttlMs"]?.integer == 3_600_000)
        agent.send(
            #"{"jsonrpc":"2.0","id":4,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}}"#
        )
        #expect(agent.last.code == -32_022)
        #expect(agent.last["error"]?["data"]?["requested"] == "2031-01-01")
    }

    @Test("Lines that are no messages are refused with the code of JSON-RPC, and the next line is read as usual")
    func rubbish() {
        var agent = Agent.ready()
        let lines: [(String, Int64)] = [
            ("rubbish", -32_700), ("{", -32_700), ("[]", -32_600), ("7", -32_600), ("{}", -32_600),
            (#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32_600),
            (#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32_600),
            (#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32_602),
            (#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, -32_601),
            (#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#, -32_600),
            (#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"dance"}}"#, -32_602),
            (#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":3}}"#, -32_602),
            (String(repeating: "[", count: 40_000), -32_700),
        ]
        for (line, code) in lines {
            agent.send(line)
            #expect(agent.last.code == code, "\(line.prefix(80))")
        }
        agent.take(.line(.tooLong))
        #expect(agent.last.code == -32_600)
        let count = agent.messages.count
        agent.send(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        agent.send(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#)
        agent.send(#"{"jsonrpc":"2.0","id":5,"result":{}}"#)
        #expect(agent.messages.count == count)
        agent.send(#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#)
        #expect(agent.last == ["jsonrpc": "2.0", "id": 6, "result": [:]])
    }

    @Test("Wrong arguments are a result that the agent can read, and nothing is asked of the device")
    func arguments() {
        var agent = Agent.ready()
        for (tool, arguments, word) in [
            ("place_call", "{}", "to"), ("place_call", #"{"to":"bob","timeout":0}"#, "timeout"),
            ("place_call", #"{"to":"bob","id":1}"#, "no member \"id\""), ("say", #"{"call":1}"#, "text"),
            ("say", #"{"call":0,"text":"a"}"#, "call"), ("say", #"{"call":1,"text":"\u0000"}"#, "text"),
            ("hear", #"{"call":1,"pause":60}"#, "pause"), ("play_file", #"{"call":1,"file":"a.wav"}"#, "root"),
            ("wait_for_event", #"{"events":["levels"]}"#, "incoming"), ("hang_up", #"{"call":"1"}"#, "call"),
            ("explain_call", #"{"call":1,"search":"x"}"#, "not both"),
        ] {
            agent.call(1, tool, arguments)
            #expect(agent.last.isError && agent.last.text?.contains(word) == true, "\(tool) \(agent.last)")
            #expect(agent.last.structured["code"] == "wrong_value")
        }
        #expect(agent.requests.isEmpty)
    }

    @Test("A reader only lists and explains")
    func readOnly() {
        var agent = Agent.ready(readOnly: true)
        agent.call(1, "place_call", #"{"to":"bob"}"#)
        #expect(agent.last["error"]?["message"]?.string?.contains("list_calls, explain_call") == true)
        agent.call(2, "list_calls")
        #expect(agent.requests.map(\.action) == [.status])
    }

    @Test("Seventeen tool calls at once are one too many, and an id is used once at a time")
    func limit() {
        var agent = Agent.ready()
        for id in 1...16 { agent.call(id, "wait_for_event") }
        #expect(agent.messages.isEmpty)
        agent.call(16, "wait_for_event")
        #expect(agent.last.code == -32_600)
        agent.call(17, "wait_for_event")
        #expect(agent.last.structured["code"] == "too_many")
        agent.send(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#)
        agent.call(18, "list_calls")
        #expect(agent.requests.count == 1)
    }

    @Test("Any prefix of a message, and random bytes, are answered or ignored")
    func fuzz() {
        let whole = Array(
            #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"call":1,"text":"é"}}}"#
                .utf8)
        for length in whole.indices {
            var agent = Agent.ready()
            agent.take(.line(.whole(Array(whole[..<length]))))
            #expect(agent.last.code == -32_700)
        }
        var random = SplitMix64(seed: 36)
        for _ in 0..<2_000 {
            var bytes = whole
            for _ in 0..<3 {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            var agent = Agent.ready()
            agent.take(.line(.whole(bytes)))
        }
    }
}

@Suite("The tools of an agent")
struct MCPToolTests {
    @Test("A call is placed, and the answer comes when it is established")
    func place() {
        var agent = Agent.ready()
        agent.call(1, "place_call", #"{"to":"bob@x"}"#)
        #expect(agent.requests.map(\.action) == [.call(to: "bob@x")])
        agent.take(.reply(1, ControlReply(call: 7)))
        agent.event(#"{"at_ms":1,"call":7,"event":"answered"}"#)
        #expect(agent.messages.isEmpty)
        agent.event(established)
        #expect(agent.last.structured == ["call": 7, "state": "talking"])
        #expect(agent.outputs.contains { if case .listen(7) = $0 { true } else { false } })
        #expect(agent.nextDeadline == nil)
    }

    @Test("Events that come before the number of the placed call count")
    func earlyEvents() {
        var agent = Agent.ready()
        agent.call(1, "place_call", #"{"to":"bob@x"}"#)
        agent.event(#"{"at_ms":1,"call":6,"established_ms":20,"event":"established"}"#)
        agent.event(ended)
        agent.take(.reply(1, ControlReply(call: 7)))
        #expect(agent.last.isError && agent.last.structured["reason"] == "completed")
    }

    @Test("A call that is not answered in time is hung up; what the device refuses is said as it says it")
    func unanswered() throws {
        var agent = Agent.ready()
        agent.call(1, "place_call", #"{"to":"bob@x","timeout":5}"#)
        agent.take(.reply(1, ControlReply(call: 7)))
        try agent.waitForDeadline()
        #expect(agent.now == .zero.advanced(by: .seconds(5)))
        #expect(agent.requests.last?.action == .hangUp(7))
        agent.event(ended)
        #expect(agent.last.isError && agent.last.structured["code"] == "not_answered")
        agent.call(2, "place_call", #"{"to":"bob@x"}"#)
        agent.take(.reply(2, ControlReply(id: nil, ControlFault(.notConnected, "the device is not connected"))))
        #expect(agent.last.text == "the device is not connected" && agent.last.structured["code"] == "not_connected")
    }

    @Test("A cancelled call of a tool ends what it began, and has no answer", arguments: [true, false])
    func cancelled(isNumbered: Bool) {
        var agent = Agent.ready()
        agent.call(1, "place_call", #"{"to":"bob@x"}"#)
        if isNumbered { agent.take(.reply(1, ControlReply(call: 7))) }
        agent.send(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        if !isNumbered {
            #expect(agent.requests.count == 1)
            agent.take(.reply(1, ControlReply(call: 7)))
        }
        #expect(agent.requests.last?.action == .hangUp(7))
        agent.event(ended)
        #expect(agent.messages.isEmpty)
    }

    @Test("A text is spoken to a file, played, and answered when it was heard out")
    func say() {
        var agent = Agent.ready()
        agent.call(1, "say", #"{"call":7,"text":"Good morning;\n$(rm -rf /)"}"#)
        guard case .sound(1, .speak(let text))? = agent.outputs.last else { return #expect(Bool(false)) }
        #expect(text == "Good morning;\n$(rm -rf /)")
        agent.take(.sound(1, .spoken(path: "/tmp/say.wav", length: .seconds(2))))
        #expect(agent.requests.map(\.action) == [.play(file: "/tmp/say.wav", 7)])
        agent.event(#"{"at_ms":1,"call":7,"event":"play","path":"/tmp/say.wav","state":"started"}"#)
        agent.take(.reply(1, ControlReply(call: 7)))
        agent.event(#"{"at_ms":1,"call":7,"event":"play","path":"/other.wav","reason":"played","state":"ended"}"#)
        #expect(agent.messages.isEmpty)
        agent.event(#"{"at_ms":1,"call":7,"event":"play","path":"/tmp/say.wav","reason":"played","state":"ended"}"#)
        #expect(agent.last.structured == ["heard": "all"] && !agent.last.isError)
    }

    @Test("A text that is cancelled, cut off, or whose call ends, does not count as heard")
    func sayEnds() throws {
        func playing() -> Agent {
            var agent = Agent.ready()
            agent.call(1, "say", #"{"call":7,"text":"Hello"}"#)
            agent.take(.sound(1, .spoken(path: "/a.wav", length: .seconds(2))))
            agent.take(.reply(1, ControlReply(call: 7)))
            agent.event(#"{"at_ms":1,"call":7,"event":"play","path":"/a.wav","state":"started"}"#)
            return agent
        }
        var agent = playing()
        agent.send(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        #expect(agent.requests.last?.action == .stop(7))
        agent = playing()
        agent.event(#"{"at_ms":1,"call":7,"event":"play","path":"/a.wav","reason":"stopped","state":"ended"}"#)
        #expect(agent.last.isError && agent.last.structured == ["heard": "a part"])
        agent = playing()
        agent.event(ended)
        #expect(agent.last.isError && agent.last.structured["reason"] == "completed")
        agent = playing()
        try agent.waitForDeadline()
        #expect(agent.now == .zero.advanced(by: .seconds(32)) && agent.requests.last?.action == .stop(7))
        agent.event(#"{"at_ms":1,"call":7,"event":"play","path":"/a.wav","reason":"stopped","state":"ended"}"#)
        #expect(agent.last.isError && agent.last.text?.contains("in time") == true)
    }

    @Test("A file that is played again ends with its own end, not with that of its first time")
    func playedTwice() {
        var agent = Agent.ready()
        let stopped = #"{"at_ms":1,"call":7,"event":"play","path":"/a.wav","reason":"stopped","state":"ended"}"#
        let started = #"{"at_ms":1,"call":7,"event":"play","path":"/a.wav","state":"started"}"#
        let played = #"{"at_ms":1,"call":7,"event":"play","path":"/a.wav","reason":"played","state":"ended"}"#
        agent.call(1, "play_file", #"{"call":7,"file":"/a.wav"}"#)
        agent.event(started)
        agent.send(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        agent.call(2, "play_file", #"{"call":7,"file":"/a.wav"}"#)
        agent.event(stopped)
        #expect(agent.messages.isEmpty)
        agent.event(started)
        agent.event(played)
        #expect(!agent.last.isError && agent.last.structured == ["heard": "all"])
    }

    @Test("What is heard is the answer; a missing recogniser is an error that says what to do")
    func hear() {
        var agent = Agent.ready()
        agent.call(1, "hear", #"{"call":7,"timeout":10,"pause":0.5}"#)
        guard case .sound(1, .hear(7, let most, let pause))? = agent.outputs.last else { return #expect(Bool(false)) }
        #expect(most == .seconds(10) && pause == .milliseconds(500))
        agent.take(.sound(1, .heard(.init(text: "Yes?", seconds: 1.24, end: .pause))))
        #expect(agent.last.text == "Yes?")
        #expect(agent.last.structured == ["text": "Yes?", "seconds": 1.2, "ended_by": "pause"])
        agent.call(2, "hear", #"{"call":7}"#)
        agent.take(.sound(2, .failed("no recogniser is configured")))
        #expect(agent.last.isError && agent.last.text == "no recogniser is configured")
    }

    @Test("Events are reported once; a wait ends with the first that fits, or with its time")
    func events() throws {
        var agent = Agent.ready()
        agent.event(#"{"at_ms":1,"call":3,"event":"digit","key":"5"}"#)
        agent.event(#"{"at_ms":1,"busy":0.5,"complexity_limit":10,"event":"load","takes_calls":true}"#)
        agent.call(1, "wait_for_event", #"{"events":["digit"],"call":3}"#)
        #expect(agent.last.text == "call 3: digit, key 5")
        agent.call(2, "wait_for_event", #"{"events":["digit"],"call":3,"timeout":4}"#)
        agent.event(#"{"at_ms":1,"call":4,"event":"digit","key":"6"}"#)
        #expect(agent.messages.count == 1)
        try agent.waitForDeadline()
        #expect(agent.last.text == "Nothing happened." && agent.now == .zero.advanced(by: .seconds(4)))
        agent.call(3, "wait_for_event")
        #expect(agent.last.text == "call 4: digit, key 6")
        for _ in 0..<300 { agent.event(#"{"at_ms":1,"call":4,"event":"digit","key":"6"}"#) }
        agent.call(4, "wait_for_event")
        #expect(agent.last.structured["missed"] == 44)
    }

    @Test("A callee that the configuration does not list is not called, and no call is transferred there")
    func callees() {
        var agent = Agent.ready { callee, account in callee == "bob@x" && account == nil }
        agent.call(0, "place_call", #"{"to":"bob@x","account":"other"}"#)
        agent.call(1, "place_call", #"{"to":"eve@x"}"#)
        agent.call(2, "transfer_call", #"{"call":7,"to":"eve@x"}"#)
        #expect(agent.messages.allSatisfy { $0.isError && $0.structured["code"] == "not_configured" })
        #expect(agent.messages.count == 3 && agent.requests.isEmpty)
        agent.call(3, "transfer_call", #"{"call":7,"to":"bob@x"}"#)
        agent.take(.reply(3, ControlReply(call: 7)))
        agent.event(#"{"at_ms":1,"call":7,"event":"transfer","state":"ringing","to":"bob@x"}"#)
        #expect(agent.messages.count == 3)
        agent.event(#"{"at_ms":1,"call":7,"event":"transfer","state":"accepted","to":"bob@x"}"#)
        #expect(agent.last.structured["state"] == "accepted" && !agent.last.isError)
    }

    @Test("An ended call is explained by its number")
    func explain() {
        var agent = Agent.ready()
        agent.call(1, "explain_call", #"{"call":7}"#)
        #expect(agent.last.structured["code"] == "no_such_call")
        agent.event(ended)
        agent.call(2, "explain_call", #"{"call":7}"#)
        guard case .explain(2, search: "inv-7", account: nil, waits: true)? = agent.outputs.last else {
            return #expect(Bool(false))
        }
        agent.take(.explained(2, text: "It ended.", object: #"{"reason":"completed"}"#))
        #expect(agent.last.text == "It ended." && agent.last.structured == ["reason": "completed"])
    }

    @Test("A device that ends fails what waits for it, and its calls are forgotten")
    func deviceEnds() {
        var agent = Agent.ready()
        agent.call(1, "place_call", #"{"to":"bob@x"}"#)
        agent.take(.reply(1, ControlReply(call: 7)))
        agent.call(2, "wait_for_event")
        agent.take(.deviceLost("the device has ended"))
        #expect(agent.messages.count == 2)
        #expect(agent.messages.allSatisfy { $0.isError && $0.structured["code"] == "no_device" })
        agent.take(.inputEnded)
        #expect(agent.hasEnded && agent.requests.count == 1)
    }

    @Test("When the client goes, its calls are hung up before the door closes; others continue")
    func clientGoes() throws {
        var agent = Agent.ready()
        agent.take(.inputEnded)
        #expect(agent.hasEnded)
        agent = .ready()
        agent.call(1, "place_call", #"{"to":"bob@x"}"#)
        agent.take(.reply(1, ControlReply(call: 7)))
        agent.event(established)
        agent.event(#"{"at_ms":1,"call":8,"established_ms":20,"event":"established"}"#)
        agent.take(.inputEnded)
        #expect(agent.requests.map(\.action) == [.call(to: "bob@x"), .hangUp(7)] && !agent.hasEnded)
        var patient = agent
        agent.event(ended)
        #expect(agent.hasEnded)
        // A device that says nothing keeps it for 1.5 s.
        try patient.waitForDeadline()
        #expect(patient.hasEnded && patient.now == .zero.advanced(by: .milliseconds(1_500)))
    }

    @Test("A listing has accounts and calls")
    func listing() {
        var agent = Agent.ready()
        agent.call(1, "list_calls")
        var status = ControlStatus(
            version: "1", pid: 1, uptimeSeconds: 1, device: "desk", connection: "connected", user: "ann@x", server: "x",
            behaviour: "silence")
        status.calls = [ControlCall(call: 7, peer: "bob@x", isIncoming: true, state: .ringing)]
        status.callCount = 1
        agent.take(.reply(1, ControlReply(status: status)))
        #expect(agent.last.text == "The device desk is connected as ann@x.\nCall 7 from bob@x: ringing")
        guard case .array(let calls)? = agent.last.structured["calls"] else { return #expect(Bool(false)) }
        #expect(calls.first?["call"] == 7 && calls.first?["incoming"] == true)
    }
}
