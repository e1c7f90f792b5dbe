import BotWire
import Core
import JSON
import Testing

@testable import BotCalls

@Suite("A connection with a realtime session")
struct RealtimeLineTests {
    private func opened(_ settings: RealtimeWire.Settings = .init(format: .pcmu), isReady: Bool = true) -> LineBench {
        var bench = LineBench(RealtimeWire(settings))
        bench.feed(.opened(LineBench.call))
        if isReady { bench.say(["type": "session.updated", "session": [:]]) }
        return bench
    }

    private func delta(_ seconds: Double, of item: String = "item", in response: String = "response") -> JSONValue {
        [
            "type": "response.output_audio.delta", "item_id": .string(item), "response_id": .string(response),
            "delta": .string(Base64.text([UInt8](repeating: 1, count: Int(seconds * 8_000)))),
        ]
    }

    private func truncations(_ bench: LineBench) -> [JSONValue?] {
        bench.sent.filter { $0["type"] == "conversation.item.truncate" }.map { $0["audio_end_ms"] }
    }

    @Test("The bot takes part once the server has confirmed the session")
    func begins() {
        var bench = opened(isReady: false)
        #expect(!bench.line.hasBegun)
        bench.runFrame(hearing: [1, 2])
        #expect(bench.sent.count == 1)
        bench.say(["type": "session.updated", "session": [:]])
        #expect(bench.line.hasBegun)
        bench.runFrame(hearing: [1, 2])
        #expect(bench.sent.count == 2)
    }

    @Test(
        "A server that refuses the session, or closes before it has confirmed it, is reported at once with its reason")
    func refuses() {
        var bench = opened(isReady: false)
        bench.say(["type": "error", "error": ["code": "model_not_found"]])
        #expect(
            bench.other == [.close, .over(failure: "the bot's server reports an error: model_not_found")])
        for (failure, reported) in [
            ("gone", "gone"), (nil, "the bot has closed the connection before it took part in the call"),
        ] as [(String?, String)] {
            bench = opened(isReady: false)
            bench.feed(.closed(failure: failure))
            #expect(bench.other == [.over(failure: reported)])
        }
    }

    @Test("The server's word that the caller speaks stops what plays, and is answered with what was heard")
    func interrupts() {
        var bench = opened()
        for _ in 0..<10 { bench.say(delta(6)) }
        for _ in 0..<50 { bench.runFrame() }
        bench.say(["type": "input_audio_buffer.speech_started"])
        #expect(truncations(bench) == [1_000])
        let written = bench.sound.count
        for _ in 0..<50 { bench.runFrame() }
        bench.say(delta(6))
        #expect(bench.sound.count == written, "nothing of the response is played any more")
        bench.say(delta(1, of: "next", in: "other"))
        for _ in 0..<50 { bench.runFrame() }
        bench.say(["type": "input_audio_buffer.speech_started"])
        #expect(truncations(bench) == [1_000, 1_000])
    }

    @Test("An interruption by this side's own detection is answered likewise, and once")
    func interruptsHere() {
        var bench = opened()
        bench.say(delta(6))
        for _ in 0..<25 { bench.runFrame() }
        bench.interrupt()
        bench.say(["type": "input_audio_buffer.speech_started"])
        #expect(truncations(bench) == [500])
        let written = bench.sound.count
        bench.say(delta(1, of: "next", in: "other"))
        for _ in 0..<50 { bench.runFrame() }
        #expect(bench.sound.count == written + 8_000 && truncations(bench).count == 1)
    }

    @Test("What another stream of the call has played does not count")
    func laterStream() {
        var bench = LineBench(RealtimeWire(.init(format: .pcmu)), attached: false)
        bench.feed(.attached(room: 32_768, played: 80_000))
        bench.feed(.opened(LineBench.call))
        bench.say(["type": "session.updated", "session": [:]])
        bench.say(delta(2))
        bench.feed(.playback(.interrupted))
        bench.feed(.playback(.cleared(played: 84_000)))
        #expect(truncations(bench) == [500])
    }

    @Test("A response of minutes that comes at once is taken whole, and beyond that the server is read no further")
    func farAhead() {
        var bench = opened(.init())
        let second: JSONValue = [
            "type": "response.output_audio.delta", "item_id": "item",
            "delta": .string(Base64.text([UInt8](repeating: 1, count: 48_000))),
        ]
        for _ in 0..<205 { bench.say(second) }
        #expect(!bench.isPaused)
        for _ in 0..<20 where !bench.isPaused { bench.say(second) }
        #expect(bench.isPaused)
        bench.say(["type": "input_audio_buffer.speech_started"])
        #expect(!bench.isPaused && bench.sound.count < 48_000)
    }

    @Test(
        "A server that closes in the middle has what it said heard, and then the line has failed, or has ended if it meant it"
    )
    func closes() {
        for failure in [nil, "the bot's connection broke off"] {
            var bench = opened()
            bench.say(delta(1))
            bench.feed(.closed(failure: failure))
            for _ in 0..<63 { bench.runFrame() }
            #expect(bench.sound.count == 8_000 && bench.other == [.close, .over(failure: failure)])
        }
    }

    @Test("Rubbish ends the line after a hundred messages at once, and what was said before is heard")
    func rubbish() {
        var bench = opened()
        bench.say(delta(0.5))
        for text in ["{", "7", #"{"type":"response.audio.delta","item_id":"i","delta":"?"}"#] {
            for _ in 0..<40 { bench.feed(.message(.text(Array(text.utf8)))) }
        }
        #expect(bench.other.contains(.close))
        for _ in 0..<60 { bench.runFrame() }
        #expect(bench.sound.count == 4_000 && bench.other.last == .over(failure: WireFaultText.flood))
    }

    @Test("After its function to hang up the bot is heard out")
    func hangUp() {
        var bench = opened(.init(format: .pcmu, hangUpFunction: "end_call"))
        bench.say(delta(1))
        bench.say(["type": "response.output_item.done", "item": ["type": "function_call", "name": "end_call"]])
        for _ in 0..<50 { bench.runFrame() }
        #expect(bench.sound.count == 8_000 && bench.other.isEmpty)
        for _ in 0..<13 { bench.runFrame() }
        #expect(bench.other.last == .over(failure: nil))
    }
}
