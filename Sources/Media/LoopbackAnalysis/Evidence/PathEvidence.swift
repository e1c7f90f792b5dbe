/// Figures by which faults of a path are named, beside those that are reported for their own sake. One that is nil could
/// not be measured, or has nothing to say.
public struct PathEvidence: Equatable, Sendable {
    /// A copy of the sound that comes later.
    public struct Echo: Equatable, Sendable {
        /// How much later, in samples; negative if it is the stronger one, and comes earlier.
        public let delaySamples: Int
        /// Its level against that of the direct sound, in dB.
        public let levelDB: Double
    }

    /// Lines of the mains in the silence.
    public struct Hum: Equatable, Sendable {
        /// 50 or 60.
        public let mainsHz: Double
        /// Level of the mains' frequency and its harmonics together, in dBFS.
        public let levelDBFS: Double
        /// Their share of the noise's power, 0…1.
        public let share: Double
    }

    /// Mean of the silence, in percent of full scale.
    public var offsetPercent: Double?
    /// Mains hum in the silence.
    public var hum: Hum?
    /// A carrier of a smaller crest was cut off, and filtered behind that, or is squeezed.
    public static let leastCrestDB = 9.5

    /// Peak of the captured carrier over its RMS, in dB: 10.5 to 13 of a path that leaves its peaks whole.
    public var crestDB: Double?
    /// Level at which the captured carrier is cut off flat, in dBFS.
    public var ceilingDBFS: Double?
    /// Usual distance of two neighbouring values of the captured carrier, 1 if all 16 bits are used.
    public var stepSize: Double?
    /// The strongest copy of the carrier.
    public var echo: Echo?
    /// How the level changes while the played one does not.
    public var level: LevelEvidence?
    /// Disturbances that are a piece of the carrier from elsewhere, mostly the block before.
    public var staleBlocks = 0
    /// Captured frequencies over played ones, of a carrier that is too fast or too slow to be found.
    public var speed: Double?

    /// No evidence.
    public init() {}
}
