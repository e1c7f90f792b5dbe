import Foundation
import LoopbackAnalysis
import TestSupport
import Testing

@Suite("Following the carrier")
struct CarrierTrackerTests {
    /// A second of carrier, which is all there is.
    static let signal = LoopbackSignal(soakWith: Carrier(seed: 7))
    static let carrierStart = 28_800
    static let length = 28_800 + 48_000
    /// With what the longest gap takes.
    private static let played = signal.samples(0..<length + longestGap)
    private static let longestGap = 61_000

    struct Run {
        var found: (delay: Double, isInverted: Bool)?
        var readings: [CarrierReading] = []
        var events: [LoopbackEvent] = []
    }

    static func run(
        _ channel: SyntheticChannel, extra: Int = 0, maximumDelay: Int = 24_000, piece: Int = 4_801
    ) -> Run {
        let captured = channel.capture(
            Array(played.prefix(length + extra)), count: length + extra + Int(channel.delay))
        return follow(captured, until: length + extra, maximumDelay: maximumDelay, piece: piece)
    }

    static func follow(_ captured: [Int16], until end: Int, maximumDelay: Int, piece: Int) -> Run {
        var tracker = CarrierTracker(
            carrier: signal.carrier, active: carrierStart..<end, maximumDelay: maximumDelay)
        var outbox: [CarrierFinding] = []
        for start in stride(from: 0, to: captured.count, by: piece) {
            tracker.add(captured.span.extracting(start..<min(start + piece, captured.count)), into: &outbox)
        }
        tracker.finish(into: &outbox)
        var run = Run()
        for finding in outbox {
            switch finding {
            case .found(_, let delay, let isInverted): run.found = (delay, isInverted)
            case .reading(let reading): run.readings.append(reading)
            case .event(let event): run.events.append(event)
            }
        }
        return run
    }

    @Test(
        "A delay is found to a hundredth of a sample, regardless of its fraction",
        arguments: [0.0, 480.25, 9_999.5, 23_000.9])
    func delay(_ delay: Double) throws {
        let run = Self.run(SyntheticChannel(delay: delay))
        let readings = run.readings.dropFirst(40)
        #expect(readings.count > 40)
        for reading in readings { #expect(abs(reading.delaySamples - delay) < 0.01) }
        #expect(run.events.isEmpty)
        #expect(run.found?.isInverted == false)
    }

    @Test("Clocks that are apart are followed", arguments: [-1_500.0, -1, 87, 1_500])
    func drift(_ ppm: Double) throws {
        let run = Self.run(SyntheticChannel(delay: 1_000.3, driftPPM: ppm))
        #expect(run.events.isEmpty, "\(run.events)")
        let last = try #require(run.readings.last)
        let truth = Double(last.position) + 1_000.3 - Double(last.position) / (1 + ppm * 1e-6)
        #expect(abs(last.delaySamples - truth) < 0.05, "\(last.delaySamples) for \(truth)")
        #expect(abs(last.rate * 1e6 - ppm) < 4, "\(last.rate * 1e6)")
    }

    @Test("Level and polarity are reported")
    func inverted() throws {
        let run = Self.run(SyntheticChannel(delay: 100, gain: -0.25))
        #expect(run.found?.isInverted == true)
        let last = try #require(run.readings.last)
        #expect(abs(last.gainDB - -12.04) < 0.7)
        #expect(last.likeness > 0.99)
        #expect(run.events.isEmpty)
    }

    struct Expectation: Sendable, CustomStringConvertible {
        var kind: LoopbackEvent.Kind
        var hole = 0
        var missing = 0
        var noise = 0.0
        var description: String { "\(kind) hole \(hole) missing \(missing)" }
    }

    @Test(
        "A gap or repeat is found to the sample, and nothing else",
        arguments: [
            Expectation(kind: .skip, missing: 1), Expectation(kind: .skip, missing: 2),
            Expectation(kind: .skip, missing: 48), Expectation(kind: .skip, missing: 480),
            Expectation(kind: .skip, missing: 4_000), Expectation(kind: .skip, missing: 9_000),
            Expectation(kind: .repeat, missing: -1), Expectation(kind: .repeat, missing: -5),
            Expectation(kind: .repeat, missing: -480), Expectation(kind: .repeat, missing: -960),
            Expectation(kind: .silence, hole: 24, missing: 24), Expectation(kind: .silence, hole: 480, missing: 480),
            Expectation(kind: .silence, hole: 480, missing: 0),
            Expectation(kind: .silence, hole: 3_000, missing: 2_000),
            Expectation(kind: .silence, hole: 30_000, missing: 30_000),
            Expectation(kind: .silence, hole: 30_000, missing: 30_777),
            Expectation(kind: .disturbance, hole: 960, missing: 960, noise: 2_000),
            Expectation(kind: .disturbance, hole: 100, missing: 0, noise: 2_000),
        ])
    func gaps(_ expected: Expectation) throws {
        // Each length meets another place within the blocks, and other clocks.
        let length = expected.hole + abs(expected.missing)
        let position = 60_000 + length * 37 % 480
        let ppm = [0, 150, -1_500][length % 3]
        var channel = SyntheticChannel(delay: 10_700.4, driftPPM: Double(ppm))
        channel.faults = [
            .init(position: position, hole: expected.hole, missing: expected.missing, noise: expected.noise)
        ]
        let run = Self.run(channel, extra: length)
        #expect(run.events.count == 1, "\(run.events)")
        let event = try #require(run.events.first)
        #expect(event.kind == expected.kind, "\(ppm) ppm: \(event)")
        #expect(abs(event.position - position) <= 2, "\(event.position) for \(position)")
        #expect(abs(event.holeSamples - expected.hole) <= 3, "\(event.holeSamples)")
        #expect(abs(event.missingSamples - expected.missing) <= 3, "\(event.missingSamples)")
        if expected.hole == 0 { #expect(event.holeSamples == 0 && event.missingSamples == expected.missing) }
    }

    @Test("Noise as loud as the carrier neither hides gaps of 10 ms nor makes any up")
    func noise() throws {
        var channel = SyntheticChannel(delay: 3_000.5, driftPPM: 40, noise: 2_300)
        channel.faults = [.init(position: 60_000, missing: 480), .init(position: 75_000, hole: 960, missing: 960)]
        let run = Self.run(channel)
        #expect(run.events.count == 2, "\(run.events)")
        #expect(run.events.first.map { abs($0.position - 60_000) <= 48 && abs($0.missingSamples - 480) <= 1 } == true)
        #expect(run.events.last.map { abs($0.position - 75_000) <= 100 && abs($0.holeSamples - 960) <= 100 } == true)
        let errors = run.readings.suffix(20).map {
            abs($0.delaySamples - (3_000.5 - 480 + Double($0.position) * 40e-6))
        }
        #expect(errors.allSatisfy { $0 < 0.5 }, "\(errors.max() ?? 0)")
    }

    @Test("A room's echoes and a small loudspeaker do not hide a lost sample")
    func room() throws {
        var channel = SyntheticChannel(delay: 500, noise: 20)
        channel.taps = [0.1, 0.5, 0.9, 0.3, -0.2, -0.1]
        for tap in 0..<60 { channel.taps.append(0.1 * pow(0.95, Double(tap)) * (tap % 3 == 0 ? 1 : -0.4)) }
        channel.faults = [.init(position: 65_000, missing: 1), .init(position: 70_500, hole: 200, missing: 200)]
        let run = Self.run(channel)
        #expect(run.events.map(\.missingSamples).first == 1)
        #expect(run.events.count == 2, "\(run.events)")
        #expect(run.events.allSatisfy { abs($0.position - 65_000) < 100 || abs($0.position - 70_500) < 100 })
    }

    @Test("What is found does not hang on the length of the pieces")
    func pieces() {
        var channel = SyntheticChannel(delay: 700.4, driftPPM: 100)
        channel.faults = [.init(position: 60_000, hole: 480, missing: 100)]
        let whole = Self.run(channel, piece: 1_000_000)
        let small = Self.run(channel, piece: 97)
        #expect(whole.readings == small.readings && whole.events == small.events && whole.events.count == 1)
    }

    @Test("Silence, and noise alone, are not taken for the carrier")
    func nothing() {
        var channel = SyntheticChannel(gain: 0)
        #expect(Self.run(channel, maximumDelay: 4_000).found == nil)
        channel.noise = 3_000
        #expect(Self.run(channel, maximumDelay: 4_000).found == nil)
    }

    @Test("A carrier that ends for good is a gap to its end")
    func endsEarly() throws {
        var channel = SyntheticChannel(delay: 100)
        channel.faults = [.init(position: 60_000, hole: 200_000)]
        let run = Self.run(channel)
        #expect(run.events.count == 1)
        let event = try #require(run.events.first)
        #expect(event.kind == .silence && abs(event.position - 60_000) <= 2)
        #expect(abs(event.position + event.holeSamples - Self.length - 100) <= 2)
    }
}
