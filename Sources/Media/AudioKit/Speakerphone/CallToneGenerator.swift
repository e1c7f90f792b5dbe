/// Generates a ``CallTonePattern`` for as long as requested, with soft edges.
public struct CallToneGenerator: Equatable, Sendable {
    private var both: ToneGenerator
    private var single: ToneGenerator
    private let warbles: Bool
    /// Ends of the pieces of a period, in samples; sound and silence alternate.
    private var ends = InlineArray<8, Int>(repeating: 0)
    private let pieces: Int
    private var place = 0
    private var warblePlace = 0
    private var loudness: Float = 0

    /// Both sides must be at the same position of the same pattern.
    public static func == (left: Self, right: Self) -> Bool {
        left.both == right.both && left.single == right.single && left.place == right.place
            && left.warblePlace == right.warblePlace && left.pieces == right.pieces && left.loudness == right.loudness
    }

    /// Edges take 4 ms: as quick as exchanges' relays without their click.
    private static let edgeStep: Float = 0.0052
    private static let warbleSamples = 1_920

    /// - Parameters:
    ///   - pattern: Only the first eight pieces of its cadence count.
    ///   - levelDBFS: Level of each frequency.
    public init(_ pattern: CallTonePattern, levelDBFS: Double = -16) {
        warbles = pattern.warbles
        single = ToneGenerator(frequencyHz: pattern.warbles ? pattern.secondHz : pattern.firstHz, levelDBFS: levelDBFS)
        if pattern.secondHz > 0, !pattern.warbles {
            both = ToneGenerator(frequenciesHz: (pattern.firstHz, pattern.secondHz), levelDBFS: levelDBFS)
        } else {
            both = ToneGenerator(frequencyHz: pattern.firstHz, levelDBFS: levelDBFS)
        }
        pieces = min(8, pattern.cadence.count)
        var end = 0
        for index in 0..<pieces {
            end += AudioFormat.samples(milliseconds: max(1, pattern.cadence[index]))
            ends[index] = end
        }
    }

    /// Fills `samples` with the next piece. Real-time safe.
    @_noAllocation @_noLocks
    public mutating func fill(_ samples: inout MutableSpan<Int16>) {
        both.fill(&samples)
        if warbles { blend(&samples) }
        for index in 0..<samples.count {
            let isOn = sounds()
            loudness = isOn ? min(1, loudness + Self.edgeStep) : max(0, loudness - Self.edgeStep)
            samples[index] = Int16(Float(samples[index]) * loudness)
        }
    }

    /// Steps to the next sample; whether it sounds.
    @_noAllocation @_noLocks
    private mutating func sounds() -> Bool {
        guard pieces > 0 else { return true }
        var piece = 0
        while piece < pieces - 1, place >= ends[piece] { piece += 1 }
        place += 1
        if place >= ends[pieces - 1] { place = 0 }
        return piece % 2 == 0
    }

    /// Puts the second frequency in every other 40 ms.
    @_noAllocation @_noLocks
    private mutating func blend(_ samples: inout MutableSpan<Int16>) {
        var other = InlineArray<960, Int16>(repeating: 0)
        var start = 0
        while start < samples.count {
            let count = min(960, samples.count - start)
            var room = other.mutableSpan
            var piece = room._mutatingExtracting(0..<count)
            single.fill(&piece)
            for index in 0..<count {
                if warblePlace >= Self.warbleSamples { samples[start + index] = other[index] }
                warblePlace += 1
                if warblePlace == 2 * Self.warbleSamples { warblePlace = 0 }
            }
            start += count
        }
    }
}
