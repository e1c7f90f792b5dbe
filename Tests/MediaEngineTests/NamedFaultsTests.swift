import AudioKit
import CallControl
import CallDiagnosis
import Core
import Playout
import SecureTransport
import TestSupport
import Testing

@testable import CallMedia
@testable import MediaEngine

/// Faults that are put into calls in virtual time, and what the side that is to the right on the path says of its call.
@Suite("Faults of calls, and what they are called")
struct NamedFaultsTests {
    /// A fault of what goes from left to right, unless its name says otherwise.
    enum Fault: String, CaseIterable {
        case nothingPasses, onlyReportsPass, nothingPassesBack, peerDoesNotSend
        case loss, burstLoss, lossBack
        case reordering, farAway
        case wrongPayloadType, wrongPayloadTypeHalf, garbledPayloads, noRTP, looped
        case timestampsOf8k, timestampsOf16k, timestampsOf44k, fastClock, slowClock
        case silentPeer, silentPeerInPCMU, silentPeerInPCMA, quietPeer, quietPeerInPCMU, quietPeerInPCMA, vanishes,
            silentProgram
        case stalledMachine

        var code: Finding.Code {
            switch self {
            case .nothingPasses: .nothingReceived
            case .onlyReportsPass, .peerDoesNotSend: .peerSendsNoSound
            case .nothingPassesBack: .nothingSentArrives
            case .loss, .burstLoss: .lossHere
            case .lossBack: .lossThere
            case .reordering: .reordering
            case .farAway: .longDelay
            case .wrongPayloadType, .wrongPayloadTypeHalf: .wrongPayloadType
            case .garbledPayloads: .wrongFormat
            case .noRTP, .looped: .noPackets
            case .timestampsOf8k, .timestampsOf16k, .timestampsOf44k: .wrongClockRate
            case .fastClock, .slowClock: .clockDrift
            case .silentPeer, .silentPeerInPCMU, .silentPeerInPCMA: .peerSilent
            case .quietPeer, .quietPeerInPCMU, .quietPeerInPCMA: .peerQuiet
            case .vanishes: .peerVanished
            case .silentProgram: .programSilent
            case .stalledMachine: .machineStalled
            }
        }

        /// How long the call takes, in seconds.
        var length: Double {
            switch self {
            case .fastClock, .slowClock: 70
            default: 30
            }
        }
    }

    @Test("Each fault has its name, and nothing else is named", arguments: Fault.allCases)
    func named(fault: Fault) throws {
        let found = try Self.findings(fault)
        let codes = Set(found.map(\.code))
        #expect(codes == [fault.code], "\(found)")
    }

    /// Calls without a fault.
    enum Clean: String, CaseIterable {
        case opus, pcmu, pcma, protected, discontinuous, someLoss, someJitter, someReordering, likeWebRTC, echo
        case smallDrift
    }

    @Test("A call without a fault has no finding on either side", arguments: Clean.allCases)
    func clean(kind: Clean) throws {
        let (left, right) = try Self.findings(kind)
        #expect(left == [] && right == [])
    }

    // MARK: - Calls

    private static let keys = {
        var generator = SeededGenerator(seed: 3)
        return (0..<2).map { _ in SRTPKey.random(.aesCM128HMACSHA1, using: &generator) }
    }()

    private static func protect(_ plan: inout MediaCallPlan) {
        let isLeft = plan.peer.localSSRC == 1
        plan.peer.protection = .keys(send: keys[isLeft ? 0 : 1], receive: keys[isLeft ? 1 : 0])
    }

    private static func narrow(_ plan: inout MediaCallPlan, _ codec: SoundCodec) {
        plan.codec = codec
        plan.peer.clockRate = 8_000
        plan.peer.sendPayloadType = codec == .pcmu ? 0 : 8
        plan.peer.receivePayloadType = codec == .pcmu ? 0 : 8
    }

    /// Both sides say something, unless the fault is that one does not.
    private static func speak(_ plan: inout MediaCallPlan) {
        plan.audio = AudioBehaviour(
            source: .tone(frequencyHz: plan.peer.localSSRC == 1 ? 440 : 600, levelDBFS: -12))
    }

    private static func findings(_ fault: Fault) throws -> [Finding] {
        var call = try VirtualCall { plan in
            speak(&plan)
            let isLeft = plan.peer.localSSRC == 1
            switch fault {
            case .silentPeerInPCMU, .quietPeerInPCMU: narrow(&plan, .pcmu)
            case .silentPeerInPCMA, .quietPeerInPCMA: narrow(&plan, .pcma)
            default: break
            }
            switch (fault, isLeft) {
            case (.silentPeer, true), (.silentPeerInPCMU, true), (.silentPeerInPCMA, true):
                plan.audio = AudioBehaviour(source: .silence)
            // As loud as a quiet room.
            case (.quietPeer, true), (.quietPeerInPCMU, true), (.quietPeerInPCMA, true):
                plan.audio = AudioBehaviour(source: .tone(frequencyHz: 300, levelDBFS: -72))
            case (.silentProgram, false): plan.audio = AudioBehaviour(source: .program)
            default: break
            }
        }
        if fault == .peerDoesNotSend { call.left.pointee.setDirection(sends: false, receives: true) }
        call.path = path(fault)
        call.rewrite = rewriting(fault)
        if fault == .stalledMachine {
            for _ in 0..<20 {
                call.turn = .milliseconds(20)
                try call.run(seconds: 1)
                call.turn = .seconds(1)
                try call.run(seconds: 1)
            }
        } else {
            try call.run(seconds: fault.length)
        }
        return findings(call.reports.right, at: call.now, source: fault == .silentProgram ? "program" : "tone")
    }

    private static func findings(_ kind: Clean) throws -> (left: [Finding], right: [Finding]) {
        var call = try VirtualCall { plan in
            speak(&plan)
            switch kind {
            case .pcmu: narrow(&plan, .pcmu)
            case .pcma: narrow(&plan, .pcma)
            case .protected: protect(&plan)
            case .discontinuous: plan.encoder.dtx = true
            case .echo where plan.peer.localSSRC == 2: plan.audio = AudioBehaviour(source: .echo)
            case .likeWebRTC:
                plan.peer.repairsLoss = true
                plan.peer.usesReducedSizeRTCP = true
                plan.peer.headerExtensions.transportSequenceIdentifier = 3
                plan.peer.headerExtensions.remoteTransportSequenceIdentifier = 3
            case .opus, .echo, .someLoss, .someJitter, .someReordering, .smallDrift: break
            }
        }
        var random = SeededGenerator(seed: 11)
        var count = 0
        call.path = { datagram in
            count += 1
            var delay = Duration.milliseconds(20)
            switch kind {
            case .someLoss where !datagram.isControl && Int.random(in: 0..<100, using: &random) == 0: return nil
            case .someJitter: delay += .milliseconds(Int.random(in: 0...15, using: &random))
            case .someReordering where count % 60 == 0: delay += .milliseconds(50)
            default: break
            }
            return datagram.sentAt.advanced(by: delay)
        }
        if kind == .smallDrift { call.rewrite = clock(by: 1.000_1) }
        try call.run(seconds: 70)
        let (left, right) = call.reports
        return (
            findings(left, at: call.now, source: "tone"),
            findings(right, at: call.now, source: kind == .echo ? "echo" : "tone")
        )
    }

    private static func findings(_ report: MediaReport, at end: Instant, source: String) -> [Finding] {
        let length = Int(Instant.zero.duration(to: end).milliseconds)
        var facts = CallFacts(.incoming, peer: "alice", reason: .completed, endedBy: .remote, duration: length)
        (facts.answeredAfter, facts.establishedAfter, facts.flowingAfter) = (0, 0, 100)
        facts.media = MediaFacts(report, source: source, at: end)
        return CallDiagnosis(facts).findings
    }

    // MARK: - Faults

    private static func path(_ fault: Fault) -> (VirtualDatagram) -> Instant? {
        var random = SeededGenerator(seed: 5)
        var (count, burst) = (0, 0)
        return { datagram in
            let usual = datagram.sentAt.advanced(by: .milliseconds(20))
            let isSound = datagram.isFromLeft && !datagram.isControl
            if isSound { count += 1 }
            let second = Instant.zero.duration(to: datagram.sentAt).seconds
            switch fault {
            case .nothingPasses: return datagram.isFromLeft ? nil : usual
            case .onlyReportsPass: return isSound ? nil : usual
            case .nothingPassesBack: return datagram.isFromLeft ? usual : nil
            case .loss: return isSound && Int.random(in: 0..<10, using: &random) == 0 ? nil : usual
            case .burstLoss:
                guard isSound else { return usual }
                if burst == 0, Int.random(in: 0..<40, using: &random) == 0 { burst = 8 }
                guard burst > 0 else { return usual }
                burst -= 1
                return nil
            case .lossBack:
                let isBack = !datagram.isFromLeft && !datagram.isControl
                return isBack && Int.random(in: 0..<8, using: &random) == 0 ? nil : usual
            case .reordering: return isSound && count % 4 == 0 ? usual.advanced(by: .milliseconds(50)) : usual
            case .farAway: return datagram.sentAt.advanced(by: .milliseconds(450))
            case .vanishes: return datagram.isFromLeft && second >= 20 ? nil : usual
            default: return usual
            }
        }
    }

    private static func rewriting(_ fault: Fault) -> ((_ datagram: [UInt8], Bool, Bool) -> [UInt8])? {
        var count = 0
        func sound(_ change: @escaping (inout [UInt8]) -> Void) -> (_ datagram: [UInt8], Bool, Bool) -> [UInt8] {
            { datagram, isFromLeft, isControl in
                guard isFromLeft, !isControl else { return datagram }
                var datagram = datagram
                change(&datagram)
                return datagram
            }
        }
        switch fault {
        // The number of G.729: an unknown number of the dynamic range is taken for the codec's.
        case .wrongPayloadType: return sound { $0[1] = $0[1] & 0x80 | 18 }
        case .wrongPayloadTypeHalf:
            return sound {
                count += 1
                if count % 2 == 0 { $0[1] = $0[1] & 0x80 | 97 }
            }
        // Code 3 of RFC 6716 §3.2.5, with no frame.
        case .garbledPayloads: return sound { $0 = $0[..<12] + [0xFF, 0x00] }
        // A header that promises 15 contributing sources that are not there.
        case .noRTP: return sound { $0 = [$0[0] | 0x0F] + $0[1..<14] }
        case .looped: return sound { $0[11] = 2 }
        case .timestampsOf8k: return clock(by: 1 / 6.0)
        case .timestampsOf16k: return clock(by: 1 / 3.0)
        case .timestampsOf44k: return clock(by: 44_100 / 48_000.0)
        case .fastClock: return clock(by: 1.002)
        case .slowClock: return clock(by: 0.998)
        default: return nil
        }
    }

    /// Left's timestamps as those of a clock that is faster or slower.
    private static func clock(by factor: Double) -> (_ datagram: [UInt8], Bool, Bool) -> [UInt8] {
        var first: UInt32?
        return { datagram, isFromLeft, isControl in
            guard isFromLeft, !isControl else { return datagram }
            let timestamp = datagram[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            let begin = first ?? timestamp
            first = begin
            let scaled = begin &+ UInt32((Double(timestamp &- begin) * factor).rounded())
            return datagram[..<4] + [24, 16, 8, 0].map { UInt8(scaled >> $0 & 0xFF) } + datagram[8...]
        }
    }
}
