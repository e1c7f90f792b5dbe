@testable import CallAgent
import CallControl
import SignalingClient
import Testing
import Core

@Suite("Invites that are no calls, as a device keeps them")
struct PlainInvitesTests {
    private let options = InviteOptions(to: "echo", idempotencyKey: "k")
    private let sent = SentInvite(id: "i1", invitees: ["echo"])
    private let answer = InviteAnswer(invite: "i1", invitee: "echo", device: "desk", data: [:])

    private func received(_ id: InviteID) -> ReceivedInvite {
        ReceivedInvite(id: id, inviter: "caller", invitees: ["echo"], data: [:], remaining: .seconds(30))
    }

    @Test("An answer that comes before the service's confirmation waits for it, and is published then")
    func earlyAnswer() {
        var invites = PlainInvites()
        var effects = invites.handle(.inviteSent("i1", invitees: []), for: "i1", at: .zero)
        effects += invites.handle(.accepted(answer), for: "i1", at: .zero)
        #expect(effects.isEmpty)
        let answers = invites.add(sent: sent, options, InviteTimings(), at: .zero)
        #expect(answers == [.accepted(answer)])
        for answer in answers { effects += invites.handle(outgoing: answer, for: "i1", at: .zero) }
        #expect(effects == [.publish(.accepted(answer)), .publish(.finished("i1", .done))])
        let late = invites.handle(outgoing: .accepted(answer), for: "i1", at: .zero)
        #expect(late.isEmpty, "the invite is over")
    }

    @Test("GRP-2: An answer to somebody else's invite is published at once")
    func othersAnswer() {
        var invites = PlainInvites()
        let effects = invites.handle(.accepted(answer), for: "i1", at: .zero)
        #expect(effects == [.publish(.accepted(answer))])
    }

    @Test("INV-9: Of 4,097 invites at once the last is refused, and another is taken when one of them has ended")
    func full() {
        var invites = PlainInvites()
        func isTaken(_ id: InviteID) -> Bool { invites.add(received: received(id), InviteTimings(), at: .zero) }
        let taken = (1...4_097).map { isTaken(InviteID(ours: "i\($0)")) }
        #expect(taken.firstIndex(of: false) == 4_096)
        let effects = invites.handle(.cancelled, for: "i7", at: .zero)
        #expect(effects == [.publish(.withdrawn("i7", .cancelled))])
        #expect(isTaken("another"))
    }

    @Test("That a peer has left is published for an invite that is settled, and for no other")
    func left() {
        var invites = PlainInvites()
        _ = invites.add(received: received("i1"), InviteTimings(), at: .zero)
        _ = invites.handle(.cancelled, for: "i1", at: .zero)
        func hangUp(_ id: InviteID) -> [PlainInvites.Effect] {
            let news = CallHangUp(invite: id, reason: .completed, duration: .zero, from: "caller")
            return invites.handle(.hungUp(news), for: id, at: .zero)
        }
        #expect(hangUp("i1") == [.publish(.left("i1", by: "caller"))])
        #expect(hangUp("i2").isEmpty)
    }
}
