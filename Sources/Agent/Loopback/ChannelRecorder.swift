internal import AudioDevices
internal import AudioKit
internal import LoopbackAnalysis

/// What each channel of a card has captured of the pieces that were played on one channel alone.
struct ChannelRecorder {
    private let start: Int
    private let outputs: Int
    private let inputs: Int
    private var received = 0
    private var (left, right): ([Int16], [Int16]) = ([], [])

    /// - Parameters:
    ///   - outputs: Channels of the card that is played on.
    ///   - inputs: Channels that are captured apart.
    init(_ signal: LoopbackSignal, outputs: Int, inputs: Int) {
        start = ChannelAnalysis.start(signal)
        (self.outputs, self.inputs) = (min(outputs, 2), inputs)
    }

    /// Takes the next samples of both channels.
    mutating func add(_ left: [Int16], _ right: [Int16]) {
        let surplus = max(0, start - received)
        received += left.count
        self.left += left.dropFirst(surplus)
        self.right += right.dropFirst(surplus)
    }

    /// Adds the channels' figures to the measurement.
    ///
    /// - Parameter mean: The whole capture as in calls; for a card with one channel, that channel.
    func measure(
        _ mean: [Int16], _ signal: LoopbackSignal, maximumDelay: Int, interruptions: [Range<Int>],
        _ measurement: inout LoopbackMeasurement
    ) {
        let captured = inputs == 2 ? [left, right] : [Array(mean.dropFirst(start))]
        let analysis = ChannelAnalysis(signal, maximumDelay: maximumDelay)
        switch analysis.analyse(captured, outputs: outputs, interruptions: interruptions) {
        case .measured(let figures): measurement.channels = figures
        case .withheld(let reason): measurement.withheld.append(Withheld(.channels, reason))
        case nil: break
        }
    }
}

extension SoloPlan {
    /// The parts of the signal for one channel alone, in frames of a card.
    init(_ signal: LoopbackSignal, rate: Int) {
        func frames(_ channel: SoundChannel) -> Range<Int> {
            guard let range = signal.soloRange(channel) else { return 0..<0 }
            return range.lowerBound * rate / AudioFormat.sampleRate..<range.upperBound * rate / AudioFormat.sampleRate
        }
        self.init(left: frames(.left), right: frames(.right))
    }
}
