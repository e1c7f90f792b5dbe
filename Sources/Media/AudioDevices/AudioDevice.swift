// AudioDevices: sound cards. Separate threads move samples between cards and the media workers at a constant delay,
// independent of the cards' clocks.

internal import Glibc
public import Realtime
internal import Synchronization
internal import Core

/// A sound card in use: its thread and its events. All methods may be called from any thread.
///
/// The card may be missing: until it is there, its line provides silence.
public final class AudioDevice: Sendable {
    private let shared: Shared
    private let line: Mutex<SoundLine?>
    /// The thread that joins them empties this.
    private let threads: Mutex<[RealtimeThread]>

    /// Starts the thread, which opens the card.
    ///
    /// - Parameter onEvent: Is called with each event, in order, on a separate thread.
    public init(
        _ configuration: AudioDeviceConfiguration, onEvent: @escaping @Sendable (CardEvent) -> Void
    ) throws(RealtimeError) {
        let shared = try Shared()
        self.shared = shared
        let pair = LinePair(wakeup: shared.wakeup.handle)
        line = Mutex(pair.worker)
        let events = SPSCRing<CardEvent>(capacity: Self.eventCapacity)
        let loop = LoopBox(
            CardLoop(
                ALSACard(configuration), pair.device, events: events.producer,
                eventSignal: shared.eventWakeup.handle))
        let teller = EventBox(events.consumer)
        let priority = configuration.realtimePriority
        let cardThread = try RealtimeThread(name: "sound-card") { loop.run(shared, priority: priority) }
        do throws(RealtimeError) {
            threads = Mutex([cardThread, try RealtimeThread(name: "sound-events") { teller.run(shared, onEvent) }])
        } catch {
            shared.stop()
            cardThread.join()
            throw error
        }
    }

    /// Stops the card, if ``stop()`` has not.
    deinit { stop() }

    /// Capacity for events that wait for delivery. Normally there is one a second.
    private static let eventCapacity = 256

    /// The media worker's end; the first time only, nil from then on.
    public func takeLine() -> SoundLine? {
        line.withLock { line in
            let taken = line.take()
            return taken
        }
    }

    /// The card's statistics, at most a second old.
    public var statistics: CardStatistics { shared.statistics.withLock { $0 } }

    /// Plays what the card still has and closes it. Not to be called from `onEvent`.
    ///
    /// - Returns: False if the driver did not release it within three seconds; its thread is then abandoned.
    @discardableResult
    public func stop() -> Bool {
        shared.stop()
        if !shared.hasStopped.load(ordering: .acquiring) { shared.stopped.wait(timeoutMilliseconds: 3_000) }
        guard shared.hasStopped.load(ordering: .acquiring) else { return false }
        let ended = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in ended { thread.join() }
        return true
    }

    /// State that the threads and the owner share. It outlives them all.
    private final class Shared: Sendable {
        let wakeup: Wakeup
        let eventWakeup: Wakeup
        let stopped: Wakeup
        let mustStop = Atomic<Bool>(false)
        let hasStopped = Atomic<Bool>(false)
        let statistics = Mutex(CardStatistics())

        init() throws(RealtimeError) {
            wakeup = try Wakeup()
            eventWakeup = try Wakeup()
            stopped = try Wakeup()
        }

        func stop() {
            mustStop.store(true, ordering: .releasing)
            wakeup.signal()
        }
    }

    /// Hands the loop to its thread.
    private final class LoopBox: @unchecked Sendable {
        // Made before the thread starts, and touched by it alone from then on.
        private var loop: CardLoop<ALSACard>

        init(_ loop: consuming CardLoop<ALSACard>) { self.loop = loop }

        func run(_ shared: Shared, priority: Int32?) {
            if let priority {
                do throws(RealtimeError) {
                    try RealtimeThread.makeCurrentRealtime(priority: priority)
                } catch {
                    loop.tellPriorityRefused(errno: error.errno)
                }
            } else {
                loop.expectLateness()
            }
            loop.run(wakeup: shared.wakeup.handle) { shared.mustStop.load(ordering: .acquiring) }
        }
    }

    /// Hands the events to theirs.
    private final class EventBox: @unchecked Sendable {
        // Made before the thread starts, and touched by it alone from then on.
        private var events: SPSCRing<CardEvent>.Consumer

        init(_ events: consuming SPSCRing<CardEvent>.Consumer) { self.events = events }

        func run(_ shared: Shared, _ onEvent: @Sendable (CardEvent) -> Void) {
            while true {
                shared.eventWakeup.wait()
                while let event = events.pop() {
                    if case .report(let statistics) = event { shared.statistics.withLock { $0 = statistics } }
                    onEvent(event)
                    guard case .stopped = event else { continue }
                    shared.hasStopped.store(true, ordering: .releasing)
                    shared.stopped.signal()
                    return
                }
            }
        }
    }
}

extension CardLoop where Card == ALSACard {
    /// Runs until the card has been closed as asked.
    ///
    /// - Parameter mustStop: Whether to close it; asked after each wake-up.
    fileprivate mutating func run(wakeup: WakeupHandle, mustStop: () -> Bool) {
        start(at: MonotonicClock.now)
        var idleWakes = 0
        while !isStopped {
            let hasMoved = step(at: MonotonicClock.now)
            idleWakes = hasMoved ? 0 : idleWakes + 1
            // A driver may report work when there is none. After two such reports in a row, the card is only checked
            // four times in a period.
            let watchesCard = isCardRunning && idleWakes < 3
            var milliseconds = isCardRunning ? max(1, Int64(card.periodMilliseconds / (watchesCard ? 1 : 4))) : 1_000
            if let deadline = nextDeadline {
                let left = MonotonicClock.now.nanoseconds(to: deadline)
                milliseconds = max(0, min(milliseconds, (left + 999_999) / 1_000_000))
            }
            let asked = MonotonicClock.now
            let isSignalled = card.wait(
                wakeup.descriptor, milliseconds: Int32(milliseconds), watchesCard: watchesCard)
            note(latenessNanoseconds: asked.nanoseconds(to: MonotonicClock.now) - milliseconds * 1_000_000)
            if isSignalled { wakeup.clear() }
            if mustStop() { stop(at: MonotonicClock.now) }
        }
    }
}

/// Which sound card to use, and how.
public struct AudioDeviceConfiguration: Equatable, Sendable {
    /// The card to play on; nil for none.
    ///
    /// A PCM's name as ALSA knows it ("default", "hw:CARD=Headset", "pulse", …), or a card's own identity, which stays
    /// the same wherever and whenever it is plugged in: "by-id/…" or "by-path/…", as in /dev/snd. A comma and a number
    /// may follow an identity for a device of the card other than its first.
    public var playback: String?
    /// The card to capture from, named likewise; nil for none.
    public var capture: String?
    /// The time between a card's wake-ups that is asked for, in ms, 1…100. Shorter means less delay and more work. The
    /// card may grant another.
    public var periodMilliseconds = 10
    /// The least length of the card's buffers that is asked for, in ms; they have eight periods if that is more.
    public var leastBufferMilliseconds = 0
    /// Channels requested in each direction; a card with fewer channels uses those that it has.
    public var channels = 1
    /// SCHED_FIFO priority of the card's thread, above the media workers'; nil for none.
    public var realtimePriority: Int32?

    /// - Parameters:
    ///   - playback: The card to play on; nil for none.
    ///   - capture: The card to capture from; nil for none.
    public init(playback: String? = "default", capture: String? = "default") {
        self.playback = playback
        self.capture = capture
    }
}

/// An event of a sound card, sent by the device's thread as plain values.
public enum CardEvent: BitwiseCopyable, Equatable, Sendable {
    /// A card was opened; what it granted for each direction that is used.
    case opened(playback: CardGrant?, capture: CardGrant?)
    /// There is no card, or it cannot be opened, for this reason. Reported once for each reason; opening is retried.
    case unavailable(CardFailure)
    /// Sound flows, with a steady delay.
    case running
    /// The card has gone away or given up, with this errno. Calls continue in silence until it is back.
    case lost(errno: Int32)
    /// The card reports no error, but moves no samples. It is reopened.
    case stalled(SoundDirection)
    /// The number of underruns and overruns since this was last reported; at most once in ten seconds.
    case xruns(SoundDirection, count: Int)
    /// The card was suspended.
    case suspended
    /// The card is back from a suspend.
    case resumed
    /// Its thread was refused real-time priority, with this errno.
    case priorityRefused(errno: Int32)
    /// How it is doing, once a second.
    case report(CardStatistics)
    /// It was closed as asked.
    case stopped
}
