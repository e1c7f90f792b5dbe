import Foundation
import LoopbackAnalysis
import TestSupport
import Testing

@Suite("Each channel of a card")
struct ChannelAnalysisTests {
    private static let signal = LoopbackSignal(carrierSeconds: 1, tonesHz: [997], channels: true)

    /// What is played from the first sample on that is needed.
    private static let played = signal.samples(ChannelAnalysis.start(signal)..<signal.count)

    /// Each input hears each output as loud as `wires[output][input]` says, 1 234.4 samples later, with some noise.
    private static func figures(
        _ wires: [[Double]], noise: Double = 1, outputs: Int = 2, interruptions: [Range<Int>] = []
    ) throws -> ChannelAnalysis.Outcome? {
        let start = ChannelAnalysis.start(signal)
        let inputs = wires[0].indices.map { input in
            var mixed = [Double](repeating: 0, count: played.count)
            for (output, channel) in SoundChannel.allCases.prefix(wires.count).enumerated() {
                let other = signal.soloRange(channel == .left ? .right : .left)
                for index in played.indices where outputs == 1 || other?.contains(start + index) != true {
                    mixed[index] += wires[output][input] * Double(played[index])
                }
            }
            let channel = SyntheticChannel(delay: 1_234.4, noise: noise)
            return channel.capture(
                mixed.map { Int16(max(-32_768, min(32_767, $0.rounded()))) }, count: played.count + 24_000)
        }
        return ChannelAnalysis(signal, maximumDelay: 24_000)
            .analyse(inputs, outputs: outputs, interruptions: interruptions)
    }

    private static func measured(
        _ wires: [[Double]], noise: Double = 1, outputs: Int = 2
    ) throws -> ChannelFigures {
        guard case .measured(let figures) = try figures(wires, noise: noise, outputs: outputs) else {
            throw CocoaError(.featureUnsupported)
        }
        return figures
    }

    @Test("A cable in the right sockets: each channel as loud as it is, no crosstalk but what the noise may hide")
    func straight() throws {
        let figures = try Self.measured([[1, 0], [0, 0.5]])
        #expect(abs(try #require(figures.path(.left, .left)).gainDB) < 0.1)
        #expect(abs(try #require(figures.loudest(heardOn: .right)).gainDB - -6.02) < 0.1)
        #expect(figures.paths.count == 4 && figures.paths.count { $0.isHeard } == 2)
        #expect(figures.isSwapped == false && figures.hasOppositePolarity == false && figures.faults.isEmpty)
        let crosstalk = try #require(figures.crosstalk)
        #expect(crosstalk.isBound && (-80...(-55)).contains(crosstalk.decibels), "\(crosstalk)")
        #expect(figures.heardCount == 2 && figures.unheardOutputs.isEmpty && figures.deafInputs.isEmpty)
        #expect(abs(try #require(figures.imbalanceDB) - 6.02) < 0.1)
        #expect(abs(try #require(figures.wireSkewSamples)) < 0.5)
    }

    @Test("Swapped wires are reported, and the level of each input is that of what it hears")
    func swapped() throws {
        let figures = try Self.measured([[0, 0.25], [1, 0]])
        #expect(figures.isSwapped == true && figures.faults == [.swapped])
        let right = try #require(figures.loudest(heardOn: .right))
        #expect(right.played == .left && abs(right.gainDB - -12.04) < 0.1)
        #expect(figures.crosstalk?.isBound == true && figures.heardCount == 2)
    }

    @Test("Polarity is reported for each channel; it is one fault if they differ, and another if both are turned")
    func polarity() throws {
        let one = try Self.measured([[1, 0], [0, -1]])
        #expect(one.path(.left, .left)?.isInverted == false && one.path(.right, .right)?.isInverted == true)
        #expect(one.faults == [.oppositePolarity])
        let both = try Self.measured([[-1, 0], [0, -1]])
        #expect(both.hasOppositePolarity == false && both.faults == [.inverted])
        #expect(try #require(both.path(.left, .left)).likeness < -0.99)
        // A balanced microphone in a stereo socket: one sound with both signs.
        let balanced = try Self.measured([[0.5, -0.5]], outputs: 1)
        #expect(balanced.faults == [.oppositePolarity] && balanced.isSwapped == nil && balanced.crosstalk == nil)
    }

    @Test("Crosstalk is measured where it is above the noise, to 0.5 dB", arguments: [-20.0, -40, -50])
    func crosstalk(decibels: Double) throws {
        let share = pow(10, decibels / 20)
        let figures = try Self.measured([[1, share], [share / 2, 1]])
        let crosstalk = try #require(figures.crosstalk)
        #expect(!crosstalk.isBound && abs(crosstalk.decibels - decibels) < 0.5, "\(crosstalk)")
        #expect(figures.faults.isEmpty && figures.heardCount == 2)
    }

    @Test("A channel that is dead, out or in, is named, and its crosstalk is taken for no channel")
    func dead() throws {
        let out = try Self.measured([[1, 0.001], [0, 0]])
        #expect(out.unheardOutputs == [.right] && out.deafInputs == [.right] && out.heardCount == 1)
        #expect(out.isSwapped == false && out.faults.isEmpty && out.hasOppositePolarity == nil)
        let input = try Self.measured([[1, 0], [-0.003, 0]])
        #expect(input.deafInputs == [.right] && input.unheardOutputs == [.right] && input.faults.isEmpty, "\(input)")
    }

    @Test("Channels that are one in the air or in the card are alike: 0 dB of crosstalk, neither swapped nor straight")
    func mixed() throws {
        let figures = try Self.measured([[0.5, 0.5], [0.5, 0.5]])
        let crosstalk = try #require(figures.crosstalk)
        #expect(abs(crosstalk.decibels) < 0.1 && !crosstalk.isBound && figures.isSwapped == false)
        #expect(figures.faults.isEmpty && figures.heardCount == 2)
        #expect(figures.imbalanceDB == nil && figures.wireSkewSamples == nil)
    }

    @Test("With one input, or one output, there is neither crosstalk nor a place to swap; with one of each, nothing")
    func oneChannel() throws {
        let microphone = try Self.measured([[1], [-0.5]])
        #expect(microphone.paths.count == 2 && microphone.crosstalk == nil && microphone.isSwapped == nil)
        #expect(microphone.faults == [.oppositePolarity] && microphone.heardCount == 1)
        #expect(abs(try #require(microphone.path(.right, .left)).gainDB - -6.02) < 0.1)
        #expect(try Self.figures([[1]], outputs: 1) == nil)
    }

    @Test("Loud noise hides crosstalk and is not taken for it; silence and noise alone show nothing")
    func noise() throws {
        let loud = try Self.measured([[1, 0], [0, 1]], noise: 300)
        #expect(loud.crosstalk?.isBound == true && loud.isSwapped == false && loud.faults.isEmpty, "\(loud)")
        #expect(try Self.figures([[0, 0], [0, 0]], noise: 300) == nil)
        #expect(ChannelAnalysis(Self.signal, maximumDelay: 4_800).analyse([[], []], outputs: 2) == nil)
    }

    @Test("What was interrupted is withheld, and an interruption elsewhere is not")
    func interrupted() throws {
        let range = try #require(Self.signal.soloRange(.right))
        let middle = (range.lowerBound + range.upperBound) / 2
        #expect(
            try Self.figures([[1, 0], [0, 1]], interruptions: [middle..<middle + 9_600])
                == .withheld(.interrupted(times: 1)))
        guard case .measured = try Self.figures([[1, 0], [0, 1]], interruptions: [48_000..<57_600]) else {
            Issue.record("withheld")
            return
        }
    }
}
