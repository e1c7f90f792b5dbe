import LoopbackAnalysis
import TestSupport
import Testing
import Core
import VoiceActivity

@testable import AudioPort

@Suite("Turns between a caller and a program")
struct TurnTests {
    /// A call in virtual time, frame by frame, with a program that has written all that it says beforehand as far as there is room.
    private final class Call {
        private var port: AudioPort
        private var line: PortLine
        private var unwritten: [Int16]
        private(set) var now = Instant.zero
        private(set) var sent: [Int16] = []
        private(set) var events: [PlaybackEvent] = []
        private(set) var turns: [TurnEvent] = []
        /// Samples received when the port's side learned of each event.
        private(set) var interruptedAt: Int?
        static let frame = 960

        init(_ said: [Int16], interrupts: Bool = true, startsAt start: Int = 0) throws {
            let pair = AudioPort.pair(
                rate: .hz48000, signal: try PortSignal(), turns: TurnPlan(interrupts: interrupts))
            port = pair.port
            line = pair.line
            if start > 0 { line.begin(at: start) }
            unwritten = said
        }

        var played: Int { port.played }
        var summary: TurnSummary? { port.turns }

        /// Sets a mark behind all that the program has to say.
        func markEnd() -> Bool { port.mark("end", unread: unwritten.count) }

        /// A frame of 20 ms; the program's side sees it unless it is `blind`.
        func run(_ received: [Int16], blind: Bool = false) {
            if !blind {
                let taken = port.write(unwritten.span, at: now)
                unwritten.removeFirst(taken)
            }
            var sending = [Int16](repeating: 99, count: received.count)
            var room = sending.mutableSpan
            line.exchange(received: received.span, sending: &room)
            sent += sending
            now = now.advanced(by: .milliseconds(20))
            if !blind { update() }
        }

        func update() {
            port.update(at: now, isFinal: unwritten.isEmpty, into: &events)
            port.takeTurns(into: &turns)
            guard interruptedAt == nil, events.contains(where: { if case .interrupted = $0 { true } else { false } })
            else { return }
            interruptedAt = sent.count
            // What the program has not handed over yet is discarded, too.
            port.clear(unread: unwritten.count)
            unwritten = []
        }

        func say(_ samples: [Int16]) { unwritten += samples }

        /// Until 0.2 s after an interruption.
        func hear(_ heard: [Int16]) {
            for start in stride(from: 0, through: heard.count - Self.frame, by: Self.frame) {
                if let interruptedAt, sent.count > interruptedAt + 9_600 { return }
                run(Array(heard[start..<start + Self.frame]))
            }
        }
    }

    /// A sound that no two places of which are alike for long.
    private static func bot(seconds: Double) -> [Int16] {
        var random = SeededGenerator(seed: 77)
        return (0..<Int(seconds * 48_000)).map { _ in Int16.random(in: 500...3_000, using: &random) }
    }

    private static func quiet(_ count: Int) -> [Int16] {
        var random = SeededGenerator(seed: 5)
        return (0..<count).map { _ in Int16.random(in: -8...8, using: &random) }
    }

    private static func speech(seed: UInt64, seconds: Double) -> [Int16] {
        var speaker = SyntheticSpeech(seed: seed, levelDBFS: -26)
        return speaker.samples(seconds: seconds)
    }

    /// Where it begins: the first 10 ms within 15.9 dB of the loudest.
    private static func onset(of speech: [Int16]) -> Int {
        let powers = stride(from: 0, through: speech.count - 480, by: 480).map { start in
            speech[start..<start + 480].reduce(0.0) { $0 + Double($1) * Double($1) }
        }
        let loudest = powers.max() ?? 0
        return (powers.firstIndex { $0 > loudest * 0.025 } ?? 0) * 480
    }

    private static func sum(_ first: [Int16], _ second: [Int16], at offset: Int) -> [Int16] {
        var result = first
        for (index, sample) in second.enumerated() where index + offset < result.count {
            result[index + offset] = Int16(clamping: Int(result[index + offset]) + Int(sample))
        }
        return result
    }

    /// When this sound may be speech, and when that is certain, in samples, while `bot` is sent.
    private static func decisions(on heard: [Int16], during bot: [Int16] = []) -> (possible: Int?, certain: Int?) {
        var voice = VoiceActivity(rateHz: 48_000)
        var possible: Int?
        for start in stride(from: 0, through: heard.count - 960, by: 960) {
            let sent = bot.span.extracting(min(start, bot.count)..<min(start + 960, bot.count))
            let events = voice.take(heard.span.extracting(start..<start + 960), sent: sent)
            for index in 0..<events.count {
                switch events[index].kind {
                case .onset: possible = events[index].decidedAt
                case .confirmed: return (possible, events[index].decidedAt)
                case .retracted: break
                case .ended: possible = nil
                }
            }
        }
        return (possible, nil)
    }

    /// A short piece of a voice that may be speech for the detector and is not certain to be, as is one that is 5 ms shorter.
    private static func uncertainPiece(seed: UInt64) -> [Int16]? {
        let speech = Self.speech(seed: seed, seconds: 1)
        let start = Self.onset(of: speech)
        var isPossible = false
        for length in stride(from: 720, through: 2_880, by: 240) {
            let piece = Array(speech[start..<start + length])
            let found = decisions(on: sum(quiet(36_000), piece, at: 24_000))
            guard found.certain == nil else { return nil }
            if isPossible, found.possible != nil { return piece }
            isPossible = found.possible != nil
        }
        return nil
    }

    /// A caller whose speech is certain 0.26 to 0.33 s after it is possible, while `bot` speaks.
    private static func slowCaller(during bot: [Int16]) -> (heard: [Int16], possible: Int, certain: Int)? {
        for divisor in [1, 2, 4, 8] as [Int16] {
            for seed in 31...45 as ClosedRange<UInt64> {
                let speech = Self.speech(seed: seed, seconds: 1).map { $0 / divisor }
                let heard = sum(quiet(24_000 + speech.count), speech, at: 24_000)
                let found = decisions(on: heard, during: bot)
                if let possible = found.possible, let certain = found.certain, 12_480..<15_840 ~= certain - possible {
                    return (heard, possible, certain)
                }
            }
        }
        return nil
    }

    /// Nearest rank.
    private static func percentile(_ values: [Int], _ percent: Int) -> Int {
        values.sorted()[max(0, (values.count * percent + 99) / 100 - 1)]
    }

    @Test(
        "The caller's speech lowers the program within 150 ms, P95, and stops it within 350 ms, P50; the program learns what was heard"
    )
    func interruption() throws {
        let bot = Self.bot(seconds: 5)
        var (lowered, silent): ([Int], [Int]) = ([], [])
        for seed in 31...36 as ClosedRange<UInt64> {
            let speech = Self.speech(seed: seed, seconds: 2)
            let heard = Self.sum(Self.quiet(24_000 + speech.count), speech, at: 24_000)
            let onset = 24_000 + Self.onset(of: speech)
            let call = try Call(bot)
            #expect(call.markEnd())
            call.hear(heard)
            let interruptedAt = try #require(call.interruptedAt, "seed \(seed)")
            let low = try #require(
                call.turns.compactMap { if case .lowered(let at) = $0 { at } else { nil } }.last { $0 <= interruptedAt }
            )
            lowered.append(low - onset)
            silent.append(interruptedAt - onset)
            let played = try #require(
                call.events.compactMap { if case .interrupted(let played) = $0 { played } else { nil } }.first)
            #expect(call.played == played)
            #expect(call.events.contains(.discarded(mark: "end")) && call.events.contains(.cleared(played: played)))
            #expect(call.summary?.interruptions == 1)
            let wasRestored = call.turns.contains { if case .restored(let at) = $0 { at > low } else { false } }
            if wasRestored { continue }
            // What was sent at full level before the dip, and nothing that was sent in it.
            let before = low - 960
            #expect(Array(call.sent[(before - 480)..<before]) == Array(bot[(played - 480)..<played]))
            #expect(call.sent[(before + 300)..<interruptedAt - 960].allSatisfy { $0.magnitude <= 300 })
            #expect(call.sent[(interruptedAt - 960 + 240)...].allSatisfy { $0 == 0 }, "nothing is heard after 5 ms")
        }
        #expect(Self.percentile(lowered, 95) <= 150 * 48, "\(lowered.map { $0 / 48 }.sorted())")
        #expect(Self.percentile(silent, 50) <= 350 * 48, "\(silent.map { $0 / 48 }.sorted())")
    }

    @Test(
        "A program that was lowered for no speech continues where it was: each sample is sent at full level, once, in order"
    )
    func resumption() throws {
        let bot = Self.bot(seconds: 4)
        let call = try Call(bot)
        #expect(call.markEnd())
        var heard = Self.quiet(5 * 48_000)
        let pieces = (33...45 as ClosedRange<UInt64>).lazy.compactMap { Self.uncertainPiece(seed: $0) }.prefix(2)
        for (place, piece) in zip([54_720, 116_160], pieces) { heard = Self.sum(heard, piece, at: place) }
        call.hear(heard)
        let dips = call.turns.count { if case .lowered = $0 { true } else { false } }
        let restored = call.turns.count { if case .restored = $0 { true } else { false } }
        #expect(dips > 0 && dips == restored && call.summary?.falseDips == dips && call.interruptedAt == nil)
        #expect(call.played == bot.count)
        // Blocks of 5 ms, but the first after each restoration, which rises.
        var at = 0
        var missing = 0
        for block in stride(from: 240, through: bot.count - 240, by: 240) {
            let wanted = Array(bot[block..<block + 240])
            let found = (at...call.sent.count - 240).first { start in
                call.sent[start] == wanted[0] && call.sent[start + 1] == wanted[1]
                    && Array(call.sent[start..<start + 240]) == wanted
            }
            if let found { at = found + 240 } else { missing += 1 }
        }
        #expect(missing <= 2 * dips, "\(missing) blocks of \(bot.count / 240) are missing")
    }

    @Test("The last word of a program, in which the caller began to speak, is sent once and counts as played")
    func lastWord() throws {
        // What ended 0.2 s ago counts as heard.
        let caller = try #require(Self.slowCaller(during: Self.bot(seconds: 2)))
        let heard = caller.heard
        var passed = 0
        for end in stride(from: caller.possible + 480, through: caller.certain - 9_600, by: 960) {
            let bot = Array(Self.bot(seconds: 5)[..<end])
            let call = try Call(bot)
            #expect(call.markEnd())
            call.hear(heard)
            let low = call.turns.compactMap { if case .lowered(let at) = $0 { at } else { nil } }
            let restored = call.turns.contains { if case .restored = $0 { true } else { false } }
            guard call.interruptedAt == nil, low.count == 1, let low = low.first, low < bot.count, !restored,
                call.turns.contains(where: { if case .speechBegan = $0 { true } else { false } })
            else { continue }
            passed += 1
            #expect(call.sent[(low + 240)...].allSatisfy { $0.magnitude <= 300 }, "nothing is repeated aloud")
            #expect(call.played == bot.count)
            #expect(call.events == [.played(mark: "end", played: bot.count)])
        }
        #expect(passed > 0)
    }

    @Test("Positions count from the beginning of the call's sound, also in a line that joins it later")
    func positions() throws {
        let speech = Self.speech(seed: 40, seconds: 2)
        let heard = Self.sum(Self.quiet(96_000 + speech.count), speech, at: 24_000)
        func turns(startsAt start: Int) throws -> [TurnEvent] {
            let call = try Call([], startsAt: start)
            call.hear(heard)
            call.say([Int16](repeating: 2_000, count: 9_600))
            call.hear(Self.quiet(9_600))
            return call.turns
        }
        let moved = try turns(startsAt: 0).map { turn -> TurnEvent in
            switch turn {
            case .speechBegan(let at): .speechBegan(at: at + 480_000)
            case .speechEnded(let at): .speechEnded(at: at + 480_000)
            case .lowered(let at): .lowered(at: at + 480_000)
            case .restored(let at): .restored(at: at + 480_000)
            case .answered(let turn): .answered(turn.moved(by: 480_000))
            }
        }
        #expect(moved.count >= 3)
        #expect(try turns(startsAt: 480_000) == moved)
    }

    @Test("The echo of a file that is played is not taken for the caller's speech")
    func echoOfAnnouncement() throws {
        var speaker = SyntheticSpeech(seed: 21, levelDBFS: -16)
        let file = speaker.samples(seconds: 6)
        for isEcho in [true, false] {
            let pair = AudioPort.pair(rate: .hz48000, signal: try PortSignal(), turns: TurnPlan(interrupts: true))
            var port = pair.port
            var line = pair.line
            var turns: [TurnEvent] = []
            for start in stride(from: 0, through: file.count - 960, by: 960) {
                let received = (start..<start + 960).map { $0 >= 5_000 ? file[$0 - 5_000] / 10 : 0 }
                var frame = isEcho ? Array(file[start..<start + 960]) : [Int16](repeating: 0, count: 960)
                line.hold(received: received.span, sending: frame.mutableSpan)
                port.takeTurns(into: &turns)
            }
            let hasSpoken = turns.contains { if case .speechBegan = $0 { true } else { false } }
            #expect(hasSpoken == !isEcho)
        }
    }

    @Test("After an interruption nothing is sent until the program's side knows; then its new sound is heard")
    func held() throws {
        let speech = Self.speech(seed: 31, seconds: 2)
        let heard = Self.sum(Self.quiet(48_000 + speech.count), speech, at: 48_000)
        let call = try Call(Self.bot(seconds: 6))
        // The program's side is not there from the onset on; what is queued lasts 0.68 s.
        let frames = heard.count / 960
        for index in 0..<frames {
            call.run(Array(heard[index * 960..<index * 960 + 960]), blind: index >= 50)
        }
        let end = call.sent.count
        let lastSound = try #require(call.sent.lastIndex { $0 != 0 })
        call.update()
        #expect(call.interruptedAt != nil && call.events.contains { if case .interrupted = $0 { true } else { false } })
        #expect(end - lastSound > 4_800, "it was stopped before its queue was empty")
        call.say([Int16](repeating: 1_000, count: 4_800))
        for _ in 0..<8 { call.run(Self.quiet(960)) }
        #expect(call.sent[end...].count { $0 == 1_000 } > 4_000)
    }

    @Test("The program's own echo, with any delay, stops nothing", arguments: [5_000, 14_400])
    func echo(delay: Int) throws {
        let bot = Self.speech(seed: 21, seconds: 8)
        for divisor in [10, 30] {
            let call = try Call(bot)
            // The echo is of what is really sent, so of a lowered program it is lower.
            for _ in 0..<8 * 50 {
                let start = call.sent.count - delay
                call.run(
                    (0..<960).map { index in
                        let at = start + index
                        return Int16.random(in: -6...6)
                            + (at >= 0 && at < call.sent.count ? call.sent[at] / Int16(divisor) : 0)
                    })
            }
            #expect(call.interruptedAt == nil && call.summary?.interruptions == 0, "echo of 1/\(divisor)")
        }
    }

    @Test("The response time is that from the end of speech to the first sound that is sent, exact to the sample")
    func response() throws {
        let call = try Call([])
        let speech = Self.speech(seed: 40, seconds: 2)
        call.hear(Self.sum(Self.quiet(96_000 + speech.count), speech, at: 24_000))
        let end = try #require(
            call.turns.compactMap { if case .speechEnded(let at) = $0 { at } else { nil } }.last)
        let first = call.sent.count
        call.say([Int16](repeating: 2_000, count: 9_600))
        call.hear(Self.quiet(9_600))
        let sound = try #require(call.sent[first...].firstIndex { $0.magnitude >= 33 })
        let turn = try #require(
            call.turns.compactMap { if case .answered(let turn) = $0 { turn } else { nil } }.last)
        // What is sent with a received frame is heard after it.
        #expect(turn.speechEnd == end && turn.answer == sound + 960 && turn.response == turn.answer - end)
        #expect(call.summary?.turns == 1)
    }

    @Test("A call that leaves turns to its program changes no sample, and reports who speaks")
    func off() throws {
        let bot = Self.bot(seconds: 5)
        let call = try Call(bot, interrupts: false)
        let speech = Self.speech(seed: 1, seconds: 3)
        call.hear(Self.sum(Self.quiet(4 * 48_000), speech, at: 24_000))
        #expect(Array(call.sent[240...].prefix(100_000)) == Array(bot[240...].prefix(100_000)))
        #expect(call.turns.contains { if case .speechBegan = $0 { true } else { false } })
        #expect(!call.turns.contains { if case .lowered = $0 { true } else { false } })
        #expect(call.summary?.dips == 0)
    }
}

@Suite("What an interrupted program says on")
struct InterruptedSoundTests {
    private let loud = [Int16](repeating: 900, count: 800)
    private let silent = [Int16](repeating: 3, count: 800)

    private func at(_ milliseconds: Int) -> Instant { Instant.zero.advanced(by: .milliseconds(milliseconds)) }

    @Test("It is discarded until the program clears")
    func reaction() {
        var sound = InterruptedSound()
        #expect(sound.discards(loud, rate: .hz8000, at: at(0)) == 0)
        sound.begin(at: at(10))
        #expect(sound.discards(loud, rate: .hz8000, at: at(100)) == 800 && sound.isStale)
        sound.end()
        #expect(sound.discards(loud, rate: .hz8000, at: at(110)) == 0)
    }

    @Test("What comes after 0.4 s without sound is new, whether none comes or it is silent")
    func pauses() {
        var sound = InterruptedSound()
        sound.begin(at: at(0))
        #expect(sound.discards(loud, rate: .hz8000, at: at(399)) == 800)
        #expect(sound.discards(loud, rate: .hz8000, at: at(799)) == 0 && !sound.isStale)
        sound.begin(at: at(1_000))
        // 0.1 s each.
        for index in 1...3 { #expect(sound.discards(silent, rate: .hz8000, at: at(1_000 + 100 * index)) == 800) }
        #expect(sound.discards(silent + loud, rate: .hz8000, at: at(1_400)) == 800)
    }

    @Test("A mark after a pause is new, too, though no sound has come")
    func passes() {
        var sound = InterruptedSound()
        sound.begin(at: at(0))
        sound.pass(at: at(399))
        #expect(sound.isStale)
        sound.pass(at: at(400))
        #expect(!sound.isStale)
    }

    @Test("A program that never pauses is heard again after 3 s")
    func endless() {
        var sound = InterruptedSound()
        sound.begin(at: at(0))
        for time in stride(from: 100, to: 3_000, by: 100) {
            #expect(sound.discards(loud, rate: .hz8000, at: at(time)) == 800)
        }
        #expect(sound.discards(loud, rate: .hz8000, at: at(3_000)) == 0)
    }
}
