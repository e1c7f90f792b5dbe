import BotWire
import Core
import JSON
import Testing

/// A realtime session on a bench.
private struct SessionBench {
    private var wire: RealtimeWire
    private var now = Instant.zero

    /// - Parameter isReady: Whether the server has confirmed the session.
    init(_ settings: RealtimeWire.Settings = .init(), isReady: Bool = true) {
        wire = RealtimeWire(settings)
        let call = WireCall(call: "call", stream: "stream", account: "account", from: "a", to: "b")
        opening = feed(.connected(call))
        if isReady { _ = say(["type": "session.updated", "session": [:]]) }
    }

    private(set) var opening: [WireOutput] = []
    var isReady: Bool { wire.isReady }
    var counts: WireCounts { wire.counts }
    var format: WireFormat { wire.callerFormat }
    var backlogBytes: Int { wire.backlogBytes }

    mutating func feed(_ input: WireInput) -> [WireOutput] {
        var outbox: [WireOutput] = []
        wire.handle(input, at: now, into: &outbox)
        return outbox
    }

    mutating func say(_ event: JSONValue) -> [WireOutput] {
        guard let text = try? JSONText(event) else { return [] }
        return feed(.message(.text(text.bytes)))
    }

    /// Sound of an item, whose bytes are all 1.
    mutating func sound(
        _ samples: Int, of item: String = "item", in response: String = "response",
        type: String = "response.output_audio.delta"
    ) -> [WireOutput] {
        let bytes = [UInt8](repeating: 1, count: samples * format.sampleBytes)
        return say([
            "type": .string(type), "item_id": .string(item), "response_id": .string(response), "content_index": 0,
            "delta": .string(Base64.text(bytes)),
        ])
    }

    mutating func done(_ item: String) { _ = say(["type": "response.output_audio.done", "item_id": .string(item)]) }

    mutating func interrupt() -> [WireOutput] {
        say(["type": "input_audio_buffer.speech_started", "audio_start_ms": 0, "item_id": "speech"])
    }

    /// The queue is empty, after these samples were played.
    mutating func cleared(_ played: Int) -> [JSONValue] {
        _ = feed(.played(samples: played))
        return feed(.cleared).values
    }
}

extension [WireOutput] {
    fileprivate var values: [JSONValue] { texts.compactMap { JSONValue(plain: [UInt8]($0.utf8), nesting: 16) } }
}

@Suite("The WebSocket of the Realtime API") struct RealtimeWireTests {
    private func truncation(_ item: String, _ milliseconds: Int64) -> JSONValue {
        [
            "type": "conversation.item.truncate", "item_id": .string(item), "content_index": 0,
            "audio_end_ms": .integer(milliseconds),
        ]
    }

    @Test("The session is configured first, with the formats of sound added to what the configuration has")
    func configuration() {
        let session = #"{"model":"m","audio":{"output":{"voice":"v","format":{"type":"x"}}},"tools":[{"name":"end"}]}"#
        let bench = SessionBench(.init(session: session), isReady: false)
        let format: JSONValue = ["type": "audio/pcm", "rate": 24_000]
        #expect(
            bench.opening.values == [
                [
                    "type": "session.update",
                    "session": [
                        "type": "realtime", "model": "m", "tools": [["name": "end"]],
                        "audio": ["input": ["format": format], "output": ["voice": "v", "format": format]],
                    ],
                ]
            ])
        #expect(bench.format == .linear(24_000))
    }

    @Test(
        "In the form of the beta the formats have their names there",
        arguments: [(RealtimeWire.Format.pcm, "pcm16"), (.pcmu, "g711_ulaw"), (.pcma, "g711_alaw")])
    func beta(format: RealtimeWire.Format, name: String) {
        let bench = SessionBench(.init(format: format, version: .beta, session: #"{"voice":"v"}"#), isReady: false)
        #expect(
            bench.opening.values == [
                [
                    "type": "session.update",
                    "session": [
                        "voice": "v", "input_audio_format": .string(name), "output_audio_format": .string(name),
                    ],
                ]
            ])
    }

    @Test("G.711 has no rate in the session, and 8 kHz on the wire", arguments: [RealtimeWire.Format.pcmu, .pcma])
    func narrow(format: RealtimeWire.Format) {
        let bench = SessionBench(.init(format: format), isReady: false)
        let name: JSONValue = format == .pcmu ? "audio/pcmu" : "audio/pcma"
        #expect(bench.opening.values.first?["session"]?["audio"]?["input"]?["format"] == ["type": name])
        #expect(bench.format == (format == .pcmu ? .mulaw : .alaw))
    }

    @Test("Only an object that the server can send back is a session")
    func sessions() {
        for text in ["", "7", "[]", "{", #""{}""#] { #expect(!RealtimeWire.isSession(text), "\(text)") }
        func nested(_ levels: Int) -> String {
            String(repeating: #"{"a":"#, count: levels) + "1" + String(repeating: "}", count: levels)
        }
        #expect(RealtimeWire.isSession(nested(WireLimits.nesting - 1)))
        #expect(!RealtimeWire.isSession(nested(WireLimits.nesting)))
        #expect(RealtimeWire.isSession(#"{"temperature": 8e-1}"#))
        let long = String(repeating: "a", count: OfferForm.sessionBytes)
        #expect(!RealtimeWire.isSession(#"{"a":"\#(long)"}"#))
    }

    @Test("The bot takes part once the session is confirmed, and gets no sound before")
    func confirmation() {
        var bench = SessionBench(isReady: false)
        #expect(!bench.isReady)
        #expect(bench.say(["type": "session.created", "session": [:]]).isEmpty && !bench.isReady)
        #expect(bench.feed(.sound([1, 2])).isEmpty)
        #expect(bench.sound(4).faults == [.early])
        #expect(bench.say(["type": "session.updated", "session": [:]]).isEmpty && bench.isReady)
        let sent = bench.feed(.sound([1, 2, 3, 4])).values
        #expect(sent == [["type": "input_audio_buffer.append", "audio": "AQIDBA=="]])
    }

    @Test("A bot that speaks first is asked for a response once")
    func greeting() {
        var bench = SessionBench(.init(speaksFirst: true), isReady: false)
        let updated: JSONValue = ["type": "session.updated", "session": [:]]
        #expect(bench.say(updated).values == [["type": "response.create"]])
        #expect(bench.say(updated).isEmpty)
    }

    @Test(
        "A server that takes another format of sound than the session names is no bot",
        arguments: [
            ["audio": ["output": ["format": ["type": "audio/pcmu"]]]], ["output_audio_format": "g711_ulaw"],
        ] as [JSONValue])
    func format(session: JSONValue) {
        var bench = SessionBench(isReady: false)
        #expect(bench.say(["type": "session.updated", "session": session]).failure == .wrongFormat)
        bench = SessionBench(.init(format: .pcmu), isReady: false)
        #expect(bench.say(["type": "session.updated", "session": session]).isEmpty && bench.isReady)
    }

    @Test("A session that the server refuses is no bot, and the reason has the words for programs and no other")
    func refusal() {
        var bench = SessionBench(isReady: false)
        let outputs = bench.say([
            "type": "error",
            "error": [
                "type": "invalid_request_error", "code": "invalid_api_key", "message": "wrong key: sk-SECRET",
                "param": "sk-SECRET",
            ],
        ])
        guard case .failed(let fault)? = outputs.first else { return #expect(Bool(false), "\(outputs)") }
        #expect(
            fault.description
                == "the bot's server reports an error: invalid_request_error, invalid_api_key; see auth_token_file")
        #expect(bench.feed(.sound([1, 2])).isEmpty, "the wire has ended")
    }

    @Test(
        "Sound is played by either name of its event",
        arguments: ["response.output_audio.delta", "response.audio.delta"])
    func sound(type: String) {
        var bench = SessionBench()
        #expect(bench.sound(2, type: type) == [.play([1, 1, 1, 1], .linear(24_000))])
        #expect(bench.counts.soundBytes == 4)
        #expect(bench.sound(0, type: type).isEmpty, "no sound is no fault")
    }

    @Test("The caller's speech clears what waits, and the item is truncated to what was heard")
    func interruption() {
        var bench = SessionBench()
        _ = bench.sound(24_000)
        _ = bench.sound(24_000)
        #expect(bench.interrupt() == [.clear])
        #expect(bench.cleared(36_000) == [truncation("item", 1_500)])
        #expect(bench.sound(4).isEmpty, "the rest of the response is not played")
        #expect(bench.sound(4, of: "next", in: "other").count == 1)
        bench.done("next")
        #expect(bench.interrupt() == [.clear])
        #expect(bench.cleared(36_004).isEmpty, "it was heard to its end")
    }

    @Test("Milliseconds are rounded down, because the server refuses more than there is")
    func rounding() {
        var bench = SessionBench(.init(format: .pcmu))
        _ = bench.sound(799)
        _ = bench.interrupt()
        #expect(bench.cleared(799) == [truncation("item", 99)], "more of it may be on its way")
    }

    @Test("Each item that was not heard to its end is truncated, also those of which nothing was heard")
    func items() {
        var bench = SessionBench()
        for item in ["a", "b", "c"] {
            _ = bench.sound(24_000, of: item)
            bench.done(item)
        }
        _ = bench.interrupt()
        #expect(bench.cleared(30_000) == [truncation("b", 250), truncation("c", 0)])
    }

    @Test("Two interruptions at once are kept apart, also with sound between them")
    func twice() {
        var bench = SessionBench()
        _ = bench.sound(24_000, of: "a", in: "1")
        _ = bench.interrupt()
        _ = bench.sound(24_000, of: "b", in: "2")
        _ = bench.interrupt()
        #expect(bench.cleared(2_400) == [truncation("a", 100)])
        #expect(bench.cleared(4_800) == [truncation("b", 100)])
        #expect(bench.interrupt() == [.clear])
        #expect(bench.cleared(4_800).isEmpty)
    }

    @Test("An interruption at this side truncates, and cancels the response only if the server does not")
    func local() {
        var bench = SessionBench()
        _ = bench.sound(24_000)
        #expect(bench.cleared(12_000) == [truncation("item", 500)])
        for detection in [JSONValue.null, ["type": "server_vad", "interrupt_response": false]] {
            bench = SessionBench(isReady: false)
            _ = bench.say([
                "type": "session.updated", "session": ["audio": ["input": ["turn_detection": detection]]],
            ])
            _ = bench.sound(24_000)
            #expect(bench.interrupt().isEmpty, "the session says that speech does not interrupt")
            #expect(bench.cleared(12_000) == [["type": "response.cancel"], truncation("item", 500)])
        }
    }

    @Test("Of more items than are remembered the oldest count as played")
    func manyItems() {
        var bench = SessionBench()
        for number in 0..<(WireLimits.realtimeItems + 3) {
            _ = bench.sound(240, of: "\(number)")
            bench.done("\(number)")
        }
        _ = bench.interrupt()
        let cuts = bench.cleared(3 * 240 + 120)
        #expect(cuts.count == WireLimits.realtimeItems && cuts.first == truncation("3", 5))
    }

    @Test("Events that mean nothing here are no faults, and binary messages and others are")
    func faults() {
        var bench = SessionBench()
        for type in ["session.created", "rate_limits.updated", "response.created", "conversation.item.added", "new"] {
            #expect(bench.say(["type": .string(type)]).isEmpty)
        }
        #expect(bench.feed(.message(.binary([1, 2]))).faults == [.malformed])
        #expect(bench.feed(.message(.text(Array("{".utf8)))).faults == [.malformed])
        #expect(bench.say(["event": "media"]).faults == [.wrongMember])
        for delta in ["?", "AA==", "AAEC"] {
            let event: JSONValue = [
                "type": "response.output_audio.delta", "item_id": "item", "delta": .string(delta),
            ]
            #expect(bench.say(event).faults == [.wrongSound], "\(delta)")
        }
        #expect(bench.say(["type": "response.output_audio.delta", "delta": "AAE="]).faults == [.wrongMember])
        let long = String(repeating: "i", count: WireLimits.nameBytes + 1)
        #expect(bench.sound(1, of: long).faults == [.tooLong])
        #expect(bench.sound(1, of: String(long.dropLast())).count == 1)
    }

    @Test("Errors and failed responses are reported, and the call continues")
    func errors() {
        var bench = SessionBench()
        let error: JSONValue = ["type": "server_error", "code": .null, "message": "text"]
        for event in [
            ["type": "error", "error": error], ["type": "error"],
            ["type": "response.done", "response": ["status": "failed", "status_details": ["error": error]]],
        ] as [JSONValue] {
            #expect(bench.say(event).faults == [.farEnd])
        }
        #expect(bench.say(["type": "response.done", "response": ["status": "completed"]]).isEmpty)
        #expect(bench.say(["type": "error", "error": ["code": "response_cancel_not_active"]]).isEmpty)
        #expect(bench.sound(1).count == 1)
    }

    @Test("The bot hangs up by its function, once all is played; other functions are faults")
    func hangUp() {
        func call(_ name: String, _ status: String = "completed") -> JSONValue {
            [
                "type": "response.output_item.done",
                "item": ["type": "function_call", "name": .string(name), "status": .string(status), "arguments": "{}"],
            ]
        }
        var bench = SessionBench(.init(hangUpFunction: "end_call"))
        #expect(bench.say(["type": "response.output_item.done", "item": ["type": "message"]]).isEmpty)
        #expect(bench.say(call("transfer")).faults == [.unknownEvent])
        #expect(bench.say(call("end_call", "incomplete")).isEmpty, "the caller has interrupted it")
        #expect(bench.say(call("end_call")) == [.hangUp(drains: true)])
        bench = SessionBench()
        #expect(bench.say(call("end_call")).faults == [.unknownEvent])
    }

    @Test("A response that the caller has interrupted ends no call, though its function came whole")
    func interruptedHangUp() {
        var bench = SessionBench(.init(hangUpFunction: "end_call"))
        _ = bench.sound(24_000, of: "goodbye", in: "1")
        _ = bench.cleared(2_400)
        func call(_ response: String) -> JSONValue {
            [
                "type": "response.output_item.done", "response_id": .string(response),
                "item": ["type": "function_call", "name": "end_call", "status": "completed", "arguments": "{}"],
            ]
        }
        #expect(bench.say(call("1")).isEmpty)
        #expect(bench.say(call("2")) == [.hangUp(drains: true)])
    }

    @Test("A flood of rubbish ends the wire, and a whole response may wait")
    func flood() {
        var bench = SessionBench()
        for _ in 0..<WireLimits.faults { #expect(bench.say(["type": 7]).failure == nil) }
        #expect(bench.say(["type": 7]).failure == .flood)
        // 4,096 tokens of 50 ms each.
        #expect(bench.backlogBytes > 4_096 * 24_000 / 20 * 2)
    }

    @Test("Keys have no event, and the end closes the connection")
    func end() {
        var bench = SessionBench()
        #expect(bench.feed(.digit("5", heldMilliseconds: 100)).isEmpty)
        #expect(bench.feed(.ended(.callOver)) == [.close])
    }
}
