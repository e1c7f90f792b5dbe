internal import CallControl
internal import HTTPTransport
internal import Logging
internal import NIOCore
internal import SignalWire
internal import Timekeeping

// Requests out, answers and events in.
extension ServiceDriver {
    /// How a request of the application bears a connection that is not there.
    struct Sending {
        /// Whether it waits for a login under way (contract AUTH-7).
        var waitsForLogin = false
        /// What it does while the connection is being made anew (CONN-6).
        var manner = SendQueue<Int>.Manner.failsAtOnce
        /// Whether it may be sent again when the connection went before the answer came: to say it twice does no harm.
        var isRepeatable = false

        /// It fails if it cannot be sent now.
        static let atOnce = Sending()
        /// It waits for the connection.
        static let queued = Sending(manner: .waits(patience: nil))
        /// It waits for the connection and may be said twice.
        static let lasting = Sending(manner: .waits(patience: nil), isRepeatable: true)
        /// An answer to an invite: it waits, though no longer than a caller would.
        static let answer = Sending(
            waitsForLogin: true, manner: .waits(patience: .seconds(5)), isRepeatable: true)
    }

    /// Sends a request of the application through the gate (contract AUTH-6, AUTH-7) and the queue (CONN-6).
    ///
    /// `onSuccess` runs on the loop before anything that the exchange said afterwards is told.
    func request<Method: RPCMethod>(
        _ params: Method, _ sending: Sending = .atOnce, doing activity: String,
        _ promise: EventLoopPromise<Method.Result>, onSuccess: @escaping (Method.Result) -> Void = { _ in }
    ) {
        lastTicket += 1
        let ticket = lastTicket
        waiting[ticket] = Waiting(
            activity: activity, manner: sending.manner,
            send: { [self] in
                send(params, doing: activity) { [self] result in
                    switch result {
                    case .success(let value):
                        onSuccess(value)
                        waiting[ticket] = nil
                        promise.succeed(value)
                    case .failure(let error) where error.code == .disconnected && sending.isRepeatable:
                        enqueue(ticket)
                    case .failure(let error): fail(ticket, with: error)
                    }
                }
            },
            fail: { promise.fail($0) })
        feed(gate: .request(ticket, waits: sending.waitsForLogin))
    }

    /// A request has passed the gate: it is sent, or kept until there is a connection.
    func enqueue(_ ticket: Int) {
        guard let request = waiting[ticket] else { return }
        let isHeld = isChangingLinks
        let state = (isHeld || link == nil) && connection.state == .connected ? .reconnecting : connection.state
        // The connection is not away while it changes its socket, so that nothing fails for it.
        let manner = isHeld && request.manner == .failsAtOnce ? .waits(patience: .seconds(5)) : request.manner
        switch queue.offer(ticket, manner, while: state, doing: request.activity, at: now) {
        case .send: request.send()
        case .kept: scheduleWakeUp()
        case .fail(let error): fail(ticket, with: error)
        }
    }

    func fail(_ ticket: Int, with error: SignalingError) { waiting.removeValue(forKey: ticket)?.fail(error) }

    /// The connection stands: what waited for it goes out before anything newer.
    func sendQueued() {
        for ticket in queue.takeAll() { waiting[ticket]?.send() }
    }

    /// There will be no connection for what waits for one.
    func giveUpQueued() {
        for (ticket, error) in queue.giveUp() { fail(ticket, with: error) }
    }

    /// Sends a request on the socket there is.
    func send<Method: RPCMethod>(
        _ params: Method, doing activity: String,
        _ complete: @escaping (Result<Method.Result, SignalingError>) -> Void
    ) {
        send(params, on: link, doing: activity, complete)
    }

    func send<Method: RPCMethod>(
        _ params: Method, on link: WebSocket?, doing activity: String,
        _ complete: @escaping (Result<Method.Result, SignalingError>) -> Void
    ) {
        guard let link else { return complete(.failure(.connectionGone(activity))) }
        guard requests.hasRoom else {
            let cause = "too many requests are waiting for their answers"
            return complete(.failure(SignalingError(.tooManyRequests, activity: activity, cause: cause)))
        }
        let id = requests.add(on: link, doing: activity, at: now) { answer in
            complete(answer.flatMap { Self.result(of: Method.self, in: $0, doing: activity) })
        }
        let message: [UInt8]
        do throws(SignalCodingError) {
            message = try SignalCoding.request(id: .number(id), params)
        } catch {
            let failure = SignalingError(.invalidRequest, activity: activity, cause: "\(error)")
            requests.take(.number(id))?.complete(.failure(failure))
            return
        }
        guard message.count <= SignalLimits.messageBytes else {
            let cause = "the message has \(message.count) bytes; \(SignalLimits.messageBytes) are allowed"
            requests.take(.number(id))?.complete(
                .failure(SignalingError(.tooLarge, activity: activity, cause: cause)))
            return
        }
        link.send(message)
    }

    private static func result<Method: RPCMethod>(
        of method: Method.Type, in message: RPCMessage, doing activity: String
    ) -> Result<Method.Result, SignalingError> {
        do throws(SignalCodingError) {
            return .success(try message.result(Method.Result.self))
        } catch {
            return .failure(
                SignalingError(.notAnExchange, activity: activity, cause: "its answer cannot be read: \(error)"))
        }
    }

    func handle(_ event: WebSocket.Event, _ attempt: Int, endpoint: HTTPEndpoint, doing activity: String) {
        switch event {
        case .text(let bytes):
            receive(bytes, attempt)
        case .pong:
            feed(connection: .link(.pong, attempt: attempt))
        case .lifeSign, .binary:
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        case .closed(4001?) where isWorthNewToken():
            let error = SignalingError(
                .tokenRejected, activity: "keep the connection to the service",
                cause: "the service closed it, refusing the access token")
            loseLink(.socketFailed(ServiceFailure(error, remedy: .retry(after: nil))), attempt)
        case .closed(let code):
            loseLink(.socketClosed(code: code), attempt)
        case .failed(let error):
            loseLink(.socketFailed(.transport(error, to: endpoint, doing: activity)), attempt)
        case .opened, .refused, .fault, .silent:
            break  // What opens a socket says so; the others are events of a server.
        }
    }

    /// A socket is gone. The machine hears why before those who wait for answers do: one of them may be itself.
    private func loseLink(_ report: ConnectionMachine.LinkReport, _ attempt: Int) {
        let waiting = forget(attempt)
        feed(connection: .link(report, attempt: attempt))
        for fail in waiting { fail() }
        changeLinksIfQuiet()
    }

    private func receive(_ bytes: [UInt8], _ attempt: Int) {
        let message: RPCMessage
        do throws(RPCMessage.Malformed) {
            message = try RPCMessage(decoding: bytes, within: .delivery)
        } catch {
            logger.warning("message passed over", metadata: ["because": "\(error.error)"])
            return feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
        switch message.kind {
        case .notification(NumberedEvent.method):
            receiveEvent(message, attempt)
        case .result(let id):
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
            requests.take(id)?.complete(.success(message))
            moveIfQuiet()
            changeLinksIfQuiet()
        case .failure(let id, let error):
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
            guard let request = requests.take(id) else { return }
            request.complete(.failure(SignalingError(error, doing: request.activity)))
            moveIfQuiet()
            changeLinksIfQuiet()
        case .request, .notification:
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
    }

    private func receiveEvent(_ message: RPCMessage, _ attempt: Int) {
        do throws(RPCError) {
            let numbered = try message.params(NumberedEvent.self)
            let sequence = Int64(clamping: numbered.sequence)
            feed(connection: .link(.received(sequence: sequence), attempt: attempt))
            // Told already, on the connection before this one (CONN-5).
            guard sequence > newestTold else { return }
            newestTold = sequence
            publish(SignalingEvent(numbered.event))
            if case .tokenExpiring = numbered.event { feed(tokens: .endsSoon) }
        } catch {
            logger.warning("event passed over", metadata: ["because": "\(error)"])
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
    }

    /// Passes an event on, unless it is only the echo of what this device did itself.
    private func publish(_ event: SignalingEvent) {
        switch event {
        case .inviteHandled(let handling) where handling.device == configuration.device.id:
            return  // Our own answer (contract INV-17).
        case .moveRequested(let limit, let address):
            hub.publish(event)
            move(within: limit, to: address)
        case .connectionCreated, .connectionDestroyed:
            if rooms.note(event) { hub.publish(event) }
        default:
            hub.publish(event)
        }
    }
}
