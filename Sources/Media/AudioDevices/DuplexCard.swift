internal import Glibc
public import Realtime
internal import Synchronization
internal import Timekeeping

/// A sound card for measuring: a thread of its own plays the frames it is given and hands on those captured, one by one,
/// with nothing between libasound and the caller but rings, which do not count: frames are told apart by their number.
///
/// ``play(_:)``, ``capture(into:)`` and ``nextNote()`` are for one thread at a time.
public final class DuplexCard: Sendable {
    /// What was granted to play.
    public let playback: CardGrant
    /// What was granted to capture.
    public let capture: CardGrant
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
    ///   - bufferMilliseconds: How far the buffer to play from is filled; nil for two periods.
    public init(_ configuration: AudioDeviceConfiguration, bufferMilliseconds: Double? = nil) throws(AudioDeviceError) {
        var card = ALSACard(configuration)
        if let failure = card.open() { throw Self.error(configuration, failure.direction, failure.errno) }
        guard let playback = card.grant(.playback), let capture = card.grant(.capture) else {
            throw Self.error(configuration, configuration.playback == nil ? .playback : .capture, ENODEV)
        }
        (self.playback, self.capture) = (playback, capture)
        let signal = AudioRing(capacity: Self.ringSeconds * playback.rate)
        let captured = AudioRing(capacity: Self.ringSeconds * capture.rate)
        let notes = SPSCRing<DuplexNote>(capacity: 16_384)
        near = Mutex(NearEnds(signal: signal.producer, captured: captured.consumer, notes: notes.consumer))
        let ends = DuplexEnds(signal: signal.consumer, captured: captured.producer, notes: notes.producer)
        do throws(RealtimeError) {
            shared = try Shared()
        } catch {
            throw AudioDeviceError(
                device: configuration.playback ?? "", direction: .playback, errno: error.errno, step: error.action)
        }
        box = Mutex(LoopBox(card, ends, bufferMilliseconds, configuration.realtimePriority))
    }

    private static func error(_ configuration: AudioDeviceConfiguration, _ direction: SoundDirection, _ errno: Int32)
        -> AudioDeviceError
    {
        let name = direction == .playback ? configuration.playback : configuration.capture
        return AudioDeviceError(device: name ?? "none", direction: direction, errno: errno)
    }

    deinit { stop() }

    /// Starts the card; once. What is to be played first should have been given by then.
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

    /// Takes the next captured frames, at the capturing card's rate. Returns how many there were.
    public func capture(into frames: inout MutableSpan<Int16>) -> Int {
        near.withLock { $0.captured.read(into: &frames) }
    }

    /// What happened next; nil if nothing more did.
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

    /// Hands the open card to its thread.
    private final class LoopBox: @unchecked Sendable {
        // Made before the thread starts, and touched by it alone from then on.
        private var card: ALSACard?
        private var ends: DuplexEnds?
        private let bufferMilliseconds: Double?
        private let priority: Int32?

        init(
            _ card: consuming ALSACard, _ ends: consuming DuplexEnds, _ bufferMilliseconds: Double?, _ priority: Int32?
        ) {
            self.card = consume card
            self.ends = consume ends
            self.bufferMilliseconds = bufferMilliseconds
            self.priority = priority
        }

        func run(_ shared: Shared) {
            guard let card = card.take(), let ends = ends.take(),
                var loop = DuplexLoop(card, ends, bufferMilliseconds: bufferMilliseconds, at: MonotonicClock.now)
            else { return }
            if let priority {
                do throws(RealtimeError) {
                    try RealtimeThread.makeCurrentRealtime(priority: priority)
                } catch {
                    loop.note(.priorityRefused(errno: error.errno), at: MonotonicClock.now)
                }
            }
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
            // A driver that says without end that there is something to do is looked at four times in a period.
            let watchesCard = isCardThere && idleWakes < 3
            let milliseconds = isCardThere ? max(1, card.periodMilliseconds / (watchesCard ? 1 : 4)) : 20
            card.wait(wakeup.descriptor, milliseconds: Int32(milliseconds), watchesCard: watchesCard)
            wakeup.clear()
        }
    }
}
