import ControlPlane
import ControlWire
import ExchangeCore
import Glibc
import HTTPTransport
import NIOCore
import NIOHTTP1
import Realtime
import SignalWire

/// Carries out what an operator requests of an exchange. On the control interface's event loop; the exchange has its own.
///
/// At most ``mostWaiting`` requests wait for the exchange, which serves them in turn with its clients; further ones are refused. An answer
/// to an order comes when what it has changed is on disk.
final class ExchangeControl: ControlPoint {
    /// Requests that wait for the exchange at a time.
    static let mostWaiting = 32
    /// For the exchange, and its disk, to answer.
    static let patience = TimeAmount.seconds(10)

    /// Makes the answer, on the control interface's loop.
    typealias Outcome = @Sendable () -> ControlHTTPAnswer

    /// What of the process the state has.
    struct Facts: Sendable {
        let version: String
        let url: String
        let began = MonotonicClock.now
    }

    private let hub: NIOLoopBound<ExchangeHub>
    private let exchangeLoop: any EventLoop
    private let facts: Facts
    private let store: EventStore
    private let streams: EventStreams
    private let feed: ExchangeFeed
    private let loop: any EventLoop
    private let door: LoopDoor
    private let patience: TimeAmount
    private var keys = IdempotencyTable()
    private var waiting = 0

    init(
        _ hub: NIOLoopBound<ExchangeHub>, on exchangeLoop: any EventLoop, _ facts: Facts, _ store: EventStore,
        _ streams: EventStreams, _ feed: ExchangeFeed, loop: any EventLoop, door: LoopDoor,
        patience: TimeAmount = ExchangeControl.patience
    ) {
        (self.hub, self.exchangeLoop, self.facts) = (hub, exchangeLoop, facts)
        (self.store, self.streams, self.feed) = (store, streams, feed)
        (self.loop, self.door, self.patience) = (loop, door, patience)
    }

    func close() { streams.close() }

    func carryOut(_ request: HTTPRequest, _ reply: @escaping (HTTPAnswer) -> Void) {
        do throws(ControlProblem) {
            let operation = try ExchangeOperation(ControlHTTPRequest(request))
            switch operation.work {
            case .description: reply(HTTPAnswer(ExchangeDescription.answer))
            case .events(let subscription): stream(subscription, reply)
            case .request(let work): carryOut(work, operation.idempotencyKey, request, reply)
            }
        } catch {
            reply(HTTPAnswer(error.answer))
        }
    }

    private func carryOut(
        _ work: ExchangeRequest, _ key: String?, _ request: HTTPRequest, _ reply: @escaping (HTTPAnswer) -> Void
    ) {
        guard let key else { return ask(work, key: nil, reply) }
        switch keys.begin(key, fingerprint: request.fingerprint, at: MonotonicClock.now) {
        case .proceed: ask(work, key: key, reply)
        case .replay(let answer): reply(HTTPAnswer(answer))
        case .refuse(let problem): reply(HTTPAnswer(problem.answer))
        }
    }

    private func stream(_ subscription: EventSubscription, _ reply: (HTTPAnswer) -> Void) {
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

    // MARK: - Asking the exchange

    /// One request that waits for the exchange.
    private final class Waiting {
        /// Nil once the client has an answer.
        var reply: ((HTTPAnswer) -> Void)?
        var timeout: Scheduled<Void>?
        /// The key under which the exchange's answer is kept, also if the client has another one by then.
        let key: String?
        /// Whether it counts among ``ExchangeControl/mostWaiting``.
        let isCounted: Bool

        init(_ isCounted: Bool, _ key: String?, _ reply: @escaping (HTTPAnswer) -> Void) {
            (self.isCounted, self.key, self.reply) = (isCounted, key, reply)
        }
    }

    private func ask(_ work: ExchangeRequest, key: String?, _ reply: @escaping (HTTPAnswer) -> Void) {
        // The state waits for no disk, and says what hinders the others.
        let waits = if case .status = work { false } else { true }
        guard !waits || waiting < Self.mostWaiting else {
            let fault = ControlFault(.tooMany, "\(Self.mostWaiting) requests wait for the exchange, the limit")
            if let key { keys.finish(key, with: ControlProblem(fault).answer) }
            return reply(HTTPAnswer(fault))
        }
        if waits { waiting += 1 }
        let one = Waiting(waits, key, reply)
        one.timeout = loop.assumeIsolated().scheduleTask(in: patience) {
            one.reply?(HTTPAnswer(Self.lateness(of: work)))
            one.reply = nil
        }
        let own = NIOLoopBound((self, one), eventLoop: loop)
        // Before the state is taken, so that no event is missed between the two.
        let desk = ExchangeDesk(hub, facts, events, feed)
        exchangeLoop.execute { [door] in
            desk.carryOut(work) { outcome in door.execute { own.value.0.finish(own.value.1, outcome()) } }
        }
    }

    private func finish(_ one: Waiting, _ answer: ControlHTTPAnswer) {
        if one.isCounted { waiting -= 1 }
        one.timeout?.cancel()
        if let key = one.key { keys.finish(key, with: answer) }
        one.reply?(HTTPAnswer(answer))
        one.reply = nil
    }

    private static func lateness(of work: ExchangeRequest) -> ControlFault {
        switch work {
        case .status, .users, .invites, .calls, .rooms, .groups:
            ControlFault(.unavailable, "the exchange did not answer within 10 s; try again later")
        case .logOut, .endInvite, .endCall:
            ControlFault(
                .unconfirmed,
                "the exchange did not confirm it within 10 s, because its database is slow; it may still do it: look at the lists"
            )
        }
    }

    private var events: ExchangeWire.Events {
        ExchangeWire.Events(
            cursor: "\(store.read { $0.cursor })", clients: streams.count, dropped: streams.dropped, lost: feed.lost)
    }
}
