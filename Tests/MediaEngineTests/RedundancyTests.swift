import CallMedia
import MediaEngine
import AudioKit
import Playout
import Testing

@Suite("Calls that send frames twice")
struct RedundancyTests {
    private static func redundant(_ plan: inout MediaCallPlan) {
        plan.peer.redundancy = RedundancyFormat(sendPayloadType: 63, receivePayloadType: 63)
        plan.encoder.fec = false
    }

    @Test("On a clean path nothing is sent twice, and frames are once the peer has reported loss for a while")
    func beginsWithLoss() throws {
        var call = try VirtualCall { Self.redundant(&$0) }
        try call.run(seconds: 30)
        var types = call.payloadTypes
        #expect(types[63] == nil && types[111] ?? 0 > 1_400)
        call.loss = 0.1
        try call.run(seconds: 30)
        types = call.payloadTypes
        #expect(types[63] ?? 0 > 700)
        let before = call.reports.right.playout
        try call.run(seconds: 30)
        let after = call.reports.right.playout
        let (repaired, lost) = (
            after.packetsRepaired - before.packetsRepaired, after.packetsLost - before.packetsLost
        )
        #expect(repaired > 90, "of some 150 packets that did not come")
        #expect(lost < 30, "about one in ten of those whose copy did not come either")
    }

    @Test("After the loss frames are sent once again")
    func endsWithLoss() throws {
        var call = try VirtualCall { Self.redundant(&$0) }
        call.loss = 0.1
        try call.run(seconds: 30)
        call.loss = 0
        try call.run(seconds: 60)
        let before = call.payloadTypes[63]
        try call.run(seconds: 20)
        let after = call.payloadTypes[63]
        #expect(before ?? 0 > 0 && after == before)
    }

    @Test("A peer that has no room for copies gets each frame once, regardless of what it loses")
    func noRoom() throws {
        var call = try VirtualCall {
            Self.redundant(&$0)
            $0.peer.redundancy?.isSent = false
        }
        call.loss = 0.2
        try call.run(seconds: 40)
        let types = call.payloadTypes
        #expect(Array(types.keys) == [111])
    }

    @Test("A peer that has not agreed to it gets each frame once, regardless of what it loses")
    func notAgreed() throws {
        var call = try VirtualCall()
        call.loss = 0.2
        try call.run(seconds: 40)
        let types = call.payloadTypes
        #expect(Array(types.keys) == [111])
    }
}
