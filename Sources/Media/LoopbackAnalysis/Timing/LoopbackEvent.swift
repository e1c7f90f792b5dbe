internal import AudioKit

/// A position at which the captured signal does not continue like the played one.
///
/// The captured samples before ``position`` and those from ``position`` + ``holeSamples`` on are each a piece of what was
/// played; between them `holeSamples` were captured that are not.
public struct LoopbackEvent: Equatable, Sendable {
    /// What happened.
    public enum Kind: String, CaseIterable, Sendable {
        /// Played samples are missing, and nothing replaces them.
        case skip
        /// Samples are heard twice.
        case `repeat`
        /// A hole of silence.
        case silence
        /// A hole of other sound: a concealed frame, a click, a burst.
        case disturbance
    }

    /// What happened.
    public let kind: Kind
    /// Number of the first captured sample that is out of order.
    public let position: Int
    /// Captured samples that are not of what was played.
    public let holeSamples: Int
    /// Delay before and after, in samples; they differ by a whole number of samples unless the path resamples.
    public let delayBefore: Double
    /// Delay after it, in samples.
    public let delayAfter: Double

    /// Samples of what was played that were not heard; negative if that many were heard twice.
    public var missingSamples: Int { holeSamples - Int((delayAfter - delayBefore).rounded()) }

    /// Length of the gap or repeat in samples: what a listener could notice.
    public var lengthSamples: Int { max(holeSamples, abs(missingSamples)) }

    /// ``lengthSamples`` as a time, in milliseconds.
    public var lengthMilliseconds: Double { AudioFormat.milliseconds(samples: lengthSamples) }

    /// Time of its beginning in what was captured, in seconds.
    public var seconds: Double { Double(position) / Double(AudioFormat.sampleRate) }

    init(kind: Kind, position: Int, holeSamples: Int, delayBefore: Double, delayAfter: Double) {
        self.kind = kind
        self.position = position
        self.holeSamples = holeSamples
        self.delayBefore = delayBefore
        self.delayAfter = delayAfter
    }
}

/// The reading of 10 ms of captured carrier.
public struct CarrierReading: Equatable, Sendable {
    /// Number of the captured sample in the middle.
    public let position: Int
    /// Delay there: number of the captured sample less that of the played one, in samples.
    public let delaySamples: Double
    /// Normalised correlation with what was expected, 0…1.
    public let likeness: Double
    /// Level of what was captured against what was played, in dB.
    public let gainDB: Double
    /// Delay grows by this many samples a sample, by the present estimate.
    public let rate: Double
}

/// Findings from following the carrier.
public enum CarrierFinding: Equatable, Sendable {
    /// The carrier was found for the first time, with this delay in samples; negative polarity if `isInverted`.
    case found(position: Int, delaySamples: Double, isInverted: Bool)
    /// Ten milliseconds in which all was as before.
    case reading(CarrierReading)
    /// A gap or a repeat.
    case event(LoopbackEvent)
}

extension CarrierFinding {
    /// The same of a recording that begins `samples` later.
    func moved(by samples: Int) -> CarrierFinding {
        guard samples != 0 else { return self }
        let change = Double(samples)
        switch self {
        case .found(let position, let delaySamples, let isInverted):
            return .found(
                position: position + samples, delaySamples: delaySamples + change, isInverted: isInverted)
        case .reading(let reading):
            return .reading(
                CarrierReading(
                    position: reading.position + samples, delaySamples: reading.delaySamples + change,
                    likeness: reading.likeness, gainDB: reading.gainDB, rate: reading.rate))
        case .event(let event):
            return .event(event.moved(by: samples, delays: change))
        }
    }
}

extension LoopbackEvent {
    func moved(by samples: Int, delays: Double) -> LoopbackEvent {
        LoopbackEvent(
            kind: kind, position: position + samples, holeSamples: holeSamples, delayBefore: delayBefore + delays,
            delayAfter: delayAfter + delays)
    }
}
