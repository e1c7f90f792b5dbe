import AudioKit
import Playout
import Testing

@testable import CallMedia
@testable import MediaEngine

@Suite("Calls in G.711")
struct NarrowbandCallTests {
    private static func narrowband(_ codec: SoundCodec) -> (inout MediaCallPlan) -> Void {
        { plan in
            plan.codec = codec
            plan.peer.clockRate = 8_000
            plan.peer.sendPayloadType = codec == .pcmu ? 0 : 8
            plan.peer.receivePayloadType = codec == .pcmu ? 0 : 8
            plan.peer.comfortNoisePayloadType = 13
            plan.peer.telephoneEvents = [
                TelephoneEventFormat(clockRate: 8_000, sendPayloadType: 101, receivePayloadType: 101)
            ]
        }
    }

    @Test("Sound goes both ways in packets of 160 bytes, on a clock of 8 kHz", arguments: [SoundCodec.pcmu, .pcma])
    func call(codec: SoundCodec) throws {
        var call = try VirtualCall(Self.narrowband(codec))
        try call.run(seconds: 20)
        let (left, right) = call.reports
        #expect(left.peer.payloadBytesSent == left.peer.packetsSent * 160)
        #expect(right.peer.packetsReceived > 990 && right.peer.dropped.total == 0)
        #expect(right.peer.jitterNanoseconds == 0, "the clock of the reports is that of the packets")
        #expect(right.playout.packetsLost == 0 && right.playout.resets == 0)
        #expect(right.playout.samplesConcealed == 0)
        let types = call.payloadTypes
        #expect(Array(types.keys) == [codec == .pcmu ? 0 : 8])
    }

    @Test("Keys are sent at 8 kHz, and sound continues after them")
    func keys() throws {
        var call = try VirtualCall(Self.narrowband(.pcma))
        try call.run(seconds: 2)
        call.left.pointee.press(5)
        try call.run(seconds: 2)
        let digit = call.right.pointee.takeDigit()
        #expect(digit?.code == 5 && digit?.milliseconds == 100)
        let playout = call.reports.right.playout
        #expect(playout.packetsLost == 0 && playout.resets == 0)
    }

    @Test(
        "Silence is described rather than sent, and the peer continues with noise of that level",
        arguments: [true, false])
    func silence(agreed: Bool) throws {
        var call = try VirtualCall(audio: AudioBehaviour(source: .silence)) { plan in
            Self.narrowband(.pcmu)(&plan)
            plan.encoder.dtx = true
            plan.peer.sendComfortNoisePayloadType = agreed ? 13 : nil
        }
        try call.run(seconds: 20)
        let (types, right) = (call.payloadTypes, call.reports.right)
        #expect(right.playout.packetsLost == 0 && right.playout.resets == 0 && right.playout.samplesConcealed == 0)
        guard agreed else {
            #expect(Array(types.keys) == [0] && types[0] ?? 0 > 990)
            return
        }
        #expect((38...44).contains(types[13] ?? 0), "twice a second")
        #expect(types[0] ?? 0 < 20, "the beginning")
        #expect(right.playout.samplesSilent > 19 * 48_000)
    }

    @Test("Sound ends the silence at once, and nothing of it is missing")
    func soundAfterSilence() throws {
        var call = try VirtualCall(audio: AudioBehaviour(source: .echo)) { plan in
            Self.narrowband(.pcma)(&plan)
            plan.encoder.dtx = true
            plan.peer.sendComfortNoisePayloadType = 13
        }
        try call.run(seconds: 3)
        let before = call.payloadTypes[8] ?? 0
        call.left.pointee.press(1)
        try call.run(seconds: 2)
        let digit = call.right.pointee.takeDigit()
        let playout = call.reports.right.playout
        #expect(digit?.code == 1 && playout.packetsLost == 0 && playout.samplesConcealed == 0)
        #expect(call.payloadTypes[8] ?? 0 == before, "a key is no sound")
    }

    @Test("Loss is heard out, and reports of it change nothing that G.711 has not")
    func loss() throws {
        var call = try VirtualCall(Self.narrowband(.pcmu))
        call.loss = 0.1
        try call.run(seconds: 40)
        let (left, right) = call.reports
        #expect(right.playout.packetsLost > 100 && right.playout.samplesConcealed > 50 * 960)
        #expect(left.peer.payloadBytesSent == left.peer.packetsSent * 160)
    }
}
