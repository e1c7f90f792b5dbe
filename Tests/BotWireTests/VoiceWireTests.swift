import BotWire
import Foundation
import JSON
import TestSupport
import Testing
import Core

@Suite("What all wires of voice bots have in common")
struct VoiceWireTests {
    @Test("Nothing is sent before the connection is open, and no sound before the opening", arguments: WireBench.all)
    func order(name: String) {
        var bench = WireBench(name, isOpen: false)
        #expect(bench.feed(.sound([1, 2])).isEmpty && bench.feed(.digit("1", heldMilliseconds: 1)).isEmpty)
        #expect(bench.feed(.markPlayed("a")).isEmpty && bench.feed(.cleared).isEmpty)
        let opening = bench.feed(.connected(WireBench.calls[name]!))
        #expect((1...2).contains(opening.count) && opening.orders.isEmpty)
        #expect(bench.feed(.connected(WireBench.calls[name]!)).isEmpty, "a second opening is not sent")
        #expect(bench.feed(.sound([1, 2])).count == 1)
    }

    @Test("What the bot says before the opening is a fault, and does not open the stream", arguments: WireBench.texts)
    func early(name: String) {
        var bench = WireBench(name, isOpen: false)
        let media = bench.media("/w==")
        #expect(bench.say(media).faults == [.early] && bench.wire.counts.faults == [.early: 1])
        #expect(bench.feed(.connected(WireBench.calls[name]!)).failure == nil)
    }

    @Test("After the end nothing comes out, regardless of what comes in", arguments: WireBench.all)
    func over(name: String) {
        for isOpen in [true, false] {
            var bench = WireBench(name, isOpen: isOpen)
            #expect(bench.feed(.ended(.callOver)).orders == [.close])
            let media = bench.media("/w==")
            #expect(bench.say(media).isEmpty && bench.feed(.sound([1, 2])).isEmpty)
            #expect(bench.feed(.ended(.callOver)).isEmpty && bench.feed(.connected(WireBench.calls[name]!)).isEmpty)
        }
    }

    @Test("Sound, marks and clears are handed on in their order", arguments: WireBench.texts)
    func orders(name: String) {
        var bench = WireBench(name)
        let payload = "AAECAw=="
        let format: WireFormat = name == "exotel" ? .linear(8_000) : .mulaw
        let messages = [bench.media(payload), bench.mark("a"), bench.clear, bench.media(payload)]
        let orders = messages.flatMap { bench.say($0) }
        #expect(orders == [.play([0, 1, 2, 3], format), .setMark("a"), .clear, .play([0, 1, 2, 3], format)])
        #expect(bench.wire.counts.soundBytes == 8 && bench.wire.counts.faults.isEmpty)
    }

    @Test(
        "Sound is played in any form of base64: without padding, in lines, in the alphabet for URLs",
        arguments: WireBench.texts)
    func forms(name: String) {
        let sound = (0..<160).map { UInt8(truncatingIfNeeded: $0 &* 83 &+ 1) }
        let format: WireFormat = name == "exotel" ? .linear(8_000) : .mulaw
        let text = Data(sound).base64EncodedString()
        let bare = String(text.prefix { $0 != "=" })
        let url = bare.replacing("+", with: "-").replacing("/", with: "_")
        let (start, rest) = (text.prefix(76), text.dropFirst(76))
        for form in [
            text, bare, url, url + "==", "\(start)\\n\(rest)", "\(start)\\r\\n\(rest)\\r\\n",
            "\(url.prefix(76))\\n\(url.dropFirst(76))",
        ] {
            var bench = WireBench(name)
            let media = bench.media(form)
            #expect(bench.say(media) == [.play(sound, format)], "\(form)")
        }
    }

    @Test(
        "A mark behind sound none of which could be played is a fault, and is not reported as played",
        arguments: WireBench.texts)
    func unplayedMark(name: String) {
        var bench = WireBench(name)
        let (good, bad, clear) = (bench.media("AAECAw=="), bench.media("?"), bench.clear)
        func mark(_ name: String) -> String { bench.mark(name) }
        #expect(bench.say(bad).faults == [.wrongSound] && bench.say(mark("a")).faults == [.wrongSound])
        #expect(bench.feed(.markPlayed("a")).isEmpty)
        #expect(bench.say(mark("b")).orders == [.setMark("b")], "it has nothing behind the mark before")
        #expect(bench.feed(.markPlayed("b")).count == 1)
        _ = bench.say(bad) + bench.say(good)
        #expect(bench.say(mark("c")).orders == [.setMark("c")], "some of the sound is played")
        _ = bench.say(good) + bench.say(bad)
        #expect(bench.say(mark("d")).orders == [.setMark("d")])
        _ = bench.say(bad) + bench.say(clear)
        #expect(bench.say(mark("e")).orders == [.setMark("e")])
        _ = bench.say("{") + bench.feed(.message(.binary([1, 2])))
        #expect(bench.say(mark("f")).faults == [.wrongSound], "what cannot be read may be sound")
        _ = bench.say(#"{"event":"secret"}"#)
        #expect(bench.say(mark("g")).orders == [.setMark("g")])
        for empty in ["", "\\n"] {
            #expect(bench.say(bench.media(empty)).isEmpty)
            #expect(bench.say(mark("h")).orders == [.setMark("h")], "no sound is no fault")
        }
    }

    @Test(
        "A mark is reported once for each time that it was set, and not at all if it was never set",
        arguments: WireBench.texts)
    func marks(name: String) {
        var bench = WireBench(name)
        #expect(bench.feed(.markPlayed("a")).isEmpty)
        let mark = bench.mark("a")
        #expect(bench.say(mark) + bench.say(mark) == [.setMark("a"), .setMark("a")])
        #expect((0..<3).map { _ in bench.feed(.markPlayed("a")).count } == [1, 1, 0])
    }

    @Test("Marks wait up to their limit, and one that is reported makes room", arguments: WireBench.texts)
    func manyMarks(name: String) {
        var bench = WireBench(name)
        let mark = bench.mark("a")
        for _ in 0..<WireLimits.marks { #expect(bench.say(mark) == [.setMark("a")]) }
        #expect(bench.say(mark).faults == [.tooManyMarks])
        _ = bench.feed(.markDiscarded("a"))
        #expect(bench.say(mark) == [.setMark("a")])
    }

    @Test("What cannot be followed is a fault with words, and the call continues", arguments: WireBench.texts)
    func faults(name: String) {
        var bench = WireBench(name)
        let long = String(repeating: "n", count: WireLimits.markBytes + 1)
        let deep = String(repeating: "[", count: 100_000)
        let stream = ["twilio": "streamSid", "telnyx": "stream_id", "plivo": "streamId", "exotel": "stream_sid"][name]!
        let (media, mark, clear) = (bench.media("AAAA"), bench.mark("a"), bench.clear)
        func swapped(_ text: String, _ old: String, _ new: String) -> String { text.replacing(old, with: new) }
        var cases: [(String, WireFault.Kind)] = []
        for text in ["", "secret", "[]", "7", "{", "\u{0}", deep, #"{"event":"clear","x":\#(deep)"#] {
            cases.append((text, .malformed))
        }
        for text in ["{}", #"{"event":7}"#, #"{"event":null}"#] { cases.append((text, .wrongMember)) }
        for text in [#"{"event":"secret"}"#, #"{"event":"start","start":{}}"#, #"{"event":"clear\u0000"}"#] {
            cases.append((text, .unknownEvent))
        }
        for payload in ["secret!", "A", "AA=A", "AA==", "AAECA", "AAE==="] {
            cases.append((bench.media(payload), .wrongSound))
        }
        cases.append((swapped(media, "\"AAAA\"", "7"), .wrongMember))
        cases.append((swapped(media, "\"payload\"", "\"x\""), .wrongMember))
        cases.append((swapped(media, "\"media\":{", "\"x\":{"), .wrongMember))
        cases.append((bench.mark(""), .wrongMember))
        cases.append((bench.mark(long), .tooLong))
        cases.append((swapped(mark, "\"a\"", "{}"), .wrongMember))
        cases.append((swapped(clear, "}", #","\#(stream)":"another"}"#), .otherStream))
        cases.append((swapped(clear, "}", #","\#(stream)":7}"#), .wrongMember))
        cases.append((String(repeating: " ", count: WireLimits.messageBytes) + "{}", .tooLong))
        for (more, kind) in [(0, WireFault.Kind.unknownEvent), (1, .tooLong)] {
            let values = String(repeating: ",7", count: WireLimits.values - 1 + more)
            cases.append((#"{"event":"secret","x":[7\#(values)]}"#, kind))
        }
        for (text, kind) in cases {
            // Half a sample is one in µ-law, and a duplicate is no sound.
            let isSound = text == bench.media("AA==") && name != "exotel"
            let outputs = bench.say(text)
            #expect(outputs.faults == (isSound ? [] : [kind]), "\(text.prefix(80))")
            for case .fault(let fault) in outputs {
                #expect(!fault.description.isEmpty && !fault.description.contains("secret"))
            }
            bench.now = bench.now.advanced(by: .seconds(1))
        }
        #expect(bench.feed(.message(.binary([1, 2]))).faults == [.malformed])
        let sound = bench.media("AAECAw==")
        #expect(bench.say(sound).count == 1)
    }

    @Test(
        "Messages that are missing the stream's name, have other members, or come in another order are understood",
        arguments: WireBench.texts)
    func lenient(name: String) {
        var bench = WireBench(name)
        let stream = ["twilio": "streamSid", "telnyx": "stream_id", "plivo": "streamId", "exotel": "stream_sid"][name]!
        let own = WireBench.calls[name]!.stream
        let clear = bench.clear
        for more in [#"{"x":[1e3,-0.5,null,{"y":[]}],"#, #"{ "\#(stream)" : "\#(own)" , "#, #"{"\#(stream)":null,"#] {
            let text = clear.replacing("{", with: more)
            #expect(bench.say(text) == [.clear], "\(text)")
        }
    }

    @Test(
        "A hundred faults at once are reported, the next one ends the wire, and ten in a second are allowed for ever",
        arguments: WireBench.all)
    func flood(name: String) {
        func bad(_ bench: inout WireBench) -> [WireOutput] {
            name == "audiosocket" ? bench.feed(.message(.binary([0x55, 0, 0]))) : bench.say("{}")
        }
        var patient = WireBench(name)
        for _ in 0..<1_000 {
            #expect(bad(&patient).failure == nil)
            patient.now = patient.now.advanced(by: .milliseconds(100))
        }
        #expect(patient.wire.counts.faults.values.reduce(0, +) == 1_000)
        var bench = WireBench(name)
        for _ in 0..<WireLimits.faults { #expect(bad(&bench).failure == nil) }
        #expect(bad(&bench).failure == .flood)
        #expect(bad(&bench).isEmpty && bench.feed(.sound([1, 2])).isEmpty && bench.feed(.ended(.callOver)).isEmpty)
    }

    @Test(
        "A message that is cut off anywhere, or has bytes changed, is a fault or another message, and nothing else",
        arguments: WireBench.texts)
    func damaged(name: String) {
        var random = SeededGenerator(seed: 7)
        var bench = WireBench(name)
        for text in [bench.media("AAECAwQFBgc="), bench.mark("a é"), bench.clear] {
            for length in 0..<text.utf8.count {
                let outputs = bench.feed(.message(.text(Array(text.utf8.prefix(length)))))
                #expect(outputs.faults.count == 1 && outputs.failure == nil)
                bench.now = bench.now.advanced(by: .seconds(1))
            }
            for _ in 0..<1_000 {
                var bytes = Array(text.utf8)
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                let outputs = bench.feed(.message(.text(bytes)))
                #expect(outputs.orders.count == 1 && outputs.failure == nil)
                bench.now = bench.now.advanced(by: .seconds(1))
            }
        }
    }

    @Test("Random bytes are faults and nothing else", arguments: WireBench.all)
    func random(name: String) {
        var random = SeededGenerator(seed: 9)
        var bench = WireBench(name)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let message: WireMessage = name == "audiosocket" ? .binary(bytes) : .text(bytes)
            for case .play(let sound, let format) in bench.feed(.message(message)) {
                #expect(!sound.isEmpty && sound.count.isMultiple(of: format.sampleBytes))
            }
            bench.now = bench.now.advanced(by: .seconds(1))
        }
    }

    @Test("Keys that a telephone does not have are ignored", arguments: WireBench.all)
    func keys(name: String) {
        var bench = WireBench(name)
        for key in "0123456789*#ABCD" { #expect(bench.feed(.digit(key, heldMilliseconds: 100)).count == 1) }
        for key in "!aEé٣１" { #expect(bench.feed(.digit(key, heldMilliseconds: 100)).isEmpty) }
    }
}
