import CallParticipation
import Testing

@testable import BotCalls

@Suite("Hand-overs that a bot's server asks for")
struct BotHandoverTests {
    @Test("One that fails is a failed transfer, once; one that comes about is none", arguments: HandoverState.allCases)
    func ends(_ state: HandoverState) {
        var handover = BotHandover()
        handover.begin()
        let hasFailed = [.refused, .busy, .noAnswer, .failed, .cancelled].contains(state)
        #expect(handover.note(state) == hasFailed)
        let isUnderWay = [.asked, .ringing, .whispering, .accepted].contains(state)
        #expect(handover.takeBack() == isUnderWay)
    }

    @Test("One that is refused cannot be taken back, and one that was refused while another is under way ends nothing")
    func refused() {
        var handover = BotHandover()
        #expect(!handover.takeBack())
        handover.begin()
        #expect(handover.noteRefusal() && !handover.takeBack())
        handover.begin()
        handover.begin()
        #expect(handover.noteRefusal() && handover.takeBack())
    }

    @Test("What is reported of one that was taken back does not fail the one that is asked for in its place")
    func replaced() {
        var handover = BotHandover()
        handover.begin()
        #expect(handover.takeBack() && !handover.takeBack())
        handover.begin()
        #expect(!handover.note(.ringing) && !handover.note(.cancelled))
        #expect(handover.note(.cancelled), "the second one was taken back by others")
    }

    @Test("One that ended as it was taken back has nothing to take back, whichever report comes first")
    func crossing() {
        for state in [HandoverState.busy, .failed, .cancelled] {
            var handover = BotHandover()
            handover.begin()
            #expect(handover.takeBack())
            handover.begin()
            #expect(!handover.note(state))
            handover.noteNothingTakenBack()
            #expect(!handover.note(.asked) && handover.note(.busy))
        }
        var refused = BotHandover()
        refused.begin()
        #expect(refused.takeBack())
        #expect(!refused.noteRefusal())
        refused.noteNothingTakenBack()
        refused.begin()
        #expect(refused.takeBack())
    }
}
