public import CallControl
internal import Synchronization

/// A service's events, as a sequence that any number of tasks may listen to.
///
/// All events wait for the first listener, bounded; later listeners receive the events from then on. A listener that
/// falls more than the buffer behind loses the newest events, which are counted.
public struct SignalingEvents: AsyncSequence, Sendable {
    /// What comes.
    public typealias Element = SignalingEvent
    /// It ends only with the service.
    public typealias Failure = Never

    package let hub: EventHub<SignalingEvent>

    /// Makes the events of a service that publishes them to `hub`.
    public init(hub: EventHub<SignalingEvent>) { self.hub = hub }

    /// Starts listening.
    public func makeAsyncIterator() -> AsyncStream<SignalingEvent>.Iterator { hub.listen().makeAsyncIterator() }
}

/// Hands events to every listener; keeps them until there is one (contract CONN-10).
public final class EventHub<Event: Sendable>: Sendable {
    private struct State {
        var backlog: EventBacklog<Event>
        var listeners: [Int: AsyncStream<Event>.Continuation] = [:]
        var nextListener = 0
        var overflowCount = 0
        var isFinished = false
    }

    private let state: Mutex<State>
    private let capacity: Int

    /// Holds `capacity` events for the first listener, and as many again for each that has fallen behind.
    public init(capacity: Int = 1_024) {
        self.capacity = capacity
        state = Mutex(State(backlog: EventBacklog(capacity: capacity)))
    }

    /// Events that were lost because no listener took them in time.
    public var lostCount: Int { state.withLock { $0.backlog.droppedCount + $0.overflowCount } }

    /// Called from one thread at a time, so that all listeners receive all events in one order.
    public func publish(_ event: Event) {
        let (event, listeners) = state.withLock { state in
            (state.backlog.offer(event), state.listeners.values.map { $0 })
        }
        guard let event else { return }
        // Outside the lock: to wake a listener takes its task's lock, which a cancel holds while it calls `forget`.
        for listener in listeners {
            if case .dropped = listener.yield(event) { state.withLock { $0.overflowCount += 1 } }
        }
    }

    /// A stream of what comes from now on, the first with all that waited.
    public func listen() -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Event.self, bufferingPolicy: .bufferingOldest(capacity))
        let number = state.withLock { state in
            let number = state.nextListener
            state.nextListener += 1
            for event in state.backlog.attach() { continuation.yield(event) }
            if state.isFinished { continuation.finish() } else { state.listeners[number] = continuation }
            return number
        }
        continuation.onTermination = { [weak self] _ in self?.forget(number) }
        return stream
    }

    /// Ends all streams, now and later.
    public func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            defer { state.listeners = [:] }
            return state.listeners.values.map { $0 }
        }
        for listener in listeners { listener.finish() }  // Outside the lock: it calls `forget`.
    }

    private func forget(_ number: Int) { state.withLock { _ = $0.listeners.removeValue(forKey: number) } }
}
