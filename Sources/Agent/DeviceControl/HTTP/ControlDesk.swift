internal import CallAgent
internal import ControlPlane
internal import ControlWire
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import Realtime

/// Carries out what requests over HTTP are about, at all addresses of a server. On the server's event loop.
final class ControlDesk: ControlPoint {
    private let handler: ControlRequestHandler
    private let hub: ControlEventHub
    private let store: EventStore
    private let streams: EventStreams
    private let webhooks: WebhookOffice?
    private let loop: any EventLoop
    private let recordings: RecordingStreams
    private var keys = IdempotencyTable()

    init(
        _ handler: ControlRequestHandler, _ hub: ControlEventHub, _ store: EventStore, _ streams: EventStreams,
        _ webhooks: WebhookOffice?, on loop: any EventLoop
    ) {
        self.handler = handler
        self.hub = hub
        self.store = store
        self.streams = streams
        self.webhooks = webhooks
        self.loop = loop
        recordings = RecordingStreams(on: loop)
    }

    /// Disconnects the clients of events, and those that receive recordings.
    func close() {
        streams.close()
        recordings.close()
    }

    /// Clients of events that were disconnected because they did not read.
    var droppedClients: Int { streams.dropped }

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
        case .description: reply(HTTPAnswer(operation.answer(ControlReply(), events: state)))
        case .events(let subscription): stream(subscription, reply)
        case .recording(let query): send(query, reply)
        case .request(let work):
            guard let key = operation.idempotencyKey else { return carryOut(work, of: operation, key: nil, reply) }
            switch keys.begin(key, fingerprint: request.fingerprint, at: MonotonicClock.now) {
            case .proceed: carryOut(work, of: operation, key: key, reply)
            case .replay(let answer): reply(HTTPAnswer(answer))
            case .refuse(let problem): reply(HTTPAnswer(problem.answer))
            }
        }
    }

    private func carryOut(
        _ request: ControlRequest, of operation: ControlOperation, key: String?, _ reply: @escaping (HTTPAnswer) -> Void
    ) {
        // Before the status is taken, so that no event is missed between the two.
        let state = state
        let own = NIOLoopBound((self, reply), eventLoop: loop)
        Task { [handler, hub, loop] in
            let answer = operation.answer(await handler.reply(to: request, hub), events: state)
            loop.execute {
                let (desk, reply) = own.value
                if let key { desk.keys.finish(key, with: answer) }
                reply(HTTPAnswer(answer))
            }
        }
    }

    private func stream(_ subscription: EventSubscription, _ reply: @escaping (HTTPAnswer) -> Void) {
        let own = NIOLoopBound((self, reply), eventLoop: loop)
        Task { [handler, loop] in
            let fault = await handler.fault(ofAccount: subscription.account)
            loop.execute { own.value.0.begin(subscription, fault, own.value.1) }
        }
    }

    private func begin(_ subscription: EventSubscription, _ fault: ControlFault?, _ reply: (HTTPAnswer) -> Void) {
        if let fault { return reply(HTTPAnswer(ControlProblem(fault).answer)) }
        guard streams.count < EventStreams.limit else {
            let fault = ControlFault(.tooMany, "\(EventStreams.limit) clients receive events, the limit")
            return reply(HTTPAnswer(ControlProblem(fault).answer))
        }
        // Its greeting has the cursor from which it reads, so that no event is missed between the two.
        let reader = store.read { EventReader(subscription, of: $0) }
        var answer = HTTPAnswer(status: .ok, contentType: "text/event-stream", body: reader.greeting)
        let own = NIOLoopBound(streams, eventLoop: loop)
        answer.stream = { stream in own.value.add(stream, reader) }
        reply(answer)
    }

    private func send(_ query: ControlRecordingQuery, _ reply: @escaping (HTTPAnswer) -> Void) {
        let own = NIOLoopBound((self, reply), eventLoop: loop)
        Task { [handler, loop] in
            let found: Result<RecordingFile, ControlFault>
            do throws(ControlFault) {
                found = .success(try await handler.recording(query))
            } catch {
                found = .failure(error)
            }
            loop.execute { own.value.1(own.value.0.answer(query, with: found)) }
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

    private var state: ControlEventsState {
        let figures = webhooks?.figures ?? []
        return ControlEventsState(
            cursor: "\(store.read { $0.cursor })", clients: streams.count, dropped: streams.dropped,
            webhooks: figures.isEmpty ? nil : figures)
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
