internal import AudioKit
internal import Glibc

/// Level of what was captured of the carrier over time, against the played one, which is constant.
public struct LevelEvidence: Equatable, Sendable {
    /// One change at once.
    public struct Step: Equatable, Sendable {
        /// Number of the captured sample.
        public let position: Int
        /// How much louder it is from then on, in dB.
        public let changeDB: Double
    }

    /// A level that grows evenly, or falls.
    public struct Trend: Equatable, Sendable {
        /// In dB, from the first carrier to the last.
        public let changeDB: Double
        /// In dB a second.
        public let slopeDB: Double
    }

    /// Greatest less least level of 50 ms, in dB.
    public let rangeDB: Double
    /// By how much the level falls from a carrier's beginning to its end, the median of all carriers, in dB.
    public let fallDB: Double
    /// What explains ``rangeDB``, if one change does.
    public let step: Step?
    /// By how much the level grows over all carriers, in dB, and in each second, if it does so evenly; negative if it falls.
    public let trend: Trend?
    /// Gain of the carrier less that of the louder sweep, by the response, in dB.
    public var againstSweepDB: Double?

    /// Readings in 50 ms.
    private static let few = 5

    /// - Returns: nil with less than half a second of carrier.
    init?(_ pieces: [CarrierPiece]) {
        var all: [(position: Int, gain: Double)] = []
        var falls: [Double] = []
        for piece in pieces {
            let readings = piece.findings.compactMap { finding in
                if case .reading(let reading) = finding { reading } else { nil as CarrierReading? }
            }
            let means = stride(from: 0, to: readings.count - Self.few + 1, by: Self.few).map { start in
                let few = readings[start..<start + Self.few]
                return (few[start].position, few.reduce(0) { $0 + $1.gainDB } / Double(Self.few))
            }
            all += means
            if let first = means.first, let last = means.last, means.count > 2 { falls.append(first.1 - last.1) }
        }
        // Some are beside a gap, and part of it.
        let gains = all.map(\.gain).sorted()
        let left = gains.count / 25
        guard gains.count >= 10, let least = gains.dropFirst(left).first, let greatest = gains.dropLast(left).last
        else {
            return nil
        }
        rangeDB = greatest - least
        fallDB = falls.sorted()[falls.count / 2]
        step = Self.step(all, range: greatest - least)
        trend = Self.trend(all)
    }

    /// The straight line through the level, if it explains nearly all of its change.
    private static func trend(_ all: [(position: Int, gain: Double)]) -> Trend? {
        guard let first = all.first, let last = all.last, last.position > first.position else { return nil }
        let count = Double(all.count)
        let middle = all.reduce(0.0) { $0 + Double($1.position) } / count
        let mean = all.reduce(0.0) { $0 + $1.gain } / count
        let spread = all.reduce(0.0) { $0 + (Double($1.position) - middle) * (Double($1.position) - middle) }
        guard spread > 0 else { return nil }
        let slope = all.reduce(0.0) { $0 + (Double($1.position) - middle) * ($1.gain - mean) } / spread
        let rests = all.map { abs($0.gain - mean - slope * (Double($0.position) - middle)) }.sorted()
        let change = slope * Double(last.position - first.position)
        // A step is a sixth of that line off it, and gain control, which recovers in each silence, more.
        guard rests[rests.count * 9 / 10] < 0.1 * abs(change) else { return nil }
        return Trend(changeDB: change, slopeDB: slope * Double(AudioFormat.sampleRate))
    }

    /// The change that splits the level into two that are each steady.
    private static func step(_ all: [(position: Int, gain: Double)], range: Double) -> Step? {
        var best: (index: Int, rest: Double, change: Double)?
        let total = all.reduce(0) { $0 + $1.gain }
        let squares = all.reduce(0) { $0 + $1.gain * $1.gain }
        var (sum, count) = (0.0, 0.0)
        for index in 0..<all.count - 1 {
            sum += all[index].gain
            count += 1
            let later = Double(all.count) - count
            let rest = squares - sum * sum / count - (total - sum) * (total - sum) / later
            if rest < best?.rest ?? .infinity { best = (index, rest, (total - sum) / later - sum / count) }
        }
        guard let best, abs(best.change) > 0.5 else { return nil }
        let spread = (max(0, best.rest) / Double(all.count)).squareRoot()
        guard spread < 0.1 * abs(best.change), range < 1.5 * abs(best.change) else { return nil }
        return Step(position: all[best.index + 1].position, changeDB: best.change)
    }
}

extension FrequencyResponse {
    /// Gain that a carrier has through this response, in dB.
    var carrierGainDB: Double {
        var (power, sum) = (0.0, 0.0)
        for point in points {
            // The points are spaced by octaves: the band of each is as wide as its frequency.
            let weight = Carrier.power(point.frequencyHz) * point.frequencyHz
            power += weight
            sum += weight * pow(10, point.gainDB / 10)
        }
        return 10 * log10(max(1e-12, sum / power))
    }
}
