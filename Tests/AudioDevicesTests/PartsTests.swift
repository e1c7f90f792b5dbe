@testable import AudioDevices
import Foundation
import TestSupport
import Testing
import Core

@Suite("The parts of a sound card's line")
struct PartsTests {
    @Test(
        "Samples come back from every format and number of channels as they went in",
        arguments: CardSampleFormat.allCases,
        [1, 2, 6])
    func formats(format: CardSampleFormat, channels: Int) {
        let frames = CardFrames(capacity: 8, format: format, channels: channels)
        let samples: [Int16] = [0, 1, -1, 256, -256, 12_345, .max, .min]
        frames.encode(samples.span, from: 0, to: samples.count)
        var back = [Int16](repeating: 99, count: samples.count)
        var space = back.mutableSpan
        frames.decode(&space, count: samples.count)
        let expected = format == .u8 ? samples.map { ($0 >> 8) << 8 } : samples
        #expect(back == expected)
    }

    @Test("Floating-point samples that do not fit, or are no numbers, do no harm")
    func wildFloats() {
        let frames = CardFrames(capacity: 4, format: .float32LE, channels: 1)
        for (index, value) in [Float.nan, .infinity, -.infinity, 1e30].enumerated() {
            frames.base.storeBytes(of: value.bitPattern, toByteOffset: index * 4, as: UInt32.self)
        }
        var back = [Int16](repeating: 99, count: 4)
        var space = back.mutableSpan
        frames.decode(&space, count: 4)
        #expect(back == [0, 32_767, -32_768, 32_767])
    }

    @Test("The loop learns drift without the delay leaving 2 ms, and its rate changes no faster than it may")
    func driftLoop() {
        var loop = DriftLoop(targetSamples: 1_000)
        var (delay, worst, last, steepest) = (1_000.0, 0.0, 0.0, 0.0)
        for step in 0..<60_000 {
            // 700 ppm at first; after five minutes another 100.
            let drift = step < 30_000 ? 700.0 : 800.0
            delay += 480e-6 * (drift - loop.correctionPPM)
            if loop.add(delaySamples: delay, at: Instant(nanoseconds: Int64(step) * 10_000_000)) == .correct {
                if step > 3_000 { steepest = max(steepest, abs(loop.correctionPPM - last)) }
                last = loop.correctionPPM
            }
            worst = max(worst, abs(delay - 1_000))
        }
        #expect(worst < 96)
        #expect(steepest <= 17, "\(steepest) ppm in a tenth of a second")
        #expect(abs(loop.driftPPM - 800) < 1)
        #expect(abs(delay - 1_000) < 1)
    }

    // With the lines themselves and libasound a day takes minutes: `scripts/bench drift`.
    @Test(
        "Over a day of a clock that is far off and wanders, and measurements that scatter, the delay stays within 2 ms",
        arguments: [1_500.0, -1_500])
    func driftLoopOverADay(ppm: Double) {
        var loop = DriftLoop(targetSamples: 1_000)
        var generator = SeededGenerator(seed: 3)
        var (delay, worst, squares) = (1_000.0, 0.0, 0.0)
        let steps = 86_400 * 50
        for step in 0..<steps {
            // 20 millionths of wander, in six hours there and back, as the machine's warmth comes and goes.
            let drift = ppm + 20 * sin(Double(step) / Double(steps) * 8 * .pi)
            // The resampler has steps of 15 millionths.
            let rate = (loop.correctionPPM * 65_521e-6).rounded() / 65_521e-6
            delay += 960e-6 * (drift - rate)
            let scatter = Double(generator.next() % 48) - 24
            _ = loop.add(delaySamples: delay + scatter, at: Instant(nanoseconds: Int64(step) * 20_000_000))
            guard step > 1_500 else { continue }
            worst = max(worst, abs(delay - 1_000))
            squares += (delay - 1_000) * (delay - 1_000)
        }
        #expect(worst < 96)
        #expect((squares / Double(steps)).squareRoot() < 12, "a quarter of a millisecond")
        #expect(loop.jumps == 0)
    }

    @Test(
        "A delay that is suddenly off comes back without swinging, and teaches no drift",
        arguments: [1.0, 2.4, -2.4, 4, 7], [0.0, 1_500])
    func sudden(milliseconds: Double, ppm: Double) {
        var loop = DriftLoop(targetSamples: 1_000)
        var generator = SeededGenerator(seed: 5)
        var delay = 1_000.0
        var (overshoot, wrong, last) = (0.0, 0.0, 0.0)
        for step in 0..<6_000 {
            delay += 480e-6 * (ppm - loop.correctionPPM)
            if step == 4_000 { delay += milliseconds * 48 }
            let scatter = Double(generator.next() % 10) - 5
            _ = loop.add(delaySamples: delay + scatter, at: Instant(nanoseconds: Int64(step) * 10_000_000))
            guard step > 4_000 else { continue }
            let error = (delay - 1_000) / 48
            overshoot = max(overshoot, milliseconds > 0 ? -error : error)
            wrong = max(wrong, abs(loop.driftPPM - ppm))
            last = error
        }
        #expect(overshoot < 0.4, "\(overshoot) ms")
        #expect(wrong < 20, "\(wrong) ppm")
        #expect(abs(last) < 0.1)
        #expect(abs(loop.correctionPPM - ppm) < 20)
    }

    @Test("Delays beyond resampling are put right with one jump")
    func jump() {
        var loop = DriftLoop(targetSamples: 1_000)
        #expect(loop.add(delaySamples: 1_500, at: .zero) == .jump(samples: 500))
        var verdicts: [DriftLoop.Verdict] = []
        for step in 1...11 {
            verdicts.append(loop.add(delaySamples: 2_000, at: Instant(nanoseconds: Int64(step) * 10_000_000)))
        }
        #expect(verdicts.filter { $0 == .jump(samples: 1_000) }.count == 1)
        #expect(loop.jumps == 1)
    }

    @Test("Events of a kind are reported at once, then as a number every ten seconds")
    func limiter() {
        var limiter = EventLimiter()
        #expect(limiter.count(at: .zero) == 1)
        #expect(limiter.deadline == nil)
        for second in 1...5 { #expect(limiter.count(at: .zero.advanced(by: .seconds(second))) == nil) }
        #expect(limiter.takeDue(at: .zero.advanced(by: .milliseconds(9_999))) == nil)
        #expect(limiter.takeDue(at: .zero.advanced(by: .seconds(10))) == 5)
        #expect(limiter.deadline == nil)
    }

    @Test("A resampler whose rate changes all the time keeps a tone clean")
    func resamplerKeepsTone() {
        guard var resampler = ClockResampler(from: 48_000, to: 48_000) else {
            Issue.record("speexdsp has no resampler for equal rates")
            return
        }
        let input = (0..<96_000).map { Int16((16_000 * sin(Double($0) * 2 * .pi * 1_000 / 48_000)).rounded()) }
        var output = [Int16](repeating: 0, count: 100_000)
        var (consumed, produced) = (0, 0)
        while consumed < input.count {
            // A slow swing of ±100 ppm, as the loop makes.
            resampler.setCorrection(ppm: 100 * sin(Double(consumed) / 48_000))
            var space = output.mutableSpan
            let step = resampler.process(
                input.span, from: consumed, to: min(input.count, consumed + 4_800), into: &space, at: produced,
                limit: space.count)
            consumed += step.consumed
            produced += step.produced
        }
        #expect(abs(produced - input.count) < 30)
        // Within a tenth of a second the rate stands still: the tone is there with another frequency.
        let piece = output[43_400..<47_800].map(Double.init)
        let ratios = (-150...150).map { signalToRest(piece, hertz: 1_000 * (1 + Double($0) * 1e-6)) }
        #expect((ratios.max() ?? 0) > 65, "\(ratios.max() ?? 0) dB")
    }

    /// How far the tone of this frequency that fits best stands above all else, in dB.
    private func signalToRest(_ samples: [Double], hertz: Double) -> Double {
        var (cc, cs, ss, xc, xs, total) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for (index, sample) in samples.enumerated() {
            let angle = Double(index) * 2 * .pi * hertz / 48_000
            let (c, s) = (cos(angle), sin(angle))
            cc += c * c
            cs += c * s
            ss += s * s
            xc += sample * c
            xs += sample * s
            total += sample * sample
        }
        let determinant = cc * ss - cs * cs
        let (a, b) = ((xc * ss - xs * cs) / determinant, (xs * cc - xc * cs) / determinant)
        let signal = a * xc + b * xs
        return 10 * log10(signal / max(1e-9, total - signal))
    }
}

@Suite("Finding sound cards")
struct CardDirectoryTests {
    /// A machine's /proc and /dev, in a folder.
    private final class Machine {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("cards-\(UUID().uuidString)").path
        private let files = FileManager.default

        deinit { try? files.removeItem(atPath: root) }

        func setCards(_ cards: [(number: Int, id: String, name: String, byID: String?)]) throws {
            try? files.removeItem(atPath: root)
            for folder in ["/proc/asound", "/dev/snd/by-id"] {
                try files.createDirectory(atPath: root + folder, withIntermediateDirectories: true)
            }
            let lines = cards.map { card in
                let id = card.id.padding(toLength: 15, withPad: " ", startingAt: 0)
                return
                    " \(card.number) [\(id)]: USB-Audio - \(card.name)\n                      \(card.name) at usb-1, full speed\n"
            }
            try lines.joined().write(toFile: root + "/proc/asound/cards", atomically: true, encoding: .utf8)
            for card in cards {
                guard let byID = card.byID else { continue }
                try files.createSymbolicLink(
                    atPath: root + "/dev/snd/by-id/" + byID, withDestinationPath: "../controlC\(card.number)")
            }
        }
    }

    @Test("Cards are listed with the names that stay their own")
    func list() throws {
        let machine = Machine()
        try machine.setCards([
            (0, "PCH", "HDA Intel PCH", nil), (1, "Headset", "Plantronics C320", "usb-Plantronics_C320_1234-00"),
        ])
        let cards = CardDirectory(root: machine.root).cards
        #expect(cards.map(\.number) == [0, 1])
        #expect(cards.map(\.name) == ["HDA Intel PCH", "Plantronics C320"])
        #expect(cards[0].identities == ["hw:CARD=PCH"])
        #expect(cards[1].identities == ["by-id/usb-Plantronics_C320_1234-00", "hw:CARD=Headset"])
    }

    @Test("A card that was named by number is found again under another, and no other card is taken for it")
    func identity() throws {
        let machine = Machine()
        let directory = CardDirectory(root: machine.root)
        try machine.setCards([(1, "Headset", "Headset", "usb-A-00")])
        let home = try #require(directory.home(ofCard: 1, device: 0))
        #expect(directory.pcmName(for: "hw:1", lastSeen: nil) == "hw:1")

        try machine.setCards([(1, "Webcam", "Webcam", "usb-B-00")])
        #expect(directory.pcmName(for: "hw:1", lastSeen: home) == nil)

        try machine.setCards([(1, "Webcam", "Webcam", "usb-B-00"), (3, "Headset", "Headset", "usb-A-00")])
        #expect(directory.pcmName(for: "hw:1", lastSeen: home) == "hw:3,0")
        #expect(directory.pcmName(for: "by-id/usb-A-00", lastSeen: nil) == "plughw:3,0")
        #expect(directory.pcmName(for: "by-id/usb-A-00,2", lastSeen: nil) == "plughw:3,2")
        #expect(directory.pcmName(for: "by-id/usb-C-00", lastSeen: nil) == nil)
        #expect(directory.pcmName(for: "default", lastSeen: home) == "default")
    }

    @Test(
        "Two names are known to be the same PCM if they are the same, or name the same device of the same card",
        arguments: [
            ("hw:1", "hw:CARD=Headset", true), ("hw:1,0", "plughw:Headset", true), ("by-id/usb-A-00", "dmix:1", true),
            ("plug:'hw:1'", "hw:CARD=Headset,DEV=0", true), ("default", "default", true), ("pulse", "pulse", true),
            ("hw:0", "hw:1", false), ("hw:1,0", "hw:1,1", false), ("by-id/usb-A-00,1", "hw:1,0", false),
            ("default", "pulse", false), ("default", "hw:1", false), ("hw:CARD=Gone", "hw:1", false),
            ("by-id/usb-C-00", "hw:1", false), ("surround:1", "hw:1", false), ("hw:", "hw:", true),
            ("hw:", "plughw:", false),
        ] as [(String, String, Bool)])
    func samePCM(one: String, other: String, isSame: Bool) throws {
        let machine = Machine()
        try machine.setCards([(0, "PCH", "HDA Intel PCH", nil), (1, "Headset", "Headset", "usb-A-00")])
        let directory = CardDirectory(root: machine.root)
        #expect(directory.isSamePCM(one, other) == isSame)
        #expect(directory.isSamePCM(other, one) == isSame)
    }

    @Test("A machine without sound has no cards")
    func none() { #expect(CardDirectory(root: "/nonexistent").cards.isEmpty) }
}
