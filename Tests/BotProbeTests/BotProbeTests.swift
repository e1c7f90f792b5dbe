import AudioKit
import Testing

@testable import BotProbe

@Suite("A bot measured from outside")
struct BotProbeTests {
    private static let frame = 960

    private static func milliseconds(_ milliseconds: Int) -> Int { AudioFormat.samples(milliseconds: milliseconds) }

    private static func plan(turns: Int, interruptions: Int = 0) -> ProbePlan {
        var plan = ProbePlan()
        plan.turns = turns
        plan.interruptions = interruptions
        return plan
    }

    /// Sound with syllables, of which every piece is different.
    private static func words(seconds: Double, seed: UInt64 = 1) -> [Int16] {
        var random = seed
        return (0..<Int(seconds * 48_000)).map { index in
            if index % 12 == 0 { random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
            let loudness = [1.0, 0.3, 0.8, 0, 0.6, 0.9, 0.5][index / 7_000 % 7]
            return Int16(Double(Int(random >> 33) % 16_000 - 8_000) * loudness)
        }
    }

    @Test("Response times are exact to a frame, and so are their percentiles")
    func responses() {
        let delays = [312, 650, 421, 1_234, 4_777].map(Self.milliseconds).map { $0 + 17 }
        var bot = ScriptedBot()
        bot.responses = delays
        let measured = BotAnalysis(probe(&bot, Self.plan(turns: 5))).measure()
        #expect(measured.turns.count == 5)
        for (turn, delay) in zip(measured.turns, delays) {
            guard case .answered(let time) = turn else {
                Issue.record("\(turn) instead of an answer")
                continue
            }
            #expect(abs(time - delay) <= 48)
        }
        let median = BotMeasurement.percentile(50, of: measured.responses) ?? 0
        let worst = BotMeasurement.percentile(95, of: measured.responses) ?? 0
        #expect(abs(median - delays[1]) <= 48)
        #expect(abs(worst - delays[4]) <= 48)
        #expect(measured.questionTalkOver == 0)
    }

    @Test("A greeting is heard out before the first question, and its beginning is known to a frame")
    func greeting() {
        var bot = ScriptedBot()
        bot.greeting = Self.words(seconds: 5)
        bot.greetingStart = 31_111
        bot.responses = [30_000]
        let recording = probe(&bot, Self.plan(turns: 1))
        let measured = BotAnalysis(recording).measure()
        #expect(abs((measured.greetingStart ?? 0) - 31_111) <= Self.frame)
        #expect((recording.utterances.first?.range.lowerBound ?? 0) > 31_111 + 5 * 48_000)
        #expect(measured.questionTalkOver == 0)
    }

    @Test("The time from the caller's onset to the bot's silence is exact to a frame, and so is the time both talk")
    func interruptions() {
        let stops = [187, 333, 905].map(Self.milliseconds).map { $0 + 5 }
        var bot = ScriptedBot()
        bot.responses = [Int](repeating: 24_000, count: 20)
        bot.answerSamples = 10 * 48_000
        bot.stops = stops
        let measured = BotAnalysis(probe(&bot, Self.plan(turns: 0, interruptions: 3))).measure()
        #expect(measured.interruptions.count == 3)
        for (stop, wanted) in zip(measured.stops, stops) { #expect(abs(stop - wanted) <= 48) }
        #expect(measured.stops.count == 3)
        for (time, wanted) in zip(measured.interruptionTalkOver, stops) { #expect(abs(time - wanted) <= Self.frame) }
    }

    @Test("A bot that never answers has no response times, and the call ends")
    func neverAnswers() {
        var bot = ScriptedBot()
        let measured = BotAnalysis(probe(&bot, Self.plan(turns: 2, interruptions: 2))).measure()
        #expect(!measured.hasSound)
        #expect(measured.responses.isEmpty)
        // Two turns, and three tries to get something to interrupt.
        #expect(measured.turns == [BotMeasurement.Turn](repeating: .unanswered, count: 5))
        #expect(measured.interruptions.isEmpty)
        #expect(measured.greetingStart == nil)
    }

    @Test("A bot that talks on through an interruption has not stopped")
    func talksOn() {
        var bot = ScriptedBot()
        bot.responses = [24_000]
        bot.answerSamples = 12 * 48_000
        let measured = BotAnalysis(probe(&bot, Self.plan(turns: 0, interruptions: 1))).measure()
        #expect(measured.stops.isEmpty)
        guard case .ignored(let time)? = measured.interruptions.first else {
            Issue.record("\(measured.interruptions) instead of one that is ignored")
            return
        }
        #expect(time > 10 * 48_000)
        #expect(abs((measured.interruptionTalkOver.first ?? 0) - 2 * 48_000) <= Self.frame)
    }

    @Test("A bot that talks when a question ends has overlapped it, and has no response time there")
    func overlaps() {
        var bot = ScriptedBot()
        bot.greeting = Self.words(seconds: 40)
        let measured = BotAnalysis(probe(&bot, Self.plan(turns: 1))).measure()
        #expect(measured.turns == [.overlapped])
        #expect(measured.responses.isEmpty)
        #expect(measured.questionTalkOver > 0)
    }

    @Test("Faint noise changes nothing, and loud noise withholds the figures")
    func noise() {
        var bot = ScriptedBot()
        bot.responses = [24_000]
        bot.noise = 40
        let faint = BotAnalysis(probe(&bot, Self.plan(turns: 1))).measure()
        #expect(faint.withheld.isEmpty)
        #expect(abs((faint.responses.first ?? 0) - 24_000) <= Self.frame)

        var loud = ScriptedBot()
        loud.noise = 4_000
        let measured = BotAnalysis(probe(&loud, Self.plan(turns: 1, interruptions: 1))).measure(greeting: [1])
        #expect(measured.withheld.map(\.figure) == [.turns, .interruptions, .cut])
        #expect(measured.turns.isEmpty)
        #expect(measured.interruptions.isEmpty)
    }

    @Test("A click is no answer")
    func click() {
        var bot = ScriptedBot()
        bot.responses = [24_000]
        bot.answerSamples = 300
        let measured = BotAnalysis(probe(&bot, Self.plan(turns: 1))).measure()
        #expect(measured.turns == [.unanswered])
    }

    @Test("What is missing of a greeting's first and last word is known to 20 ms", arguments: [0, 60, 180, 700])
    func cuts(milliseconds: Int) {
        let whole = Self.words(seconds: 3)
        let missing = Self.milliseconds(milliseconds)
        var bot = ScriptedBot()
        bot.greetingStart = 20_011
        bot.greeting = Array(whole.dropFirst(missing))
        let first = BotAnalysis(probe(&bot, Self.plan(turns: 1))).measure(greeting: whole)
        #expect(abs((first.cut?.first ?? .max / 2) - missing) <= Self.frame)
        #expect((first.cut?.last ?? .max) <= Self.frame)

        var other = ScriptedBot()
        other.greeting = Array(whole.dropLast(missing))
        let last = BotAnalysis(probe(&other, Self.plan(turns: 1))).measure(greeting: whole)
        #expect((last.cut?.first ?? .max) <= Self.frame)
        #expect(abs((last.cut?.last ?? .max / 2) - missing) <= Self.frame)
    }

    @Test("Another greeting than the one given withholds the cut")
    func otherGreeting() {
        var bot = ScriptedBot()
        bot.greeting = Self.words(seconds: 3, seed: 9)
        let measured = BotAnalysis(probe(&bot, Self.plan(turns: 1))).measure(greeting: Self.words(seconds: 3))
        #expect(measured.cut == nil)
        #expect(measured.withheld.map(\.figure) == [.cut])
    }

    @Test("Keys and a hang-up are answered, or not")
    func keysAndHangUp() {
        var plan = Self.plan(turns: 0)
        plan.keys = "5#"
        plan.expectsHangUp = true
        var bot = ScriptedBot()
        bot.keyResponse = 12_000
        let answered = BotAnalysis(probe(&bot, plan)).measure()
        #expect(answered.presses.map(\.key) == ["5", "#"])
        for press in answered.presses { #expect(abs((press.response ?? 0) - 12_000) <= Self.frame) }
        #expect(answered.hangUp == .missing)

        var ending = ScriptedBot()
        let ended = BotAnalysis(probe(&ending, plan, hangsUpAfterKeys: 1)).measure()
        #expect(ended.presses.map(\.response) == [0])
        #expect(ended.hangUp == .early)
    }

    @Test("What happens while the measuring program is late is withheld")
    func slips() {
        var caller = BotProbe(Self.plan(turns: 2), .bursts)
        var bot = ScriptedBot()
        bot.responses = [24_000, 24_000]
        var said = [Int16](repeating: 0, count: Self.frame)
        var hasSlipped = false
        while true {
            let step = caller.exchange(bot.exchange(said))
            if step.isOver { break }
            said = step.samples
            if let first = caller.recording.utterances.first, caller.recording.heard.count > first.range.upperBound,
                !hasSlipped
            {
                hasSlipped = true
                caller.noteSlip()
            }
        }
        let measured = BotAnalysis(caller.recording).measure()
        #expect(measured.turns.first == .doubtful)
        #expect(measured.withheld == [.init(figure: .turns, reason: .late(1))])
        #expect(measured.responses.count == 1)
    }

    @Test("The built-in utterances are speech without silence at their ends")
    func builtInSpeech() {
        for samples in CallerSpeech.builtIn.questions + [CallerSpeech.builtIn.interruption] {
            #expect((48_000...200_000).contains(samples.count))
            #expect(samples.contains { $0.magnitude > 4_000 })
            #expect((samples.first?.magnitude ?? 0) > 100)
            #expect((samples.last?.magnitude ?? 0) > 100)
        }
    }

    @Test("Recordings without sound are refused")
    func emptySpeech() {
        #expect(CallerSpeech(questions: [[0, 0, 3]], interruption: nil) == nil)
        #expect(CallerSpeech(questions: [], interruption: nil) == nil)
    }
}
