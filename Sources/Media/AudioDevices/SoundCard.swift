internal import Realtime

/// Which way sound goes.
public enum SoundDirection: UInt8, BitwiseCopyable, CaseIterable, Sendable {
    /// To the loudspeaker.
    case playback
    /// From the microphone.
    case capture
}

/// What a card has granted for one direction, read back from it.
public struct CardGrant: BitwiseCopyable, Equatable, Sendable {
    /// Frames a second.
    public var rate: Int
    /// Channels in each frame.
    public var channels: Int
    /// How a sample is written.
    public var format: CardSampleFormat
    /// Frames from one interrupt to the next.
    public var periodFrames: Int
    /// Frames that the card's buffer holds.
    public var bufferFrames: Int
    /// Whether samples are moved through mapped memory.
    public var isMemoryMapped: Bool

    /// The time from one interrupt to the next.
    public var periodMilliseconds: Double { Double(periodFrames) * 1_000 / Double(rate) }
    /// The time that the card's buffer holds.
    public var bufferMilliseconds: Double { Double(bufferFrames) * 1_000 / Double(rate) }
}

/// The channels of a card that sound goes to: both, or one of them alone.
public enum CardOutputs: BitwiseCopyable, Sendable {
    case both, left, right
}

/// A card's report of one direction at a moment.
struct LineCondition: BitwiseCopyable {
    /// Zero, or what is wrong as a positive errno: EPIPE after an xrun, ESTRPIPE while suspended, ENODEV without a card.
    var errno: Int32 = 0
    /// Frames that can be written, or read, now.
    var availableFrames = 0
    /// Frames until a frame written now is heard, or since the next frame to read was in the air.
    var delayFrames = 0
}

/// Why a card could not be opened.
public struct CardFailure: BitwiseCopyable, Equatable, Sendable {
    /// Which direction could not be opened.
    public var direction: SoundDirection
    /// The reason, as a positive errno.
    public var errno: Int32

    /// Makes one.
    public init(direction: SoundDirection, errno: Int32) {
        self.direction = direction
        self.errno = errno
    }
}

/// A sound card as the loop sees it: ALSA's, or one of the tests'. Samples are mono and have the card's rate; the
/// implementation converts them to the card's format.
///
/// Functions that return a number return a count or zero, or a negative errno. None of them waits, except for
/// `open`.
protocol SoundCard: ~Copyable {
    /// Opens the directions that are wanted, all of them or none. Nil, or what failed.
    mutating func open() -> CardFailure?
    mutating func close()
    /// What was granted for a direction, while it is open.
    func grant(_ direction: SoundDirection) -> CardGrant?
    /// Stops a direction and makes it ready to start, empty.
    mutating func prepare(_ direction: SoundDirection) -> Int32
    mutating func start(_ direction: SoundDirection) -> Int32
    /// Resumes after a suspend. −EAGAIN while that is not possible yet.
    mutating func resume(_ direction: SoundDirection) -> Int32
    mutating func condition(_ direction: SoundDirection) -> LineCondition
    /// Writes `samples[start..<end]`.
    mutating func write(_ samples: borrowing SampleBuffer, from start: Int, to end: Int) -> Int
    /// Reads at most `count` frames into the front of `samples`.
    mutating func read(into samples: inout SampleBuffer, count: Int) -> Int
    /// From now on the card is to wake its thread as soon as the playback's queue is no longer than `frames`. It may
    /// start by itself once it has `startFrames`.
    mutating func setWakeQueue(frames: Int, startFrames: Int)
    /// Later samples go to these channels; initially to both. A card with one channel plays everything on it.
    mutating func setOutputs(_ outputs: CardOutputs)
    /// Takes the first `count` frames that ``read(into:count:)`` has just read with their first two channels apart: left,
    /// right, left…
    mutating func readPairs(into samples: inout SampleBuffer, count: Int)
}
