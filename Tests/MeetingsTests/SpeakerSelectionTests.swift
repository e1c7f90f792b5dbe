import Meetings
import Testing

@Suite("Who is heard in a meeting")
struct SpeakerSelectionTests {
    private func run(_ selection: inout SpeakerSelection, _ levels: [UInt64: Int], frames: Int = 1) {
        for _ in 0..<frames {
            selection.begin()
            for (member, level) in levels.sorted(by: { $0.key < $1.key }) { selection.consider(member, level: level) }
            selection.end()
        }
    }

    private func heard(_ selection: SpeakerSelection, of members: ClosedRange<UInt64> = 1...9) -> [UInt64] {
        members.filter(selection.isHeard)
    }

    @Test("Only the three loudest of nine are heard")
    func loudest() {
        var selection = SpeakerSelection()
        run(&selection, [1: 100, 2: 900, 3: 200, 4: 800, 5: 300, 6: 700, 7: 100, 8: 90, 9: 80], frames: 3)
        #expect(heard(selection) == [2, 4, 6])
    }

    @Test("A member is heard 20 ms after it begins to speak, and not below -50 dBFS")
    func begins() {
        var selection = SpeakerSelection()
        run(&selection, [1: SpeakerSelection.enterLevel - 1], frames: 50)
        #expect(heard(selection).isEmpty)
        run(&selection, [1: SpeakerSelection.enterLevel])
        #expect(heard(selection) == [1])
    }

    @Test("A pause of 0.6 s keeps a speaker, and a longer one does not")
    func pauses() {
        var selection = SpeakerSelection()
        run(&selection, [1: 500])
        run(&selection, [1: 0], frames: SpeakerSelection.longestPause)
        #expect(heard(selection) == [1])
        run(&selection, [1: 0])
        #expect(heard(selection).isEmpty)
    }

    @Test("A fourth speaker takes the place of the quietest only if it is twice as loud")
    func hysteresis() {
        var selection = SpeakerSelection()
        run(&selection, [1: 500, 2: 400, 3: 600], frames: 3)
        run(&selection, [1: 500, 2: 400, 3: 600, 4: 799], frames: 20)
        #expect(heard(selection) == [1, 2, 3])
        run(&selection, [1: 500, 2: 400, 3: 600, 4: 800])
        #expect(heard(selection) == [1, 3, 4])
        // The former one is not twice as loud as anyone, so the two do not alternate.
        run(&selection, [1: 500, 2: 900, 3: 600, 4: 800], frames: 20)
        #expect(heard(selection) == [1, 3, 4])
    }

    @Test("A speaker who has left frees the place at once")
    func leaves() {
        var selection = SpeakerSelection()
        run(&selection, [1: 500, 2: 400, 3: 600, 4: 410], frames: 4)
        run(&selection, [1: 500, 3: 600, 4: 410])
        #expect(heard(selection) == [1, 3, 4])
    }
}

@Suite("The course of a meeting")
struct MeetingTests {
    private func feed(_ meeting: inout Meeting, _ input: Meeting.Input) -> [Meeting.Output] {
        var outbox: [Meeting.Output] = []
        meeting.handle(input, into: &outbox)
        return outbox
    }

    @Test("A member is announced with its first sound, and its end with a tone for those who stay")
    func tones() {
        var meeting = Meeting(hasTones: true)
        #expect(feed(&meeting, .joined(1)) == [.seat(1)])
        #expect(feed(&meeting, .present(1)) == [.entered(1, members: 1), .sound(.entry)])
        #expect(feed(&meeting, .present(1)) == [])
        _ = feed(&meeting, .joined(2))
        #expect(feed(&meeting, .present(2)) == [.entered(2, members: 2), .sound(.entry)])
        #expect(feed(&meeting, .left(1)) == [.unseat(1), .sound(.exit)])
        #expect(feed(&meeting, .left(2)) == [.unseat(2), .close])
        #expect(meeting.isEmpty)
    }

    @Test("Without tones none is heard, and a call that was never present leaves silently")
    func silence() {
        var meeting = Meeting(hasTones: false)
        _ = feed(&meeting, .joined(1))
        #expect(feed(&meeting, .present(1)) == [.entered(1, members: 1)])
        var other = Meeting(hasTones: true)
        _ = feed(&other, .joined(1))
        _ = feed(&other, .joined(2))
        #expect(feed(&other, .left(2)) == [.unseat(2)])
    }

    @Test("Speech is reported when it changes, and ends when the speaker leaves")
    func speech() {
        var meeting = Meeting(hasTones: false)
        _ = feed(&meeting, .joined(1))
        _ = feed(&meeting, .joined(2))
        #expect(feed(&meeting, .heard(1, true)) == [.speaks(1, true)])
        #expect(feed(&meeting, .heard(1, true)) == [])
        #expect(feed(&meeting, .left(1)) == [.speaks(1, false), .unseat(1)])
        #expect(feed(&meeting, .heard(1, false)) == [])
    }
}
