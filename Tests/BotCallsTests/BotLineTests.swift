import Core
import BotWire
import JSON
import Testing

@testable import BotCalls

/// A line with a port that plays as fast as the test runs frames, in virtual time.
struct LineBench {
    var line: BotLine
    var now = Instant.zero
    /// Samples at 48 kHz that the port takes, and what is in it: pieces of sound, and marks.
    var room = 32_768
    private var queue: [Int] = []
    private var marks: [(name: String, position: Int)] = []
    private var (written, played) = (0, 0)
    /// Of what was played, what was not discarded.
    private var heard = 0
    private var endPosition: Int?
    var sent: [JSONValue] = []
    var other: [BotLine.Output] = []
    var isPaused = false
    /// Bytes of the bot's sound that were written, by their value.
    var sound: [UInt8] = []

    init(_ wire: any VoiceWire = TwilioWire(), attached: Bool = true) {
        line = BotLine(wire)
        if attached { feed(.attached(room: room)) }
    }

    static let call = WireCall(call: "CA1", stream: "MZ1", account: "AC1", from: "caller", to: "bot")

    mutating func feed(_ input: BotLine.Input) {
        var outbox: [BotLine.Output] = []
        line.handle(input, at: now, into: &outbox)
        for output in outbox { carryOut(output) }
    }

    private mutating func carryOut(_ output: BotLine.Output) {
        switch output {
        case .send(let message): if let value = JSONValue(plain: message.bytes, nesting: 16) { sent.append(value) }
        case .write(let bytes, let format):
            let samples = bytes.count / format.sampleBytes * (48_000 / format.rateHz)
            #expect(samples <= room, "the port has room for what is written")
            room -= samples
            written += samples
            sound += bytes
        case .mark(let name): marks.append((name, written))
        case .clear:
            room += written - played
            played = written
            let discarded = marks.map { $0.name }
            marks = []
            for name in discarded { feed(.playback(.discarded(mark: name))) }
            feed(.playback(.cleared(played: heard * line.callerFormat.rateHz / 48_000)))
        case .endPlayback: endPosition = written
        case .pause: isPaused = true
        case .resume: isPaused = false
        case .close, .press, .fault, .behind, .over: other.append(output)
        }
    }

    /// The caller interrupts: the port clears by itself.
    mutating func interrupt() {
        feed(.playback(.interrupted))
        carryOut(.clear)
    }

    /// A frame of 20 ms.
    mutating func runFrame(
        hearing sound: [UInt8] = [], outbound: Int = 0, missed: Int = 0, suspended isSuspended: Bool = false
    ) {
        now = now.advanced(by: .milliseconds(20))
        let count = isSuspended ? 0 : min(960, written - played)
        played += count
        heard += count
        room += count
        while let mark = marks.first, mark.position <= played {
            marks.removeFirst()
            feed(.playback(.played(mark: mark.name)))
        }
        if let end = endPosition, end <= played {
            endPosition = nil
            feed(.playback(.ended))
        }
        feed(
            .frame(
                .init(
                    sound: sound, room: room, missedAt48kHz: missed, outboundBytes: outbound, isSuspended: isSuspended))
        )
        if let deadline = line.nextDeadline, deadline <= now { feed(.timerFired) }
    }

    /// The bot sends a message.
    mutating func say(_ message: JSONValue) {
        guard let text = try? JSONText(message) else { return }
        feed(.message(.text(text.bytes)))
    }

    mutating func say(_ bytes: [UInt8]) {
        say(["event": "media", "streamSid": "MZ1", "media": ["payload": .string(Base64.text(bytes))]])
    }

    mutating func mark(_ name: String) { say(["event": "mark", "streamSid": "MZ1", "mark": ["name": .string(name)]]) }
    mutating func clear() { say(["event": "clear", "streamSid": "MZ1"]) }

    var events: [String] { sent.compactMap { $0["event"]?.string } }
    var marksTold: [String] { sent.compactMap { $0["mark"]?["name"]?.string } }
}

@Suite("A connection with a bot")
struct BotLineTests {
    private func opened(_ wire: any VoiceWire = TwilioWire(), attached: Bool = true) -> LineBench {
        var bench = LineBench(wire, attached: attached)
        bench.feed(.opened(LineBench.call))
        return bench
    }

    @Test("Last words that wait while a file is played are heard behind it, however long it is")
    func suspended() {
        var bench = opened()
        bench.runFrame()
        bench.say([UInt8](repeating: 7, count: 8_000))
        bench.feed(.closed(failure: nil))
        for _ in 0..<50 * 60 { bench.runFrame(suspended: true) }
        #expect(bench.other.isEmpty)
        // A second of sound, and a quarter for the last packets.
        for _ in 0..<61 { bench.runFrame() }
        #expect(bench.other.isEmpty)
        for _ in 0..<4 { bench.runFrame() }
        #expect(bench.other.last == .over(failure: nil))
        #expect(bench.sound.count == 8_000)
    }

    @Test("The stream is opened once, and nothing is sent before")
    func opening() {
        var bench = LineBench()
        bench.runFrame(hearing: [1, 2, 3])
        #expect(bench.sent.isEmpty)
        bench.feed(.opened(LineBench.call))
        bench.feed(.opened(LineBench.call))
        #expect(bench.events == ["connected", "start"])
        bench.runFrame(hearing: [1, 2, 3])
        #expect(bench.events == ["connected", "start", "media"])
    }

    @Test(
        "Ten seconds that come at once are all played, in order, and the mark behind them is reported with the last frame"
    )
    func farAhead() {
        var bench = opened()
        let speech = (0..<80_000).map { UInt8($0 & 0x7F) }
        bench.say(speech)
        bench.mark("said")
        for _ in 0..<499 { bench.runFrame() }
        #expect(bench.marksTold.isEmpty)
        bench.runFrame()
        #expect(bench.marksTold == ["said"])
        #expect(bench.sound == speech)
    }

    @Test("A bot presses ten keys a second in the long run; more are logged and dropped, and the call continues")
    func keyFlood() {
        var bench = opened(PlivoWire(caller: .mulaw))
        let key = WireMessage.text(Array(#"{"event":"sendDTMF","dtmf":"1"}"#.utf8))
        for _ in 0..<300 { bench.feed(.message(key)) }
        func pressed() -> Int { bench.other.count { if case .press = $0 { true } else { false } } }
        #expect(pressed() == 32)
        #expect(
            bench.other.contains { if case .fault(let text, _) = $0 { text.contains("press keys") } else { false } })
        bench.now = bench.now.advanced(by: .seconds(2))
        for _ in 0..<300 { bench.feed(.message(key)) }
        #expect(pressed() == 52)
        #expect(!bench.other.contains { if case .over = $0 { true } else { false } })
    }

    @Test("What a bot says before the call's media runs waits for it")
    func early() {
        var bench = opened(attached: false)
        bench.say([1, 2, 3, 4])
        bench.mark("hello")
        #expect(bench.sound.isEmpty)
        bench.feed(.attached(room: bench.room))
        #expect(bench.sound == [1, 2, 3, 4])
        bench.runFrame()
        #expect(bench.marksTold == ["hello"])
    }

    @Test("A clear empties the backlog and the port; its marks come back at once, in order, and later ones do not")
    func clear() {
        var bench = opened()
        bench.mark("first")
        bench.say([UInt8](repeating: 5, count: 8_000))
        bench.mark("in the backlog")
        bench.runFrame()
        bench.clear()
        bench.say([7])
        bench.mark("after")
        #expect(bench.marksTold == ["first", "in the backlog"])
        // The worker has emptied its ring by the next frame, and plays with the one after that.
        for _ in 0..<2 { bench.runFrame() }
        #expect(bench.marksTold == ["first", "in the backlog", "after"])
        #expect(bench.sound.last == 7 && bench.sound.count < 8_000)
    }

    @Test(
        "When the caller interrupts, what waits is gone, its marks come back, and so does what the bot says on until it clears"
    )
    func interruption() {
        var bench = opened()
        bench.say([UInt8](repeating: 1, count: 80_000))
        bench.mark("one")
        for _ in 0..<10 { bench.runFrame() }
        let written = bench.sound.count
        bench.interrupt()
        #expect(bench.marksTold == ["one"])
        bench.say([UInt8](repeating: 0x10, count: 400))
        bench.mark("two")
        bench.runFrame()
        #expect(bench.sound.count == written && bench.marksTold == ["one", "two"])
        bench.clear()
        bench.say([UInt8](repeating: 0x20, count: 400))
        bench.mark("three")
        for _ in 0..<4 { bench.runFrame() }
        #expect(bench.sound.suffix(from: written) == [UInt8](repeating: 0x20, count: 400)[...])
        #expect(bench.marksTold == ["one", "two", "three"])
    }

    @Test("Each clear of Plivo's is answered, also those that find nothing")
    func clearedAudio() {
        var bench = opened(PlivoWire())
        for _ in 0..<3 { bench.say(["event": "clearAudio", "streamId": "MZ1"]) }
        #expect(bench.events.filter { $0 == "clearedAudio" }.count == 3)
    }

    @Test("More marks than the port holds wait, and all are reported in order")
    func manyMarks() {
        var bench = opened()
        for number in 0..<1_000 {
            bench.say([UInt8(number & 0x7F)])
            bench.mark("\(number)")
        }
        for _ in 0..<20 { bench.runFrame() }
        #expect(bench.marksTold == (0..<1_000).map(String.init))
    }

    @Test("With a full backlog no more is read, and again once half of it is played")
    func backPressure() {
        var bench = opened()
        var messages = 0
        while !bench.isPaused, messages < 100 {
            bench.say([UInt8](repeating: 1, count: 100_000))
            messages += 1
        }
        // 5,461 bytes are in the port.
        #expect(messages == (WireLimits.backlogBytes + 5_461) / 100_000 + 1)
        var frames = 0
        while bench.isPaused, frames < 10_000 {
            bench.runFrame()
            frames += 1
        }
        // 160 bytes a frame.
        let half = (messages * 100_000 - WireLimits.backlogBytes / 2) / 160
        #expect(abs(frames - half) < 60)
    }

    @Test("The largest message is taken as a whole, and a clear gets rid of it")
    func largest() {
        var bench = opened()
        let head = ["event": "media", "media": ["payload": ""]] as JSONValue
        let overhead = (try? JSONText(head).bytes.count) ?? 0
        let bytes = (WireLimits.messageBytes - overhead) / 4 * 3
        bench.say(["event": "media", "media": ["payload": .string(Base64.text([UInt8](repeating: 9, count: bytes)))]])
        #expect(bench.other.isEmpty, "no fault")
        bench.mark("never")
        bench.clear()
        #expect(bench.marksTold == ["never"])
        bench.feed(.closed(failure: nil))
        #expect(bench.line.nextDeadline.map { $0 < bench.now.advanced(by: .seconds(67)) } == true, "nothing waits")
    }

    @Test(
        "A bot that does not read loses what the caller says, sees the gap in the time stamps, and costs no memory"
    )
    func slowReader() {
        var bench = opened()
        for _ in 0..<5 { bench.runFrame(hearing: [UInt8](repeating: 1, count: 160)) }
        for _ in 0..<50 { bench.runFrame(hearing: [UInt8](repeating: 1, count: 160), outbound: 100_000) }
        bench.runFrame(hearing: [UInt8](repeating: 1, count: 160))
        #expect(bench.events.filter { $0 == "media" }.count == 6)
        #expect(bench.sent.last?["media"]?["timestamp"]?.string == "1100")
        #expect(bench.other == [.behind])
    }

    @Test("Sound that is lost before the bot's side moves the time stamps, too")
    func missed() {
        var bench = opened()
        bench.runFrame(hearing: [1], missed: 48_000)
        #expect(bench.sent.last?["media"]?["timestamp"]?.string == "1000")
    }

    @Test("A bot that closes its connection is heard to its end; the line ends a moment after its last word")
    func lastWord() {
        var bench = opened()
        bench.say([UInt8](repeating: 3, count: 16_000))
        bench.feed(.closed(failure: nil))
        bench.say([4])
        for _ in 0..<100 { bench.runFrame() }
        #expect(bench.sound.count == 16_000 && bench.other.isEmpty)
        for _ in 0..<13 { bench.runFrame() }
        #expect(bench.other == [.close, .over(failure: nil)])
    }

    @Test("A connection that breaks off is heard to its end likewise, and says why it ended")
    func brokenOff() {
        var bench = opened()
        bench.say([3])
        bench.feed(.closed(failure: "gone"))
        for _ in 0..<20 { bench.runFrame() }
        #expect(bench.other.last == .over(failure: "gone"))
    }

    @Test("A line whose sound is never played ends in the end")
    func stuck() {
        var bench = opened(attached: false)
        bench.say([UInt8](repeating: 3, count: 8_000))
        bench.feed(.closed(failure: nil))
        bench.now = bench.now.advanced(by: .seconds(67))
        bench.feed(.timerFired)
        #expect(bench.other.last == .over(failure: nil))
    }

    @Test("The last word of a bot that closes long before the caller can hear is played to its end")
    func closesEarly() {
        var bench = opened(attached: false)
        bench.say([UInt8](repeating: 3, count: 16_000))
        bench.feed(.closed(failure: nil))
        bench.now = bench.now.advanced(by: .seconds(30))
        bench.feed(.timerFired)
        bench.feed(.attached(room: bench.room))
        #expect(bench.other.isEmpty)
        for _ in 0..<100 { bench.runFrame() }
        #expect(bench.sound.count == 16_000 && bench.other.isEmpty)
        for _ in 0..<13 { bench.runFrame() }
        #expect(bench.other.last == .over(failure: nil))
    }

    @Test("A line whose sound stops being played once the caller can hear ends in seconds")
    func stopsPlaying() {
        var bench = opened()
        bench.say([UInt8](repeating: 3, count: 800))
        bench.feed(.closed(failure: nil))
        #expect(bench.line.nextDeadline.map { $0 > bench.now.advanced(by: .seconds(60)) } == true)
        bench.feed(.frame(BotLine.Frame()))
        #expect(bench.line.nextDeadline.map { $0 < bench.now.advanced(by: .seconds(6)) } == true)
    }

    @Test("The time stamps of a call's second stream begin at zero, regardless of losses before it")
    func secondStream() {
        var bench = LineBench(attached: false)
        bench.feed(.attached(room: bench.room, missedAt48kHz: 24_000))
        bench.runFrame(missed: 48_000)
        bench.feed(.opened(LineBench.call))
        bench.runFrame(hearing: [1], missed: 48_000)
        #expect(bench.sent.last?["media"]?["timestamp"]?.string == "0")
        bench.runFrame(hearing: [1], missed: 96_000)
        #expect(bench.sent.last?["media"]?["timestamp"]?.string == "1000")
    }

    @Test("A stream that opens before the next frame runs has no gap in it either")
    func secondStreamAtOnce() {
        var bench = LineBench(attached: false)
        bench.feed(.attached(room: bench.room, missedAt48kHz: 48_000))
        bench.feed(.opened(LineBench.call))
        bench.runFrame(hearing: [1], missed: 48_000)
        #expect(bench.sent.last?["media"]?["timestamp"]?.string == "0")
    }

    @Test("Rubbish is reported a few times, counted every time, and ends the connection only as a flood")
    func rubbish() {
        var bench = opened()
        for _ in 0..<50 { bench.feed(.message(.text(Array("rubbish".utf8)))) }
        let told = bench.other.filter { if case .fault = $0 { true } else { false } }
        #expect(told.count == 5)
        #expect(bench.line.counts.faults[.malformed] == 50)
        bench.say([1])
        #expect(bench.sound == [1], "the stream goes on")
        for _ in 0..<60 { bench.feed(.message(.binary([0xFF]))) }
        for _ in 0..<20 { bench.runFrame() }
        #expect(bench.other.last == .over(failure: WireFaultText.flood))
    }

    @Test("Sound of alternating formats in tiny pieces costs what it takes, and is played in order")
    func formats() {
        var bench = opened(AudioSocketWire())
        // The stream's name is no UUID: the wire refuses it.
        #expect(bench.other == [.close])
        bench = LineBench(AudioSocketWire())
        var call = LineBench.call
        call.stream = "00000000-0000-4000-8000-000000000000"
        bench.feed(.opened(call))
        var pieces = 0
        while !bench.isPaused, pieces < 100_000 {
            bench.feed(.message(.binary([pieces.isMultiple(of: 2) ? 0x10 : 0x16, 0, 2, 1, 2])))
            bench.now = bench.now.advanced(by: .milliseconds(1))
            pieces += 1
        }
        #expect(pieces > 9_000 && pieces < 100_000)
        for _ in 0..<50 { bench.runFrame() }
        #expect(bench.sound.count > 40_000)
    }

    @Test("AudioSocket's hang-up is carried out once all is heard")
    func audioSocketHangUp() {
        var bench = LineBench(AudioSocketWire())
        var call = LineBench.call
        call.stream = "00000000-0000-4000-8000-000000000000"
        bench.feed(.opened(call))
        bench.feed(.message(.binary([0x10, 0x3E, 0x80] + [UInt8](repeating: 1, count: 16_000) + [0, 0, 0])))
        for _ in 0..<50 { bench.runFrame() }
        #expect(bench.sound.count == 16_000 && bench.other.isEmpty)
        for _ in 0..<13 { bench.runFrame() }
        #expect(bench.other.last == .over(failure: nil))
    }

    @Test("When the call has ended the bot is notified, and nothing happens any more")
    func callOver() {
        var bench = opened()
        bench.say([UInt8](repeating: 3, count: 16_000))
        bench.feed(.end(.callOver))
        #expect(bench.events.last == "stop" && bench.other == [.close])
        let sent = bench.sent.count
        bench.say([1])
        bench.runFrame(hearing: [1])
        #expect(bench.sent.count == sent)
    }
}

enum WireFaultText {
    static let flood =
        "the bot has sent more than \(WireLimits.faults) messages that cannot be followed; the newest one is counted too"
}
