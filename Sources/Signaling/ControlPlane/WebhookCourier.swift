internal import BlockingWork
internal import ConfigReader
internal import ControlWire
internal import Core
internal import Cryptography
internal import Files
internal import HTTPTransport
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import Realtime
internal import Synchronization

/// Sends the events of a process to one webhook, in order, as ``WebhookCourse`` decides.
///
/// What was delivered is in a file beside the history of events: after a restart or a crash the first event that the server may not have
/// is sent again, with the same id. If the disk does not take the file, more events may be sent again.
final class WebhookCourier: Sendable {
    private struct State {
        var figures: WebhookFigures
        /// The time of the event that is sent or waits for its next try.
        var waitingSince: WallClock?
        var warnings = OutageLimit()
        /// Whether it ends when nothing is due.
        var isEnding = false
        var task: Task<Void, Never>?
    }

    /// The beginning of the names of its files.
    static let filePrefix = "webhook-"
    /// For the answer to one request, the connection included.
    private static let requestTime = TimeAmount.seconds(15)
    /// Bytes read of an answer at most.
    private static let answerBytes = 4_096
    /// The position on disk is renewed after this number of events, also if the webhook wants none of them.
    private static let skipped: UInt64 = 256

    /// What it is for.
    let webhook: ControlWebhook
    private let keys: [[UInt8]]
    private let store: EventStore
    private let file: String
    private let client: Result<HTTPClient, TLSTrust.Unreadable>
    private let wakes: AsyncStream<Void>
    private let wakeUp: AsyncStream<Void>.Continuation
    private let state: Mutex<State>
    private let logger: Logger

    /// - Parameter folder: That of the history.
    init(_ webhook: ControlWebhook, of store: EventStore, in folder: String, on loop: any EventLoop, logger: Logger) {
        self.webhook = webhook
        keys = [webhook.secret, webhook.previousSecret].compactMap {
            $0.flatMap { WebhookSignature.key(of: $0.revealed) }
        }
        self.store = store
        file = "\(folder)/\(Self.fileName(of: webhook))"
        client = Self.client(for: webhook, on: loop)
        (wakes, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        // Not the path, which may have a key.
        let server = (try? HTTPEndpoint(webhook.url))?.authority ?? ""
        state = Mutex(State(figures: WebhookFigures(server: server)))
        var logger = logger
        logger[metadataKey: "webhook"] = "\(server)"
        self.logger = logger
    }

    /// The name of the file with what was delivered to a webhook.
    static func fileName(of webhook: ControlWebhook) -> String {
        filePrefix + Hexadecimal.text(Digest.sha256(Array(webhook.url.utf8)).prefix(8))
    }

    private static func client(
        for webhook: ControlWebhook, on loop: any EventLoop
    ) -> Result<HTTPClient, TLSTrust.Unreadable> {
        do throws(TLSTrust.Unreadable) {
            let bounds = HTTPFetch.Bounds(
                bodyBytes: answerBytes, time: requestTime, connecting: .seconds(5), acceptsPart: true)
            let trust = try TLSTrust(trustRootFile: webhook.trustRoots)
            return .success(HTTPClient(trust: trust, within: bounds, keeping: .init(connections: 1), on: loop))
        } catch {
            return .failure(error)
        }
    }

    /// Sends what is not delivered yet, and events as they come.
    func start() {
        let task = Task { await run() }
        state.withLock { $0.task = task }
        wake()
    }

    /// There may be new events.
    func wake() { wakeUp.yield() }

    /// What has become of events since the start.
    var figures: WebhookFigures {
        state.withLock { state in
            var figures = state.figures
            figures.delaySeconds = state.waitingSince.map {
                Double(max(0, MonotonicClock.wallTime.unixMilliseconds - $0.unixMilliseconds)) / 1_000
            }
            return figures
        }
    }

    /// Sends what is due, and stops, after `patience` at the latest.
    func stop(within patience: Duration) async {
        let task = state.withLock { state in
            state.isEnding = true
            return state.task
        }
        wake()
        let end = Task {
            guard (try? await Task.sleep(for: patience)) != nil else { return }
            task?.cancel()
        }
        await task?.value
        end.cancel()
        if case .success(let client) = client { await client.shutDown() }
    }

    // MARK: Its task

    private func run() async {
        guard var course = await begin() else { return }
        var kept = course.cursor
        var timer: Task<Void, Never>?
        defer { timer?.cancel() }
        for await _ in wakes {
            timer?.cancel()
            await sendAll(&course, &kept)
            if isSkipped(from: kept, to: course.cursor) { await keep(course.cursor, as: &kept) }
            guard !Task.isCancelled, !state.withLock({ $0.isEnding }) else { break }
            timer = course.nextDeadline.map(wake)
        }
        await keep(course.cursor, as: &kept)
    }

    private func wake(at deadline: Instant) -> Task<Void, Never> {
        Task {
            guard (try? await Task.sleep(for: MonotonicClock.now.duration(to: deadline))) != nil else { return }
            wake()
        }
    }

    /// Continues where an earlier run ended; a new webhook begins now. Waits until the history is on disk; nil if it ends before that.
    private func begin() async -> WebhookCourse? {
        for await _ in wakes {
            if let course = await open() {
                wake()
                return course
            }
            guard !Task.isCancelled, !state.withLock({ $0.isEnding }) else { return nil }
        }
        return nil
    }

    private func open() async -> WebhookCourse? {
        guard let newest = store.durableCursor else { return nil }
        do throws(PrivateFileError) {
            let text = try await BlockingThreads.files.run { [file] () throws(PrivateFileError) in
                try PrivateFile.read(file)
            }
            let kinds = Set(webhook.events)
            if let text {
                // Of a damaged file nothing is known, and so all events that are there are sent.
                let known = EventCursor(String(decoding: text, as: UTF8.self).filter { !$0.isNewline })
                return WebhookCourse(
                    kinds, of: webhook.source, after: known ?? EventCursor(history: newest.history, position: 0))
            }
            try await write(newest)
            return WebhookCourse(kinds, of: webhook.source, after: newest)
        } catch {
            store.countFailedWrite()
            warn("A webhook cannot begin; it is tried again with the next event", "\(error)")
            return nil
        }
    }

    private func sendAll(_ course: inout WebhookCourse, _ kept: inout EventCursor) async {
        while !Task.isCancelled, let delivery = store.next(&course, at: MonotonicClock.now) {
            note(course.takeGap())
            let since = course.waitingSince
            state.withLock { $0.waitingSince = since }
            let outcome = await send(delivery)
            guard !Task.isCancelled else { return }
            let verdict = course.finish(
                outcome, at: MonotonicClock.now, MonotonicClock.wallTime, spread: Double.random(in: -1...1))
            note(verdict, of: delivery)
            let later = course.waitingSince
            state.withLock { $0.waitingSince = later }
            if later == nil { await keep(course.cursor, as: &kept) }
        }
        note(course.takeGap())
    }

    private func send(_ delivery: WebhookCourse.Delivery) async -> WebhookCourse.Outcome {
        let seconds = MonotonicClock.wallTime.unixMilliseconds / 1_000
        guard let endpoint = try? HTTPEndpoint(webhook.url) else { return .failed("its URL is malformed") }
        // A webhook handles an id once, so a kept connection that has just ended costs no try.
        var request = HTTPFetch.Request(
            .POST, endpoint, target: endpoint.target,
            headers: ["content-type": "application/json", "user-agent": "handset"], body: delivery.body,
            isRepeatable: true)
        for field in WebhookSignature.fields(delivery.id, at: seconds, delivery.body, keys: keys) {
            request.headers.add(name: field.name, value: field.value)
        }
        do {
            let answer = try await client.get().send(request)
            let wait = answer.headers.first(name: "retry-after").flatMap {
                RetryAfter.parse($0, now: MonotonicClock.wallTime)
            }
            return .answered(answer.status, retryAfter: wait)
        } catch let error as TLSTrust.Unreadable {
            return .failed("trust_roots \"\(error.path)\": \(error.cause)")
        } catch {
            return .failed("\(TransportFailure(error, to: endpoint))")
        }
    }

    // MARK: What is kept and reported

    private func isSkipped(from kept: EventCursor, to cursor: EventCursor) -> Bool {
        cursor.history != kept.history || cursor.position >= kept.position + Self.skipped
    }

    private func keep(_ cursor: EventCursor, as kept: inout EventCursor) async {
        guard cursor != kept else { return }
        do throws(PrivateFileError) {
            try await write(cursor)
            kept = cursor
        } catch {
            store.countFailedWrite()
            warn("What a webhook has is not on disk; events may be sent again after a restart", "\(error)")
        }
    }

    private func write(_ cursor: EventCursor) async throws(PrivateFileError) {
        let line = Array("\(cursor)\n".utf8)
        try await BlockingThreads.files.run { [file] () throws(PrivateFileError) in
            try PrivateFile.replace(file, with: line)
        }
    }

    private func note(_ verdict: WebhookCourse.Verdict?, of delivery: WebhookCourse.Delivery) {
        switch verdict {
        case .delivered?:
            state.withLock { state in
                state.figures.delivered += 1
                state.warnings.end()
            }
        case .later(let pause, let why)?:
            state.withLock { $0.figures.failed += 1 }
            warn("A webhook does not take an event; it is tried again", why, of: delivery, after: pause)
        case .lost(let why)?:
            state.withLock { $0.figures.lost += 1 }
            logger.error(
                "An event is lost to a webhook",
                metadata: ["event": "\(delivery.kind.rawValue)", "id": "\(delivery.id)", "error": "\(why)"])
        case nil: return
        }
    }

    private func note(_ gap: WebhookCourse.Gap?) {
        guard let gap else { return }
        state.withLock { $0.figures.gaps += 1 }
        switch gap {
        case .dropped: logger.error("Events for a webhook are not in the history any more")
        case .interrupted: logger.warning("The history had not been closed; events for a webhook may be missing")
        }
    }

    private func warn(
        _ message: Logger.Message, _ error: String, of delivery: WebhookCourse.Delivery? = nil,
        after pause: Duration? = nil
    ) {
        guard let leftOut = state.withLock({ $0.warnings.admit(at: MonotonicClock.now) }) else { return }
        var metadata: Logger.Metadata = ["error": "\(error)", "left_out": "\(leftOut)"]
        if let delivery { metadata["id"] = "\(delivery.id)" }
        if let pause { metadata["after_s"] = "\(pause.components.seconds)" }
        logger.warning(message, metadata: metadata)
    }
}
