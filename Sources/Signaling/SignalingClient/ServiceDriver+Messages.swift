internal import CallControl
internal import Logging
internal import NIOCore
internal import SignalWire

// Requests out, answers and events in.
extension ServiceDriver {
    /// Sends a request of the application through the gate (contract AUTH-6, AUTH-7).
    ///
    /// `onSuccess` runs on the loop before anything that the exchange said afterwards is told.
    func request<Method: RPCMethod>(
        _ params: Method, waitsForLogin: Bool = false, doing activity: String,
        _ promise: EventLoopPromise<Method.Result>, onSuccess: @escaping (Method.Result) -> Void = { _ in }
    ) {
        lastTicket += 1
        let ticket = lastTicket
        atGate[ticket] = AtGate(
            proceed: { [self] in
                guard connection.state == .connected else {
                    return promise.fail(SignalingError.connectionGone(activity))
                }
                send(params, doing: activity) { result in
                    if case .success(let value) = result { onSuccess(value) }
                    promise.completeWith(result.mapError { $0 as any Error })
                }
            },
            fail: { promise.fail($0) })
        feed(gate: .request(ticket, waits: waitsForLogin))
    }

    /// Sends a request on the socket there is.
    func send<Method: RPCMethod>(
        _ params: Method, doing activity: String,
        _ complete: @escaping (Result<Method.Result, SignalingError>) -> Void
    ) {
        guard let link else { return complete(.failure(.connectionGone(activity))) }
        guard requests.hasRoom else {
            let cause = "too many requests are waiting for their answers"
            return complete(.failure(SignalingError(.tooManyRequests, activity: activity, cause: cause)))
        }
        let id = requests.add(doing: activity, at: now) { answer in
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

    /// Drops the socket, and fails what waits for answers on it.
    func dropLink() {
        link?.abandon()
        link = nil
        for fail in requests.takeAll() { fail() }
    }

    func handle(_ signal: WebSocketLink.Signal, _ attempt: Int, endpoint: Endpoint, doing activity: String) {
        switch signal {
        case .text(let bytes):
            receive(bytes, attempt)
        case .pong:
            feed(connection: .link(.pong, attempt: attempt))
        case .lifeSign:
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        case .closed(let code):
            loseLink(.socketClosed(code: code), attempt)
        case .failed(let error):
            loseLink(.socketFailed(.transport(error, to: endpoint, doing: activity)), attempt)
        }
    }

    /// The socket is gone. The machine hears why before those who wait for answers do: one of them may be itself.
    private func loseLink(_ report: ConnectionMachine.LinkReport, _ attempt: Int) {
        link = nil
        let waiting = requests.takeAll()
        feed(connection: .link(report, attempt: attempt))
        for fail in waiting { fail() }
    }

    private func receive(_ bytes: [UInt8], _ attempt: Int) {
        let message: RPCMessage
        do throws(RPCMessage.Malformed) {
            message = try RPCMessage(decoding: bytes)
        } catch {
            logger.debug("message passed over", metadata: ["because": "\(error.error)"])
            return feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
        switch message.kind {
        case .notification(NumberedEvent.method):
            receiveEvent(message, attempt)
        case .result(let id):
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
            requests.take(id)?.complete(.success(message))
        case .failure(let id, let error):
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
            guard let request = requests.take(id) else { return }
            request.complete(.failure(SignalingError(error, doing: request.activity)))
        case .request, .notification:
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
    }

    private func receiveEvent(_ message: RPCMessage, _ attempt: Int) {
        do throws(RPCError) {
            let numbered = try message.params(NumberedEvent.self)
            feed(connection: .link(.received(sequence: Int64(clamping: numbered.sequence)), attempt: attempt))
            hub.publish(SignalingEvent(numbered.event))
        } catch {
            logger.warning("event passed over", metadata: ["because": "\(error)"])
            feed(connection: .link(.received(sequence: nil), attempt: attempt))
        }
    }
}
