import CallControl
import JSON
import SignalWire
import Testing
import Tracing

@testable import SignalingClient

/// The JSON of docs/protocol.md, "Signals of a call".
@Suite("Calls as the exchange carries them")
struct CallMappingTests {
    private static let documented: [(message: CallMessage, data: JSONValue)] = [
        (
            .candidate(.candidate("candidate:1 1 udp 1 192.0.2.1 9 typ host", mid: "a")),
            ["candidate": "candidate:1 1 udp 1 192.0.2.1 9 typ host", "sdpMid": "a", "sdpMLineIndex": 0]
        ),
        (.candidate(.end(mid: "a")), ["candidate": "", "sdpMid": "a", "sdpMLineIndex": 0]),
        (.offer(.offer("v=0")), ["type": "offer", "sdp": "v=0"]),
        (.offer(CallDescription(.wanted)), ["type": "wanted"]),
        (.answer(.answer("v=0")), ["type": "answer", "sdp": "v=0"]),
        (.offerRefused, [:]), (.probe, [:]),
        (.transfer(CallTransfer.Request(target: "carol", replaces: "i2")), ["to": "carol", "replaces": "i2"]),
        (
            .transfer(CallTransfer.Request(target: "carol", isOutside: true, isUnlisted: true)),
            ["to": "carol", "outside": true, "unlisted": true]
        ),
        (.transferProgress(.ringing), ["state": "ringing"]),
    ]

    @Test("Each message of a call is written as the protocol's page has it, and read from that again")
    func messages() throws {
        for (message, data) in Self.documented {
            let type = message.kind.rawValue
            let sent = try SignalWire.CallSignal(
                CallControl.CallSignal(invite: "i1", message, peer: "bob"), doing: "signal")
            #expect(sent.type == type && sent.data == data && sent.peer == "bob")
            #expect(CallMessage(type: type, data) == message)
        }
    }

    @Test("What only a SIP server has is not sent, and is an application's when it comes")
    func foreign() throws {
        let key = try #require(CallKey("1", held: .milliseconds(100)))
        for message in [CallMessage.key(key), .acknowledged(host: nil), .earlyAnswer(.answer("v=0"))] {
            #expect(throws: SignalingError.self) {
                try SignalWire.CallSignal(CallControl.CallSignal(invite: "i1", message), doing: "signal")
            }
            #expect(CallMessage(type: message.kind.rawValue, ["type": "answer", "sdp": "v=0"]) == nil)
        }
    }

    @Test("An application's signal is sent as it is, and unknown members of a peer's are for applications")
    func applications() throws {
        let data: JSONValue = ["n": 1, "deep": [["x": .null]]]
        let sent = try SignalWire.CallSignal(
            CallControl.CallSignal(invite: "i1", type: "chat", data: data), doing: "signal")
        #expect(sent.type == "chat" && sent.data == data)
        #expect(CallMessage(type: "chat", data) == nil)
        let offer: JSONValue = ["type": "offer", "sdp": "v=0", "more": true]
        #expect(CallMessage(type: "offer", offer) == .offer(.offer("v=0")))
    }

    @Test("What is no description cannot be read, and what is no candidate, transfer or progress is no message")
    func unreadable() {
        let values: [JSONValue] = [
            .null, "an offer", ["type": "offer"], ["sdp": "v=0"], ["type": "what", "sdp": "v=0"],
        ]
        for value in values {
            #expect(CallDescription(value) == CallDescription(.unreadable))
        }
        #expect(CallDescription(["type": "offer", "sdp": "v=0", "source": "192.0.2.1"]).source == "192.0.2.1")
        for type in ["candidate", "transfer", "transferProgress"] {
            #expect(CallMessage(type: type, ["candidate": 1, "to": " ", "state": "what"]) == nil)
        }
    }

    @Test("An invite's data is the application's beside what is said of the call")
    func invites() {
        var options = InviteOptions(to: "bob", data: ["subject": "lunch"], idempotencyKey: "k")
        #expect(options.sentData == ["subject": "lunch"])
        options.offer = .offer("v=0")
        options.trunk = TrunkCall(dialled: "100", caller: "+4930")
        options.transfer = CallTransfer.Origin(invite: "i1", by: "carol", replaces: "i2")
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        options.trace = TraceContext(traceparent)
        options.hops = CallHops(2, forwards: 9)
        #expect(
            options.sentData == [
                "subject": "lunch", "offer": ["type": "offer", "sdp": "v=0"],
                "trunk": ["dialled": "100", "caller": "+4930"],
                "transfer": ["invite": "i1", "by": "carol", "replaces": "i2"],
                "traceparent": .string(traceparent), "hops": 2,
            ])
        options.data = 7
        #expect(options.sentData["offer"] != nil)
        #expect(InviteAcceptance.call(.answer("v=0")).data == ["answer": ["type": "answer", "sdp": "v=0"]])
        #expect(InviteAcceptance.call(.offer("v=0")).data == ["offer": ["type": "offer", "sdp": "v=0"]])
        #expect(InviteAcceptance.application("yes").data == "yes")
    }

    @Test(
        "A rejection has a reason and a cause; a reason that is unknown is declined, and an unknown cause says nothing")
    func rejections() {
        #expect(InviteRejection(.busy).data == ["reason": "busy"])
        let failed = InviteRejection(.failed, cause: .noCommonCodec)
        #expect(failed.data == ["reason": "failed", "cause": "noCommonCodec"])
        #expect(InviteRejection(failed.data) == failed)
        #expect(InviteRejection(["reason": "failed", "cause": "moonPhase"]) == InviteRejection(.failed))
        #expect(InviteRejection(["reason": "at lunch"]) == InviteRejection(.declined))
        #expect(InviteRejection(.null) == InviteRejection(.declined))
    }

    @Test("A cancel has the reason of the call, and an unknown reason of a hang-up is an ordinary one")
    func ends() {
        #expect(InviteWithdrawal.call(.acceptedElsewhere).data == ["reason": "acceptedElsewhere"])
        #expect(InviteWithdrawal.application(["why": "ill"]).data == ["why": "ill"])
        #expect(CallEndReason(told: "dialFailed") == .dialFailed && CallEndReason(told: "what") == .completed)
    }
}
