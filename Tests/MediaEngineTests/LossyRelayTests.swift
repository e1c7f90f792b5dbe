import Foundation
import CallMedia
import MediaEngine
import Core
import Playout
import RelaySupport
import TestSupport
import Testing

/// The real engines, sockets and threads, with a relay between that loses packets.
@Suite("Calls through a relay that loses packets", .witnessed, .timeLimit(.minutes(2)))
struct LossyRelayTests {
    @Test("At 10 % loss in bursts both sides steer at once, and most of what is lost is heard all the same")
    func bursts() async throws {
        let pair = try EnginePair()
        defer { pair.shutdown() }
        let relay = LossyRelay(.bursts(share: 0.1, meanLength: 3), seed: 11)
        let (callerPort, devicePort) = (pair.caller.place().localAddress.port, pair.device.place().localAddress.port)
        relay.join(callerPort, devicePort)
        let thread = Thread { relay.run() }
        thread.start()
        defer { relay.stop() }
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)),
            deviceAudio: AudioBehaviour(source: .echo)
        ) { plan in
            plan.peer.repairsLoss = true
            plan.peer.usesReducedSizeRTCP = true
            plan.peer.redundancy = RedundancyFormat(sendPayloadType: 63, receivePayloadType: 63)
            plan.peer.headerExtensions.transportSequenceIdentifier = 3
            plan.peer.headerExtensions.remoteTransportSequenceIdentifier = 3
            guard case .direct(var remote, _) = plan.peer.transport else { return }
            remote.port = remote.port == devicePort ? relay.ports[0] : relay.ports[1]
            plan.peer.transport = .direct(to: remote)
        }
        #expect(callerPort != devicePort)
        try await pair.callerEvents.flowing(call.caller)
        try await pair.device.receives(400, on: call.device)
        let device = try #require(await pair.device.report(on: call.device))
        let caller = try #require(await pair.caller.report(on: call.caller))
        let counts = relay.counts
        #expect(counts.lost > 20 && counts.passed > 600)
        // Copies in later packets fill most of the gaps before, and on a busy machine some packets are sent again too late.
        #expect(device.peer.feedback.packetsRepaired > 0, "sent again in time")
        #expect(caller.peer.feedback.transportWide > 30 && caller.peer.feedback.packetsResent > 5)
        // A machine that stalls loses more than the relay.
        let made = Double(device.playout.samplesConcealed) / Double(device.playout.samplesPlayed)
        #expect(made < 0.06, "\(made) of all sound is made up, where 10 % of packets are lost")
    }
}
