import CallParticipation
import Testing

@testable import BotCalls

@Suite("Hand-overs that a bot's server asks for")
struct BotHandoverTests {
    /// What happens to the hand-overs of a call, and what that says.
    private final class Desk {
        private var handover = BotHandover()

        func begin() { handover.begin() }
        func takesBack() -> Bool { handover.takeBack() }
        func fails(_ state: HandoverState) -> Bool { handover.note(state) }
        func failsByRefusal() -> Bool { handover.noteRefusal() }
        func noteNothingTakenBack() { handover.noteNothingTakenBack() }
    }

    @Test("One that fails is a failed transfer, once; one that comes about is none", arguments: HandoverState.allCases)
    func ends(_ state: HandoverState) {
        let desk = Desk()
        desk.begin()
        let failures: [HandoverState] = [.refused, .busy, .noAnswer, .failed, .cancelled]
        #expect(desk.fails(state) == failures.contains(state))
        let steps: [HandoverState] = [.asked, .ringing, .whispering, .accepted]
        #expect(desk.takesBack() == steps.contains(state))
    }

    @Test("One that is refused cannot be taken back, and one that was refused while another is under way ends nothing")
    func refused() {
        let desk = Desk()
        #expect(!desk.takesBack())
        desk.begin()
        #expect(desk.failsByRefusal())
        #expect(!desk.takesBack())
        desk.begin()
        desk.begin()
        #expect(desk.failsByRefusal())
        #expect(desk.takesBack())
    }

    @Test("What is reported of one that was taken back does not fail the one that is asked for in its place")
    func replaced() {
        let desk = Desk()
        desk.begin()
        #expect(desk.takesBack())
        #expect(!desk.takesBack())
        desk.begin()
        #expect(!desk.fails(.ringing))
        #expect(!desk.fails(.cancelled))
        #expect(desk.fails(.cancelled), "the second one was taken back by others")
    }

    @Test("One that ended as it was taken back has nothing to take back, whichever report comes first")
    func crossing() {
        for state in [HandoverState.busy, .failed, .cancelled] {
            let desk = Desk()
            desk.begin()
            #expect(desk.takesBack())
            desk.begin()
            #expect(!desk.fails(state))
            desk.noteNothingTakenBack()
            #expect(!desk.fails(.asked))
            #expect(desk.fails(.busy))
        }
        let desk = Desk()
        desk.begin()
        #expect(desk.takesBack())
        #expect(!desk.failsByRefusal())
        desk.noteNothingTakenBack()
        desk.begin()
        #expect(desk.takesBack())
    }
}
