public import AudioPort
internal import Realtime
internal import Core

/// The sound of one call in this process: what the caller says as a sequence of frames, and a queue of sound for the caller.
///
/// All samples are linear 16 bit with one channel, at ``rate``. The queue holds 0.68 s; ``write(_:)`` waits while it is full. A
/// process that reads or writes too slowly delays no other call: its caller hears silence, and it loses what it has not read
/// in time. A port without references is closed.
///
/// Any task may use a port, and several may at a time; sound of two writers is queued in the order of their calls.
public final class CallPort: Sendable {
    /// The call whose sound it is.
    public let call: CallID
    /// Samples a second, both ways.
    public let rate: PortRate
    private let box: PortBox

    init(call: CallID, _ rate: PortRate, _ box: PortBox) {
        self.call = call
        self.rate = rate
        self.box = box
    }

    deinit { box.change { session, wakes in session.close(into: &wakes) } }

    // MARK: Sound from the caller

    /// What the caller says, in order and as it is played out. It ends when the call does, when the port leaves the call, and
    /// when it is closed. Each frame goes to one reader.
    public var frames: Frames { Frames(port: self) }

    /// Samples of the caller that were dropped because they were not read within 0.5 s, or because the machine was late.
    public var missedSamples: Int { box.change { session, _ in session.missedSamples } }

    // MARK: Sound for the caller

    /// Queues samples, and returns when all of them are in the queue, or were discarded by ``clear()`` meanwhile.
    ///
    /// - Throws: ``CallPortError`` if the port has left the call, is closed, or the task is cancelled; what is not in the
    ///   queue then is not played.
    public func write(_ samples: [Int16]) async throws(CallPortError) {
        let outcome = await wait { session, waiter, continuation, wakes in
            session.write(samples, waiter, continuation, at: MonotonicClock.now, into: &wakes)
        }
        try outcome.check()
    }

    /// Queues bytes of another encoding at the port's rate, as ``write(_:)`` does. Half a sample at the end is left out.
    public func write(_ bytes: [UInt8], _ encoding: PortFormat.Encoding) async throws(CallPortError) {
        try await write(PortFormat(rate: rate, encoding: encoding).samples(of: bytes))
    }

    /// Queues as many samples as there is room for, at once.
    ///
    /// - Returns: How many were taken: 0 while other tasks wait in ``write(_:)``, and when the port has left the
    ///   call or is closed.
    public func offer(_ samples: [Int16]) -> Int {
        box.change { session, _ in session.offer(samples, at: MonotonicClock.now) }
    }

    /// Samples that wait to be played, with those of tasks that wait in ``write(_:)``.
    public var waitingSamples: Int { box.change { session, _ in session.waitingSamples } }

    /// Samples that were sent to the caller since the port was opened. ``clear()`` makes it what the caller has heard, but
    /// for what is on its way.
    public var playedSamples: Int { box.change { session, _ in session.playedSamples } }

    /// Asks for ``PortEvent/played(mark:at:)`` when all that was written before it is sent to the caller.
    ///
    /// - Throws: ``CallPortError`` if 256 marks wait, or the port has left the call or is closed.
    public func mark(_ name: String) throws(CallPortError) {
        try box.change { session, wakes in session.mark(name, at: MonotonicClock.now, into: &wakes) }.check()
    }

    /// Discards all that was written and is not played; marks in it come back as ``PortEvent/discarded(mark:)``. The caller
    /// hears nothing of it from the next frame on.
    public func clear() { box.change { session, wakes in session.clear(into: &wakes) } }

    /// Returns when all that was written before is played or discarded, and has had 0.25 s to reach the caller's ear; so the
    /// call can be hung up then. Also returns when the port leaves the call or is closed, or the task is cancelled.
    public func drain() async {
        _ = await wait { session, waiter, continuation, wakes in
            session.drain(waiter, continuation, into: &wakes)
        }
    }

    // MARK: What happens

    /// Marks that were played, keys, speech and interruptions, in order. It ends as ``frames`` does. Up to 1,024 wait;
    /// further ones are dropped and counted.
    public var events: Events { Events(port: self) }

    /// Events that were dropped because they were not read.
    public var lostEvents: Int { box.change { session, _ in session.lostEvents } }

    /// Stops listening: the sequences end, and nothing more can be written. What is in the queue is still played, and then
    /// the caller hears silence.
    public func close() { box.change { session, wakes in session.close(into: &wakes) } }

    // MARK: Waiting

    private typealias Begin<Value: Sendable> =
        @Sendable (
            inout PortSession, PortWaiter, CheckedContinuation<Value, Never>, inout [PortWake]
        ) -> Void

    private func wait<Value: Sendable>(_ begin: @escaping Begin<Value>) async -> Value {
        let box = box
        let waiter = box.change { session, _ in session.makeWaiter() }
        let value = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                box.change { session, wakes in begin(&session, waiter, continuation, &wakes) }
            }
        } onCancel: {
            box.change { session, wakes in session.cancel(waiter, into: &wakes) }
        }
        if Task.isCancelled { box.change { session, _ in session.forget(waiter) } }
        return value
    }

    fileprivate func nextFrame() async -> Frame? {
        await wait { session, waiter, continuation, wakes in
            session.readFrame(waiter, continuation, into: &wakes)
        }
    }

    fileprivate func nextEvent() async -> PortEvent? {
        await wait { session, waiter, continuation, wakes in
            session.readEvent(waiter, continuation, into: &wakes)
        }
    }

    // MARK: Sequences

    /// What the caller has said in one frame of the call: 20 ms usually, 10 to 60 if the peers agree on that.
    public struct Frame: Sendable, Equatable {
        /// Samples of the caller before this frame since the port came into the call, the origin of ``PortEvent/speech(isOver:at:)``
        /// too. If it is more than the frames before add up to, sound was dropped between.
        public let position: Int
        /// At the port's rate.
        public let samples: [Int16]
        /// Samples a second.
        public let rate: PortRate

        init(position: Int, samples: [Int16], rate: PortRate) {
            self.position = position
            self.samples = samples
            self.rate = rate
        }

        /// The samples in another encoding.
        public func bytes(_ encoding: PortFormat.Encoding) -> [UInt8] {
            var bytes: [UInt8] = []
            PortFormat(rate: rate, encoding: encoding).append(samples, to: &bytes)
            return bytes
        }
    }

    /// The sequence of ``CallPort/frames``.
    public struct Frames: AsyncSequence, Sendable {
        fileprivate let port: CallPort

        /// Reads frames.
        public func makeAsyncIterator() -> Iterator { Iterator(port: port) }

        /// Reads frames.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let port: CallPort

            /// Waits for the next frame; nil when there are no more, or the task is cancelled.
            public mutating func next() async -> Frame? { await port.nextFrame() }
        }
    }

    /// The sequence of ``CallPort/events``.
    public struct Events: AsyncSequence, Sendable {
        fileprivate let port: CallPort

        /// Reads events.
        public func makeAsyncIterator() -> Iterator { Iterator(port: port) }

        /// Reads events.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let port: CallPort

            /// Waits for the next event; nil when there are no more, or the task is cancelled.
            public mutating func next() async -> PortEvent? { await port.nextEvent() }
        }
    }
}

/// Events of a call's port. Positions and counts are in samples at the port's rate.
public enum PortEvent: Sendable, Equatable {
    /// The last sample before the mark was sent, in a frame that has just left; `at` samples were sent until there.
    case played(mark: String, at: Int)
    /// The mark was in sound that was discarded.
    case discarded(mark: String)
    /// ``CallPort/clear()`` has taken effect after `played` sent samples.
    case cleared(played: Int)
    /// With ``PortPlan/bargeIn``: the caller has interrupted, and queued sound is discarded; `played` samples were sent at full
    /// level. What is written from now on is discarded, too, until ``CallPort/clear()``, a pause of 0.4 s, or 3 s have
    /// passed.
    case interrupted(played: Int)
    /// The caller has pressed a telephone key: `0`…`9`, `*`, `#`, `A`…`D`, or `!` for the flash of the hook.
    case digit(Character, heldFor: Duration)
    /// The caller has begun to speak, or has spoken until then: in samples of the caller since the port came into the call, as
    /// ``CallPort/Frame/position`` counts. (Events of the device count from the beginning of the call's sound.)
    case speech(isOver: Bool, at: Int)
    /// From the end of the caller's speech to the first sound of the answer that was sent.
    case responded(after: Duration)
}

/// A port does not do what it was asked for.
public struct CallPortError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What is in the way. Later versions may add kinds.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// The call has ended, or the port has left it.
        public static let over = Code(name: "over")
        /// The port was closed.
        public static let closed = Code(name: "closed")
        /// The task that waited is cancelled.
        public static let cancelled = Code(name: "cancelled")
        /// As many marks wait as may.
        public static let tooManyMarks = Code(name: "tooManyMarks")
    }

    /// What is in the way.
    public let code: Code
    /// Why, and what to do.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
