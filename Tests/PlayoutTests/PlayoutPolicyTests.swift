import Playout
import Testing

@Suite struct PlayoutPolicyTests {
    struct Case: CustomTestStringConvertible {
        var testDescription: String
        var expected: PlayoutDecision
        var status: PlayoutStatus

        init(_ name: String, _ expected: PlayoutDecision, _ change: (inout PlayoutStatus) -> Void) {
            testDescription = name
            self.expected = expected
            status = PlayoutStatus()
            change(&status)
        }
    }

    static let sources = [
        Case("the next packet is there: play it", .play) { $0.next = .ready },
        Case("nothing is there: conceal the whole frame", .conceal(samples: 960)) { _ in },
        Case("half a frame waits and nothing follows: stretch it", .decelerate(atLeast: 480, about: 480)) {
            $0.waitingSamples = 480
        },
        Case("stretching did not fill the frame: conceal the rest", .conceal(samples: 300)) {
            $0.waitingSamples = 660
            $0.hasStretched = true
        },
        Case("too little waits to stretch: conceal the rest", .conceal(samples: 860)) { $0.waitingSamples = 100 },
        Case("the sender is silent: comfort noise", .comfortNoise(samples: 960)) { $0.isDiscontinuous = true },
        Case("sound after silence is due: begin it", .jump(samples: 9_600)) {
            $0.next = .afterSilence(samples: 9_600)
        },
        Case("sound after silence is not due yet: more comfort noise", .comfortNoise(samples: 960)) {
            $0.next = .afterSilence(samples: 9_600)
            $0.excessSamples = -600
        },
        Case("a lost packet that FEC restores: restore it", .recoverWithFEC(samples: 960)) {
            $0.next = .afterLoss(samples: 960, restorable: 960)
        },
        Case("two lost, one restorable: conceal the first", .coverLoss(samples: 960)) {
            $0.next = .afterLoss(samples: 1_920, restorable: 960)
        },
        Case("lost without FEC: conceal it for good", .coverLoss(samples: 960)) {
            $0.next = .afterLoss(samples: 960, restorable: 0)
        },
        Case(
            "a packet came after its place was made up, and the delay is long enough: pass over it", .skip(samples: 960)
        ) {
            $0.next = .ready
            $0.heldSamples = 960
            $0.excessSamples = 960
        },
        Case("a packet came late, and more delay is wanted: play it late", .play) {
            $0.next = .ready
            $0.heldSamples = 960
            $0.excessSamples = 0
        },
        Case("after a long stall everything is played", .play) {
            $0.next = .ready
            $0.heldSamples = 9_600
            $0.excessSamples = 9_600
        },
        Case("what was made up turns out lost: it stands for the lost", .skip(samples: 960)) {
            $0.next = .afterLoss(samples: 960, restorable: 960)
            $0.heldSamples = 960
            $0.excessSamples = 960
        },
        Case("after an outage: move past it at once", .jump(samples: 48_000)) {
            $0.next = .afterLoss(samples: 480_000, restorable: 0)
            $0.heldSamples = 48_000
            $0.excessSamples = 60_000
        },
        Case("lost beyond the maximum delay: move past it", .jump(samples: 48_000)) {
            $0.next = .afterLoss(samples: 48_000, restorable: 960)
            $0.overflowSamples = 96_000
        },
        Case("lost, in part beyond the maximum delay: move past that part", .jump(samples: 200)) {
            $0.next = .afterLoss(samples: 1_920, restorable: 0)
            $0.overflowSamples = 200
        },
        Case("lost, but the path may have become longer: conceal it", .coverLoss(samples: 960)) {
            $0.next = .afterLoss(samples: 1_920, restorable: 0)
            $0.overflowSamples = 200
            $0.mayHaveStepped = true
        },
        Case("beyond the maximum delay, with more behind: throw away the oldest", .discard) {
            $0.next = .ready
            $0.readySamples = 4_800
            $0.nextSamples = 960
            $0.overflowSamples = 200
        },
        Case("beyond the maximum delay, a long packet alone: play it", .play) {
            $0.next = .ready
            $0.readySamples = 2_880
            $0.nextSamples = 2_880
            $0.overflowSamples = 200
        },
        Case("beyond the maximum delay, with less behind than a pull takes: play it", .play) {
            $0.next = .ready
            $0.readySamples = 1_440
            $0.nextSamples = 960
            $0.overflowSamples = 200
        },
        Case("beyond the maximum delay, but the path may have become longer: play it", .play) {
            $0.next = .ready
            $0.readySamples = 4_800
            $0.nextSamples = 960
            $0.overflowSamples = 200
            $0.mayHaveStepped = true
        },
    ]

    static let stretching = [
        Case("a full frame on target: hand it out", .handOut) { $0.waitingSamples = 960 },
        Case("too much delay in silence: take out all that one cut can", .accelerate(atMost: 720)) {
            $0.waitingSamples = 960
            $0.readySamples = 960
            $0.excessSamples = 960
            $0.isSilent = true
        },
        Case("too much delay in a closure: wait for silence", .handOut) {
            $0.waitingSamples = 960
            $0.readySamples = 960
            $0.excessSamples = 960
            $0.isQuiet = true
            $0.samplesOffTarget = 48_000
        },
        Case("no silence for long: take it out of a closure", .accelerate(atMost: 720)) {
            $0.waitingSamples = 960
            $0.readySamples = 960
            $0.excessSamples = 960
            $0.isQuiet = true
            $0.samplesOffTarget = 48_960
        },
        Case("too much delay in speech: wait for a pause", .handOut) {
            $0.waitingSamples = 960
            $0.readySamples = 960
            $0.excessSamples = 960
            $0.samplesSinceStretch = 48_000
        },
        Case("no pause for long: take it out of speech", .accelerate(atMost: 720)) {
            $0.waitingSamples = 960
            $0.readySamples = 960
            $0.excessSamples = 960
            $0.samplesSinceStretch = 48_000
            $0.samplesOffTarget = 96_000
        },
        Case("far too much delay: hurry in speech too", .accelerate(atMost: 720)) {
            $0.waitingSamples = 960
            $0.readySamples = 5_760
            $0.excessSamples = 5_000
            $0.samplesSinceStretch = 960
        },
        Case("never more than the excess, so that no packet comes too late for it", .accelerate(atMost: 200)) {
            $0.waitingSamples = 960
            $0.readySamples = 960
            $0.excessSamples = 200
            $0.isSilent = true
        },
        Case("too little to choose a cut from, and more is there: decode ahead", .play) {
            $0.frameSamples = 480
            $0.waitingSamples = 480
            $0.readySamples = 480
            $0.excessSamples = 960
            $0.isSilent = true
        },
        Case("far too much delay, but the path may have become longer: leave it whole", .handOut) {
            $0.waitingSamples = 960
            $0.readySamples = 5_760
            $0.excessSamples = 5_000
            $0.samplesSinceStretch = 960
            $0.mayHaveStepped = true
        },
        Case("nothing behind the frame: leave it whole", .handOut) {
            $0.waitingSamples = 960
            $0.excessSamples = 960
            $0.isSilent = true
        },
        Case(
            "too little delay in a closure: put in what is missing, which is urgent",
            .decelerate(atLeast: 0, about: 480)
        ) {
            $0.waitingSamples = 960
            $0.excessSamples = -480
            $0.isQuiet = true
        },
        Case("too little delay in speech for a while: put it in", .decelerate(atLeast: 0, about: 720)) {
            $0.waitingSamples = 960
            $0.excessSamples = -960
            $0.samplesSinceStretch = 9_600
            $0.samplesOffTarget = 24_000
        },
        Case("one stretch a pull is enough", .handOut) {
            $0.waitingSamples = 960
            $0.excessSamples = -960
            $0.isSilent = true
            $0.hasStretched = true
        },
    ]

    @Test("Where the frame is not full, the policy finds the right source of sound", arguments: sources)
    func source(_ example: Case) {
        #expect(PlayoutPolicy.decide(example.status) == example.expected)
    }

    @Test("Where the frame is full, the policy steers the delay without being heard", arguments: stretching)
    func stretch(_ example: Case) {
        #expect(PlayoutPolicy.decide(example.status) == example.expected)
    }
}
