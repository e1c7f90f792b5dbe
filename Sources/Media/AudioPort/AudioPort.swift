// AudioPort: a call's sound as a program sees it: the caller's sound, and a queue of sound for the caller.

internal import AudioKit
public import Realtime
public import Core
public import VoiceActivity

/// The program's side of a call's sound. The media worker's side is ``PortLine``; rings of a fixed size join the two, so that
/// neither ever waits for the other.
///
/// All samples are at the program's rate; what resampling the call's 48 kHz needs is done here, on the program's side. One
/// thread at a time uses a port.
public struct AudioPort: ~Copyable {
    /// Samples a second, both ways.
    public let rate: PortRate
    /// Samples of the caller that the program was not given because this side was late by more than 0.6 s, at 48 kHz.
    public private(set) var missedSamples = 0
    private var heard: AudioRing.Consumer
    private var narrower: Resampler?
    private var queue: AudioRing.Producer
    private var widener: SpurtResampler
    private var widestRate: PortRate
    private var playback: PlaybackTracker
    private var orders: SPSCRing<PlayOrder>.Producer
    /// An order that found its ring full.
    private var waitingOrder: PlayOrder?
    private var reports: SPSCRing<PlayReport>.Consumer
    private var turnEvents: SPSCRing<TurnEvent>.Consumer
    /// How turns were taken so far, in samples at 48 kHz; nil if that is not followed.
    public private(set) var turns: TurnSummary?
    /// Times the caller has interrupted the program.
    public private(set) var interruptions = 0
    /// Events of ``takeTurns(into:)`` that were left out because this side was late.
    public private(set) var lostTurnEvents = 0
    /// Samples of the call's sound before the line came into it, as far as ``update(at:isFinal:into:)`` knows: 0 before the first
    /// frame. Positions of who speaks count from the beginning of that sound.
    public private(set) var start = 0
    /// Whether the caller hears something else now, such as a file, and what is queued waits.
    public private(set) var isSuspended = false
    private var lastWrite: Instant?
    private var block = SampleBuffer(capacity: AudioPort.blockSamples)
    private var narrowed = SampleBuffer(capacity: AudioPort.blockSamples)

    /// The most samples at 48 kHz that wait for the worker: 0.68 s. Beyond that ``write(_:at:)`` accepts none.
    public static let queueCapacity = 32_768
    /// The most samples of the caller at 48 kHz that wait for this side; further ones are dropped and counted.
    static let heardCapacity = 32_768
    /// Orders and reports that may wait. A report repeats what the one before it said, and only the newest order counts, so
    /// that none is missed.
    static let messageCapacity = 64
    private static let blockSamples = 4_096

    /// Makes both sides of a call's sound.
    ///
    /// - Parameters:
    ///   - rate: Samples a second that the program takes and gives.
    ///   - signal: Is signalled with each frame of the call.
    ///   - queueCapacity: Samples at 48 kHz that may wait to be played.
    ///   - turns: How turns are followed; nil if they are not.
    public static func pair(
        rate: PortRate, signal: PortSignal, queueCapacity: Int = AudioPort.queueCapacity, turns: TurnPlan? = nil
    ) -> PortPair {
        let heard = AudioRing(capacity: heardCapacity)
        let queue = AudioRing(capacity: queueCapacity)
        let orders = SPSCRing<PlayOrder>(capacity: messageCapacity)
        let reports = SPSCRing<PlayReport>(capacity: messageCapacity)
        let turnEvents = SPSCRing<TurnEvent>(capacity: messageCapacity)
        return PortPair(
            port: AudioPort(
                rate, heard: heard.consumer, queue: queue.producer, orders: orders.producer, reports: reports.consumer,
                turnEvents: turnEvents.consumer),
            line: PortLine(
                heard: heard.producer, queue: queue.consumer, orders: orders.consumer, reports: reports.producer,
                turnEvents: turnEvents.producer, rate: rate, turns: turns, signal: signal))
    }

    private init(
        _ rate: PortRate, heard: consuming AudioRing.Consumer, queue: consuming AudioRing.Producer,
        orders: consuming SPSCRing<PlayOrder>.Producer, reports: consuming SPSCRing<PlayReport>.Consumer,
        turnEvents: consuming SPSCRing<TurnEvent>.Consumer
    ) {
        self.rate = rate
        self.heard = heard
        self.queue = queue
        self.orders = orders
        self.reports = reports
        self.turnEvents = turnEvents
        narrower = rate == .hz48000 ? nil : Resampler(from: 48_000, to: rate.rawValue, quality: 4)
        widener = SpurtResampler(rate)
        widestRate = rate
        playback = PlaybackTracker(ratio: rate.ratio)
    }

    // MARK: Sound from the caller

    /// Appends all that the caller has said since this was last asked.
    public mutating func read(into samples: inout [Int16]) {
        while true {
            let count = Self.take(from: &heard, &block)
            guard count > 0 else { return }
            guard narrower != nil else {
                Self.append(block, count, to: &samples)
                continue
            }
            // A block at 48 kHz is at most half as long at any other rate.
            let made = Self.narrow(&narrower, block, count, into: &narrowed)
            Self.append(narrowed, made, to: &samples)
        }
    }

    /// Whether the call has ended and all of the caller's sound was read.
    public var isOver: Bool { mutating get { heard.hasEnded() } }

    // MARK: Sound for the caller

    /// Samples that ``write(_:at:)`` takes now.
    public var room: Int { roomAt48kHz / rate.ratio }

    /// The same in samples at 48 kHz, for sound at any rate.
    public var roomAt48kHz: Int { max(0, queue.space - widener.heldSamples) }

    /// Samples that wait to be played.
    public var waiting: Int { playback.waiting }

    /// Samples of the program that the caller has been sent so far.
    public var played: Int { playback.played }

    /// Queues as many samples as there is room for.
    ///
    /// - Returns: How many were taken; offer the rest again.
    public mutating func write(_ samples: Span<Int16>, at now: Instant) -> Int { write(samples, rate: rate, at: now) }

    /// Queues as many samples as there is room for, at another rate than the port's. Marks and lengths stay at the port's.
    ///
    /// - Returns: How many were taken; offer the rest again.
    public mutating func write(_ samples: Span<Int16>, rate: PortRate, at now: Instant) -> Int {
        let count = min(samples.count, roomAt48kHz / rate.ratio)
        guard count > 0 else { return 0 }
        if rate != widener.rate {
            // The room counts what is held as written.
            flush()
            widener = SpurtResampler(rate)
            if rate.rawValue > widestRate.rawValue {
                widestRate = rate
                order()
            }
        }
        var done = 0
        while done < count {
            let piece = samples.extracting(done..<min(count, done + Self.blockSamples / rate.ratio))
            let made = widener.process(piece, into: &block)
            put(made)
            done += piece.count
        }
        playback.accept(samplesAt48kHz: count * rate.ratio)
        lastWrite = now
        return count
    }

    /// Marks that may wait to be played.
    public static let mostMarks = PlaybackTracker.mostMarks

    /// Sets a mark behind all samples written so far, and behind the `unread` ones after them that the program has given and
    /// ``write(_:at:)`` has not got yet.
    ///
    /// - Returns: False if too many marks wait.
    public mutating func mark(_ name: String, unread: Int = 0) -> Bool { playback.mark(.named(name), unread: unread) }

    /// Requests one event when everything that is written, and `unread` more samples, is played.
    public mutating func end(unread: Int = 0) { _ = playback.mark(.end, unread: unread) }

    /// Discards all samples that are not played yet; the caller hears none from the next frame on.
    ///
    /// - Parameter unread: Samples that the program has given, and that are discarded before they are written.
    public mutating func clear(unread: Int = 0) {
        widener.reset()
        playback.accept(samplesAt48kHz: unread * rate.ratio)
        order(clearTo: playback.clear())
    }

    /// Discards all samples and all marks without events: another program takes over.
    public mutating func abandon() {
        clear()
        playback.forgetMarks()
    }

    /// Takes the worker's reports, and flushes the resampler when the program pauses.
    ///
    /// - Parameters:
    ///   - isFinal: Nothing will be written for some time, if ever.
    ///   - events: Receives the events of marks, in order.
    public mutating func update(at now: Instant, isFinal: Bool, into events: inout [PlaybackEvent]) {
        sendOrder()
        while let report = reports.pop() {
            missedSamples = report.missed
            start = report.start / rate.ratio
            isSuspended = report.isSuspended
            playback.note(report, into: &events)
            lostTurnEvents = report.eventsLost
            turns = report.turns
            guard report.interruptions != interruptions else { continue }
            // The worker sends nothing until it has this order.
            interruptions = report.interruptions
            clear()
            events.append(.interrupted(played: played))
        }
        let idle = lastWrite.map { $0.duration(to: now) } ?? .zero
        guard playback.needsFlush(held: widener.heldSamples, idle: idle, isFinal: isFinal) else { return }
        flush()
    }

    /// Appends who has spoken since this was last asked, in order; positions are at the program's rate.
    public mutating func takeTurns(into events: inout [TurnEvent]) {
        while let event = turnEvents.pop() { events.append(event.divided(by: rate.ratio)) }
    }

    /// Brings what the resampler holds into the queue, as far as there is room.
    private mutating func flush() {
        while widener.heldSamples > 0 {
            let made = widener.flush(into: &block)
            put(made)
            if made == 0 { break }
        }
    }

    /// Queues the beginning of the block, for which there is room.
    private mutating func put(_ count: Int) {
        guard count > 0 else { return }
        playback.wrote(Self.give(block, count, to: &queue))
    }

    private mutating func order(clearTo target: Int = 0) {
        waitingOrder = PlayOrder(
            target: max(target, waitingOrder?.target ?? 0), interruptions: interruptions,
            widestRate: widestRate.rawValue)
        sendOrder()
    }

    private mutating func sendOrder() {
        guard let order = waitingOrder, orders.push(order) else { return }
        waitingOrder = nil
    }

    // Views of blocks, each within one statement.

    private static func take(from ring: inout AudioRing.Consumer, _ block: inout SampleBuffer) -> Int {
        var room = block.mutableSamples(block.capacity)
        return ring.read(into: &room)
    }

    private static func give(_ block: borrowing SampleBuffer, _ count: Int, to ring: inout AudioRing.Producer) -> Int {
        ring.write(block.samples(count))
    }

    private static func append(_ block: borrowing SampleBuffer, _ count: Int, to samples: inout [Int16]) {
        let (view, start) = (block.samples(count), samples.count)
        samples.append(contentsOf: repeatElement(0, count: count))
        var room = samples.mutableSpan
        for index in 0..<view.count { room[start + index] = view[index] }
    }

    private static func narrow(
        _ resampler: inout Resampler?, _ block: borrowing SampleBuffer, _ count: Int, into output: inout SampleBuffer
    ) -> Int {
        var room = output.mutableSamples(output.capacity)
        return resampler?.process(block.samples(count), into: &room).produced ?? 0
    }
}

/// Both sides of a call's sound.
@frozen
public struct PortPair: ~Copyable {
    /// For the code that communicates with the program.
    public var port: AudioPort
    /// For the media worker.
    public var line: PortLine

    init(port: consuming AudioPort, line: consuming PortLine) {
        self.port = port
        self.line = line
    }
}

/// The signal with which a port's worker wakes its program's side. It lives as long as one of the two.
public final class PortSignal: Sendable {
    private let wakeup: Wakeup

    /// Opens a signal. Fails only when the process has no descriptor left.
    public init() throws(RealtimeError) { wakeup = try Wakeup() }

    /// Readable once signalled.
    public var descriptor: Int32 { wakeup.descriptor }

    /// Wakes the thread that waits.
    public func signal() { wakeup.signal() }

    /// Takes back all signals seen so far.
    public func clear() { wakeup.clear() }

    /// Blocks until signalled, or until `timeoutMilliseconds` have passed; then clears.
    public func wait(timeoutMilliseconds: Int32? = nil) { wakeup.wait(timeoutMilliseconds: timeoutMilliseconds) }

    var handle: WakeupHandle { wakeup.handle }
}

/// Samples a second that a program takes and gives.
public enum PortRate: Int, CaseIterable, Sendable {
    case hz8000 = 8_000
    case hz16000 = 16_000
    case hz24000 = 24_000
    case hz48000 = 48_000

    /// Samples of the call's 48 kHz in one of the program's.
    var ratio: Int { 48_000 / rawValue }
}
