/// A figure that was measured and cannot be trusted.
public struct Withheld: Equatable, Sendable {
    /// What is not given.
    public enum Figure: Equatable, Sendable {
        /// Noise floor and signal-to-noise ratio, from the silence.
        case noise
        /// Frequency response, band, evenness, and distortion over frequency, from the sweep.
        case response
        /// THD and THD+N of the tone with this frequency.
        case tone(frequencyHz: Double)
        /// Level, crosstalk and polarity of each channel.
        case channels
    }

    /// What is not given.
    public let figure: Figure
    /// Why.
    public let reason: WithholdingReason

    /// Withholds a figure.
    public init(_ figure: Figure, _ reason: WithholdingReason) { (self.figure, self.reason) = (figure, reason) }
}

/// Why a figure cannot be trusted: something happened while its part of the signal was played.
public enum WithholdingReason: Equatable, Sendable {
    /// The card was interrupted `times` times: it ran empty or over, or the measuring program was late.
    case interrupted(times: Int)
    /// The delay changed by `samples` samples.
    case delayChanged(samples: Double)
    /// A piece of it is missing.
    case gap
    /// A click, or a burst of other sound.
    case glitch
    /// The next carrier was not heard, so it is unknown whether the delay changed.
    case carrierLost
    /// It was measured twice, and the results are so far apart.
    case repeatsDiffer(decibels: Double)
}

/// The delay changed between two pieces of carrier.
public struct DelayChange: Equatable, Sendable {
    /// Captured samples between which it happened.
    public let positions: Range<Int>
    /// By how many samples the delay grew; negative: it became shorter.
    public let samples: Double

    /// Says when the delay changed, and by how much.
    public init(positions: Range<Int>, samples: Double) { (self.positions, self.samples) = (positions, samples) }
}
