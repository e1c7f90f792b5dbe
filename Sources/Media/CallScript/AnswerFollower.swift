internal import AudioKit

/// What is heard of the callee: where the answer begins and ends, and its samples.
///
/// An answer is what is heard since the caller last pressed a key or said something, or since the call began.
struct AnswerFollower: Sendable {
    /// Samples so far.
    private(set) var now = 0
    /// Where the answer's first and last sound are; nil if nothing was heard.
    private(set) var answer: Range<Int>?
    /// A statement has waited for the answer's end, so that a wait for sound is for another one.
    var isOver = false
    private var levels = SoundLevels()
    private var judgedBlocks = 0
    private var from = 0
    private var lastBlock: Int?
    /// The sound that is being heard: its first block, and its sounding blocks. Three make a sound, fewer a click.
    private var group = (first: 0, count: 0)
    private var soundEnd = 0
    private var kept: [Int16] = []
    private var keptFrom = 0

    /// Samples that are kept before an answer, and while nothing is heard.
    private static let lead = AudioFormat.samples(milliseconds: 300)
    /// Of a longer answer its end is kept, and up to a minute more, so that what is dropped is dropped seldom.
    private static let longest = CallScript.longestTime
    private static let slack = AudioFormat.samples(milliseconds: 60_000)

    mutating func take(_ heard: [Int16]) {
        now += heard.count
        kept += heard
        levels.append(heard)
        while judgedBlocks < levels.levels.count {
            if levels.isSound(judgedBlocks) { note(judgedBlocks) }
            judgedBlocks += 1
        }
        if answer == nil, group.count == 0, kept.count > 10 * Self.lead {
            keptFrom += kept.count - Self.lead
            kept.removeFirst(kept.count - Self.lead)
        }
        if kept.count > Self.longest + Self.slack {
            keptFrom += kept.count - Self.longest
            kept.removeFirst(kept.count - Self.longest)
        }
    }

    private mutating func note(_ block: Int) {
        if let lastBlock, block - lastBlock <= SoundPiece.pauseBlocks, group.count > 0 {
            group.count += 1
        } else {
            group = (block, 1)
        }
        lastBlock = block
        guard group.count >= SoundPiece.leastBlocks else { return }
        soundEnd = (block + 1) * SoundLevels.blockSamples
        let start = max(from, group.first * SoundLevels.blockSamples)
        if soundEnd > start { answer = min(answer?.lowerBound ?? start, start)..<soundEnd }
    }

    /// What is heard from now on is another answer.
    mutating func begin() {
        from = now
        answer = nil
        isOver = false
        group = (0, 0)
        keptFrom += max(0, kept.count - Self.lead)
        kept.removeFirst(max(0, kept.count - Self.lead))
    }

    /// How long nothing was heard, at most since the answer's beginning was awaited.
    var quiet: Int { now - max(from, soundEnd) }

    /// The answer's samples, with the moment before it.
    var samples: [Int16] {
        guard let answer else { return [] }
        let start = max(0, answer.lowerBound - Self.lead - keptFrom)
        return Array(kept[min(start, kept.count)..<max(start, min(kept.count, answer.upperBound - keptFrom))])
    }
}
