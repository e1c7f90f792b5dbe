internal import Core
internal import Glibc
internal import Playout

/// How good a call sounded on this side, as ITU-T G.107 (the E-model) estimates it from delay and loss alone.
///
/// It knows nothing of levels, noise and echo, for which it takes the recommendation's default values, and nothing of the codec but how
/// it conceals losses. There are no values of Opus in ITU-T G.113: those of G.711 with concealment are taken for both.
public struct CallQuality: Hashable, Sendable {
    /// From the other side's mouth to this side's ear.
    public let delay: Duration
    /// The share of the sound that was concealed, 0…1.
    public let loss: Double

    /// The rating without any impairment but the default ones: ITU-T G.107, table 3, rounded as its clause 7.7 has it.
    private static let best = 93.2
    /// How well concealment hides losses: G.711 with packet-loss concealment, random losses (ITU-T G.113, appendix I).
    private static let robustness = 25.1

    /// Rates a call.
    public init(delay: Duration, loss: Double) {
        self.delay = delay
        self.loss = min(1, max(0, loss))
    }

    /// Rates a call that has ended, or runs; nil if nothing was heard in it.
    ///
    /// The delay is half the round trip, the time in the jitter buffer, the other side's frame, taken to be as long as ours, and what
    /// the codec delays.
    public init?(_ report: MediaReport) {
        let playout = report.playout
        let heard = playout.samplesPlayed - playout.samplesSilent
        guard heard > 0, playout.bufferDelayCount > 0 else { return nil }
        let samples = report.frameSamples + report.encoderDelaySamples + report.decoderDelaySamples
        let path = report.peer.roundTripNanoseconds / 2 + playout.meanBufferDelayNanoseconds
        self.init(
            delay: .nanoseconds(path) + .nanoseconds(Int64(samples) * 1_000_000 / 48),
            loss: Double(playout.samplesConcealed) / Double(heard))
    }

    /// The transmission rating R, 0…93.2 (G.107, equation 7-1).
    public var rating: Double { max(0, Self.best - delayImpairment - lossImpairment) }

    /// The mean opinion score that listeners would give, 1…4.41 (G.107, annex B).
    public var opinionScore: Double {
        let rating = rating
        guard rating > 0 else { return 1 }
        return max(1, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)
    }

    /// Idd: what delay beyond 100 ms does to a conversation (G.107, equations 7-27 and 7-28).
    private var delayImpairment: Double {
        let milliseconds = delay.milliseconds
        guard milliseconds > 100 else { return 0 }
        let x = log2(milliseconds / 100)
        func root(_ x: Double) -> Double { pow(1 + pow(x, 6), 1 / 6) }
        return 25 * (root(x) - 3 * root(x / 3) + 2)
    }

    /// Ie,eff with Ie = 0 and random losses (G.107, equation 7-29).
    private var lossImpairment: Double {
        let percent = 100 * loss
        return 95 * percent / (percent + Self.robustness)
    }
}
