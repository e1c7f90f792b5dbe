internal import Glibc
public import Realtime
internal import Synchronization
public import Core

/// A sound card for measuring: a separate thread plays the given frames and delivers the captured ones, one by one.
/// Between libasound and the caller there are only rings, whose delay does not count, because frames are identified by
/// their number.
///
/// ``play(_:)``, ``capture(into:)`` and ``nextNote()`` are for one thread at a time.
public final class DuplexCard: Sendable {
    /// The granted playback settings.
    public let playback: CardGrant
    /// The granted capture settings.
    public let capture: CardGrant
    /// Samples that ``capture(into:)`` gives of each frame: 1, or 2 for left and right.
    public let captureWidth: Int
    private let near: Mutex<NearEnds>
    private let box: Mutex<LoopBox?>
    private let shared: Shared
    private let thread = Mutex<RealtimeThread?>(nil)

    /// Seconds of sound that the rings hold.
    public static let ringSeconds = 8

    private struct NearEnds: ~Copyable, Sendable {
        var signal: AudioRing.Producer
        var captured: AudioRing.Consumer
        var notes: SPSCRing<DuplexNote>.Consumer
    }

    /// Opens a card in both directions.
    ///
    /// - Parameters:
    ///   - configuration: Both directions must be named.
    ///   - bufferMilliseconds: How far the buffer to play from is filled; nil for two periods, or six if the thread is
    ///     refused real-time priority.
    ///   - keepsPairs: Whether both channels are handed on, of a card that captures two; else their mean is.
    ///   - solo: Which frames of what is played go to one channel alone, by the playing card's rate.
    public init(
        _ configuration: AudioDeviceConfiguration, bufferMilliseconds: Double? = nil, keepsPairs: Bool = false,
        solo: (_ rate: Int) -> SoloPlan = { _ in SoloPlan() }
    ) throws(AudioDeviceError) {
        var configuration = configuration
        // The samples kept ahead must fit, and one more period.
        configuration.leastBufferMilliseconds =
            bufferMilliseconds.map { Int($0) + 2 * configuration.periodMilliseconds } ?? 0
        var card = ALSACard(configuration)
        if let failure = card.open() { throw Self.error(configuration, failure.direction, failure.errno) }
        guard let playback = card.grant(.playback), let capture = card.grant(.capture) else {
            throw Self.error(configuration, configuration.playback == nil ? .playback : .capture, ENODEV)
        }
        (self.playback, self.capture) = (playback, capture)
        let signal = AudioRing(capacity: Self.ringSeconds * playback.rate)
        captureWidth = keepsPairs && capture.channels == 2 ? 2 : 1
        let captured = AudioRing(capacity: Self.ringSeconds * capture.rate * captureWidth)
        let notes = SPSCRing<DuplexNote>(capacity: 16_384)
        near = Mutex(NearEnds(signal: signal.producer, captured: captured.consumer, notes: notes.consumer))
        let ends = DuplexEnds(signal: signal.consumer, captured: captured.producer, notes: notes.producer)
        do throws(RealtimeError) {
            shared = try Shared()
        } catch {
            throw AudioDeviceError(
                device: configuration.playback ?? "", direction: .playback, errno: error.errno, step: error.action)
        }
        let routes = Routes(solo: solo(playback.rate), keepsPairs: keepsPairs)
        box = Mutex(LoopBox(card, ends, bufferMilliseconds, routes, configuration.realtimePriority))
    }

    private static func error(_ configuration: AudioDeviceConfiguration, _ direction: SoundDirection, _ errno: Int32)
        -> AudioDeviceError
    {
        let name = direction == .playback ? configuration.playback : configuration.capture
        return AudioDeviceError(device: name ?? "none", direction: direction, errno: errno)
    }

    deinit { stop() }

    /// Starts the card; call it once, after the first frames to play were given.
    public func start() throws(RealtimeError) {
        let taken = box.withLock { box in
            defer { box = nil }
            return box
        }
        guard let taken else { return }
        let started = try RealtimeThread(name: "sound-duplex") { [shared] in taken.run(shared) }
        thread.withLock { $0 = started }
    }

    /// Stops the card at once.
    public func stop() {
        shared.stop()
        let started = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        started?.join()
    }

    /// Gives the next frames to be played, at the playing card's rate.
    ///
    /// - Returns: How many were taken; the ring may be full.
    public func play(_ frames: Span<Int16>) -> Int { near.withLock { $0.signal.write(frames) } }

    /// Frames that ``play(_:)`` would take now.
    public var playSpace: Int { near.withLock { $0.signal.space } }

    /// Takes the next captured frames, at the capturing card's rate. Returns how many samples there were, with
    /// ``captureWidth`` of each frame; `frames` must have room for whole frames.
    public func capture(into frames: inout MutableSpan<Int16>) -> Int {
        near.withLock { $0.captured.read(into: &frames) }
    }

    /// The next event; nil if there is none.
    public func nextNote() -> DuplexNote? { near.withLock { $0.notes.pop() } }

    private final class Shared: Sendable {
        let wakeup: Wakeup
        let mustStop = Atomic<Bool>(false)

        init() throws(RealtimeError) { wakeup = try Wakeup() }

        func stop() {
            mustStop.store(true, ordering: .releasing)
            wakeup.signal()
        }
    }

    /// How channels are handled.
    private struct Routes {
        let solo: SoloPlan
        let keepsPairs: Bool
    }

    /// Hands the open card to its thread.
    private final class LoopBox: @unchecked Sendable {
        // Made before the thread starts, and touched by it alone from then on.
        private var card: ALSACard?
        private var ends: DuplexEnds?
        private let bufferMilliseconds: Double?
        private let routes: Routes
        private let priority: Int32?

        init(
            _ card: consuming ALSACard, _ ends: consuming DuplexEnds, _ bufferMilliseconds: Double?, _ routes: Routes,
            _ priority: Int32?
        ) {
            self.routes = routes
            self.card = consume card
            self.ends = consume ends
            self.bufferMilliseconds = bufferMilliseconds
            self.priority = priority
        }

        func run(_ shared: Shared) {
            var refusal: Int32?
            if let priority {
                do throws(RealtimeError) {
                    try RealtimeThread.makeCurrentRealtime(priority: priority)
                } catch {
                    refusal = error.errno
                }
            }
            guard let card = card.take(), let ends = ends.take(),
                var loop = DuplexLoop(
                    card, ends, bufferMilliseconds: bufferMilliseconds, hasPriority: refusal == nil,
                    solo: routes.solo, keepsPairs: routes.keepsPairs, at: MonotonicClock.now)
            else { return }
            if let refusal { loop.note(.priorityRefused(errno: refusal), at: MonotonicClock.now) }
            loop.run(wakeup: shared.wakeup.handle) { shared.mustStop.load(ordering: .acquiring) }
        }
    }
}

extension DuplexLoop where Card == ALSACard {
    /// Runs until it must stop.
    fileprivate mutating func run(wakeup: WakeupHandle, mustStop: () -> Bool) {
        var idleWakes = 0
        while !mustStop() {
            idleWakes = step(at: MonotonicClock.now) ? 0 : idleWakes + 1
            if isDue { continue }
            // A driver that reports work continuously is only checked four times in a period.
            let watchesCard = isCardThere && idleWakes < 3
            let milliseconds = isCardThere ? max(1, card.periodMilliseconds / (watchesCard ? 1 : 4)) : 20
            let isSignalled = card.wait(
                wakeup.descriptor, milliseconds: Int32(milliseconds), watchesCard: watchesCard)
            if isSignalled { wakeup.clear() }
        }
    }
}

/// An event of a card that is used frame by frame; see ``DuplexCard``.
public struct DuplexNote: BitwiseCopyable, Equatable, Sendable {
    /// The kind of event.
    public var event: Event
    /// When.
    public var at: Instant
    /// Captured frames handed on until then, counted from the beginning of the measurement.
    public var captured: Int
    /// Frames of the signal played until then, counted from the same moment.
    public var played: Int

    /// The kinds of event.
    public enum Event: BitwiseCopyable, Equatable, Sendable {
        /// A block was read and another written. Before that `available` captured frames waited, `queue` frames in the
        /// buffer were still to be played, and as many as `behind` says behind the buffer, in the driver or a server.
        case exchanged(available: Int, queue: Int, behind: Int)
        /// The buffer underran (playback) or overran (capture). Both directions are restarted.
        case xrun(SoundDirection)
        /// The thread paused longer than the playback buffer lasts, so the buffer may have run empty: reported before any xrun
        /// that follows.
        case heldUp(nanoseconds: Int64)
        /// The card was suspended. Both directions are restarted.
        case suspended
        /// The card went away.
        case lost(errno: Int32)
        /// It is back.
        case returned
        /// The thread runs without the real-time priority that was asked for.
        case priorityRefused(errno: Int32)
        /// This many frames were not provided for playback, or not taken after capture: the measuring program was late,
        /// and silence replaces them.
        case late(played: Int, captured: Int)
    }
}

/// Which frames of what is played go to one channel of the card alone; all others go to both.
public struct SoloPlan: Equatable, Sendable {
    /// For the left channel, counted from the first frame of the signal.
    public var left: Range<Int>
    /// For the right channel; behind those for the left one.
    public var right: Range<Int>

    /// Makes a plan; without any ranges all goes to both.
    public init(left: Range<Int> = 0..<0, right: Range<Int> = 0..<0) { (self.left, self.right) = (left, right) }

    /// The target of the frame, and how many frames from it on have the same target, at most `most`.
    @_noAllocation @_noLocks
    func outputs(at frame: Int, most: Int) -> (outputs: CardOutputs, count: Int) {
        if left.contains(frame) { return (.left, min(most, left.upperBound - frame)) }
        if right.contains(frame) { return (.right, min(most, right.upperBound - frame)) }
        let next = frame < left.lowerBound && !left.isEmpty ? left : right
        return (.both, frame < next.lowerBound && !next.isEmpty ? min(most, next.lowerBound - frame) : most)
    }
}
