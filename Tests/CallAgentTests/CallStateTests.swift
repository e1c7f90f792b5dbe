import AudioKit
import BotCalls
import BotWire
import CallMedia
import CallPrograms
import Testing

@testable import CallAgent
@testable import MediaEngine
@testable import VoiceActivity

@Suite("What a device keeps of the sound of a call that runs")
struct CallStateTests {
    private func end(_ path: String, of requested: String? = nil, _ failure: AudioFileError? = nil) -> RecordingEnd {
        RecordingEnd(path: path, requestedPath: requested ?? path, duration: .zero, missed: .zero, failure: failure)
    }

    private var failure: AudioFileError {
        get throws { try #require(throws: AudioFileError.self) { _ = try WAVWriter(path: "/k/a.part.wav") } }
    }

    @Test("A recording that has failed is over as failed, stopped or not, and another one may begin before that")
    func failedRecording() throws {
        let failure = try failure
        var sound = RunningSound()
        sound.began(recording: "/k/a.wav")
        sound.failed(try #require(throws: AudioFileError.self) { _ = try WAVWriter(path: "/k/b.part.wav") })
        #expect(sound.soundRecording == "/k/a.wav", "it was another one")
        sound.failed(failure)
        #expect(sound.recording == "/k/a.wav" && sound.soundRecording == nil)
        sound.began(recording: "/k/c.wav")
        #expect(sound.ended(recording: end("/k/a.part.wav", of: "/k/a.wav", failure)) == .failed)
        #expect(sound.soundRecording == "/k/c.wav")
        sound.stopRecording()
        #expect(sound.ended(recording: end("/k/c.part.wav", of: "/k/c.wav", failure)) == .failed)
        // Of that nothing is left: another recording of this name ends with the call.
        sound.began(recording: "/k/c.wav")
        #expect(sound.ended(recording: end("/k/c.wav")) == .callEnded && sound.recording == nil)
    }

    @Test("A recording whose name was taken meanwhile is known by the name that was asked for")
    func otherName() {
        var sound = RunningSound()
        sound.began(recording: "/k/a.wav")
        #expect(sound.ended(recording: end("/k/a-2.wav", of: "/k/a.wav")) == .callEnded && sound.recording == nil)
        sound.began(recording: "/k/a.wav")
        sound.stopRecording()
        #expect(sound.ended(recording: end("/k/a-2.wav", of: "/k/a.wav")) == .stopped)
    }

    @Test("A further recording has a number that no file has")
    func furtherName() {
        var sound = RunningSound()
        #expect(sound.nextRecording(beside: "/k/a.wav") { _ in false } == "/k/a.wav")
        sound.began(recording: "/k/a.wav")
        #expect(sound.nextRecording(beside: "/k/a.wav") { _ in false } == "/k/a-2.wav")
        #expect(sound.nextRecording(beside: "/k/a.wav") { $0 != "/k/a-4.wav" } == "/k/a-4.wav")
        #expect(sound.nextRecording(beside: "/k/a.wav") { _ in true } == "/k/a.wav")
    }

    @Test("Until a program that was detached has left, what is told is of that one, also when the next has joined")
    func leaving() {
        var sound = RunningSound()
        sound.participation = .present
        #expect(!sound.hasLeft)
        sound.participation = .left
        sound.beganToLeave()
        sound.participation = .present
        #expect(sound.hasLeft)
        sound.noteLeft()
        sound.noteLeft()
        #expect(!sound.hasLeft)
    }

    @Test("A call keeps what the configuration said when it began")
    func rules() {
        var behaviour = BehaviourConfiguration()
        behaviour.source = .file(path: "/a.wav", loops: false)
        behaviour.hangsUpAfterFile = true
        behaviour.maximumDuration = .seconds(60)
        let configured = CallRules(behaviour, for: behaviour.audio(named: "a"))
        #expect(configured.hangsUpAfterFile && configured.maximumDuration == .seconds(60))
        let other = CallRules(behaviour, for: AudioBehaviour(source: .file(path: "/b.wav", loops: false)))
        #expect(!other.hangsUpAfterFile && other.maximumDuration == .seconds(60))
    }

    @Test(
        "A call lasts four hours at most, and a silent peer is probed after half a minute, if nothing else is configured"
    )
    func usualRules() {
        let configuration = DeviceConfiguration(account: AccountConfiguration(server: "http://127.0.0.1:1"))
        let rules = CallRules(
            configuration.behaviour, for: configuration.behaviour.audio(named: "a"),
            silenceTimeout: configuration.media.silenceTimeout)
        #expect(rules.maximumDuration == .seconds(14_400) && rules.silenceTimeout == .seconds(30))
    }

    @Test("The figures of programs that take part one after the other are those of all of them")
    func turnFigures() {
        var figures = TurnFigures()
        #expect(figures.summary == nil)
        figures.leave(.program)
        #expect(figures.summary == nil)
        figures.note(Self.summary(turns: 2, median: 24_000, slow: 48_000, dips: 1), from: .program)
        for milliseconds in [500, 1_000] { figures.noteResponse(.milliseconds(milliseconds)) }
        let first = figures.summary
        #expect(first?.turns == 2 && first?.medianResponse == 24_000)
        figures.leave(.program)
        #expect(figures.summary == first)
        figures.note(Self.summary(turns: 1, median: 96_000, slow: 96_000, dips: 2), from: .program)
        figures.noteResponse(.milliseconds(2_000))
        let all = figures.summary
        #expect(all?.turns == 3 && all?.dips == 3)
        #expect((46_000...50_000).contains(all?.medianResponse ?? 0), "the second of three")
        #expect((93_000...96_000).contains(all?.slowResponse ?? 0))
    }

    @Test("Ports of a call one after the other, and a bot among them, leave their figures; a late end is not another's")
    func portFigures() {
        var figures = TurnFigures()
        let two = Self.summary(turns: 2, median: 24_000, slow: 24_000, dips: 1)
        let three = Self.summary(turns: 3, median: 24_000, slow: 24_000, dips: 0)
        figures.note(Self.summary(turns: 1, median: 24_000, slow: 24_000, dips: 0), from: .port)
        figures.note(two, from: .port)
        #expect(figures.summary == two)
        figures.leave(.port)
        figures.note(three, from: .port)
        #expect(figures.summary?.turns == 5 && figures.summary?.dips == 1)
        figures.note(three, from: .bot)
        figures.leave(.port)
        #expect(figures.summary?.turns == 8, "the bot takes part")
        figures.note(three, from: .bot)
        #expect(figures.summary?.turns == 8)
        figures.leave(.bot)
        figures.note(two, from: .port)
        #expect(figures.summary?.turns == 10)
    }

    private static func summary(turns: Int, median: Int, slow: Int, dips: Int) -> TurnSummary {
        TurnSummary(
            turns: turns, medianResponse: median, slowResponse: slow, overlaps: 0, dips: dips, falseDips: 0,
            interruptions: 0)
    }

    @Test("A behaviour with another attachment is not taken while the device runs; one with the same bot is")
    func adoption() throws {
        func configuration(
            _ source: BehaviourConfiguration.Source, _ attachment: BehaviourConfiguration.Source?, seconds: Int
        ) -> DeviceConfiguration {
            var configuration = DeviceConfiguration(account: AccountConfiguration(server: "http://127.0.0.1:1"))
            configuration.behaviour.source = source
            configuration.behaviour.attachment = attachment
            configuration.behaviour.maximumDuration = .seconds(seconds)
            return configuration
        }
        let address = try #require(WebAddress("ws://127.0.0.1:1/ws", WebAddress.Scheme.sockets))
        let bot = BotPlan(address: address, wire: .twilio)
        var otherBot = bot
        otherBot.account = "AC1"
        let program = ProgramPlan(command: ["cat"])
        for (first, second, isTaken) in [
            (BehaviourConfiguration.Source.bot(bot), BehaviourConfiguration.Source.bot(bot), true),
            (.bot(bot), .bot(otherBot), false), (.bot(bot), nil, false), (nil, .bot(bot), false),
            (.exec(program), .exec(ProgramPlan(command: ["tac"])), true), (.exec(program), .bot(bot), false),
            (nil, .exec(program), false), (nil, nil, true),
        ] as [(BehaviourConfiguration.Source?, BehaviourConfiguration.Source?, Bool)] {
            var running = configuration(.silence, first, seconds: 1)
            let hasTaken = running.adopt(configuration(.echo, second, seconds: 2))
            #expect(hasTaken == isTaken)
            #expect(running.behaviour.maximumDuration == .seconds(isTaken ? 2 : 1))
        }
        // With the same bot as source or as attachment the device has set up the same.
        var running = configuration(.bot(bot), nil, seconds: 1)
        let hasTaken = running.adopt(configuration(.silence, .bot(bot), seconds: 2))
        #expect(hasTaken)
    }
}
