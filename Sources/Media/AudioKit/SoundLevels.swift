internal import Glibc

/// Levels of what is heard, in blocks of 10 ms, and which blocks count as sound.
package struct SoundLevels: Equatable, Sendable {
    /// Samples of a block.
    package static let blockSamples = AudioFormat.samples(milliseconds: 10)
    /// Levels are counted from here to 0 dBFS.
    private static let faintest = -100
    /// The threshold never lies below this, in dBFS: a codec's own noise is fainter.
    private static let leastThreshold = -50
    /// Nor above this: louder sound counts, even if it never stops.
    private static let mostThreshold = -30
    /// How far sound must exceed the noise, in dB.
    private static let distance = 12

    /// Of each whole block, in dBFS.
    package private(set) var levels: [Int8] = []
    private var counts = [Int](repeating: 0, count: 1 - SoundLevels.faintest)
    private var power = 0.0
    private var powerSamples = 0

    /// Makes levels of nothing.
    package init() {}

    /// Appends what is heard.
    package mutating func append(_ samples: some Sequence<Int16>) {
        for sample in samples {
            power += Double(sample) * Double(sample)
            powerSamples += 1
            if powerSamples == Self.blockSamples { finishBlock() }
        }
    }

    private mutating func finishBlock() {
        let meanSquare = power / Double(Self.blockSamples) / (32_768 * 32_768)
        let level = meanSquare > 0 ? 10 * log10(meanSquare) : Double(Self.faintest)
        let rounded = Int(max(Double(Self.faintest), min(0, level)).rounded())
        levels.append(Int8(rounded))
        counts[rounded - Self.faintest] += 1
        (power, powerSamples) = (0, 0)
    }

    /// The noise: the level that a tenth of all blocks do not exceed, in dBFS.
    package var floor: Int {
        var rest = levels.count / 10
        for (index, count) in counts.enumerated() {
            rest -= count
            if rest < 0 { return index + Self.faintest }
        }
        return Self.faintest
    }

    /// From which level on a block counts as sound, in dBFS.
    package var threshold: Int { min(Self.mostThreshold, max(Self.leastThreshold, floor + Self.distance)) }

    /// Sound cannot be distinguished from noise, or never stops.
    package var isNeverQuiet: Bool { floor + Self.distance > Self.mostThreshold }

    /// The magnitude of samples at the threshold.
    var thresholdMagnitude: UInt16 { UInt16(32_768 * pow(10, Double(threshold) / 20)) }

    /// Whether a block counts as sound.
    package func isSound(_ block: Int) -> Bool { Int(levels[block]) >= threshold }

    /// The pieces of sound, in samples, to the sample: pauses shorter than ``SoundPiece/pauseBlocks`` are part of a piece, and
    /// clicks are none.
    package func pieces(of samples: [Int16]) -> [SoundPiece] {
        let (threshold, magnitude) = (threshold, thresholdMagnitude)
        var found: [(first: Int, last: Int, sounding: Int)] = []
        for (block, level) in levels.enumerated() where Int(level) >= threshold {
            if let last = found.last, block - last.last <= SoundPiece.pauseBlocks {
                found[found.count - 1] = (last.first, block, last.sounding + 1)
            } else {
                found.append((block, block, 1))
            }
        }
        return found.filter { $0.sounding >= SoundPiece.leastBlocks }.map { piece in
            // A piece may begin shortly before its first block is loud, and end shortly after its last one.
            let start = max(0, piece.first - 1) * Self.blockSamples
            let end = min(samples.count, (piece.last + 2) * Self.blockSamples)
            let first = samples[start..<end].firstIndex { $0.magnitude >= magnitude } ?? start
            let last = samples[start..<end].lastIndex { $0.magnitude >= magnitude } ?? end - 1
            return SoundPiece(range: first..<last + 1)
        }
    }

    /// Samples of sound within a range, to a block.
    package func soundSamples(in range: Range<Int>) -> Int {
        let (first, end) = (range.lowerBound / Self.blockSamples, range.upperBound / Self.blockSamples)
        guard first < end else { return 0 }
        return (first..<min(end, levels.count)).count(where: isSound) * Self.blockSamples
    }
}

/// Sound without longer pauses.
package struct SoundPiece: Equatable, Sendable {
    /// Blocks without sound that end a piece: 0.2 s.
    package static let pauseBlocks = 20
    /// Blocks of sound that a piece has at least: 30 ms. A click has fewer.
    package static let leastBlocks = 3

    /// From the first sample that is loud enough to the last one.
    package let range: Range<Int>
}
