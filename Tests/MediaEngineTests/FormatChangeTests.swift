import AudioKit
import Playout
import Testing

@testable import CallMedia
@testable import MediaEngine

@Suite("Formats that change in a call")
struct FormatChangeTests {
    /// Formats under their usual numbers.
    private static func use(_ codec: SoundCodec, as number: UInt8, in plan: inout MediaCallPlan) {
        plan.codec = codec
        plan.peer.clockRate = codec == .opus ? 48_000 : 8_000
        plan.peer.sendPayloadType = number
        plan.peer.receivePayloadType = number
    }

    private static func number(_ codec: SoundCodec) -> UInt8 {
        switch codec {
        case .opus: 111
        case .pcmu: 0
        case .pcma: 8
        }
    }

    /// The answering side changes with its answer, the other when that has come; media takes its time all the while.
    private static func change(
        _ call: inout VirtualCall, _ edit: (inout MediaCallPlan) -> Void
    ) throws {
        try call.change(call.right, edit)
        try call.run(seconds: 0.08)
        try call.change(call.left, edit)
    }

    /// What was not played as it was sent.
    private static func flaws(_ report: MediaReport) -> [Int] {
        [
            report.playout.samplesConcealed, report.playout.samplesSilent, report.playout.packetsLost,
            report.playout.packetsLate, report.playout.packetsDiscarded, report.playout.resets,
            report.peer.dropped.total, report.call.payloadsMalformed,
        ]
    }

    @Test("Opus continues under another number without a gap, while packets of both are on their way")
    func anotherNumber() throws {
        var call = try VirtualCall()
        call.travel = .milliseconds(60)
        try call.run(seconds: 4)
        let before = call.reports
        try Self.change(&call) { Self.use(.opus, as: 96, in: &$0) }
        try call.run(seconds: 4)
        let after = call.reports
        #expect(Self.flaws(after.right) == Self.flaws(before.right))
        // The answer is not quicker than media here: what comes before it is under a number not yet agreed on.
        #expect(after.left.peer.dropped.unknownPayloadType <= 4)
        #expect(call.payloadTypes[96] ?? 0 > 190 && call.payloadTypes[111] ?? 0 > 190)
        #expect(after.right.peer.packetsReceived - before.right.peer.packetsReceived > 195)
    }

    @Test(
        "Another codec takes over without a gap, and the one before again", arguments: SoundCodec.allCases,
        SoundCodec.allCases)
    func anotherCodec(first: SoundCodec, second: SoundCodec) throws {
        var call = try VirtualCall { Self.use(first, as: Self.number(first), in: &$0) }
        call.travel = .milliseconds(60)
        try call.run(seconds: 4)
        let before = Self.flaws(call.reports.right)
        try Self.change(&call) { Self.use(second, as: Self.number(second), in: &$0) }
        try call.run(seconds: 4)
        #expect(Self.flaws(call.reports.right) == before)
        try Self.change(&call) { Self.use(first, as: Self.number(first), in: &$0) }
        try call.run(seconds: 4)
        #expect(Self.flaws(call.reports.right) == before)
        #expect(call.payloadTypes[Self.number(second)] ?? 0 > 190)
        #expect(call.reports.right.peer.jitterNanoseconds < 5_000_000, "jitter is counted in the packets' own ticks")
        let delay = call.reports.right.playout.playoutDelayNanoseconds
        #expect(delay < 100_000_000, "the changes have not let the delay grow")
    }

    @Test("Under loss nothing worse than the loss is heard of a change", arguments: [SoundCodec.pcmu, .opus])
    func underLoss(second: SoundCodec) throws {
        let first: SoundCodec = second == .opus ? .pcma : .opus
        var call = try VirtualCall { Self.use(first, as: Self.number(first), in: &$0) }
        call.travel = .milliseconds(60)
        call.loss = 0.1
        try call.run(seconds: 10)
        try Self.change(&call) { Self.use(second, as: Self.number(second), in: &$0) }
        let before = call.reports.right.playout
        try call.run(seconds: 10)
        let after = call.reports.right.playout
        #expect(after.resets == before.resets && after.packetsDiscarded == before.packetsDiscarded)
        #expect(after.samplesConcealed - before.samplesConcealed < 10 * 48_000 / 5)
    }

    @Test("Redundancy begins and ends with the agreement on it")
    func redundancy() throws {
        var call = try VirtualCall { $0.encoder.fec = false }
        call.loss = 0.1
        try call.run(seconds: 30)
        let without = call.payloadTypes[63]
        #expect(without == nil)
        try Self.change(&call) {
            $0.peer.redundancy = RedundancyFormat(sendPayloadType: 63, receivePayloadType: 63)
        }
        try call.run(seconds: 10)
        let with = call.payloadTypes[63] ?? 0
        #expect(with > 400, "the loss that is known counts at once")
        #expect(call.reports.right.playout.packetsRepaired > 20)
        try Self.change(&call) { $0.peer.redundancy = nil }
        try call.run(seconds: 10)
        #expect(call.payloadTypes[63] ?? 0 < with + 5)
        #expect(call.reports.right.peer.dropped.total == 0)
    }

    @Test(
        "Packets of another length follow from one to the next",
        arguments: [
            EncoderSettings.FrameDuration.tenMilliseconds, .fortyMilliseconds, .sixtyMilliseconds,
        ])
    func anotherLength(duration: EncoderSettings.FrameDuration) throws {
        var call = try VirtualCall()
        call.travel = .milliseconds(60)
        try call.run(seconds: 4)
        let before = call.reports.right
        try Self.change(&call) { $0.encoder.frameDuration = duration }
        try call.run(seconds: 6)
        let after = call.reports.right
        #expect(after.playout.packetsLost == 0 && after.playout.resets == 0 && after.peer.dropped.total == 0)
        let packets = after.peer.packetsReceived - before.peer.packetsReceived
        let expected = 6_000 / duration.rawValue
        #expect(abs(packets - expected) <= expected / 20 + 8)
    }

    @Test("A key that is under way is sent to its end as it began, and those that wait in the new ticks")
    func keyUnderWay() throws {
        var call = try VirtualCall {
            $0.peer.telephoneEvents = [.init(clockRate: 48_000, sendPayloadType: 110, receivePayloadType: 110)]
        }
        call.travel = .milliseconds(60)
        try call.run(seconds: 2)
        for code in UInt8(1)...3 { call.left.pointee.press(code) }
        try call.run(seconds: 0.06)
        try Self.change(&call) {
            Self.use(.pcmu, as: 0, in: &$0)
            $0.peer.telephoneEvents = [.init(clockRate: 8_000, sendPayloadType: 101, receivePayloadType: 101)]
        }
        try call.run(seconds: 2)
        var heard: [UInt8] = []
        var lengths: [Int32] = []
        while let digit = call.right.pointee.takeDigit() {
            heard.append(digit.code)
            lengths.append(digit.milliseconds)
        }
        #expect(heard == [1, 2, 3])
        #expect(lengths.allSatisfy { (90...110).contains($0) }, "\(lengths)")
        #expect(call.payloadTypes[110] ?? 0 > 0 && call.payloadTypes[101] ?? 0 > 0)
        #expect(call.reports.right.peer.dropped.total == 0)
    }

    @Test("Two changes in quick succession end with the second")
    func twoChanges() throws {
        var call = try VirtualCall {
            $0.peer.telephoneEvents = [.init(clockRate: 8_000, sendPayloadType: 101, receivePayloadType: 101)]
            Self.use(.pcmu, as: 0, in: &$0)
        }
        try call.run(seconds: 2)
        // A key holds the first back until the second has come.
        call.left.pointee.press(5)
        try call.run(seconds: 0.04)
        try call.change(call.right) { Self.use(.opus, as: 111, in: &$0) }
        try call.change(call.left) { Self.use(.opus, as: 111, in: &$0) }
        try call.change(call.right) { Self.use(.opus, as: 96, in: &$0) }
        try call.change(call.left) { Self.use(.opus, as: 96, in: &$0) }
        try call.run(seconds: 2)
        #expect(call.payloadTypes[111] == nil && call.payloadTypes[96] ?? 0 > 80)
        #expect(call.reports.left.call.encodeErrors == 0)
        #expect(call.reports.right.peer.dropped.total <= 4, "what was sent two changes ago is of no known format")
    }

    @Test("Packets are asked for again from when both have agreed on it")
    func repair() throws {
        var call = try VirtualCall()
        call.travel = .milliseconds(20)
        call.turn = .milliseconds(5)
        call.loss = 0.05
        try call.run(seconds: 5)
        #expect(call.reports.right.peer.feedback.packetsRequested == 0)
        try Self.change(&call) { $0.peer.repairsLoss = true }
        try call.run(seconds: 20)
        #expect(call.reports.right.peer.feedback.packetsRequested > 0)
        #expect(call.reports.left.peer.feedback.packetsResent > 0)
    }
}
