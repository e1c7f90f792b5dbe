@testable import CallControl
import JSON
import Testing
import Core

@Suite("CallMachine, every state and input")
struct CallTableTests {
    private typealias Fixtures = CallFixtures

    static let allStates: [NamedState<CallMachine>] = [
        NamedState("new (outgoing)", Fixtures.dialled),
        NamedState("preparingOffer", Fixtures.preparingOffer),
        NamedState("inviting.sending", Fixtures.sending),
        NamedState("inviting.pending", Fixtures.inviting),
        NamedState("withdrawing", Fixtures.withdrawing),
        NamedState("settingUp (outgoing)", Fixtures.settingUpOutgoing),
        NamedState("established (outgoing)", Fixtures.establishedOutgoing),
        NamedState("established, flowing (outgoing)", Fixtures.flowingOutgoing),
        NamedState("new (incoming)", Fixtures.received),
        NamedState("ringing", Fixtures.ringing),
        NamedState("preparingAnswer", Fixtures.preparingAnswer),
        NamedState("accepting", Fixtures.accepting),
        NamedState("accepting, connected", Fixtures.accepting.after(.media(.connected(isVerified: true)))),
        NamedState(
            "accepting, flowing",
            Fixtures.accepting.after(.media(.connected(isVerified: true)), .media(.flowing))),
        NamedState("rejecting", Fixtures.rejecting),
        NamedState("settingUp (incoming)", Fixtures.settingUpIncoming),
        NamedState("settingUp, described (incoming)", Fixtures.unacknowledged.after(.media(Self.described))),
        NamedState("established (incoming)", Fixtures.establishedIncoming),
        NamedState("ended completed (incoming)", Fixtures.ended),
    ]

    private static let described = CallMachine.MediaReport.connected(isVerified: false)

    static let allInputs: [(name: String, input: CallMachine.Input)] = [
        ("begin", .begin),
        ("answer", .user(.answer)),
        ("reject", .user(.reject(.busy))),
        ("hangUp", .user(.hangUp)),
        ("media ready", .media(.ready(description: .answer("ours")))),
        ("media path", .media(.pathFound)),
        ("media connected", .media(.connected(isVerified: true))),
        ("media flowing", .media(.flowing)),
        ("media failed", .media(.failed("no port"))),
        ("media lost", .media(.lost)),
        ("inviteSent", .service(.inviteSent("i1", invitees: ["bob"]))),
        ("inviteFailed", .service(.inviteFailed(Fixtures.broken))),
        ("accepted", .service(.accepted(Fixtures.accepted))),
        ("rejected", .service(.rejected(Fixtures.rejected(.busy)))),
        ("cancelConfirmed", .service(.cancelConfirmed)),
        ("cancelFailed", .service(.cancelFailed(Fixtures.broken))),
        ("inviteEnded", .service(.inviteEnded)),
        ("acknowledged", .service(.acknowledged)),
        ("answerConfirmed", .service(.answerConfirmed)),
        ("answerFailed", .service(.answerFailed(Fixtures.broken))),
        ("answerFailed lost", .service(.answerFailed(Fixtures.lost))),
        ("handled accepted", .service(.handledElsewhere(.accepted))),
        ("handled rejected", .service(.handledElsewhere(.rejected))),
        ("cancelled", .service(.cancelled)),
        ("timedOut", .service(.timedOut(["bob"]))),
        ("hungUp", .service(.hungUp(Fixtures.hungUp()))),
        ("disconnected", .service(.disconnected)),
        ("timer", .timerFired),
    ]

    private static func name(_ call: CallMachine) -> String {
        let side = call.draft.direction.rawValue
        return switch call.current {
        case .settingUp where call.setUp.connection == .described: "settingUp, described (\(side))"
        case .established where call.draft.setUpTime != nil: "established, flowing (\(side))"
        case .new, .settingUp, .established: "\(caseName(call.current)) (\(side))"
        case .inviting(let invite, _): "inviting.\(caseName(invite.current))"
        case .accepting where call.setUp.isFlowing: "accepting, flowing"
        case .accepting where call.setUp.connection == .verified: "accepting, connected"
        case .accepting: "accepting"
        case .ended(let record): "ended \(record.reason.rawValue) (\(side))"
        case .preparingOffer, .withdrawing, .ringing, .preparingAnswer, .rejecting: caseName(call.current)
        }
    }

    private static func end(_ reason: String, _ side: String, _ before: String...) -> String {
        "ended \(reason) (\(side)): " + (before + ["ended"]).joined(separator: " ")
    }

    private static let expected: [String: [String: String]] = [
        "new (outgoing)": ["begin": "preparingOffer: prepareOffer"],
        "preparingOffer": [
            "hangUp": end("cancelled", "outgoing", "releaseMedia"),
            "media ready": "inviting.sending: sendInvite",
            "media failed": end("dialFailed", "outgoing", "releaseMedia"),
            "disconnected": end("disconnected", "outgoing", "releaseMedia"),
            "timer": end("dialFailed", "outgoing", "releaseMedia"),
        ],
        "inviting.sending": [
            "hangUp": "withdrawing",
            "media failed": "withdrawing",
            "inviteSent": "inviting.pending",
            "inviteFailed": end("dialFailed", "outgoing", "releaseMedia"),
            "disconnected": end("disconnected", "outgoing", "releaseMedia"),
            "timer": end("dialFailed", "outgoing", "releaseMedia"),
        ],
        "inviting.pending": [
            "hangUp": "withdrawing: sendCancel",
            "media failed": "withdrawing: sendCancel",
            "accepted": "settingUp (outgoing): applyAnswer answered",
            "rejected": end("busy", "outgoing", "releaseMedia"),
            "inviteEnded": end("noAnswer", "outgoing", "releaseMedia"),
            "timedOut": end("noAnswer", "outgoing", "releaseMedia"),
            "disconnected": end("disconnected", "outgoing", "releaseMedia"),
            "timer": end("noAnswer", "outgoing", "releaseMedia"),
        ],
        "withdrawing": [
            "accepted": end("cancelled", "outgoing", "sendHangUp", "releaseMedia"),
            "cancelConfirmed": end("cancelled", "outgoing", "releaseMedia"),
            "cancelFailed": end("cancelled", "outgoing", "releaseMedia"),
            "inviteEnded": end("cancelled", "outgoing", "releaseMedia"),
            "disconnected": end("disconnected", "outgoing", "releaseMedia"),
            "timer": end("cancelled", "outgoing", "releaseMedia"),
        ],
        "settingUp (outgoing)": [
            "hangUp": end("cancelled", "outgoing", "sendHangUp", "releaseMedia"),
            "media connected": "established (outgoing): established",
            "media failed": end("dialFailed", "outgoing", "sendHangUp", "releaseMedia"),
            "media lost": end("dialFailed", "outgoing", "sendHangUp", "releaseMedia"),
            "hungUp": end("completed", "outgoing", "releaseMedia"),
            "disconnected": end("disconnected", "outgoing", "releaseMedia"),
            "timer": end("dialFailed", "outgoing", "sendHangUp", "releaseMedia"),
        ],
        "established (outgoing)": established("outgoing", flowing: false),
        "established, flowing (outgoing)": established("outgoing", flowing: true),
        "new (incoming)": ["begin": "ringing: ringing"],
        "ringing": [
            "answer": "preparingAnswer: prepareAnswer",
            "reject": "rejecting: sendReject",
            "hangUp": "rejecting: sendReject",
            "media failed": "rejecting: sendReject",
            "handled accepted": end("acceptedElsewhere", "incoming"),
            "handled rejected": end("declinedElsewhere", "incoming"),
            "cancelled": end("cancelled", "incoming"),
            "timedOut": end("noAnswer", "incoming"),
            "disconnected": end("disconnected", "incoming"),
            "timer": end("noAnswer", "incoming"),
        ],
        "preparingAnswer": [
            "reject": "rejecting: releaseMedia sendReject",
            "hangUp": "rejecting: releaseMedia sendReject",
            "media ready": "accepting: sendAccept",
            "media failed": "rejecting: releaseMedia sendReject",
            "handled accepted": end("acceptedElsewhere", "incoming", "releaseMedia"),
            "handled rejected": end("declinedElsewhere", "incoming", "releaseMedia"),
            "cancelled": end("cancelled", "incoming", "releaseMedia"),
            "timedOut": end("noAnswer", "incoming", "releaseMedia"),
            "disconnected": end("disconnected", "incoming", "releaseMedia"),
            "timer": end("noAnswer", "incoming", "releaseMedia"),
        ],
        "accepting": accepting(),
        "accepting, connected": accepting(connected: true),
        "accepting, flowing": accepting(connected: true, flowing: true),
        "rejecting": [
            "answer": "rejecting: refused",
            "answerConfirmed": end("declined", "incoming"),
            "answerFailed": end("declined", "incoming"),
            "answerFailed lost": end("acceptedElsewhere", "incoming"),
            "handled accepted": end("acceptedElsewhere", "incoming"),
            "handled rejected": end("declinedElsewhere", "incoming"),
            "cancelled": end("cancelled", "incoming"),
            "timedOut": end("noAnswer", "incoming"),
            "disconnected": end("disconnected", "incoming"),
            "timer": end("declined", "incoming"),
        ],
        "settingUp (incoming)": settingUp([
            "media connected": "established (incoming): established",
            "timer": end("acceptFailed", "incoming", "sendHangUp", "releaseMedia"),
        ]),
        "settingUp, described (incoming)": settingUp([
            "media connected": "established (incoming): established",
            "acknowledged": "established (incoming): established",
            "timer": end("acceptFailed", "incoming", "sendHangUp", "releaseMedia"),
        ]),
        "established (incoming)": established("incoming", flowing: false),
        "ended completed (incoming)": [
            "answer": "ended completed (incoming): refused",
            "reject": "ended completed (incoming): refused",
        ],
    ]

    private static func settingUp(_ own: [String: String]) -> [String: String] {
        own.merging([
            "hangUp": end("cancelled", "incoming", "sendHangUp", "releaseMedia"),
            "media failed": end("acceptFailed", "incoming", "sendHangUp", "releaseMedia"),
            "media lost": end("acceptFailed", "incoming", "sendHangUp", "releaseMedia"),
            "hungUp": end("completed", "incoming", "releaseMedia"),
            "disconnected": end("disconnected", "incoming", "releaseMedia"),
        ]) { own, _ in own }
    }

    private static func established(_ side: String, flowing: Bool) -> [String: String] {
        var row = [
            "hangUp": end("completed", side, "sendHangUp", "releaseMedia"),
            "media failed": end("internalError", side, "sendHangUp", "releaseMedia"),
            "media lost": end("connectionLost", side, "sendHangUp", "releaseMedia"),
            "hungUp": end("completed", side, "releaseMedia"),
            "disconnected": end("disconnected", side, "releaseMedia"),
        ]
        if !flowing { row["media flowing"] = "established, flowing (\(side)): flowing" }
        return row
    }

    private static func accepting(connected: Bool = false, flowing: Bool = false) -> [String: String] {
        var row = [
            "reject": end("cancelled", "incoming", "sendHangUp", "releaseMedia"),
            "hangUp": end("cancelled", "incoming", "sendHangUp", "releaseMedia"),
            "media failed": end("acceptFailed", "incoming", "sendHangUp", "releaseMedia"),
            "media lost": end("acceptFailed", "incoming", "sendHangUp", "releaseMedia"),
            "answerConfirmed": "settingUp (incoming): answered",
            "answerFailed": end("acceptFailed", "incoming", "sendReject", "releaseMedia"),
            "answerFailed lost": end("acceptedElsewhere", "incoming", "releaseMedia"),
            "hungUp": end("completed", "incoming", "releaseMedia"),
            "disconnected": end("disconnected", "incoming", "releaseMedia"),
            "timer": end("acceptFailed", "incoming", "releaseMedia"),
        ]
        if flowing {
            row["answerConfirmed"] = "established, flowing (incoming): answered established flowing"
        } else {
            row["media flowing"] = "accepting, flowing"
        }
        if connected, !flowing { row["answerConfirmed"] = "established (incoming): answered established" }
        if !connected { row["media connected"] = "accepting, connected" }
        return row
    }

    @Test("CALL-5: Every input in every state of a call has exactly the outcome of the table")
    func everyPair() {
        let table = TransitionTable(
            states: Self.allStates, inputs: Self.allInputs, stateName: Self.name, outputName: caseName,
            expected: Self.expected)
        table.check(at: Instant.zero.advanced(by: .seconds(60)))
    }
}
