@testable import CallControl
import JSON
import Core

enum CallFixtures {
    static let options = InviteOptions(to: "bob", data: ["subject": "lunch"], idempotencyKey: "k1")
    static let invite = ReceivedInvite(
        id: "i1", inviter: "alice", invitees: ["bob"], offer: .offer("their offer"), remaining: .seconds(30))
    static let accepted = InviteAnswer(invite: "i1", invitee: "bob", device: "d2", answer: .answer("their answer"))
    static let broken = SignalingError(.serverError, activity: "send the invite", cause: "it broke")
    static let lost = SignalingError(.alreadyHandled, activity: "answer", cause: "another device answered first")

    static func rejected(_ reason: RejectReason) -> InviteAnswer {
        InviteAnswer(invite: "i1", invitee: "bob", device: "d2", rejection: InviteRejection(reason))
    }

    static func hungUp(_ reason: CallEndReason = .completed, after duration: Duration = .zero) -> CallHangUp {
        CallHangUp(invite: "i1", reason: reason, duration: duration, from: "bob")
    }

    // A call in each of its states, all reached at the time's origin.
    static let dialled = CallMachine(dialling: options)
    static let preparingOffer = dialled.after(.begin)
    static let sending = preparingOffer.after(.media(.ready(description: .offer("our offer"))))
    static let inviting = sending.after(.service(.inviteSent("i1", invitees: ["bob"])))
    static let withdrawing = inviting.after(.user(.hangUp))
    static let settingUpOutgoing = inviting.after(.service(.accepted(accepted)))
    static let establishedOutgoing = settingUpOutgoing.after(.media(.connected(isVerified: true)))
    static let flowingOutgoing = establishedOutgoing.after(.media(.flowing))

    static let received = CallMachine(receiving: invite)
    static let ringing = received.after(.begin)
    static let preparingAnswer = ringing.after(.user(.answer))
    static let accepting = preparingAnswer.after(.media(.ready(description: .answer("our answer"))))
    static let rejecting = ringing.after(.user(.reject(.declined)))
    static let settingUpIncoming = accepting.after(.service(.answerConfirmed))
    static let establishedIncoming = settingUpIncoming.after(.media(.connected(isVerified: true)))

    // Over SIP: the caller has not acknowledged the answer.
    static let unacknowledged = CallMachine(receiving: invite, awaitsAcknowledgement: true).after(
        .begin, .user(.answer), .media(.ready(description: .answer("our answer"))), .service(.answerConfirmed))

    static let ended = establishedIncoming.after(.user(.hangUp))
}
