@testable import AudioDevices
import CThreadCounters
import CScriptedCard
import CardSupport
import Foundation
@testable import Loopback
import LoopbackAnalysis
import Realtime
import Core

/// A measurement of the scripted card through the real libasound, in the test's time.
final class DuplexBench {
    let card: ScriptedCard
    private var loop: DuplexLoop<ALSACard>
    private var stream: LoopbackStream
    private var signal: AudioRing.Producer
    private var captured: AudioRing.Consumer
    private var notes: SPSCRing<DuplexNote>.Consumer
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private(set) var told: [DuplexNote] = []
    /// What was captured so far, at 48 kHz.
    private(set) var samples: [Int16] = []
    /// What the loop and libasound have allocated in steps.
    private(set) var allocations: Int64 = 0
    /// How late the card's thread is at the most, and how unevenly.
    var jitterNanoseconds: Int64 = 0
    /// Whether the program that measures keeps up.
    var isFeeding = true
    /// Called before each step.
    var script: (DuplexBench) -> Void = { _ in }
    private var random: UInt64 = 1

    private let grants: (playback: CardGrant, capture: CardGrant)
    private let width: Int
    /// What each channel has brought back.
    private var channels: ChannelRecorder

    init?(
        _ card: ScriptedCard, _ test: LoopbackSignal, followedBy following: [Int16] = [],
        bufferMilliseconds: Double? = nil, hasPriority: Bool = true, keepsPairs: Bool = false
    ) {
        self.card = card
        card.control.now_ns = now.nanoseconds
        var alsa = ALSACard(AudioDeviceConfiguration(playback: "card", capture: "card"))
        guard alsa.open() == nil, let playing = alsa.grant(.playback), let capturing = alsa.grant(.capture),
            let stream = LoopbackStream(
                test, followedBy: following, playbackRate: playing.rate, captureRate: capturing.rate)
        else { return nil }
        grants = (playing, capturing)
        let rate = playing.rate
        width = keepsPairs && capturing.channels == 2 ? 2 : 1
        channels = ChannelRecorder(test, outputs: playing.channels, inputs: width)
        self.stream = stream
        let played = AudioRing(capacity: 2 * rate)
        let heard = AudioRing(capacity: 2 * rate * width)
        let ring = SPSCRing<DuplexNote>(capacity: 4_096)
        let ends = DuplexEnds(signal: played.consumer, captured: heard.producer, notes: ring.producer)
        signal = played.producer
        captured = heard.consumer
        notes = ring.consumer
        guard
            let made = DuplexLoop(
                alsa, ends, bufferMilliseconds: bufferMilliseconds, hasPriority: hasPriority,
                solo: SoloPlan(test, rate: rate), keepsPairs: keepsPairs, at: now)
        else { return nil }
        loop = made
    }

    var statistics: DuplexStatistics { stream.statistics }
    var alignment: BlockAlignment { stream.alignment }
    var interruptions: [Range<Int>] { stream.interruptions }
    var clockRate: Double { stream.clockRate }
    /// What there is to say of the card.
    var facts: CardFacts {
        CardFacts(
            configuration: AudioDeviceConfiguration(playback: "card", capture: "card"), playback: grants.playback,
            capture: grants.capture, statistics: statistics)
    }
    /// The number of gaps that this program's own thread caused.
    func ownGaps(_ timing: TimingSummary) -> Int { stream.ownGaps(at: timing.events.map(\.position)) }
    /// Frames that the buffer to play from is filled up to.
    var queueFrames: Int { loop.queueFrames }

    func forgetAllocations() { allocations = 0 }

    /// The card's thread is not run for so long.
    func holdUp(milliseconds: Int64) { now = now.advanced(byNanoseconds: milliseconds * 1_000_000) }

    /// Runs until so many samples have been captured.
    func run(samples count: Int) {
        while samples.count < count {
            feed()
            script(self)
            card.control.now_ns = now.nanoseconds
            let before = handset_test_allocations()
            loop.step(at: now)
            allocations += handset_test_allocations() - before
            collect()
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let late = jitterNanoseconds == 0 ? 0 : Int64(random >> 33) % jitterNanoseconds
            now = now.advanced(byNanoseconds: 500_000 + late)
        }
    }

    private func feed() {
        while isFeeding, signal.space > 9_600 {
            let frames = stream.frames(4_800)
            _ = signal.write(frames.span)
        }
    }

    private func collect() {
        while let note = notes.pop() {
            stream.take(note)
            if case .exchanged = note.event { continue }
            told.append(note)
        }
        var block = [Int16](repeating: 0, count: 9_600)
        var room = block.mutableSpan
        let count = captured.read(into: &room)
        guard count > 0 else { return }
        guard width == 2 else {
            samples += stream.samples(of: Array(block.prefix(count)))
            return
        }
        let both = stream.samples(ofPairs: Array(block.prefix(count)))
        samples += both.mean
        channels.add(both.left, both.right)
    }

    /// Runs a whole measurement.
    func measure(_ test: LoopbackSignal) -> LoopbackMeasurement {
        run(samples: test.count + 24_000)
        var measurement = LoopbackAnalyser(test).analyse(samples, interruptions: interruptions)
        measurement.timing = measurement.timing.aligned(to: alignment)
        channels.measure(samples, test, maximumDelay: 96_000, interruptions: interruptions, &measurement)
        return measurement
    }
}
