import AudioKit
import CallParticipation
import Testing

@testable import Call
@testable import VoiceActivity

@Suite("Recordings, participation and figures of a call")
struct CallPartsTests {
    private var failure: AudioFileError {
        get throws { try #require(throws: AudioFileError.self) { _ = try WAVWriter(path: "/k/a.part.wav") } }
    }

    @Test("A recording that has failed ends as failed, stopped or not, and another one may begin before that")
    func failedRecording() throws {
        let failure = try failure
        var recordings = CallRecordings()
        recordings.began("/k/a.wav")
        recordings.failed(try #require(throws: AudioFileError.self) { _ = try WAVWriter(path: "/k/b.part.wav") })
        #expect(recordings.intact == "/k/a.wav", "it was another one")
        recordings.failed(failure)
        #expect(recordings.recording == "/k/a.wav" && recordings.intact == nil)
        recordings.began("/k/c.wav")
        #expect(recordings.ended("/k/a.wav", isWhole: false) == .failed)
        #expect(recordings.intact == "/k/c.wav")
        recordings.stop()
        #expect(recordings.ended("/k/c.wav", isWhole: false) == .failed)
        // Of that nothing is left: another recording of this name ends with the call.
        recordings.began("/k/c.wav")
        #expect(recordings.ended("/k/c.wav", isWhole: true) == .callEnded && recordings.recording == nil)
    }

    @Test("A recording whose name was taken meanwhile is known by the name that was asked for")
    func otherName() {
        var recordings = CallRecordings()
        recordings.began("/k/a.wav")
        #expect(recordings.ended("/k/a.wav", isWhole: true) == .callEnded && recordings.recording == nil)
        recordings.began("/k/a.wav")
        recordings.stop()
        #expect(recordings.ended("/k/a.wav", isWhole: true) == .stopped)
    }

    @Test("A further recording has a number that no file has")
    func furtherName() {
        var recordings = CallRecordings()
        #expect(recordings.next(beside: "/k/a.wav") { _ in false } == "/k/a.wav")
        recordings.began("/k/a.wav")
        #expect(recordings.next(beside: "/k/a.wav") { _ in false } == "/k/a-2.wav")
        #expect(recordings.next(beside: "/k/a.wav") { $0 != "/k/a-4.wav" } == "/k/a-4.wav")
        #expect(recordings.next(beside: "/k/a.wav") { _ in true } == "/k/a.wav")
    }

    @Test("Until a program that was detached has left, its events do not count, also when the next has joined")
    func leaving() {
        var participation = Participation()
        participation.joined()
        #expect(participation.isPresent && !participation.hasLeft)
        participation.detach()
        #expect(!participation.isPresent)
        participation.joined()
        #expect(participation.isPresent && participation.hasLeft)
        participation.noteLeft()
        participation.noteLeft()
        #expect(!participation.hasLeft)
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
}
