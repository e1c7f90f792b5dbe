internal import Glibc

/// A channel of a card with two.
public enum SoundChannel: String, CaseIterable, Sendable {
    case left, right
}

/// Figures of each channel of a card, played one after the other: level, crosstalk, polarity, and whether they are
/// swapped.
///
/// If a card has one output, or one input, that is the left one.
public struct ChannelFigures: Equatable, Sendable {
    /// How one input hears one output.
    public struct Path: Equatable, Sendable {
        /// The output.
        public let played: SoundChannel
        /// The input.
        public let heard: SoundChannel
        /// Captured level relative to the played one, in dB; if it is not louder than the noise, the level that the
        /// noise would hide.
        public let gainDB: Double
        /// Whether it is louder than the noise.
        public let isHeard: Bool
        /// Normalised correlation with what was played, −1…1; negative if the sign is turned.
        public let likeness: Double

        /// Whether the signal is inverted; nil if the captured sound is too different from the played one.
        public var isInverted: Bool? { isHeard && abs(likeness) >= 0.3 ? likeness < 0 : nil }
    }

    /// Something that is wrong with the wires.
    public enum Fault: String, Equatable, Sendable {
        /// What is played on the left is heard on the right, and the other way round.
        case swapped
        /// One channel has the sign turned and the other has not: a mean of both, as calls take it, is next to nothing.
        case oppositePolarity = "opposite_polarity"
        /// All channels have the sign turned.
        case inverted
    }

    /// Channels that were played apart, 1 or 2.
    public let outputs: Int
    /// Channels that were captured, 1 or 2.
    public let inputs: Int
    /// Level at which a channel was played, in dBFS.
    public let playedDBFS: Double
    /// How each input hears each output.
    public let paths: [Path]
    /// How much later the right output is captured than the left one, in samples, without drift; nil if not both were found.
    public let skewSamples: Double?

    /// An input with a path at most this much softer than the loudest, in dB, belongs to the output too.
    private static let besideDB = 6.0
    /// A path further below the loudest one carries no sound on purpose.
    private static let faintDB = 40.0
    /// A path that is less like what was played than this share of the louder path is other sound: clicks, noise. Crosstalk
    /// through a capacitor has 0.4.
    private static let leastAlike = 0.3

    init(outputs: Int, inputs: Int, playedDBFS: Double, paths: [Path], skewSamples: Double? = nil) {
        (self.outputs, self.inputs, self.playedDBFS, self.paths) = (outputs, inputs, playedDBFS, paths)
        self.skewSamples = skewSamples
    }

    /// The path from one channel to one channel.
    public func path(_ played: SoundChannel, _ heard: SoundChannel) -> Path? {
        paths.first { $0.played == played && $0.heard == heard }
    }

    /// The path by which an input hears more than crosstalk; nil if there is none.
    public func loudest(heardOn input: SoundChannel) -> Path? {
        main.filter { $0.heard == input }.max { $0.gainDB < $1.gainDB }
    }

    /// Paths that are meant to carry sound: each output's loudest and those beside it. What is far below the loudest of all
    /// is crosstalk of a channel that is not connected.
    private var main: [Path] {
        let all = paths.filter(\.isHeard)
        guard let loudest = all.map(\.gainDB).max() else { return [] }
        return all.filter { path in
            let best = all.filter { $0.played == path.played }.map(\.gainDB).max() ?? loudest
            return path.gainDB >= best - Self.besideDB && path.gainDB >= loudest - Self.faintDB
        }
    }

    /// The fewer of outputs that are heard and inputs that hear more than crosstalk.
    public var heardCount: Int { min(Set(main.map(\.played)).count, Set(main.map(\.heard)).count) }

    /// Outputs that no input hears.
    public var unheardOutputs: [SoundChannel] {
        SoundChannel.allCases.prefix(outputs).filter { channel in !main.contains { $0.played == channel } }
    }

    /// Inputs that hear nothing but crosstalk.
    public var deafInputs: [SoundChannel] {
        SoundChannel.allCases.prefix(inputs).filter { channel in !main.contains { $0.heard == channel } }
    }

    /// Whether each output that is heard is heard on the other side alone; nil without two outputs and two inputs, and if
    /// nothing is heard.
    public var isSwapped: Bool? {
        guard outputs == 2, inputs == 2, !main.isEmpty else { return nil }
        return main.allSatisfy { $0.played != $0.heard }
    }

    /// Whether some channels have the sign turned and others not; nil if that is known of fewer than two paths.
    public var hasOppositePolarity: Bool? {
        let signs = main.compactMap(\.isInverted)
        return signs.count < 2 ? nil : Set(signs).count > 1
    }

    /// What is wrong with the wires.
    public var faults: [Fault] {
        let signs = main.compactMap(\.isInverted)
        return (isSwapped == true ? [.swapped] : []) + (hasOppositePolarity == true ? [.oppositePolarity] : [])
            + (!signs.isEmpty && signs.allSatisfy(\.self) ? [.inverted] : [])
    }

    /// The path of each output, if each of two is heard on an input of its own and on no other: wires, and no air.
    private var wires: (left: Path, right: Path)? {
        let heard = main
        guard outputs == 2, inputs == 2, heard.count == 2, heard[0].heard != heard[1].heard,
            let left = heard.first(where: { $0.played == .left }),
            let right = heard.first(where: { $0.played == .right })
        else { return nil }
        return (left, right)
    }

    /// How much louder the left output is captured than the right one, in dB; nil unless each of two outputs is heard on an
    /// input of its own.
    public var imbalanceDB: Double? { wires.map { $0.left.gainDB - $0.right.gainDB } }

    /// ``skewSamples``, if each of two outputs is heard on an input of its own.
    public var wireSkewSamples: Double? { wires == nil ? nil : skewSamples }

    /// The worst crosstalk: the level of an output on its weaker input relative to the stronger; nil without two
    /// outputs and two inputs.
    ///
    /// `isBound` if it is less than the noise or other sound, which lies there.
    public var crosstalk: (decibels: Double, isBound: Bool)? {
        guard outputs == 2, inputs == 2 else { return nil }
        var worst: (decibels: Double, isBound: Bool)?
        for channel in SoundChannel.allCases {
            guard let own = main.filter({ $0.played == channel }).max(by: { $0.gainDB < $1.gainDB }),
                let other = paths.first(where: { $0.played == channel && $0.heard != own.heard })
            else { continue }
            let decibels = min(0, other.gainDB - own.gainDB)
            let isHeard = other.isHeard && abs(other.likeness) >= Self.leastAlike * abs(own.likeness)
            // Known values come before those that the noise hides.
            let isWorse = worst.map { worst in
                worst.isBound == !isHeard ? decibels > worst.decibels : worst.isBound && isHeard
            }
            if isWorse ?? true { worst = (decibels, !isHeard) }
        }
        return worst
    }
}
