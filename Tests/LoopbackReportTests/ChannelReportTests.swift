import Foundation
import JSON
import LoopbackAnalysis
import Loopback
import Testing

/// What reports say of a card's channels.
@Suite("Channels in reports of a loopback")
struct ChannelReportTests {
    private static let signal = LoopbackSignal(carrierSeconds: 1, tonesHz: [997], channels: true)

    private static let played = signal.samples(ChannelAnalysis.start(signal)..<signal.count)

    /// A run of a card whose inputs hear the outputs as `wires[output][input]` says.
    private static func run(_ wires: [[Double]], of whole: LoopbackRun = Recording.run) throws -> LoopbackRun {
        let start = ChannelAnalysis.start(signal)
        let (left, right) = (try #require(signal.soloRange(.left)), try #require(signal.soloRange(.right)))
        let inputs = wires[0].indices.map { input in
            (0..<played.count + 24_000).map { index -> Int16 in
                guard played.indices.contains(index - 960) else { return 0 }
                let number = start + index - 960
                let shares = [right.contains(number) ? 0 : 1.0, left.contains(number) ? 0 : 1.0]
                let share = zip(shares, wires).reduce(0) { $0 + $1.0 * $1.1[input] }
                return Int16((Double(played[index - 960]) * share).rounded())
            }
        }
        var run = LoopbackRun(mode: .device, startedAt: whole.startedAt, measurement: whole.measurement)
        let outcome = ChannelAnalysis(signal, maximumDelay: 9_600).analyse(inputs, outputs: wires.count)
        if case .measured(let figures) = outcome { run.measurement.channels = figures }
        return run
    }

    private func check(_ run: LoopbackRun, _ key: String) -> LoopbackVerdict.Check? {
        LoopbackVerdict(run).checks.first { $0.key == key }
    }

    @Test("Swapped wires fail by default, in words, JSON, HTML and KTAP, and pass if they are let be")
    func swapped() throws {
        var run = try Self.run([[0, 0.9], [0.9, 0]])
        let fault = try #require(check(run, "channel_faults"))
        #expect(fault.outcome == .failed && fault.measured == "1" && fault.advice.contains("change the plugs"))
        let object = try #require(run.json["channels"])
        #expect(object["swapped"] == .bool(true) && object["opposite_polarity"] == .bool(false))
        #expect(object["right"]?["played"]?.string == "left" && object["heard"]?.integer == 2)
        #expect(object["crosstalk_db"] == .null && object["crosstalk_at_most_db"] != .null)
        #expect(LoopbackHTML(run).text.contains("left and right are swapped"))
        #expect(TestReport(run).ktap.contains("not ok") && TestReport(run).ktap.contains("channel_faults"))
        run.thresholds.channelFaults = nil
        #expect(check(run, "channel_faults") == nil)
    }

    @Test("Channels that cancel each other in the mean of a call are given as the reason why nothing came back")
    func cancelled() throws {
        let run = try Self.run([[0.9, 0], [0, -0.9]], of: Recording.silent)
        let signal = try #require(check(run, "signal"))
        #expect(signal.outcome == .failed && signal.advice.contains("One channel has the sign turned"))
        #expect(run.json["channels"]?["opposite_polarity"] == .bool(true))
        #expect(run.json["channels"]?["right"]?["inverted"] == .bool(true))
    }

    @Test("Crosstalk and missing channels fail if a threshold asks, and are compared with a baseline")
    func thresholds() throws {
        var run = try Self.run([[0.9, 0.009], [0, 0.9]])
        #expect(check(run, "crosstalk") == nil && check(run, "channels") == nil)
        (run.thresholds.crosstalkDB, run.thresholds.channels) = (-50, 2)
        #expect(check(run, "crosstalk")?.outcome == .failed && check(run, "channels")?.outcome == .passed)
        run.thresholds.crosstalkDB = -35
        #expect(check(run, "crosstalk")?.outcome == .passed)
        run.baseline = try LoopbackBaseline(reading: Self.run([[0.9, 0.003], [0, 0.9]]).jsonText, mode: .device)
        #expect(check(run, "baseline_crosstalk")?.outcome == .failed)
        #expect(check(run, "baseline_gain_left")?.outcome == .passed)

        // Noise that hides it is no crosstalk, so it is not known to be too much. Of what an earlier run had, its lack fails.
        var hidden = try Self.run([[0.01, 0], [0, 0.01]])
        hidden.thresholds.crosstalkDB = -60
        #expect(check(hidden, "crosstalk")?.outcome == .unmeasured)
        hidden.thresholds.crosstalkDB = -20
        #expect(check(hidden, "crosstalk")?.outcome == .passed)
        hidden.baseline = run.baseline
        // The baseline knew better.
        #expect(check(hidden, "baseline_crosstalk")?.outcome == .failed)

        var dead = try Self.run([[0.9, 0], [0, 0]])
        dead.thresholds.channels = 2
        let missing = try #require(check(dead, "channels"))
        #expect(missing.outcome == .failed && missing.measured == "1" && missing.advice.contains("right one"))
        #expect(check(dead, "channel_faults")?.outcome == .passed)
    }

    @Test("Of a card with one channel a report says nothing, unless a threshold asks")
    func oneChannel() throws {
        var run = try Self.run([[0.9]])
        #expect(run.json["channels"] == nil && check(run, "channel_faults") == nil)
        #expect(!LoopbackHTML(run).text.contains("Channels one by one"))
        (run.thresholds.channels, run.thresholds.crosstalkDB) = (2, -40)
        #expect(check(run, "channels")?.outcome == .failed && check(run, "crosstalk")?.outcome == .unmeasured)
    }

    @Test("Figures of channels that were interrupted are withheld, and neither pass nor fail")
    func withheld() throws {
        var run = try Self.run([[0.9]])
        run.measurement.withheld = [Withheld(.channels, .interrupted(times: 1))]
        #expect(check(run, "channel_faults")?.measured == "withheld")
        #expect(run.jsonText.contains("\"channels\"") && LoopbackHTML(run).text.contains("Channels"))
    }
}
