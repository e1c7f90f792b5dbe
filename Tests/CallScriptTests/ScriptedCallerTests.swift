import AudioKit
import CallScript
import Testing

/// A callee in virtual time: what it says follows from the keys that it gets.
private struct Menu {
    var caller: ScriptedCaller
    private(set) var keys: [(key: Character, second: Double)] = []
    private(set) var now = 0
    private(set) var isOver = false
    private var pending: [Int16] = []
    private static let frame = AudioFormat.samples(milliseconds: 20)

    init(_ text: String, sounds: [Int: [Int16]] = [:]) throws {
        caller = ScriptedCaller(try CallScript(reading: text, file: "test"), sounds: sounds)
    }

    init(_ caller: ScriptedCaller) { self.caller = caller }

    mutating func say(_ samples: [Int16]) { pending += samples }

    /// Runs for a time, or to the end of the script.
    mutating func run(_ seconds: Double, onKey: (Character) -> [Int16] = { _ in [] }) {
        let end = now + Int(seconds * 48_000)
        while now < end, !isOver {
            var heard = Array(pending.prefix(Self.frame))
            pending.removeFirst(heard.count)
            heard += [Int16](repeating: 0, count: Self.frame - heard.count)
            let step = caller.exchange(heard)
            #expect(step.samples.count == Self.frame)
            now += Self.frame
            if let key = step.key {
                keys.append((key, Double(now) / 48_000))
                pending = onKey(key)
            }
            isOver = step.isOver
        }
    }
}

@Suite("A caller that follows a script")
struct ScriptedCallerTests {
    /// Noise in syllables, unlike that of another seed: as speech is for the measure of likeness.
    private static func voice(_ seconds: Double, seed: UInt64) -> [Int16] {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        var held: Int16 = 0
        return (0..<Int(seconds * 48_000)).map { index in
            if index % 24 == 0 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                held = Int16(truncatingIfNeeded: Int64(bitPattern: state) >> 50)
            }
            return held
        }
    }

    private static let prompt = voice(2, seed: 1)
    private static let sales = voice(1.6, seed: 2)
    private static let support = voice(1.6, seed: 3)

    @Test("A script records ten minutes in all, and a call that continues after its keys keeps nothing")
    func bounded() throws {
        let minute = [Int16](repeating: 1_000, count: 60 * 48_000)
        var caller = ScriptedCaller(
            try CallScript(
                reading: "record a.wav\nwait 360 s\nrecord b.wav\nwait 480 s\nhang up", file: "test"))
        for _ in 0..<15 { _ = caller.exchange(minute) }
        #expect(caller.recordings.map(\.path) == ["a.wav", "b.wav"])
        #expect(caller.recordings.reduce(0) { $0 + $1.samples.count } == 600 * 48_000)
        #expect(caller.isPass)

        var pressing = ScriptedCaller(CallScript(pressing: try #require(KeySequence("1"))))
        for _ in 0..<2 { _ = pressing.exchange(minute) }
        let done = pressing
        let step = pressing.exchange(minute)
        #expect(!step.isOver && step.samples == [Int16](repeating: 0, count: minute.count))
        #expect(pressing.heardSamples == done.heardSamples)
    }

    @Test("Keys wait for a prompt's end, and each comma is a second")
    func keys() throws {
        var menu = Menu(ScriptedCaller(CallScript(pressing: try #require(KeySequence("w1,,2")))))
        menu.say([Int16](repeating: 0, count: 48_000) + Self.prompt)
        menu.run(8)
        #expect(menu.keys.map(\.key) == ["1", "2"])
        #expect(abs(menu.keys[0].second - 4) < 0.1, "a second after the prompt's end at 3 s: \(menu.keys)")
        #expect(abs(menu.keys[1].second - menu.keys[0].second - 2.2) < 0.05, "\(menu.keys)")
        #expect(menu.caller.isPass && !menu.isOver, "the call goes on")
    }

    @Test("A prompt that never comes fails after its limit, and ends the call")
    func limit() throws {
        var menu = try Menu("wait for sound within 3 s\npress 1\n")
        menu.run(10)
        #expect(menu.isOver && menu.now == 144_000)
        let results = menu.caller.results
        #expect(results.map(\.outcome) == [.failed, .skipped])
        #expect(results[0].text == "nothing was heard within 3 s" && results[0].length == 144_000)
    }

    private static let script = """
        wait for sound
        wait for silence
        press 1
        expect length 1 s to 2 s
        expect like sales.wav
        """

    @Test("The right answer to a key passes, another one of the same length fails", arguments: [true, false])
    func likeness(isRight: Bool) throws {
        var menu = try Menu(Self.script, sounds: [5: Self.sales])
        menu.say(Self.prompt)
        menu.run(20) { _ in [Int16](repeating: 0, count: 24_000) + (isRight ? Self.sales : Self.support) }
        let results = menu.caller.results
        #expect(menu.isOver && menu.caller.isPass == isRight, "\(results.map(\.text))")
        #expect(results[3].outcome == .passed, "\(results[3].text)")
        #expect(results[4].outcome == (isRight ? .passed : .failed), "\(results[4].text)")
    }

    @Test("An answer that is cut off is too short, and not like the recording")
    func cutOff() throws {
        var menu = try Menu(Self.script, sounds: [5: Self.sales])
        menu.say(Self.prompt)
        menu.run(20) { _ in Array(Self.sales.prefix(24_000)) }
        #expect(menu.caller.results[3].outcome == .failed, "\(menu.caller.results[3].text)")
        let whole = AnswerLikeness(recording: Self.sales, answer: Self.sales)
        let half = AnswerLikeness(recording: Self.sales, answer: Array(Self.sales.prefix(24_000)))
        let other = AnswerLikeness(recording: Self.sales, answer: Self.support)
        let quiet = AnswerLikeness(recording: Self.sales, answer: Self.sales.map { $0 / 4 })
        #expect(whole.likeness > 0.95 && half.likeness < 0.7 && other.likeness < 0.2 && quiet.likeness > 0.9)
    }

    @Test("A hang-up ends a wait for it, and fails any other")
    func hangUp() throws {
        var expected = try Menu("wait for hang-up\n")
        expected.run(1)
        expected.caller.end("the callee hung up", isByCallee: true)
        #expect(expected.caller.isPass)
        var sudden = try Menu("wait for sound\n")
        sudden.run(1)
        sudden.caller.end("the callee hung up", isByCallee: true)
        #expect(sudden.caller.results[0].outcome == .failed && sudden.caller.results[0].text == "the callee hung up")
    }

    @Test("What is played leaves, what is heard is recorded, and sound where silence is expected fails")
    func playsAndRecords() throws {
        var menu = try Menu("record a.wav\nplay b.wav\nrecord end\nexpect silence of 1 s\n", sounds: [2: Self.sales])
        menu.say(Self.voice(4, seed: 5))
        menu.run(10)
        #expect(abs(menu.caller.recordings[0].samples.count - Self.sales.count) <= 2_880)
        #expect(menu.caller.results.map(\.outcome) == [.passed, .passed, .passed, .failed])
    }

    @Test("Keys that the call does not take fail")
    func refusedKeys() throws {
        var menu = try Menu("press 1\n")
        menu.caller.refuseKeys("no telephone events")
        menu.run(1)
        #expect(menu.keys.isEmpty && menu.caller.results[0].text.contains("no telephone events"))
    }
}
