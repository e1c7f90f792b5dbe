package import ControlWire
package import HTTPTransport
package import NIOCore
internal import NIOHTTP1
internal import Realtime

/// What the requests of all processes have in common: keys of requests that are sent again, and streams of events. On the server's event
/// loop.
package final class ControlFront {
    private let store: EventStore
    private let streams: EventStreams
    private let webhooks: WebhookOffice?
    /// The server's event loop.
    package let loop: any EventLoop
    /// The way of other threads to ``loop``. It is closed before that ends.
    package let door: LoopDoor
    private var keys = IdempotencyTable()

    /// - Parameters:
    ///   - streams: Those of `store`, on `loop`.
    ///   - webhooks: Those of `store`; nil without a folder in which events wait for them.
    package init(
        _ store: EventStore, _ streams: EventStreams, _ webhooks: WebhookOffice? = nil, on loop: any EventLoop
    ) {
        (self.store, self.streams, self.webhooks, self.loop) = (store, streams, webhooks, loop)
        door = LoopDoor(to: loop)
    }

    /// The state of events, for the process's status.
    package var events: ControlEventsState {
        let figures = webhooks?.figures ?? []
        return ControlEventsState(
            cursor: "\(store.read { $0.cursor })", clients: streams.count, dropped: streams.dropped,
            webhooks: figures.isEmpty ? nil : figures)
    }

    /// Clients of events that were disconnected because they did not read.
    package var dropped: Int { streams.dropped }

    /// Disconnects the clients of events.
    package func close() { streams.close() }

    /// Has a request carried out, unless it has the key of an earlier one: then it gets that one's answer.
    ///
    /// - Parameters:
    ///   - key: Its `Idempotency-Key`; nil for none.
    ///   - patience: After this time the client is answered `late`. The answer of `work` is kept under the key all the same.
    ///   - work: Is given a function that takes the answer, to be called once on the event loop.
    package func once(
        _ key: String?, _ request: HTTPRequest, within patience: (time: TimeAmount, late: ControlFault)? = nil,
        _ reply: @escaping (HTTPAnswer) -> Void, _ work: (@escaping (ControlHTTPAnswer) -> Void) -> Void
    ) {
        if let key {
            switch keys.begin(key, fingerprint: request.fingerprint, at: MonotonicClock.now) {
            case .proceed: break
            case .replay(let answer): return reply(HTTPAnswer(answer))
            case .refuse(let problem): return reply(HTTPAnswer(problem.answer))
            }
        }
        let waiting = WaitingClient(reply)
        if let patience {
            waiting.timeout = loop.assumeIsolated().scheduleTask(in: patience.time) {
                waiting.answer(HTTPAnswer(patience.late))
            }
        }
        work { answer in
            if let key { self.keys.finish(key, with: answer) }
            waiting.answer(HTTPAnswer(answer))
        }
    }

    /// Sends events to a client from now on, unless there are too many such clients.
    package func stream(_ subscription: EventSubscription, _ reply: (HTTPAnswer) -> Void) {
        guard streams.count < EventStreams.limit else {
            return reply(HTTPAnswer(ControlFault(.tooMany, "\(EventStreams.limit) clients receive events, the limit")))
        }
        // Its greeting has the cursor from which it reads, so that no event is missed between the two.
        let reader = store.read { EventReader(subscription, of: $0) }
        var answer = HTTPAnswer(status: .ok, contentType: "text/event-stream", body: reader.greeting)
        let own = NIOLoopBound(streams, eventLoop: loop)
        answer.stream = { stream in own.value.add(stream, reader) }
        reply(answer)
    }
}

/// A client that has had no answer to its request yet.
private final class WaitingClient {
    private var reply: ((HTTPAnswer) -> Void)?
    var timeout: Scheduled<Void>?

    init(_ reply: @escaping (HTTPAnswer) -> Void) { self.reply = reply }

    func answer(_ answer: HTTPAnswer) {
        timeout?.cancel()
        reply?(answer)
        reply = nil
    }
}
