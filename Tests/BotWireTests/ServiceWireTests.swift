import BotWire
import Foundation
import JSON
import Testing
import Core

@Suite("What the wires of single services have of their own")
struct ServiceWireTests {
    private func value(_ text: String) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    @Test(
        "Sequence numbers count all messages but the first, chunks count pieces of sound, and time stamps count samples"
    )
    func counting() throws {
        var bench = WireBench("twilio", isOpen: false)
        var texts = bench.feed(.connected(WireBench.calls["twilio"]!)).texts
        for _ in 0..<3 { texts += bench.feed(.sound([UInt8](repeating: 0xFF, count: 160))).texts }
        texts += bench.feed(.missed(samples: 8_000)).texts
        texts += bench.feed(.sound([0xFF])).texts
        texts += bench.feed(.ended(.callOver)).texts
        let messages = try texts.map(value)
        #expect(messages.map { $0["sequenceNumber"]?.string } == [nil, "1", "2", "3", "4", "5", "6"])
        let media = messages.compactMap { $0["media"] }
        #expect(media.map { $0["chunk"]?.string } == ["1", "2", "3", "4"])
        #expect(media.map { $0["timestamp"]?.string } == ["0", "20", "40", "1060"])
    }

    @Test("Telnyx's codecs are chosen for each direction, and a fault is reported to the bot")
    func telnyx() throws {
        var wire = TelnyxWire(caller: .pcma, bot: .pcma)
        var outbox: [WireOutput] = []
        wire.handle(.connected(WireBench.calls["telnyx"]!), at: .zero, into: &outbox)
        #expect(try value(outbox.texts[1])["start"]?["media_format"]?["encoding"]?.string == "PCMA")
        #expect(wire.callerFormat == .alaw)
        outbox = []
        wire.handle(
            .message(.text(Array(#"{"event":"media","media":{"payload":"1dXV"}}"#.utf8))), at: .zero, into: &outbox)
        #expect(outbox == [.play([0xD5, 0xD5, 0xD5], .alaw)])
        outbox = []
        wire.handle(
            .message(.text(Array(#"{"event":"media","media":{"payload":"?"}}"#.utf8))), at: .zero, into: &outbox)
        let error = try value(try #require(outbox.texts.first))
        #expect(error["event"]?.string == "error" && error["payload"]?["code"]?.integer == 100_004)
        #expect(outbox.faults == [.wrongSound])
    }

    @Test("Plivo's bots choose a format for each message, press keys, and get marks only when they were played")
    func plivo() throws {
        var wire = PlivoWire(caller: .linear16000)
        var outbox: [WireOutput] = []
        func say(_ text: String) -> [WireOutput] {
            var outbox: [WireOutput] = []
            wire.handle(.message(.text(Array(text.utf8))), at: .zero, into: &outbox)
            return outbox
        }
        func media(_ type: String, _ rate: String, _ payload: String) -> String {
            #"{"event":"playAudio","media":{"contentType":"\#(type)","sampleRate":\#(rate),"payload":"\#(payload)"}}"#
        }
        wire.handle(.connected(WireBench.calls["plivo"]!), at: .zero, into: &outbox)
        let start = try value(outbox.texts[0])
        #expect(start["start"]?["mediaFormat"] == ["encoding": "audio/x-l16", "sampleRate": 16_000])
        #expect(say(media("audio/x-mulaw", "8000", "/w==")) == [.play([0xFF], .mulaw)])
        #expect(say(media("audio/x-l16", "8000", "AQI=")) == [.play([1, 2], .linear(8_000))])
        #expect(say(media("audio/x-l16", "16000", "AQI=")) == [.play([1, 2], .linear(16_000))])
        #expect(say(media("audio/x-l16", "16000", "AQID")).faults == [.wrongSound])
        for (type, rate) in [("audio/x-mulaw", "16000"), ("audio/x-l16", "24000"), ("audio/mpeg", "8000")] {
            #expect(say(media(type, rate, "AQI=")).faults == [.wrongFormat])
        }
        #expect(say(media("audio/x-l16", "\"8000\"", "AQI=")).faults == [.wrongMember])
        #expect(say(#"{"event":"sendDTMF","dtmf":"12#*A"}"#) == [.press("12#*A")])
        for keys in ["", "x", "1 2", String(repeating: "1", count: 33)] {
            #expect(say(#"{"event":"sendDTMF","dtmf":"\#(keys)"}"#).faults == [.wrongMember])
        }
        #expect(say(#"{"event":"checkpoint","name":"a"}"#) == [.setMark("a")])
        outbox = []
        wire.handle(.markDiscarded("a"), at: .zero, into: &outbox)
        #expect(outbox.isEmpty)
        wire.handle(.cleared, at: .zero, into: &outbox)
        #expect(try value(try #require(outbox.texts.first))["event"]?.string == "clearedAudio")
        outbox = []
        wire.handle(.ended(.callOver), at: .zero, into: &outbox)
        #expect(outbox == [.close])
    }

    @Test("Exotel's rate is announced and used in both directions", arguments: ExotelWire.Rate.allCases)
    func exotel(rate: ExotelWire.Rate) throws {
        var wire = ExotelWire(rate: rate)
        var outbox: [WireOutput] = []
        wire.handle(.connected(WireBench.calls["exotel"]!), at: .zero, into: &outbox)
        #expect(
            try value(outbox.texts[1])["start"]?["media_format"]?["sample_rate"]?.string == String(rate.rawValue))
        outbox = []
        wire.handle(
            .message(.text(Array(#"{"event":"media","media":{"payload":"AQI="}}"#.utf8))), at: .zero, into: &outbox)
        #expect(outbox == [.play([1, 2], .linear(rate.rawValue))])
    }

    @Test("Names are made as each service makes them")
    func names() {
        let random = [UInt8](repeating: 0xAB, count: WireName.randomBytes)
        #expect(WireName.sid("CA", random) == "CA" + String(repeating: "ab", count: 16))
        #expect(WireName.uuid(random) == "abababab-abab-4bab-abab-abababababab")
    }
}

@Suite("AudioSocket")
struct AudioSocketWireTests {
    private func output(_ bytes: [UInt8], pieces: Int? = nil) -> [WireOutput] {
        var bench = WireBench("audiosocket")
        guard let pieces else { return bench.feed(.message(.binary(bytes))) }
        return stride(from: 0, to: bytes.count, by: pieces).flatMap {
            bench.feed(.message(.binary(Array(bytes[$0..<min($0 + pieces, bytes.count)]))))
        }
    }

    @Test("The connection begins with its UUID, then come sound and digits, and a hang-up ends it")
    func call() {
        var bench = WireBench("audiosocket", isOpen: false)
        let identifier: [UInt8] = [
            0x40, 0x32, 0x5E, 0xC2, 0x5E, 0xFD, 0x4B, 0xD3, 0x80, 0x5F, 0x53, 0x57, 0x6E, 0x58, 0x1D, 0x13,
        ]
        #expect(
            bench.feed(.connected(WireBench.calls["audiosocket"]!)) == [.send(.binary([0x01, 0, 16] + identifier))])
        #expect(bench.feed(.sound([1, 2, 3, 4])) == [.send(.binary([0x10, 0, 4, 1, 2, 3, 4]))])
        #expect(bench.feed(.digit("#", heldMilliseconds: 1)) == [.send(.binary([0x03, 0, 1, 0x23]))])
        #expect(bench.feed(.ended(.callOver)) == [.send(.binary([0, 0, 0])), .close])
    }

    @Test(
        "A stream without a UUID for a name fails",
        arguments: ["", "x", "40325ec2-5efd-4bd3-805f-53576e581d1", "40325ec25efd-4bd3-805f-53576e581d13-"])
    func noIdentifier(name: String) {
        var bench = WireBench("audiosocket", isOpen: false)
        var call = WireBench.calls["audiosocket"]!
        call.stream = name
        #expect(bench.feed(.connected(call)).failure == .wrongMember)
    }

    @Test("The kind of a frame of sound is its rate, both ways")
    func rates() {
        for (kind, rate) in [(0x10, 8_000), (0x12, 16_000), (0x13, 24_000), (0x16, 48_000)] as [(UInt8, Int)] {
            #expect(output([kind, 0, 2, 1, 2]) == [.play([1, 2], .linear(rate))])
            var wire = AudioSocketWire(rate: AudioSocketWire.Rate(rawValue: rate)!)
            var outbox: [WireOutput] = []
            wire.handle(.connected(WireBench.calls["audiosocket"]!), at: .zero, into: &outbox)
            outbox = []
            wire.handle(.sound([1, 2]), at: .zero, into: &outbox)
            #expect(outbox == [.send(.binary([kind, 0, 2, 1, 2]))])
        }
        for kind in [0x11, 0x14, 0x15, 0x17, 0x18] as [UInt8] {
            #expect(output([kind, 0, 2, 1, 2]).faults == [.wrongFormat])
        }
    }

    @Test("Sound that is longer than a frame is sent in several, each of whole samples")
    func longSound() {
        var bench = WireBench("audiosocket")
        let sound = (0..<140_000).map { UInt8(truncatingIfNeeded: $0) }
        var sent: [UInt8] = []
        for case .send(.binary(let frame)) in bench.feed(.sound(sound)) {
            let length = Int(frame[1]) << 8 | Int(frame[2])
            #expect(length == frame.count - 3 && length.isMultiple(of: 2) && length > 0)
            sent += frame[3...]
        }
        #expect(sent == sound)
    }

    @Test("Ten thousand frames at once are taken, and a thousand a second; more end the connection as a flood")
    func flood() {
        func frames(_ count: Int) -> WireInput {
            .message(.binary((0..<count).flatMap { _ in [0x10, 0, 2, 1, 2] as [UInt8] }))
        }
        var wire = AudioSocketWire()
        var outbox: [WireOutput] = []
        wire.handle(.connected(WireBench.calls["audiosocket"]!), at: .zero, into: &outbox)
        wire.handle(frames(10_000), at: .zero, into: &outbox)
        wire.handle(frames(1_000), at: Instant.zero.advanced(by: .seconds(1)), into: &outbox)
        #expect(outbox.failure == nil && wire.counts.messages == 11_000)
        outbox = []
        wire.handle(frames(2), at: Instant.zero.advanced(by: .seconds(1)), into: &outbox)
        #expect(outbox.failure == .flood && outbox.count == 1 && wire.counts.faults[.flood] == 1)
        outbox = []
        wire.handle(frames(1), at: Instant.zero.advanced(by: .seconds(60)), into: &outbox)
        #expect(outbox.isEmpty)
    }

    @Test("Frames are the same for any pieces in which they come", arguments: [1, 2, 3, 4, 5, 7, 11])
    func pieces(size: Int) {
        let bytes: [UInt8] = [
            0x10, 0, 4, 1, 2, 3, 4, 0x03, 0, 1, 0x35, 0x77, 0, 3, 9, 9, 9, 0x12, 0, 2, 5, 6, 0xFF, 0, 1, 1, 0x00, 0, 0,
            0x10,
            0, 2, 7, 8,
        ]
        let whole = output(bytes)
        #expect(whole.faults == [.unknownEvent, .farEnd])
        #expect(
            whole.filter { if case .fault = $0 { false } else { true } } == [
                .play([1, 2, 3, 4], .linear(8_000)), .press("5"), .play([5, 6], .linear(16_000)), .hangUp(drains: true),
            ])
        #expect(output(bytes, pieces: size) == whole)
    }

    @Test("Half a sample, no sound, a wrong digit and a second UUID are faults, and the frames after them count")
    func faults() {
        let cases: [([UInt8], WireFault.Kind)] = [
            ([0x10, 0, 3, 1, 2, 3], .wrongSound), ([0x10, 0, 0], .wrongSound), ([0x03, 0, 0], .wrongMember),
            ([0x03, 0, 2, 0x31, 0x32], .wrongMember), ([0x03, 0, 1, 0x78], .wrongMember),
            ([0x03, 0, 1, 0xB2], .wrongMember),
            ([0x01, 0, 2, 1, 2], .unknownEvent), ([0xFF, 0, 0], .farEnd),
        ]
        for (bytes, kind) in cases {
            let outputs = output(bytes + [0x10, 0, 2, 1, 2])
            #expect(outputs.faults == [kind] && outputs.last == .play([1, 2], .linear(8_000)))
        }
    }

    @Test("A frame that is cut off anywhere gives nothing until its rest comes")
    func truncated() {
        let frame: [UInt8] = [0x10, 0, 4, 1, 2, 3, 4]
        for length in 0..<frame.count {
            var bench = WireBench("audiosocket")
            #expect(bench.feed(.message(.binary(Array(frame.prefix(length))))).isEmpty)
            #expect(
                bench.feed(.message(.binary(Array(frame.dropFirst(length))))) == [.play([1, 2, 3, 4], .linear(8_000))])
        }
    }
}
