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
    private let front: ControlFront
    let feed: ExchangeFeed
    private let patience: TimeAmount
    private var waiting = 0

    init(
        _ hub: NIOLoopBound<ExchangeHub>, on exchangeLoop: any EventLoop, _ facts: Facts, _ front: ControlFront,
        _ feed: ExchangeFeed, patience: TimeAmount = ExchangeControl.patience
    ) {
        (self.hub, self.exchangeLoop, self.facts) = (hub, exchangeLoop, facts)
        (self.front, self.feed, self.patience) = (front, feed, patience)
    }

    func close() { front.close() }

    func carryOut(_ request: HTTPRequest, _ reply: @escaping (HTTPAnswer) -> Void) {
        do throws(ControlProblem) {
            let operation = try ExchangeOperation(ControlHTTPRequest(request))
            switch operation.work {
            case .description: reply(HTTPAnswer(ExchangeDescription.answer))
            case .events(let subscription): front.stream(subscription, reply)
            case .request(let work):
                let late = Self.lateness(of: work)
                front.once(operation.idempotencyKey, request, within: (patience, late), reply) { ask(work, $0) }
            }
        } catch {
            reply(HTTPAnswer(error.answer))
        }
    }

    // MARK: - Asking the exchange

    private func ask(_ work: ExchangeRequest, _ finish: @escaping (ControlHTTPAnswer) -> Void) {
        // The state waits for no disk, and says what hinders the others.
        let waits = if case .status = work { false } else { true }
        guard !waits || waiting < Self.mostWaiting else {
            let fault = ControlFault(.tooMany, "\(Self.mostWaiting) requests wait for the exchange, the limit")
            return finish(ControlProblem(fault).answer)
        }
        if waits { waiting += 1 }
        let own = NIOLoopBound((self, finish), eventLoop: front.loop)
        // Before the state is taken, so that no event is missed between the two.
        let desk = ExchangeDesk(hub, facts, events)
        exchangeLoop.execute { [door = front.door] in
            desk.carryOut(work) { outcome in
                door.execute {
                    let (control, finish) = own.value
                    if waits { control.waiting -= 1 }
                    finish(outcome())
                }
            }
        }
    }

    private static func lateness(of work: ExchangeRequest) -> ControlFault {
        switch work {
        case .status, .users, .invites, .calls, .rooms, .groups:
            ControlFault(.unavailable, "the exchange did not answer within 10 s; try again later")
        case .logOut, .endInvite, .endCall, .removeFromRoom, .removeFromGroup, .move:
            ControlFault(
                .unconfirmed,
                "the exchange did not confirm it within 10 s, because its database is slow; it may still do it: look at the lists"
            )
        }
    }

    private var events: ControlEventsState {
        var events = front.events
        events.lost = feed.lost
        return events
    }
}
