import ControlWire
import JSON
import Testing

struct LineCutterTests {
    private func cut(_ chunks: [String], maximumBytes: Int = 16) -> [String] {
        var cutter = LineCutter(maximumBytes: maximumBytes)
        var lines: [LineCutter.Line] = []
        for chunk in chunks { cutter.take(Array(chunk.utf8), into: &lines) }
        cutter.finish(into: &lines)
        return lines.map { line in
            switch line {
            case .whole(let bytes): String(decoding: bytes, as: UTF8.self)
            case .tooLong: "too long"
            }
        }
    }

    @Test("Lines are cut wherever the stream is, with and without carriage returns, and empty ones are passed over")
    func cutting() {
        let text = "one\ntwo\r\n\n  \r\nthree"
        #expect(cut([text]) == ["one", "two", "three"])
        for index in text.indices { #expect(cut([String(text[..<index]), String(text[index...])]) == cut([text])) }
        #expect(cut(text.map { String($0) }) == ["one", "two", "three"])
    }

    @Test("What is missing spoils the line that has begun and the one that it ends in, and no other")
    func missing() {
        var cutter = LineCutter(maximumBytes: 16)
        var lines: [LineCutter.Line] = []
        cutter.take(Array("one\ntw".utf8), into: &lines)
        cutter.skip()
        cutter.take(Array("ree\nfour\n".utf8), into: &lines)
        #expect(lines == [.whole(Array("one".utf8)), .whole(Array("four".utf8))])
    }

    @Test("A line that is too long is reported once, and the next is read normally")
    func tooLong() {
        let long = String(repeating: "x", count: 17)
        #expect(cut(["\(long)\nnext\n"]) == ["too long", "next"])
        #expect(cut(["\(long)\(long)\(long)\nnext\n\(long)"]) == ["too long", "next", "too long"])
        #expect(cut([String(repeating: "x", count: 16) + "\r\nnext"]) == [String(repeating: "x", count: 16), "next"])
    }
}

struct ControlRequestTests {
    private func read(_ text: String) throws -> ControlRequest { try ControlRequest(line: Array(text.utf8)) }

    private func refusal(_ text: String) -> ControlRequest.Refusal? {
        do throws(ControlRequest.Refusal) {
            _ = try ControlRequest(line: Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    private static var handover: ControlHandover {
        var asked = ControlHandover(to: "ben", listens: true)
        (asked.whisper, asked.acceptKey, asked.music, asked.ringSeconds) = (.text("A bill"), "1", .bot, 20)
        return asked
    }

    @Test(
        "Each request is read as it is written",
        arguments: [
            (#"{"request":"status"}"#, .status), (#"{"request":"mute"}"#, .mute(true)),
            (#"{"request":"unmute"}"#, .mute(false)),
            (#"{"request":"volume","playback_db":-6}"#, .volume(playbackDB: -6, microphoneDB: nil)),
            (#"{"request":"volume","playback_db":2.5,"microphone_db":20}"#, .volume(playbackDB: 2.5, microphoneDB: 20)),
            (#"{"request":"call","to":"bob@example.org"}"#, .call(to: "bob@example.org")),
            (#"{"request":"answer"}"#, .answer(nil)), (#"{"request":"answer","call":3}"#, .answer(3)),
            (#"{"request":"reject","call":3,"busy":true}"#, .reject(3, isBusy: true)),
            (#"{"request":"hangup","call":null}"#, .hangUp(nil)), (#"{"request":"card","call":2}"#, .card(2)),
            (#"{"request":"dtmf","keys":"12#"}"#, .dtmf("12#", nil)), (#"{"request":"watch"}"#, .watch(levels: true)),
            (#"{"request":"watch","levels":false}"#, .watch(levels: false)),
            (#"{"request":"drain"}"#, .drain(true)), (#"{"request":"undrain"}"#, .drain(false)),
            (#"{"request":"play","file":"/a b.wav","call":3}"#, .play(file: "/a b.wav", 3)),
            (#"{"request":"stop"}"#, .stop(nil)),
            (#"{"request":"record","start":true}"#, .record(.start(file: nil), nil)),
            (#"{"request":"record","start":true,"file":"/b"}"#, .record(.start(file: "/b"), nil)),
            (#"{"request":"record","start":false,"call":1}"#, .record(.stop, 1)),
            (#"{"request":"bridge","call":1,"to_call":2}"#, .bridge(1, to: 2, goesBack: false)),
            (#"{"request":"bridge","call":1,"to_call":2,"goes_back":true}"#, .bridge(1, to: 2, goesBack: true)),
            (#"{"request":"unbridge","call":1}"#, .unbridge(1)),
            (#"{"request":"handover","call":1,"to":"ben"}"#, .handover(1, ControlHandover(to: "ben"))),
            (
                #"{"request":"handover","call":1,"to":"ben","whisper":"A bill","accept":"1","music":"bot","ring_seconds":20,"bot":"listens"}"#,
                .handover(1, ControlRequestTests.handover)
            ),
            (#"{"request":"handover_cancel","call":1}"#, .cancelHandover(1)),
            (#"{"request":"park"}"#, .park(nil, ControlParking())),
            (
                #"{"request":"park","call":1,"music":"/a.wav","longest_s":60,"then":"end"}"#,
                .park(1, ControlParking(music: "/a.wav", longestSeconds: 60, endsThen: true))
            ),
            (#"{"request":"pickup","call":2,"slot":1}"#, .pickUp(slot: 1, 2, goesBack: false)),
            (#"{"request":"pickup","call":2,"slot":99,"goes_back":true}"#, .pickUp(slot: 99, 2, goesBack: true)),
            (#"{"request":"queues"}"#, .queues), (#"{"request":"queue_remove","call":2}"#, .queueRemove(2)),
            (
                #"{"request":"queue_take","call":2,"queue":"support","goes_back":true}"#,
                .queueTake("support", 2, goesBack: true)
            ),
            (#"{"request":"attach"}"#, .attach(nil)), (#"{"request":"detach","call":2}"#, .detach(2)),
        ] as [(String, ControlRequest.Action)])
    func actions(text: String, action: ControlRequest.Action) throws {
        #expect(try read(text) == ControlRequest(action))
        let written = ControlCoding.line(ControlRequest(action, id: 7))
        #expect(try ControlRequest(line: Array(written.dropLast())) == ControlRequest(action, id: 7))
    }

    @Test("An id comes back, be it a number or a text, also with what is wrong")
    func ids() throws {
        #expect(try read(#"{"id":7,"request":"status"}"#).id == 7)
        #expect(try read(#"{"id":"a","request":"status"}"#).id == "a")
        #expect(try read(#"{"id":null,"request":"status"}"#).id == nil)
        #expect(refusal(#"{"id":7,"request":"dance"}"#)?.id == 7)
        #expect(refusal(#"{"id":[1],"request":"status"}"#)?.fault.code == .wrongValue)
        let long = String(repeating: "i", count: 129)
        #expect(refusal(#"{"id":"\#(long)","request":"status"}"#)?.fault.code == .wrongValue)
    }

    @Test(
        "What is no request is refused with what is wrong and what is right",
        arguments: [
            ("", .malformed, "JSON object"), ("status", .malformed, "JSON object"), ("[]", .malformed, "JSON object"),
            (#"{"request":"status""#, .malformed, "JSON object"), ("{}", .unknownRequest, "status, mute"),
            (#"{"request":7}"#, .unknownRequest, "status, mute"),
            (#"{"request":"dance"}"#, .unknownRequest, #"no request "dance""#),
            (#"{"request":"status","loud":1}"#, .wrongValue, #"no member "loud"; it has none"#),
            (#"{"request":"volume"}"#, .wrongValue, "playback_db or microphone_db"),
            (#"{"request":"volume","playback_db":21}"#, .wrongValue, "-60 to 20"),
            (#"{"request":"volume","playback_db":"0"}"#, .wrongValue, "-60 to 20"),
            (#"{"request":"volume","loudness":1}"#, .wrongValue, "playback_db"),
            (#"{"request":"call"}"#, .wrongValue, "needs to"),
            (#"{"request":"bridge","call":1}"#, .wrongValue, "needs call and to_call"),
            (#"{"request":"handover","to":"ben"}"#, .wrongValue, "handover needs call"),
            (#"{"request":"handover","call":1}"#, .wrongValue, "needs to"),
            (#"{"request":"handover","call":1,"to":"b","whisper":"a","whisper_file":"/a"}"#, .wrongValue, "whisper or"),
            (#"{"request":"handover","call":1,"to":"b","accept":"12"}"#, .wrongValue, "one key"),
            (#"{"request":"handover","call":1,"to":"b","music":"a.wav"}"#, .wrongValue, "a path from the root"),
            (#"{"request":"handover","call":1,"to":"b","ring_seconds":4}"#, .wrongValue, "from 5 to 180"),
            (#"{"request":"handover","call":1,"to":"b","bot":"stays"}"#, .wrongValue, "leaves or listens"),
            (#"{"request":"park","then":"never"}"#, .wrongValue, "back or end"),
            (#"{"request":"pickup","call":1}"#, .wrongValue, "needs slot"),
            (#"{"request":"pickup","call":1,"slot":100}"#, .wrongValue, "from 1 to 99"),
            (#"{"request":"queue_take","call":1}"#, .wrongValue, "needs queue"),
            (#"{"request":"queue_take","queue":"support"}"#, .wrongValue, "needs call"),
            (#"{"request":"call","to":""}"#, .wrongValue, "needs to"),
            (#"{"request":"call","to":"a\nb"}"#, .wrongValue, "needs to"),
            (#"{"request":"answer","call":0}"#, .wrongValue, "number of a call"),
            (#"{"request":"answer","call":-1}"#, .wrongValue, "number of a call"),
            (#"{"request":"answer","call":18446744073709551615}"#, .wrongValue, "number of a call"),
            (#"{"request":"card"}"#, .wrongValue, "needs call"),
            (#"{"request":"reject","busy":"yes"}"#, .wrongValue, "true or false"),
            (#"{"request":"dtmf"}"#, .wrongValue, "needs keys"),
            (#"{"request":"play"}"#, .wrongValue, "needs file"),
            (#"{"request":"play","file":"a.wav"}"#, .wrongValue, "a path from the root"),
            (#"{"request":"play","file":"/a\u0000b"}"#, .wrongValue, "a path from the root"),
            (#"{"request":"record"}"#, .wrongValue, "needs start"),
            (#"{"request":"record","start":false,"file":"/a"}"#, .wrongValue, "start: true only"),
        ] as [(String, ControlFault.Code, String)])
    func refusals(text: String, code: ControlFault.Code, words: String) {
        let fault = refusal(text)?.fault
        #expect(fault?.code == code)
        #expect(fault?.message.contains(words) == true, "\(fault?.message ?? "none")")
    }

    @Test("Bytes that are no text, deep nesting, and every beginning of a request are refused and trap nothing")
    func anything() {
        let deep = String(repeating: "[", count: 4_000) + String(repeating: "]", count: 4_000)
        #expect(refusal(#"{"request":\#(deep)}"#)?.fault.code == .malformed)
        let request = Array(#"{"id":"é","request":"volume","playback_db":-6.5e0}"#.utf8)
        for length in 0..<request.count {
            #expect(throws: ControlRequest.Refusal.self) { try ControlRequest(line: Array(request.prefix(length))) }
        }
        var state: UInt64 = 1
        for length in 0..<2_000 {
            let bytes = (0..<length % 64).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: state >> 56)
            }
            #expect(throws: ControlRequest.Refusal.self) { try ControlRequest(line: bytes) }
        }
        // What is wrong with a name is told without passing on what a terminal would obey.
        let fault = refusal("{\"request\":\"\\u001b[2J\(String(repeating: "x", count: 90))\"}")?.fault
        #expect(fault?.message.contains("\u{1B}") == false && fault?.message.contains("…") == true)
    }
}

struct CallChoiceTests {
    private func call(_ number: UInt64, _ state: ControlCall.State, isHeld: Bool = false) -> ControlCall {
        ControlCall(call: number, peer: "peer\(number)", isIncoming: true, state: state, isHeld: isHeld)
    }

    private func fault(_ choose: () throws(ControlFault) -> ControlCall) -> ControlFault? {
        do throws(ControlFault) {
            _ = try choose()
            return nil
        } catch {
            return error
        }
    }

    @Test("The one call that rings is answered, beside others that talk")
    func ringing() throws {
        let calls = [call(1, .talking), call(2, .ringing), call(3, .calling)]
        #expect(try CallChoice.ringing(nil, among: calls).call == 2)
        #expect(try CallChoice.ringing(2, among: calls).call == 2)
    }

    @Test("A missing call, one that is elsewhere, and one of several are distinguished, with the list of calls")
    func faults() {
        let calls = [call(1, .ringing), call(2, .ringing), call(3, .talking)]
        #expect(fault { () throws(ControlFault) in try CallChoice.ringing(9, among: calls) }?.code == .noSuchCall)
        #expect(fault { () throws(ControlFault) in try CallChoice.ringing(3, among: calls) }?.code == .wrongState)
        let several = fault { () throws(ControlFault) in try CallChoice.ringing(nil, among: calls) }
        #expect(several?.code == .severalCalls && several?.message.contains("1 (peer1), 2 (peer2)") == true)
        #expect(fault { () throws(ControlFault) in try CallChoice.toEnd(nil, among: []) }?.code == .noSuchCall)
        #expect(
            fault { () throws(ControlFault) in try CallChoice.talking(nil, among: [call(1, .ringing)]) }?.code
                == .noSuchCall)
    }

    @Test("Of several, the call that has the card is hung up, and has keys pressed in it")
    func held() throws {
        let calls = [call(1, .talking, isHeld: true), call(2, .talking), call(3, .ringing)]
        #expect(try CallChoice.toEnd(nil, among: calls).call == 2)
        #expect(try CallChoice.talking(nil, among: calls).call == 2)
        #expect(try CallChoice.toEnd(1, among: calls).call == 1)
        #expect(try CallChoice.toEnd(nil, among: [call(4, .ringing), call(5, .ending)]).call == 4)
    }
}

struct ControlEventBufferTests {
    @Test("Levels that have not gone out are replaced, and come after everything else")
    func levels() {
        var buffer = ControlEventBuffer()
        buffer.setLevels([1])
        buffer.setLevels([2])
        let hasRoom = buffer.add([9])
        #expect(hasRoom)
        let lines = [buffer.next(), buffer.next(), buffer.next()]
        #expect(lines == [[9], [2], nil])
    }

    @Test("A client that reads nothing is too slow once the limit of lines waits; one that reads them never is")
    func capacity() {
        var buffer = ControlEventBuffer()
        for number in 0..<ControlEventBuffer.capacity {
            let hasRoom = buffer.add([UInt8(truncatingIfNeeded: number)])
            #expect(hasRoom)
        }
        let hasRoom = buffer.add([0])
        #expect(!hasRoom)
        for number in 0..<10_000 {
            let first = buffer.next()
            let hasRoom = buffer.add([UInt8(truncatingIfNeeded: number)])
            #expect(first != nil && hasRoom)
        }
        var count = 0
        while buffer.next() != nil { count += 1 }
        #expect(count == ControlEventBuffer.capacity)
    }
}

struct ControlEventTests {
    @Test(
        "Events are read as they are written",
        arguments: [
            .connection("connected"), .incoming(call: 1, from: "bob"), .calling(call: 2, to: "alice"),
            .answered(call: 1), .established(call: 1, establishedMilliseconds: 12.5),
            .media(call: 1, setUpMilliseconds: 25, establishedMilliseconds: 12.5),
            .ended(call: 1, .init(peer: "bob", reason: "completed", endedBy: "remote", durationSeconds: 3.5)),
            .digit(call: 1, key: "#"), .playbackEnded(call: 1),
            .speech(call: 1, "begin", positionMilliseconds: 20.5), .interrupted(call: 1, playedMilliseconds: 1.5),
            .response(call: 1, afterMilliseconds: 700.5), .sending(call: 1, stopped: "silence"),
            .sending(call: 1, stopped: nil), .sound(ControlSound(isMuted: true, volumeDB: -6, microphoneDB: 0)),
            .card("lost"), .levels(nil),
            .levels(
                ControlLevels(
                    microphoneDBFS: -20, microphonePeakDBFS: -10, loudspeakerDBFS: -.infinity,
                    loudspeakerPeakDBFS: -100)), .unknown("weather"),
        ] as [ControlEvent])
    func roundTrip(event: ControlEvent) {
        let line = ControlCoding.line(event)
        #expect(line.last == UInt8(ascii: "\n") && line.dropLast().allSatisfy { $0 >= 0x20 })
        #expect(ControlCoding.decode(ControlEvent.self, from: Array(line.dropLast())) == event)
    }

    @Test("A reply carries the id, and what is wrong as code and message")
    func reply() {
        let reply = ControlReply(id: "x", ControlFault(.noSuchCall, "there is none"))
        let text = String(decoding: ControlCoding.line(reply), as: UTF8.self)
        #expect(text == #"{"error":{"code":"no_such_call","message":"there is none"},"id":"x","ok":false}"# + "\n")
        #expect(
            String(decoding: ControlCoding.line(ControlReply(call: 3)), as: UTF8.self) == "{\"call\":3,\"ok\":true}\n")
    }
}
