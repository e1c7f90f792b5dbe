import Foundation
import Loopback
import LoopbackAnalysis
import TestSupport
import Testing

/// What a report says is wrong with a path.
@Suite("Names of faults")
struct PathFaultTests {
    private static let signal = LoopbackSignal(carrierSeconds: 1.5, tonesHz: [997, 97, 9_973], channels: true)

    /// How many paths without a fault, and with each, are measured.
    private static let isNight = ProcessInfo.processInfo.environment["HANDSET_NIGHTLY"] != nil
    private static let cleanSeeds = isNight ? 200 : 4
    private static let faultySeeds = isNight ? 8 : 1

    private static let played = signal.samples(0..<signal.count)

    private static func run(_ fault: FaultyPath.Fault?, seed: UInt64) -> LoopbackRun {
        let path = FaultyPath(fault, seed: seed)
        let measurement = LoopbackAnalyser(signal, maximumDelay: 24_000).analyse(path.capture(played))
        var run = LoopbackRun(mode: .device, startedAt: "2025-06-01T12:00:00Z", measurement: measurement)
        guard fault?.isOfWires == true else { return run }
        if case .measured(let figures) = ChannelAnalysis(signal, maximumDelay: 9_600).analyse(inputs(path), outputs: 2)
        {
            run.measurement.channels = figures
        }
        return run
    }

    /// What either input hears while either output plays alone, 20 ms later.
    private static func inputs(_ path: FaultyPath) -> [[Int16]] {
        let start = ChannelAnalysis.start(signal)
        let played = Self.played[start...].map(Double.init)
        let (left, right) = (signal.soloRange(.left), signal.soloRange(.right))
        return [\(Double, Double).0, \(Double, Double).1].map { input in
            var heard = [Int16](repeating: 0, count: played.count + 24_000)
            for (index, value) in played.enumerated() {
                let fromLeft = right?.contains(start + index) == true ? 0 : path.wires.left[keyPath: input]
                let fromRight = left?.contains(start + index) == true ? 0 : path.wires.right[keyPath: input]
                heard[index + 960] = Int16(max(-32_768, min(32_767, (value * (fromLeft + fromRight) * 0.7).rounded())))
            }
            return heard
        }
    }

    private static let names: [(FaultyPath.Fault, PathFault.Name)] = [
        (.lowPass3600, .band), (.lowPass7200, .band), (.lowPass11000, .band), (.highPass400, .band),
        (.resampled16k, .band), (.clippedAtFullScale, .clipping), (.clippedBelow, .clipping),
        (.clippedOneSide, .clipping), (.softClipping, .distortion), (.crossover, .distortion), (.offset, .offset),
        (.hum50, .hum), (.hum60, .hum), (.whistle, .whistle), (.noise, .noise), (.quiet, .quiet),
        (.gainControl, .gainControl), (.noiseSuppression, .noiseSuppression), (.levelStep, .levelStep),
        (.inverted, .inverted), (.oneInverted, .oppositePolarity), (.swapped, .swapped), (.crosstalk, .crosstalk),
        (.rate44For48, .wrongSpeed), (.rate48For44, .wrongSpeed), (.eightBits, .coarse), (.companded, .coarse),
        (.echo, .echo), (.longEcho, .echo), (.gaps, .gaps), (.staleBlocks, .staleBlocks),
        (.lostSamples, .lostSamples), (.repeatedSamples, .repeatedSamples), (.clicks, .clicks), (.jitter, .jitter),
        (.drift, .drift), (.longDelay, .delay), (.silence, .noSound), (.otherSound, .otherSound),
    ]

    @Test("Each fault of a path fails a run and is named first", arguments: names, 1...UInt64(faultySeeds))
    func named(_ pair: (fault: FaultyPath.Fault, name: PathFault.Name), seed: UInt64) {
        let (fault, name) = pair
        let run = Self.run(fault, seed: seed)
        let verdict = LoopbackVerdict(run)
        // Without the response, which a run on a card plays again, gain control and noise suppression are alike.
        let isUnclear =
            run.measurement.withheld.contains { $0.figure == .response }
            && [.gainControl, .noiseSuppression].contains(fault)
        let names = isUnclear ? [name, .unsteadyLevel] : [name]
        let failed = verdict.checks.filter { $0.outcome == .failed }.map { "\($0.key): \($0.measured)" }
        #expect(!verdict.isPass)
        #expect(
            verdict.faults.first(where: \.isFailure).map { names.contains($0.name) } == true,
            "\(fault) \(verdict.sentence) \(verdict.faults.map(\.name.rawValue)) failed: \(failed)")
    }

    @Test("Every fault that the tests can make has a name")
    func complete() {
        #expect(Set(Self.names.map(\.0)) == Set(FaultyPath.Fault.allCases))
    }

    @Test("A path without a fault passes, and nothing is withheld", arguments: 1...UInt64(cleanSeeds))
    func clean(seed: UInt64) {
        let run = Self.run(nil, seed: seed)
        let verdict = LoopbackVerdict(run)
        #expect(verdict.isPass, "\(verdict.sentence)")
        #expect(verdict.faults.isEmpty, "\(verdict.sentence)")
        #expect(run.measurement.withheld.isEmpty, "\(run.measurement.withheld)")
    }
}
