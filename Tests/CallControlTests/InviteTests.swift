@testable import CallControl
import JSON
import Testing
import TestSupport
import Core

private let broken = SignalingError(.serverError, activity: "answer the invite", cause: "it broke")
private let lost = SignalingError(
    .alreadyHandled, activity: "answer the invite", cause: "another device answered first")
private let late = SignalingError(.inviteEnded, activity: "cancel the invite", cause: "it has ended")

@Suite("IncomingInviteMachine")
struct IncomingInviteTests {
    private static func ringing(remaining: Duration? = .seconds(30)) -> IncomingInviteMachine {
        IncomingInviteMachine("i1", remaining: remaining, at: .zero)
    }

    @Test("INV-10: Every input in every state of an incoming invite has exactly the outcome of the table")
    func everyPair() {
        let ringing = Self.ringing()
        let accepting = ringing.after(.accept(.application(["answer": 1])))
        let rejecting = ringing.after(.reject(.declined))
        let anyEnd = [
            "handled accepted": "ended handledElsewhere: ended", "handled rejected": "ended handledElsewhere: ended",
            "cancelled": "ended cancelled: ended", "timedOut": "ended timedOut: ended",
        ]
        let tooLate = ["accept": "refused", "reject": "refused"]
        func ended(_ name: String) -> [String: String] { tooLate.mapValues { "ended \(name): \($0)" } }
        let table = TransitionTable(
            states: [
                NamedState("ringing", ringing),
                NamedState("accepting", accepting),
                NamedState("rejecting", rejecting),
                NamedState("accepted", accepting.after(.answerConfirmed)),
                NamedState("ended rejected", rejecting.after(.answerConfirmed)),
                NamedState("ended handledElsewhere", ringing.after(.handledElsewhere(.accepted))),
                NamedState("ended cancelled", ringing.after(.cancelled)),
                NamedState("ended timedOut", ringing.after(.timedOut)),
                NamedState("ended failed", accepting.after(.answerFailed(broken))),
            ],
            inputs: [
                ("accept", .accept(.application(["answer": 1]))), ("reject", .reject(.busy)),
                ("answerConfirmed", .answerConfirmed), ("answerFailed", .answerFailed(broken)),
                ("answerFailed lost", .answerFailed(lost)), ("handled accepted", .handledElsewhere(.accepted)),
                ("handled rejected", .handledElsewhere(.rejected)), ("cancelled", .cancelled),
                ("timedOut", .timedOut), ("timer", .timerFired),
            ],
            stateName: {
                if case .ended(let end) = $0.current { "ended \(caseName(end))" } else { caseName($0.current) }
            },
            outputName: caseName,
            expected: [
                "ringing": anyEnd.merging([
                    "accept": "accepting: sendAccept", "reject": "rejecting: sendReject",
                    "timer": "ended timedOut: ended",
                ]) { $1 },
                "accepting": [
                    "accept": "accepting: refused", "reject": "accepting: refused",
                    "answerConfirmed": "accepted: accepted", "answerFailed": "ended failed: ended",
                    "answerFailed lost": "ended handledElsewhere: ended", "timer": "ended failed: ended",
                ],
                "rejecting": anyEnd.merging([
                    "accept": "rejecting: refused", "reject": "rejecting: refused",
                    "answerConfirmed": "ended rejected: ended", "answerFailed": "ended rejected: ended",
                    "answerFailed lost": "ended handledElsewhere: ended", "timer": "ended rejected: ended",
                ]) { $1 },
                "accepted": ["accept": "accepted: refused", "reject": "accepted: refused"],
                "ended rejected": ended("rejected"),
                "ended handledElsewhere": ended("handledElsewhere"),
                "ended cancelled": ended("cancelled"),
                "ended timedOut": ended("timedOut"),
                "ended failed": ended("failed"),
            ])
        table.check(at: Instant.zero.advanced(by: .seconds(60)))
    }

    @Test("INV-4: An invite that another device answered stops ringing here")
    func handledElsewhere() {
        var timeline = Timeline(Self.ringing())
        timeline.feed(.handledElsewhere(.accepted))
        timeline.runToQuiescence(firing: .timerFired)
        #expect(timeline.outputs == [.ended(.handledElsewhere(.accepted))])
    }

    @Test("INV-5: A device that accepts too late hears alreadyHandled and has no call")
    func secondDevice() {
        var timeline = Timeline(Self.ringing())
        timeline.feed(.accept(.call(.answer("sdp"))))
        timeline.feed(.answerFailed(lost))
        #expect(
            timeline.outputs == [
                .sendAccept("i1", .call(.answer("sdp"))), .ended(.handledElsewhere(.accepted)),
            ])
    }

    @Test("INV-3, GRP-2: An event of an invite that overtakes the answer to an accept does not end the call")
    func overtakingEvents() {
        for event in [IncomingInviteMachine.Input.cancelled, .timedOut, .handledElsewhere(.accepted)] {
            var timeline = Timeline(Self.ringing())
            timeline.feed(.accept(.call(.answer("sdp"))))
            timeline.feed(event)
            timeline.feed(.answerConfirmed)
            #expect(timeline.outputs == [.sendAccept("i1", .call(.answer("sdp"))), .accepted])
        }
    }

    @Test("INV-5, INV-6: The event says how an invite ended if the answer to our accept does not")
    func eventOfAnEnd() {
        for answer in [IncomingInviteMachine.Input.answerFailed(broken), .timerFired] {
            var timeline = Timeline(Self.ringing())
            timeline.feed(.accept(.call(.answer("sdp"))))
            timeline.feed(.cancelled)
            timeline.feed(.timedOut)
            timeline.feed(answer)
            timeline.runToQuiescence(firing: .timerFired)
            #expect(timeline.outputs.last == .ended(.cancelled))
        }
    }

    @Test(
        "INV-5: What another device did with an invite is said by its event, where the answer to our accept does not say it"
    )
    func actionOfAnotherDevice() {
        var timeline = Timeline(Self.ringing())
        timeline.feed(.accept(.call(.answer("sdp"))))
        timeline.feed(.handledElsewhere(.rejected))
        timeline.feed(.answerFailed(SignalingError(.alreadyHandled, activity: "answer the invite", cause: "late")))
        #expect(timeline.outputs.last == .ended(.handledElsewhere(.rejected)))
    }

    @Test("INV-8: With the exchange out of reach the device's own timer ends the ringing, and it is not reported twice")
    func ownTimer() {
        var timeline = Timeline(Self.ringing(remaining: .seconds(12)))
        timeline.runToQuiescence(firing: .timerFired)
        #expect(timeline.now == Instant.zero.advanced(by: .milliseconds(12_500)))
        timeline.feed(.timedOut)
        #expect(timeline.outputs == [.ended(.timedOut)])
    }

    @Test(
        "INV-9: An invite rings until a decision or the device's limit, which is reported to the inviter",
        arguments: [nil, .seconds(500)] as [Duration?])
    func endlessInvite(remaining: Duration?) {
        var timings = InviteTimings()
        timings.answerLimit = .seconds(120)
        var timeline = Timeline(IncomingInviteMachine("i1", remaining: remaining, timings: timings, at: .zero))
        timeline.advance(by: .seconds(119), firing: .timerFired)
        #expect(timeline.outputs.isEmpty)
        timeline.advance(by: .seconds(1), firing: .timerFired)
        #expect(timeline.outputs == [.sendReject("i1", InviteRejection(.noAnswer))])
        timeline.feed(.accept(.application(.null)))
        timeline.feed(.answerConfirmed)
        #expect(timeline.outputs.last == .ended(.rejected(.noAnswer)))
        #expect(RejectReason.noAnswer.endOfOutgoingCall == .noAnswer)
        #expect(InviteTimings().answerLimit == .seconds(86_400), "no shorter than any ttl")
    }

    @Test(
        "INV-10: An answer after the end is an error that says why, and nothing is sent",
        arguments: [
            (IncomingInviteMachine.Input.cancelled, SignalingError.Code.inviteCancelled),
            (.timedOut, .inviteTimedOut), (.handledElsewhere(.rejected), .alreadyHandled),
        ])
    func lateAnswer(end: IncomingInviteMachine.Input, code: SignalingError.Code) {
        var timeline = Timeline(Self.ringing())
        timeline.feed(end)
        guard case .refused(let error)? = timeline.feed(.accept(.application(.null))).first else {
            Issue.record("the late accept was not refused")
            return
        }
        #expect(error.code == code)
        #expect(timeline.outputs.count == 2)
    }

    @Test("INV-17: An invite received twice is reported once, until it is so old that it is forgotten")
    func seenInvites() {
        var seen = SeenInvites(capacity: 2)
        func notes(_ invite: InviteID) -> Bool { seen.note(invite) }
        #expect(notes("a"))
        #expect(!notes("a"))
        #expect(notes("b"))
        #expect(notes("c"))
        #expect(notes("a"), "the oldest is forgotten when the set is full")
        #expect(!notes("c"))
    }

    @Test("INV-17: The handled that our own accept caused changes nothing")
    func ownHandled() {
        var timeline = Timeline(Self.ringing())
        timeline.feed(.accept(.application(.null)))
        timeline.feed(.answerConfirmed)
        #expect(timeline.feed(.handledElsewhere(.accepted)).isEmpty)
    }
}

@Suite("OutgoingInviteMachine")
struct OutgoingInviteTests {
    private static func answer(_ invitee: UserID) -> InviteAnswer {
        InviteAnswer(invite: "i1", invitee: invitee, device: "d1", answer: .answer("sdp"))
    }

    private static func unsent(timeToLive: Duration? = .seconds(30)) -> OutgoingInviteMachine {
        OutgoingInviteMachine(InviteOptions(to: "bob", timeToLive: timeToLive, idempotencyKey: "k1"))
    }

    private static func pending(_ invitees: [UserID] = ["bob"]) -> OutgoingInviteMachine {
        unsent().after(.send, .sent("i1", invitees: invitees))
    }

    @Test("INV-6: Every input in every state of an outgoing invite has exactly the outcome of the table")
    func everyPair() {
        let sending = Self.unsent().after(.send)
        let table = TransitionTable(
            states: [
                NamedState("unsent", Self.unsent()),
                NamedState("sending", sending),
                NamedState("sendingToCancel", sending.after(.cancel(.application(.null)))),
                NamedState("pending 1", Self.pending()),
                NamedState("pending 2", Self.pending(["bob", "carol"])),
                NamedState("cancelling", Self.pending().after(.cancel(.application(.null)))),
                NamedState("ended done", Self.pending().after(.endedByService)),
                NamedState("ended cancelled", Self.pending().after(.cancel(.application(.null)), .cancelConfirmed)),
                NamedState("ended failed", sending.after(.sendFailed(broken))),
            ],
            inputs: [
                ("send", .send), ("sent", .sent("i1", invitees: ["bob"])), ("sendFailed", .sendFailed(broken)),
                ("accepted", .accepted(Self.answer("bob"))), ("rejected", .rejected(Self.answer("bob"))),
                ("timedOut", .timedOut(["bob"])), ("cancel", .cancel(.application(.null))),
                ("cancelConfirmed", .cancelConfirmed), ("cancelFailed", .cancelFailed(late)),
                ("endedByService", .endedByService), ("timer", .timerFired),
            ],
            stateName: {
                switch $0.current {
                case .pending(_, let waiting, _): "pending \(waiting.count)"
                case .ended(let end): "ended \(caseName(end))"
                case .unsent, .sending, .sendingToCancel, .cancelling: caseName($0.current)
                }
            },
            outputName: caseName,
            expected: [
                "unsent": ["send": "sending: sendInvite", "cancel": "ended cancelled: ended"],
                "sending": [
                    "sent": "pending 1", "sendFailed": "ended failed: ended", "cancel": "sendingToCancel",
                    "timer": "ended failed: ended",
                ],
                "sendingToCancel": [
                    "sent": "cancelling: sendCancel", "sendFailed": "ended cancelled: ended",
                    "cancel": "sendingToCancel: refused", "timer": "ended cancelled: ended",
                ],
                "pending 1": [
                    "accepted": "ended done: accepted ended", "rejected": "ended done: rejected ended",
                    "timedOut": "ended done: timedOut ended", "cancel": "cancelling: sendCancel",
                    "endedByService": "ended done: ended", "timer": "ended done: timedOut ended",
                ],
                "pending 2": [
                    "accepted": "pending 1: accepted", "rejected": "pending 1: rejected",
                    "timedOut": "pending 1: timedOut", "cancel": "cancelling: sendCancel",
                    "endedByService": "ended done: ended", "timer": "ended done: timedOut ended",
                ],
                "cancelling": [
                    "accepted": "cancelling: accepted", "rejected": "cancelling: rejected",
                    "timedOut": "cancelling: timedOut", "cancel": "cancelling: refused",
                    "cancelConfirmed": "ended cancelled: ended", "cancelFailed": "ended done: refused ended",
                    "endedByService": "ended cancelled: ended", "timer": "ended cancelled: ended",
                ],
                "ended done": ["cancel": "ended done: refused"],
                "ended cancelled": ["cancel": "ended cancelled: refused"],
                "ended failed": ["cancel": "ended failed: refused"],
            ])
        table.check(at: Instant.zero.advanced(by: .seconds(60)))
    }

    @Test("INV-3: The process ends when every invitee has accepted, rejected or timed out, and not before")
    func everyInvitee() {
        var timeline = Timeline(Self.pending(["bob", "carol", "dave"]))
        timeline.feed(.rejected(Self.answer("carol")))
        timeline.feed(.accepted(Self.answer("bob")))
        #expect(!timeline.outputs.contains(.ended(.done)))
        timeline.feed(.timedOut(["dave"]))
        timeline.feed(.endedByService)
        #expect(
            timeline.outputs == [
                .rejected(Self.answer("carol")), .accepted(Self.answer("bob")), .timedOut(["dave"]), .ended(.done),
            ])
    }

    @Test("INV-6: Cancelling an invite that has ended is the error inviteEnded")
    func lateCancel() {
        var timeline = Timeline(Self.pending())
        timeline.feed(.accepted(Self.answer("bob")))
        guard case .refused(let error)? = timeline.feed(.cancel(.application(.null))).first else {
            Issue.record("the late cancel was not refused")
            return
        }
        #expect(error.code == .inviteEnded)
    }

    @Test("INV-6: An invite is cancelled though its end is heard before the answer to the cancel")
    func endedFirst() {
        var timeline = Timeline(Self.pending())
        timeline.feed(.cancel(.application(.null)))
        #expect(timeline.feed(.endedByService) == [.ended(.cancelled)])
        #expect(timeline.feed(.cancelConfirmed).isEmpty)
    }

    @Test("INV-6: A cancel that comes behind the last answer ends nothing that has not ended by it")
    func cancelledTooLate() {
        var timeline = Timeline(Self.pending())
        timeline.feed(.cancel(.application(.null)))
        timeline.feed(.accepted(Self.answer("bob")))
        #expect(timeline.feed(.endedByService) == [.ended(.done)])
    }

    @Test(
        "INV-6: A cancel that the service could not be given leaves the invite as it was, with its answers and its time"
    )
    func cancelLost() {
        var timeline = Timeline(Self.pending(["bob", "carol"]))
        timeline.feed(.cancel(.application(.null)))
        timeline.feed(.rejected(Self.answer("carol")))
        #expect(timeline.feed(.cancelFailed(broken)) == [.refused(broken)])
        #expect(timeline.feed(.accepted(Self.answer("bob"))) == [.accepted(Self.answer("bob")), .ended(.done)])
    }

    @Test("INV-6: An invite cancelled before the service gave it an id is cancelled as soon as it has one")
    func earlyCancel() {
        var timeline = Timeline(Self.unsent())
        timeline.feed(.send)
        timeline.feed(.cancel(.application(["why": "changed my mind"])))
        timeline.feed(.sent("i9", invitees: ["bob"]))
        timeline.feed(.cancelConfirmed)
        #expect(
            timeline.outputs.dropFirst() == [
                .sendCancel("i9", .application(["why": "changed my mind"])), .ended(.cancelled),
            ])
    }

    @Test("INV-7, INV-8: The exchange's time-out is reported once, though the device's own timer fires too")
    func timeOutOnce() {
        var timeline = Timeline(Self.pending())
        timeline.advance(by: .seconds(30), firing: .timerFired)
        #expect(timeline.outputs.isEmpty, "the exchange has the first word")
        timeline.feed(.timedOut(["bob"]))
        timeline.runToQuiescence(firing: .timerFired)
        #expect(timeline.outputs == [.timedOut(["bob"]), .ended(.done)])
    }

    @Test("INV-9: Without a time limit an invite stays open for ever")
    func endless() {
        let machine = Self.unsent(timeToLive: nil).after(.send, .sent("i1", invitees: ["bob"]))
        #expect(machine.nextDeadline == nil)
    }
}

@Suite("AnswerPolicy")
struct AnswerPolicyTests {
    private typealias Status = AnswerPolicy.Status

    @Test("INV-11: At the call limit the answer is busy, which the inviter can distinguish from declined")
    func busy() {
        let policy = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(2))
        #expect(policy.decide(Status(caller: "a", activeCalls: 1)) == .answer(after: .zero))
        #expect(policy.decide(Status(caller: "a", activeCalls: 2)) == .reject(.busy))
        #expect(policy.decide(Status(caller: "a", activeCalls: 0, isDraining: true)) == .reject(.busy))
        #expect(policy.decide(Status(caller: "a", activeCalls: 1, hasRoom: false)) == .answer(after: .zero))
        #expect(RejectReason.busy.endOfOutgoingCall == .busy)
        #expect(RejectReason.declined.endOfOutgoingCall == .declined)
    }

    @Test("INV-11: Without a number of calls, one for which the machine has no room is busy")
    func automaticLimit() {
        let policy = AnswerPolicy(manner: .answer(after: .zero), callLimit: .automatic)
        #expect(policy.decide(Status(caller: "a", activeCalls: 9_999)) == .answer(after: .zero))
        #expect(policy.decide(Status(caller: "a", activeCalls: 0, hasRoom: false)) == .reject(.busy))
    }

    @Test("Who may not get through is declined, busy or not")
    func callers() {
        let only = AnswerPolicy(manner: .ring, callers: .only(["alice"]))
        #expect(only.decide(Status(caller: "alice", activeCalls: 0)) == .ring)
        #expect(only.decide(Status(caller: "mallory", activeCalls: 0)) == .reject(.declined))
        let others = AnswerPolicy(manner: .answer(after: .seconds(2)), callers: .everybodyBut(["mallory"]))
        #expect(others.decide(Status(caller: "alice", activeCalls: 0)) == .answer(after: .seconds(2)))
        #expect(others.decide(Status(caller: "mallory", activeCalls: 9)) == .reject(.declined))
        #expect(AnswerPolicy(manner: .reject).decide(Status(caller: "alice", activeCalls: 0)) == .reject(.declined))
    }

    @Test("The rule that refuses a call names the configuration's key and the entry that matched")
    func rules() {
        let quiet = Status(caller: "mallory", activeCalls: 0)
        let (busy, full) = (
            Status(caller: "mallory", activeCalls: 2), Status(caller: "mallory", activeCalls: 0, hasRoom: false)
        )
        let draining = Status(caller: "mallory", activeCalls: 0, isDraining: true)
        let policies: [(AnswerPolicy, Status, String?)] = [
            (AnswerPolicy(callers: .only(["alice"])), quiet, "answer.allow: does not list mallory"),
            (AnswerPolicy(callers: .everybodyBut(["mallory"])), busy, "answer.deny: lists mallory"),
            (AnswerPolicy(callLimit: .calls(2)), busy, "answer.max_calls: 2"),
            (
                AnswerPolicy(callLimit: .automatic), full,
                "answer.max_calls: auto, and the machine carries no more calls"
            ),
            (AnswerPolicy(), draining, "the device is drained, or stops"),
            (AnswerPolicy(manner: .reject), quiet, "answer.mode: reject"), (AnswerPolicy(), quiet, nil),
        ]
        for (policy, status, words) in policies {
            let rule = policy.refusal(of: status)
            #expect(rule?.description == words)
            if let rule { #expect(policy.decide(status) == .reject(rule.reason)) }
        }
    }
}
