internal import CallAgent
internal import ControlPlane
internal import ControlWire
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1

/// Carries out what requests over HTTP are about, at all addresses of a server. On the server's event loop.
final class ControlDesk: ControlPoint {
    private let handler: ControlRequestHandler
    private let hub: ControlEventHub
    private let front: ControlFront
    private let loop: any EventLoop
    private let recordings: RecordingStreams

    init(_ handler: ControlRequestHandler, _ hub: ControlEventHub, _ front: ControlFront) {
        self.handler = handler
        self.hub = hub
        self.front = front
        loop = front.loop
        recordings = RecordingStreams(on: loop)
    }

    /// Disconnects the clients of events, and those that receive recordings.
    func close() {
        front.close()
        recordings.close()
    }

    /// Clients that receive recordings now.
    var recordingClients: Int { recordings.count }

    func page(_ head: HTTPRequestHead) -> HTTPAnswer? { ControlPage.answer(head) }

    func carryOut(_ request: HTTPRequest, _ reply: @escaping (HTTPAnswer) -> Void) {
        do throws(ControlProblem) {
            carryOut(try ControlOperation(ControlHTTPRequest(request)), request, reply)
        } catch {
            reply(HTTPAnswer(error.answer))
        }
    }

    private func carryOut(
        _ operation: ControlOperation, _ request: HTTPRequest, _ reply: @escaping (HTTPAnswer) -> Void
    ) {
        switch operation.work {
        case .description: reply(HTTPAnswer(operation.answer(ControlReply(), events: front.events)))
        case .events(let subscription): stream(subscription, reply)
        case .recording(let query): send(query, reply)
        case .request(let work):
            front.once(operation.idempotencyKey, request, reply) { carryOut(work, of: operation, $0) }
        }
    }

    private func carryOut(
        _ request: ControlRequest, of operation: ControlOperation, _ finish: @escaping (ControlHTTPAnswer) -> Void
    ) {
        // Before the status is taken, so that no event is missed between the two.
        let state = front.events
        let own = NIOLoopBound(finish, eventLoop: loop)
        Task { [handler, hub, door = front.door] in
            let answer = operation.answer(await handler.reply(to: request, hub), events: state)
            door.execute { own.value(answer) }
        }
    }

    private func stream(_ subscription: EventSubscription, _ reply: @escaping (HTTPAnswer) -> Void) {
        let own = NIOLoopBound((self, reply), eventLoop: loop)
        Task { [handler, door = front.door] in
            let fault = await handler.fault(ofAccount: subscription.account)
            door.execute { own.value.0.begin(subscription, fault, own.value.1) }
        }
    }

    private func begin(_ subscription: EventSubscription, _ fault: ControlFault?, _ reply: (HTTPAnswer) -> Void) {
        if let fault { return reply(HTTPAnswer(ControlProblem(fault).answer)) }
        front.stream(subscription, reply)
    }

    private func send(_ query: ControlRecordingQuery, _ reply: @escaping (HTTPAnswer) -> Void) {
        let own = NIOLoopBound((self, reply), eventLoop: loop)
        Task { [handler, door = front.door] in
            let found: Result<RecordingFile, ControlFault>
            do throws(ControlFault) {
                found = .success(try await handler.recording(query))
            } catch {
                found = .failure(error)
            }
            door.execute { own.value.1(own.value.0.answer(query, with: found)) }
        }
    }

    private func answer(_ query: ControlRecordingQuery, with found: Result<RecordingFile, ControlFault>) -> HTTPAnswer {
        let file: RecordingFile
        switch found {
        case .success(let open): file = open
        case .failure(let fault): return HTTPAnswer(ControlProblem(fault).answer)
        }
        guard recordings.count < RecordingStreams.limit else {
            let fault = ControlFault(.tooMany, "\(RecordingStreams.limit) clients receive recordings, the limit")
            return HTTPAnswer(ControlProblem(fault).answer)
        }
        let (head, body) = query.head(of: file.bytes, entityTag: file.entityTag, contentType: file.contentType)
        var answer = HTTPAnswer(head)
        guard let body else { return answer }
        let own = NIOLoopBound(recordings, eventLoop: loop)
        answer.streamBytes = body.count
        answer.stream = { stream in own.value.add(stream, file, body) }
        return answer
    }
}

extension ControlRequestHandler {
    /// Carries out a request, and reports its event to all interfaces.
    fileprivate func reply(to request: ControlRequest, _ hub: ControlEventHub) async -> ControlReply {
        do throws(ControlFault) {
            let outcome = try await carryOut(request)
            if let event = outcome.event { await hub.publish(event, of: outcome.reply.account) }
            return outcome.reply
        } catch {
            return ControlReply(id: nil, error)
        }
    }

    /// The file of a recording.
    fileprivate func recording(_ query: ControlRecordingQuery) async throws(ControlFault) -> RecordingFile {
        try await CallHistory(ControlTargets(await accounts.members, wanted: query.account)).recording(query)
    }

    /// Why there is no such account; nil if there is.
    fileprivate func fault(ofAccount name: String?) async -> ControlFault? {
        do throws(ControlFault) {
            try await check(ControlRequest(.status, account: name))
            return nil
        } catch {
            return error
        }
    }
}
