/// Keeps the delay between two media legs short: of what one leg has heard, it says what goes into the other's queue.
///
/// Both legs run by this machine's clock, so the queue neither grows nor shrinks by itself. It grows when one leg runs before the
/// other, and when this side is late; then the queue has run empty, and all that follows is that much later. The queue's length
/// just before a piece is added is its low point. If that stays above ``enough``, a piece is left out: soon in a pause, otherwise
/// later and rarely, and spliced, so that it is no click.
struct LegPacing: Sendable {
    /// Samples at 48 kHz that go in ahead of a piece that finds the queue empty, so that the next piece may be a little late: 5 ms.
    static let lead = 240
    /// Samples that wait just before a piece is added, of which 20 ms are too many: 35 ms. After a piece that came too late for its
    /// frame 25 ms may wait, and are kept.
    static let enough = 1_680
    /// Pieces in a row that find too much, before one is left out: in a pause, and otherwise.
    static let (patienceInPauses, patience) = (5, 50)
    /// Pieces between two that are left out of sound.
    static let rest = 25
    /// A piece whose samples are all below it is a pause: −54 dB.
    static let quiet: Int16 = 64

    /// Pieces in a row that found too much.
    private var run = 0
    /// Pieces since the last one that was left out of sound.
    private var since = LegPacing.rest
    /// What was left out last, and nothing was added since.
    private var omitted: [Int16] = []
    /// The number of samples beyond which nothing is added.
    private let most: Int

    init(most: Int) { self.most = most }

    /// What is to be added to the queue for a piece.
    ///
    /// - Parameter waiting: Samples in the queue.
    mutating func take(_ piece: [Int16], waiting: Int) -> [Int16] {
        guard !piece.isEmpty else { return [] }
        since += 1
        run = waiting >= Self.enough ? run + 1 : 0
        let isPause = piece.allSatisfy { -Self.quiet < $0 && $0 < Self.quiet }
        let isTooMuch = isPause ? run > Self.patienceInPauses : run > Self.patience && since > Self.rest
        if isTooMuch || waiting > most {
            if !isPause { since = 0 }
            if omitted.isEmpty { omitted = piece }
            return []
        }
        var added = spliced(piece)
        if waiting == 0 { added.insert(contentsOf: repeatElement(0, count: Self.lead), at: 0) }
        return added
    }

    /// The beginning of what was left out goes over into the piece.
    private mutating func spliced(_ piece: [Int16]) -> [Int16] {
        guard !omitted.isEmpty else { return piece }
        var piece = piece
        let count = min(Self.lead, omitted.count, piece.count)
        for index in 0..<count {
            let sum = Int(omitted[index]) * (count - index) + Int(piece[index]) * index
            piece[index] = Int16(clamping: sum / count)
        }
        omitted = []
        return piece
    }
}
