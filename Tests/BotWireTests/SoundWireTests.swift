import BotWire
import Core
import JSON
import Testing

@Suite("Wires of voice bots whose sound is binary messages") struct SoundWireTests {
    private func object(_ text: String) throws -> JSONValue {
        try #require(JSONValue(plain: Array(text.utf8), nesting: 16), "\(text)")
    }

    private func opening(_ name: String) throws -> String {
        var bench = WireBench(name, isOpen: false)
        let sent = bench.feed(.connected(WireBench.facts(of: name)))
        #expect(sent.count == 1)
        return try #require(sent.texts.first)
    }

    @Test("Sound goes both ways as it is, in any number of whole samples", arguments: WireBench.sounds)
    func sound(name: String) {
        var bench = WireBench(name)
        let format = bench.wire.callerFormat
        #expect(bench.feed(.sound([1, 2, 3, 4])) == [.send(.binary([1, 2, 3, 4]))])
        #expect(bench.feed(.message(.binary([5, 6]))) == [.play([5, 6], format)])
        #expect(bench.feed(.message(.binary([]))).isEmpty, "synthesis often ends with a message without sound")
        #expect(bench.wire.counts.soundBytes == 2)
        let long = [UInt8](repeating: 0, count: WireLimits.payloadBytes + 2)
        #expect(bench.feed(.message(.binary(long))).faults == [.tooLong])
        guard format.encoding == .linear else { return }
        #expect(bench.feed(.message(.binary([1, 2, 3]))).faults == [.wrongSound])
    }

    @Test("What is no order is a fault with words, and the call continues", arguments: WireBench.sounds)
    func faults(name: String) {
        var bench = WireBench(name)
        for text in [
            "", " ", "7", "{", "secret", #"{"command":"SECRET"}"#, #"{"type":"secret"}"#, #"{"action":"secret"}"#,
        ] {
            let outputs = bench.say(text)
            #expect(outputs.faults.count == 1 && outputs.failure == nil, "\(text)")
            for case .fault(let fault) in outputs { #expect(!fault.description.contains("secret")) }
            bench.now = bench.now.advanced(by: .seconds(1))
        }
    }

    @Test("A mark behind sound none of which could be played is a fault", arguments: WireBench.sounds)
    func unplayedMark(name: String) {
        var bench = WireBench(name)
        let marks = [
            "vonage": #"{"action":"notify","payload":{}}"#, "jambonz": #"{"type":"mark","data":{"name":"a"}}"#,
            "asterisk": "MARK_MEDIA a", "asterisk-json": #"{"command":"MARK_MEDIA","correlation_id":"a"}"#,
        ]
        let long = [UInt8](repeating: 0, count: WireLimits.payloadBytes + 2)
        _ = bench.feed(.message(.binary(long)))
        #expect(bench.say(marks[name]!).faults == [.wrongSound])
        #expect(bench.say(marks[name]!).faults.isEmpty, "it has nothing behind the mark before")
    }

    @Test("Vonage: the opening names the sound, and has the parameters")
    func vonageOpening() throws {
        let message = try object(try opening("vonage"))
        #expect(message["event"] == "websocket:connected" && message["content-type"] == "audio/l16;rate=16000")
        #expect(message["who"] == "Ä \"x\"")
    }

    @Test(
        "Vonage: clear is confirmed, notify comes back once what was before it is played, and keys have their duration")
    func vonage() throws {
        var bench = WireBench("vonage")
        let orders = bench.say(#"{"action":"notify","payload":{"n": [1, "ä"]}}"#)
        guard case .setMark(let name)? = orders.first else { return #expect(Bool(false), "\(orders)") }
        let notice = try #require(bench.feed(.markPlayed(name)).texts.first)
        #expect(try object(notice) == object(#"{"event":"websocket:notify","payload":{"n":[1,"ä"]}}"#))
        #expect(bench.say(#"{"action":"notify","payload":{}}"#).orders == [.setMark("{}")])
        #expect(bench.feed(.markDiscarded("{}")).isEmpty)
        #expect(bench.say(#"{"action":"clear"}"#) == [.clear])
        #expect(bench.feed(.cleared).texts == [#"{"event":"websocket:cleared"}"#])
        let key = try #require(bench.feed(.digit("#", heldMilliseconds: 120)).texts.first)
        #expect(try object(key) == object(##"{"event":"websocket:dtmf","digit":"#","duration":120}"##))
        let long = String(repeating: "n", count: WireLimits.markBytes)
        #expect(bench.say(#"{"action":"notify","payload":{"n":"\#(long)"}}"#).faults == [.tooLong])
        #expect(bench.say(#"{"action":"notify","payload":"n"}"#).faults == [.wrongMember])
    }

    @Test("jambonz: the opening has the call, and parameters do not replace its members")
    func jambonzOpening() throws {
        var bench = WireBench("jambonz", isOpen: false)
        #expect(bench.wire.subprotocols == ["audio.jambonz.org"])
        var call = WireBench.facts(of: "jambonz")
        call.parameters["from"] = "somebody else"
        let message = try object(try #require(bench.feed(.connected(call)).texts.first))
        #expect(message["callSid"] == "call-uuid" && message["from"] == "+15550100" && message["to"] == "+15550199")
        #expect(message["sampleRate"] == 8_000 && message["mixType"] == "mono" && message["direction"] == "inbound")
        #expect(message["who"] == "Ä \"x\"")
    }

    @Test("jambonz: marks are reported as played or cleared, and not at all once they are cleared themselves")
    func jambonzMarks() throws {
        var bench = WireBench("jambonz")
        func set(_ mark: String) -> String {
            for case .setMark(let name) in bench.say(#"{"type":"mark","data":{"name":"\#(mark)"}}"#) { return name }
            return ""
        }
        let (first, second) = (set("a"), set("b"))
        #expect(
            try object(try #require(bench.feed(.markPlayed(first)).texts.first))
                == object(#"{"type":"mark","data":{"name":"a","event":"playout"}}"#))
        #expect(bench.say(#"{"type":"killAudio"}"#) == [.clear])
        #expect(
            try object(try #require(bench.feed(.markDiscarded(second)).texts.first))
                == object(#"{"type":"mark","data":{"name":"b","event":"cleared"}}"#))
        let forgotten = [set("c"), set("d")]
        #expect(bench.say(#"{"type":"clearMarks"}"#).isEmpty)
        let sound =
            #"{"type":"playAudio","data":{"audioContentType":"raw","sampleRate":8000,"audioContent":"AAECAw=="}}"#
        guard case .setMark(let play)? = bench.say(sound).last else { return #expect(Bool(false)) }
        #expect(bench.say(#"{"type":"clearMarks"}"#).isEmpty)
        let later = set("e")
        for mark in forgotten { #expect(bench.feed(.markPlayed(mark)).isEmpty) }
        #expect(bench.feed(.markPlayed(play)).texts == [#"{"type":"playDone"}"#], "it is no mark of the bot")
        #expect(bench.feed(.markPlayed(later)).count == 1)
    }

    @Test("jambonz: playAudio plays raw sound of a rate of its own, and reports its end as playDone")
    func jambonzPlay() {
        var bench = WireBench("jambonz")
        for (rate, named) in [(16_000, "\"16000\""), (48_000, "48000")] {
            let order = bench.say(
                #"{"type":"playAudio","data":{"audioContentType":"raw","sampleRate":\#(named),"audioContent":"AAECAw=="}}"#
            )
            guard order.count == 2, case .setMark(let name) = order[1] else { return #expect(Bool(false), "\(order)") }
            #expect(order[0] == .play([0, 1, 2, 3], .linear(rate)))
            #expect(bench.feed(.markPlayed(name)).texts == [#"{"type":"playDone"}"#])
        }
        for data in [
            #"{"audioContentType":"wav","audioContent":"AAECAw=="}"#,
            #"{"audioContentType":"raw","sampleRate":"44100","audioContent":"AAECAw=="}"#,
            #"{"audioContentType":"raw","audioContent":"AAECAw=="}"#,
        ] { #expect(bench.say(#"{"type":"playAudio","data":\#(data)}"#).faults == [.wrongFormat]) }
    }

    @Test("jambonz: a key has its duration in units of 8 kHz, and disconnect hangs up once all is played")
    func jambonzEnd() throws {
        var bench = WireBench("jambonz")
        let key = try #require(bench.feed(.digit("2", heldMilliseconds: 200)).texts.first)
        #expect(try object(key) == object(#"{"event":"dtmf","dtmf":"2","duration":"1600"}"#))
        #expect(bench.say(#"{"type":"disconnect"}"#) == [.hangUp(drains: true)])
        #expect(bench.feed(.sound([1, 2])).isEmpty)
    }

    @Test("Asterisk: the opening names the format and its frame, in both forms")
    func asteriskOpening() throws {
        #expect(
            try opening("asterisk")
                == "MEDIA_START connection_id:stream-uuid channel:WebSocket/stream-uuid channel_id:call-uuid format:ulaw "
                + "optimal_frame_size:160 ptime:20")
        let message = try object(try opening("asterisk-json"))
        #expect(
            message["event"] == "MEDIA_START" && message["format"] == "slin16" && message["optimal_frame_size"] == 640)
        #expect(message["channel_variables"]?["who"] == "Ä \"x\"")
    }

    @Test(
        "Asterisk: marks, buffers and the end of the queue are reported once they are played, and nothing after a flush"
    )
    func asteriskMarks() throws {
        var bench = WireBench("asterisk")
        func set(_ command: String) -> String {
            for case .setMark(let name) in bench.say(command) { return name }
            return ""
        }
        let (mark, bare) = (set("MARK_MEDIA a b"), set("MARK_MEDIA\n"))
        #expect(bench.feed(.markPlayed(mark)).texts == ["MEDIA_MARK_PROCESSED a b"])
        #expect(bench.feed(.markPlayed(bare)).texts == ["MEDIA_MARK_PROCESSED"])
        #expect(bench.say("START_MEDIA_BUFFERING").isEmpty && bench.say("ANSWER").isEmpty)
        let (stop, queue) = (set("STOP_MEDIA_BUFFERING id"), set("REPORT_QUEUE_DRAINED"))
        #expect(bench.feed(.markPlayed(stop)).texts == ["MEDIA_BUFFERING_COMPLETED id"])
        #expect(bench.feed(.markPlayed(queue)).texts == ["QUEUE_DRAINED"])
        let lost = set("MARK_MEDIA lost")
        #expect(bench.say("FLUSH_MEDIA") == [.clear])
        #expect(bench.feed(.markDiscarded(lost)).isEmpty && bench.feed(.cleared).isEmpty)

        bench = WireBench("asterisk-json")
        let name = set(#"{"command":"MARK_MEDIA","correlation_id":"ä"}"#)
        let report = try #require(bench.feed(.markPlayed(name)).texts.first)
        #expect(
            try object(report)
                == object(#"{"event":"MEDIA_MARK_PROCESSED","channel_id":"call-uuid","correlation_id":"ä"}"#))
    }

    @Test("Asterisk: keys, errors and the end are in its words")
    func asteriskEvents() throws {
        var bench = WireBench("asterisk")
        #expect(bench.feed(.digit("#", heldMilliseconds: 80)).texts == ["DTMF_END digit:# channel_id:call-uuid"])
        #expect(bench.say("PAUSE_MEDIA").texts.first?.hasPrefix("ERROR channel_id:call-uuid error_text:") == true)
        let long = String(repeating: "n", count: WireLimits.markBytes + 1)
        #expect(bench.say("MARK_MEDIA \(long)").faults == [.tooLong])
        let padded = "ANSWER" + String(repeating: " ", count: WireLimits.commandBytes - 6)
        #expect(bench.say(padded).isEmpty && bench.say(padded + " ").faults == [.tooLong])
        #expect(bench.say("HANGUP") == [.hangUp(drains: true)])
        bench = WireBench("asterisk-json")
        #expect(
            try object(try #require(bench.feed(.digit("5", heldMilliseconds: 80)).texts.first))
                == object(#"{"event":"DTMF_END","channel_id":"call-uuid","digit":"5"}"#))
    }
}
