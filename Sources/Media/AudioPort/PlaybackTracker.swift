internal import VoiceActivity

/// A worker's report on its side of a port: totals since the call's beginning, in samples of the queue at 48 kHz.
struct PlayReport: BitwiseCopyable, Equatable {
    /// How turns were taken; nil if that is not followed.
    var turns: TurnSummary?
    /// Samples taken from the queue, played or not.
    var consumed = 0
    /// Of those, samples that were discarded.
    var skipped = 0
    /// How much had been consumed when the newest order to clear was carried out.
    var clearedAt = 0
    /// The position in that order: all samples before it are played or discarded.
    var clearedTo = 0
    /// Samples of the caller for which there was no room.
    var missed = 0
    /// Times the caller has interrupted the program.
    var interruptions = 0
    /// Events of who speaks for which there was no room.
    var eventsLost = 0
    /// Samples of the call's sound before this line came into it.
    var start = 0
    /// In the last frame the caller heard something else, and what is queued waited.
    var isSuspended = false
}

/// What the worker is to do with the queue.
struct PlayOrder: BitwiseCopyable, Equatable {
    /// Discard all samples before it.
    var target: Int
    /// Interruptions that the program's side knows of.
    var interruptions: Int
    /// Samples a second of the widest sound that was queued so far.
    var widestRate: Int
}

/// Events of a program's sound. Positions and lengths are samples at the program's rate.
public enum PlaybackEvent: Equatable, Sendable {
    /// The last sample before a mark has been sent to the caller, in the frame that was just sent.
    case played(mark: String, played: Int)
    /// A mark was reached by discarding what was before it.
    case discarded(mark: String)
    /// Unplayed sound is discarded, after this number of played samples.
    case cleared(played: Int)
    /// The caller has interrupted the program: queued sound is discarded, which ``cleared(played:)`` follows. `played` samples
    /// were played at full level.
    case interrupted(played: Int)
    /// All is played, or discarded, that was to be: see ``AudioPort/end(unread:)``.
    case ended
}

/// The accounting of a queue of sound: which of a program's samples are played, discarded or waiting, and which marks
/// are reached.
///
/// A position in the program's stream, in samples at 48 kHz, is one in the queue and a base. The base grows when
/// samples are discarded that never were in the queue: those in the resampler, and those that the program had not
/// handed over yet.
struct PlaybackTracker: Sendable {
    /// Marks that may wait.
    static let mostMarks = 256
    /// A program that writes nothing for this time pauses: the end of what it said must not wait for what it says next.
    static let pause = Duration.milliseconds(40)
    /// Remaining samples of the queue at 48 kHz at which the resampler must be flushed: two frames.
    static let flushMargin = 1_920

    enum Mark: Hashable, Sendable {
        case named(String)
        case end
    }

    private struct Place {
        var mark: Mark
        var position: Int
    }

    private struct Clear {
        /// Of the queue: what is before it is to be discarded.
        var target: Int
        /// The base of what is behind it.
        var base: Int
        /// Marks that were set before it, since the beginning.
        var marks: Int
    }

    private let ratio: Int
    /// Samples of the program's so far, at 48 kHz.
    private var acceptedSamples = 0
    /// Samples of the queue so far.
    private var written = 0
    /// The base of what the worker plays now.
    private var base = 0
    /// Orders that the worker has not carried out yet, oldest first.
    private var clears: [Clear] = []
    /// By position.
    private var marks: [Place] = []
    /// Marks that are gone.
    private var markCount = 0
    /// How far the program's stream is played or discarded.
    private var position = 0
    private var playedSamples = 0

    /// - Parameter ratio: Samples at 48 kHz in one of the program's.
    init(ratio: Int) { self.ratio = ratio }

    /// Samples of the program's so far.
    var accepted: Int { acceptedSamples / ratio }

    /// Samples of the program that were sent to the caller.
    var played: Int { playedSamples / ratio }

    /// Samples of the program that are neither played nor discarded. Samples that an order covers count as discarded.
    var waiting: Int { max(0, acceptedSamples - max(position, clears.last.map { $0.target + $0.base } ?? 0)) / ratio }

    /// Notes samples that the program has written.
    mutating func accept(_ count: Int) { accept(samplesAt48kHz: count * ratio) }

    /// The same at 48 kHz.
    mutating func accept(samplesAt48kHz count: Int) { acceptedSamples += count }

    /// Notes samples at 48 kHz that were put into the queue.
    mutating func wrote(_ count: Int) { written += count }

    /// Sets a mark a number of samples behind the accepted ones.
    ///
    /// - Returns: False if too many wait. There is always room for the end's.
    mutating func mark(_ mark: Mark, unread: Int) -> Bool {
        guard mark == .end || marks.count(where: { $0.mark != .end }) < Self.mostMarks else { return false }
        let place = acceptedSamples + unread * ratio
        marks.append(Place(mark: mark, position: max(place, marks.last?.position ?? 0)))
        return true
    }

    mutating func forgetMarks() {
        markCount += marks.count
        marks = []
    }

    /// Discards what is accepted and not played.
    ///
    /// - Returns: The position for the worker's order: the queue's samples before it.
    mutating func clear() -> Int {
        clears.append(
            Clear(target: written, base: acceptedSamples - written, marks: markCount + marks.count))
        return written
    }

    /// Whether the resampler must be flushed.
    ///
    /// - Parameters:
    ///   - held: Samples at 48 kHz that it holds.
    ///   - idle: How long the program has given nothing.
    func needsFlush(held: Int, idle: Duration, isFinal: Bool) -> Bool {
        guard held > 0 else { return false }
        // The queue's samples before the newest order count as gone.
        let gone = max(position - base, clears.last?.target ?? 0)
        return isFinal || idle >= Self.pause && written - gone < Self.flushMargin
    }

    /// Takes a worker's report. Reports may be missing; each contains those before it.
    mutating func note(_ report: PlayReport, into events: inout [PlaybackEvent]) {
        while let clear = clears.first, clear.target <= report.clearedTo {
            clears.removeFirst()
            let isNewest = clears.first.map { $0.target > report.clearedTo } ?? true
            let skipped = max(0, report.clearedTo - report.clearedAt)
            let played = report.clearedAt - (report.skipped - skipped)
            let reached = min(report.clearedAt, clear.target)
            playedSamples = max(playedSamples, played)
            // Samples before the order took effect were played, and the other samples that it covers were not. If the
            // order's report is missing, that moment is unknown, so none of its samples count as played.
            if isNewest || report.clearedAt < clear.target {
                reach(reached + base, played: played - (report.clearedAt - reached), events: &events)
            }
            discard(clear, events: &events)
            base = clear.base
            events.append(.cleared(played: self.played))
        }
        // Until an order is carried out nothing behind it counts: its base is not known to be in force.
        let consumed = min(report.consumed, clears.first?.target ?? .max)
        playedSamples = max(playedSamples, report.consumed - report.skipped)
        reach(consumed + base, played: playedSamples - (report.consumed - consumed), events: &events)
    }

    /// All samples before `place` were played, or discarded earlier; this many samples were played until there.
    private mutating func reach(_ place: Int, played: Int, events: inout [PlaybackEvent]) {
        position = max(position, place)
        for mark in takeMarks(to: position) {
            switch mark.mark {
            case .named(let name):
                events.append(.played(mark: name, played: (played - max(0, place - mark.position)) / ratio))
            case .end: events.append(.ended)
            }
        }
    }

    /// The samples before the order, and the marks that were set before it, are gone.
    private mutating func discard(_ clear: Clear, events: inout [PlaybackEvent]) {
        let place = clear.target + clear.base
        position = max(position, place)
        for mark in takeMarks(to: place, setBefore: clear.marks) {
            switch mark.mark {
            case .named(let name): events.append(.discarded(mark: name))
            case .end: events.append(.ended)
            }
        }
    }

    private mutating func takeMarks(to place: Int, setBefore number: Int = .max) -> [Place] {
        let reached = Array(marks.prefix { $0.position <= place }.prefix(max(0, number - markCount)))
        marks.removeFirst(reached.count)
        markCount += reached.count
        return reached
    }
}
