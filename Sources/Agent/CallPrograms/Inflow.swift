internal import Core

/// How much is read of what a program writes to its log, or as commands, so that one that floods takes neither the programs' thread
/// nor the log.
///
/// Within its rate all is read, at most once in each ``rest``. Past it all is dropped, once in each ``pause``, until a quarter of the
/// burst has come back: the program never waits longer than that, and dropping costs one read of ``droppedAtOnce`` bytes each time.
struct Inflow: Sendable {
    /// What is to be done with what is there.
    enum Turn: Equatable, Sendable {
        /// Read this many bytes at most.
        case read(Int)
        /// Read, and forget, ``Inflow/droppedAtOnce`` bytes at most.
        case drop
        /// Leave it where it is.
        case wait
    }

    /// Between two reads, so that a program that writes byte by byte is read in larger pieces.
    static let rest = Duration.milliseconds(2)
    /// Between two reads of what is dropped.
    static let pause = Duration.milliseconds(20)
    /// What pipes and sockets hold at most without a setting of their own.
    static let droppedAtOnce = 262_144

    /// What a line costs besides its bytes, so that many short ones are bounded, too.
    static let lineBytes = 48

    let rate: TokenBucket.Rate
    /// Bytes that may be read.
    private var bytes = TokenBucket()
    /// When it was last looked at.
    private var asOf = Instant.zero
    /// When it is looked at again; nil for at once.
    private(set) var restsUntil: Instant?
    private var isDropping = false
    /// Bytes that were dropped.
    private(set) var dropped = 0

    /// - Parameters:
    ///   - burst: Bytes that are read at once after a pause.
    ///   - perSecond: Bytes a second in the long run.
    init(burst: Int, perSecond: Int) {
        rate = TokenBucket.Rate(burst: burst, perSecond: Double(perSecond))
    }

    /// Lines for the log.
    static var log: Inflow { Inflow(burst: 65_536, perSecond: 65_536) }

    /// Commands. The shortest that does anything has 20 bytes, so these are 240 a second, and 960 at once.
    static var commands: Inflow { Inflow(burst: 65_536, perSecond: 16_384) }

    /// What is to be done with what is there, or comes.
    ///
    /// - Parameter isLast: Whether nothing comes after it, as when the process has ended.
    mutating func turn(at now: Instant, isLast: Bool = false) -> Turn {
        asOf = now
        let level = bytes.count(rate, at: now)
        if let restsUntil, now >= restsUntil { self.restsUntil = nil }
        if restsUntil != nil, !isLast { return .wait }
        if isDropping, 4 * level >= rate.burst { isDropping = false }
        return isDropping ? .drop : .read(level)
    }

    /// Notes bytes that were read.
    mutating func took(_ count: Int, at now: Instant) {
        if !bytes.take(count, rate, at: asOf) { bytes.empty(rate, at: asOf) }
        // What comes after the last byte that may be read is dropped, and not left for the little that comes back meanwhile.
        if bytes.count(rate, at: asOf) < 1 { isDropping = true }
        restsUntil = now.advanced(by: Self.rest)
    }

    /// Takes a line of what was read, which costs as much as ``lineBytes`` bytes.
    ///
    /// - Returns: Whether it counts; otherwise it is dropped.
    mutating func takeLine() -> Bool {
        if bytes.take(Self.lineBytes, rate, at: asOf) { return true }
        bytes.empty(rate, at: asOf)
        isDropping = true
        return false
    }

    /// Notes bytes that were dropped.
    ///
    /// - Returns: Whether they are the first.
    mutating func dropped(_ count: Int, at now: Instant) -> Bool {
        restsUntil = now.advanced(by: Self.pause)
        defer { dropped += count }
        return dropped == 0 && count > 0
    }
}
