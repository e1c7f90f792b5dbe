import Foundation
import Loopback
import LoopbackAnalysis
import TestSupport
import Testing

/// Two channels from a card's outputs to its inputs with one kind of damage.
private struct DamagedPair {
    enum Damage {
        case leftSofter6, rightSofter20, treble, commonClicks, shifted5, shiftedDown3, square400, wow, slow
        case rightLate, leftLate10, fade, tremolo100, highPass500, swappedAndInverted
    }

    let damage: Damage
    var left: [Double]
    var right: [Double]

    static let signal = LoopbackSignal(carrierSeconds: 2, channels: true)
    private static let played = signal.samples(0..<signal.count)

    init(_ damage: Damage, seed: UInt64) {
        self.damage = damage
        var random = SeededGenerator(seed: seed &* 31)
        let delay = 400 + Int(seed) * 137
        let gain = 1 - 0.08 * Double(seed % 5)
        let (onLeft, onRight) = (Self.signal.soloRange(.left), Self.signal.soloRange(.right))
        left = [Double](repeating: 0, count: Self.played.count + 14_400)
        right = left
        for (number, value) in Self.played.enumerated() {
            if onRight?.contains(number) != true { left[number + delay] = gain * Double(value) }
            if onLeft?.contains(number) != true { right[number + delay] = gain * Double(value) }
        }
        damageBoth(seed: seed)
        for index in left.indices {
            left[index] += 2 * random.normal()
            right[index] += 2 * random.normal()
        }
    }

    private mutating func damageBoth(seed: UInt64) {
        switch damage {
        case .leftSofter6: left = left.map { $0 * 0.5 }
        case .rightSofter20: right = right.map { $0 * 0.1 }
        case .rightLate: right = Self.late(right, 48)
        case .leftLate10: left = Self.late(left, 480)
        case .swappedAndInverted: (left, right) = (right, left.map { -$0 })
        default:
            left = changed(left, seed)
            right = changed(right, seed)
        }
    }

    private static func value(_ sound: [Double], _ place: Double) -> Double {
        let whole = Int(place)
        let part = place - Double(whole)
        return sound[whole] * (1 - part) + (whole + 1 < sound.count ? sound[whole + 1] : 0) * part
    }

    private static func late(_ sound: [Double], _ count: Int) -> [Double] {
        [Double](repeating: 0, count: count) + sound.dropLast(count)
    }

    /// What happens to both channels alike.
    private func changed(_ sound: [Double], _ seed: UInt64) -> [Double] {
        var sound = sound
        func angle(_ hertz: Double, _ index: Int) -> Double { 2 * Double.pi * hertz * Double(index) / 48_000 }
        switch damage {
        case .treble:
            // −10 dB far above 3 kHz.
            let k = tan(angle(3_000, 1) / 2)
            var (last, low) = (0.0, 0.0)
            for index in sound.indices {
                low = (k * (sound[index] + last) + (1 - k) * low) / (1 + k)
                last = sound[index]
                sound[index] = 0.3 * last + 0.7 * low
            }
        case .commonClicks:
            for index in stride(from: 40_000 + Int(seed) * 700, to: sound.count, by: 16_000) { sound[index] += 16_384 }
        case .shifted5: sound = Self.shifted(sound, 5)
        case .shiftedDown3: sound = Self.shifted(sound, -3)
        case .square400: for index in sound.indices { sound[index] += sin(angle(400, index)) < 0 ? -131 : 131 }
        case .wow:
            let original = sound
            for index in 300..<sound.count {
                sound[index] = Self.value(original, Double(index) - 150 - 100 * sin(angle(0.5, index) + Double(seed)))
            }
        case .slow:
            let original = sound
            for index in sound.indices { sound[index] = Self.value(original, Double(index) / 1.005) }
        case .fade: for index in sound.indices { sound[index] *= pow(10, -Double(index) / 48_000 / 20) }
        case .tremolo100: for index in sound.indices { sound[index] *= (1 + 0.5 * sin(angle(100, index))) / 1.5 }
        case .highPass500:
            // Butterworth, of order 2.
            let k = tan(angle(500, 1) / 2)
            let norm = 1 / (1 + k * 2.0.squareRoot() + k * k)
            let (a1, a2) = (2 * (k * k - 1) * norm, (1 - k * 2.0.squareRoot() + k * k) * norm)
            var (x1, x2, y1, y2) = (0.0, 0.0, 0.0, 0.0)
            for index in sound.indices {
                let value = norm * (sound[index] - 2 * x1 + x2) - a1 * y1 - a2 * y2
                (x2, x1, y2, y1) = (x1, sound[index], y1, value)
                sound[index] = value
            }
        case .leftSofter6, .rightSofter20, .rightLate, .leftLate10, .swappedAndInverted: break
        }
        return sound
    }

    /// One sideband, by a filter of 90°: odd taps of 2/πn in Hamming's window.
    private static func shifted(_ sound: [Double], _ hertz: Double) -> [Double] {
        let reach = 255
        let taps = stride(from: 1, through: reach, by: 2).map { tap -> (Int, Double) in
            (tap, 2 / (Double.pi * Double(tap)) * (0.54 + 0.46 * cos(Double.pi * Double(tap) / Double(reach + 1))))
        }
        var moved = [Double](repeating: 0, count: sound.count)
        for index in reach..<sound.count - reach {
            let turned = taps.reduce(0.0) { $0 + $1.1 * (sound[index - $1.0] - sound[index + $1.0]) }
            let angle = 2 * Double.pi * hertz * Double(index) / 48_000
            moved[index] = sound[index] * cos(angle) - turned * sin(angle)
        }
        return moved
    }

    private static func captured(_ sound: some Sequence<Double>) -> [Int16] {
        sound.map { Int16(max(-32_768, min(32_767, $0.rounded()))) }
    }

    var run: LoopbackRun {
        let mean = Self.captured(zip(left, right).lazy.map { ($0 + $1) / 2 })
        var run = LoopbackRun(
            mode: .device, startedAt: "2025-06-01T12:00:00Z",
            measurement: LoopbackAnalyser(Self.signal, maximumDelay: 24_000).analyse(mean))
        let start = ChannelAnalysis.start(Self.signal)
        let inputs = [Self.captured(left.dropFirst(start)), Self.captured(right.dropFirst(start))]
        if case .measured(let figures) = ChannelAnalysis(Self.signal, maximumDelay: 9_600).analyse(inputs, outputs: 2) {
            run.measurement.channels = figures
        }
        return run
    }
}

/// What a report says is wrong with two channels.
@Suite("Names of damage of two channels")
struct DamagedPairTests {
    private static let seeds: ClosedRange<UInt64> =
        ProcessInfo.processInfo.environment["HANDSET_NIGHTLY"] != nil ? 1...8 : 1...2

    /// The name of a damage, and what its text contains.
    private struct Expected: Sendable {
        let damage: DamagedPair.Damage
        let name: PathFault.Name
        let words: String
    }

    private static let expectations: [Expected] = [
        Expected(damage: .leftSofter6, name: .channelImbalance, words: "The left channel is 6"),
        Expected(damage: .rightSofter20, name: .channelImbalance, words: "The right channel is 20"),
        Expected(damage: .commonClicks, name: .clicks, words: "clicks"),
        Expected(damage: .shifted5, name: .frequencyShift, words: "up by 5"),
        Expected(damage: .shiftedDown3, name: .frequencyShift, words: "down by 3"),
        Expected(damage: .slow, name: .wrongSpeed, words: "% too slow"),
        Expected(damage: .square400, name: .whistle, words: "tone near 400"),
        Expected(damage: .fade, name: .unsteadyLevel, words: "falls evenly, by 1"),
        Expected(damage: .tremolo100, name: .unsteadyLevel, words: "100 times a second"),
        Expected(damage: .highPass500, name: .band, words: "Band-limited"),
        Expected(damage: .swappedAndInverted, name: .oppositePolarity, words: "inverted"),
    ]

    private static func verdict(_ damage: DamagedPair.Damage, _ seed: UInt64) -> LoopbackVerdict {
        LoopbackVerdict(DamagedPair(damage, seed: seed).run)
    }

    @Test("A channel that is late fails the run", arguments: [DamagedPair.Damage.rightLate, .leftLate10])
    fileprivate func late(damage: DamagedPair.Damage) { #expect(!Self.verdict(damage, 1).isPass) }

    @Test(
        "Damage fails a run, and its own name comes first, with its figures", arguments: 0..<expectations.count, seeds)
    func named(index: Int, seed: UInt64) {
        let expected = Self.expectations[index]
        let verdict = Self.verdict(expected.damage, seed)
        let first = verdict.faults.first(where: \.isFailure)
        #expect(!verdict.isPass, "\(expected.damage)")
        #expect(
            first?.name == expected.name && first?.text.contains(expected.words) == true,
            "\(expected.damage): \(verdict.sentence)")
    }

    @Test("A treble that falls by 9 dB is a remark and no failure", arguments: seeds)
    func treble(seed: UInt64) {
        let verdict = Self.verdict(.treble, seed)
        #expect(verdict.isPass && verdict.faults.map(\.name) == [.uneven], "\(verdict.sentence)")
        #expect(verdict.sentence.hasPrefix("No fault found. Noticed: the treble is soft"), "\(verdict.sentence)")
    }

    @Test("A delay that swings by 2 ms is no wrong speed", arguments: seeds)
    func wow(seed: UInt64) {
        let verdict = Self.verdict(.wow, seed)
        #expect(!verdict.isPass)
        #expect(!verdict.faults.contains { $0.name == .wrongSpeed }, "\(verdict.sentence)")
    }

    @Test("Channels that are swapped, with one inverted, have both names", arguments: seeds)
    func swapped(seed: UInt64) {
        let verdict = Self.verdict(.swappedAndInverted, seed)
        #expect(Set(verdict.faults.map(\.name)) == [.oppositePolarity, .swapped], "\(verdict.sentence)")
    }

    @Test("Clicks on both channels are no crosstalk, and a filter makes no clicks", arguments: seeds)
    func effects(seed: UInt64) {
        let clicks = Self.verdict(.commonClicks, seed)
        #expect(!clicks.faults.contains { $0.name == .crosstalk }, "\(clicks.sentence)")
        let filter = Self.verdict(.highPass500, seed)
        #expect(!filter.faults.contains { $0.name == .clicks }, "\(filter.sentence)")
    }

    @Test("The check that the test signal came back reads as a sentence")
    func silence() {
        let signal = DamagedPair.signal
        let measurement = LoopbackAnalyser(signal, maximumDelay: 24_000)
            .analyse([Int16](repeating: 0, count: signal.count + 12_000))
        let run = LoopbackRun(mode: .device, startedAt: "2025-06-01T12:00:00Z", measurement: measurement)
        let check = LoopbackVerdict(run).checks.first
        #expect(check?.measured == "no" && check?.limit == "required")
    }
}
