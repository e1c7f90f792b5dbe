package import BotWire
package import CallParticipation
internal import Core
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// Why a server's answer cannot be used, to be read after its address.
package struct WebhookFault: Error, Equatable, Sendable {
    package let message: String

    package init(_ message: String) { self.message = message }
}

/// A request to a server, before it is signed.
package struct WebhookQuestion: Equatable, Sendable {
    package var form: FormFields
    package var webhook: Webhook
    /// Names the request; nil: it is not signed.
    package var id: String?

    package init(_ webhook: Webhook, form: FormFields = FormFields(), id: String? = nil) {
        self.webhook = webhook
        self.form = form
        self.id = id
    }

    /// Redirections of HTTP that are followed, one after the other.
    package static let mostRedirects = 3

    /// Where a server's answer redirects a request; nil if it does not. 303, and 301 and 302 as browsers read them, ask by GET and without
    /// the form (RFC 9110 §15.4).
    ///
    /// - Throws: If it must not be followed.
    package func redirected(_ status: Int, to location: String?) throws(WebhookFault) -> WebhookQuestion? {
        guard [301, 302, 303, 307, 308].contains(status) else { return nil }
        guard let location, let next = webhook.address.resolving(location) else {
            throw WebhookFault("redirects with status \(status) to no URL of http or https without a user")
        }
        guard next.scheme.isSecure || !webhook.address.scheme.isSecure else {
            throw WebhookFault("redirects from https to http, at \(next.host), which is not followed")
        }
        var question = self
        if status < 307 {
            question.webhook = Webhook(next, .get)
            question.form = FormFields()
        } else {
            question.webhook = Webhook(next, webhook.method)
        }
        return question
    }
}

/// Asks servers for answers to calls, and reports the status of calls to them, on an event loop of its own.
///
/// All methods may be called from any thread.
package final class WebhookClient: Sendable {
    /// What a server has answered with a status of success.
    package struct Answer: Sendable {
        /// Where, after redirections.
        package let address: WebAddress
        package let body: [UInt8]
    }

    /// The servers that it asks, and how.
    package struct Plan: Equatable, Sendable {
        /// The hosts of the configuration's own URLs.
        package var own: [String]
        /// Further hosts that may be asked.
        package var allowed: [String]
        /// The section of the configuration, for messages.
        package var section: String
        /// PEM certificates to trust besides the system's.
        package var trustRoots: String?
        /// Signs requests; nil signs nothing.
        package var secret: String?

        package init(own: [String], allowed: [String], section: String, trustRoots: String?, secret: String?) {
            self.own = own
            self.allowed = allowed
            self.section = section
            self.trustRoots = trustRoots
            self.secret = secret
        }
    }

    /// Bytes of a secret.
    package static let shortestSecret = WebhookSignature.shortestKey

    /// Whether a secret is long enough.
    package static func isSecret(_ text: String) -> Bool { WebhookSignature.key(of: text) != nil }

    /// Bytes of an answer to a report of status.
    private static let statusBytes = 4_096
    private static let statusTime = TimeAmount.seconds(10)
    /// How long reports of status may take when everything ends.
    private static let lastReports = TimeAmount.seconds(1)

    private let group: MultiThreadedEventLoopGroup
    private let loop: any EventLoop
    private let sender: WebhookSender
    private let courier: StatusCourier
    private let secret: String?
    /// After its end nothing is brought to the event loop.
    private let isEnded = Mutex(false)

    /// - Parameter warn: Reports what the operator must know, with the number of reports before it that were left out.
    package init(_ plan: Plan, warn: @escaping @Sendable (_ what: String, _ leftOut: Int) -> Void) {
        let trust = TLSTrust.systemAnd(plan.trustRoots) { warn($0, 0) }
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        loop = group.next()
        secret = plan.secret
        sender = WebhookSender(
            to: HostGuard(own: plan.own, allowed: plan.allowed, section: plan.section), trust: trust,
            within: HTTPFetch.Bounds(bodyBytes: Self.statusBytes, time: Self.statusTime, acceptsPart: true),
            keys: plan.secret.flatMap { WebhookSignature.key(of: $0) }.map { [$0] } ?? [], on: loop)
        courier = StatusCourier(sender, warn: warn)
    }

    /// Asks a server, and follows its redirections.
    ///
    /// - Parameters:
    ///   - time: Until the whole answer is there, look-ups and redirections included.
    ///   - bytes: Of the answer at most.
    package func ask(
        _ question: WebhookQuestion, within time: Duration, mostBytes bytes: Int
    ) async -> Result<Answer, WebhookFault> {
        let limit = TimeAmount.nanoseconds(Instant.zero.nanoseconds(to: .zero.advanced(by: time)))
        let asked = isEnded.withLock { isEnded in
            isEnded ? nil : loop.flatSubmit { [self] in bounded(question, within: limit, bytes) }
        }
        guard let asked else { return .failure(WebhookFault("is not asked, because the calls end")) }
        do {
            return .success(try await asked.get())
        } catch let fault as WebhookFault {
            return .failure(fault)
        } catch {
            return .failure(WebhookFault("\(error)"))
        }
    }

    private func bounded(
        _ question: WebhookQuestion, within limit: TimeAmount, _ bytes: Int
    ) -> EventLoopFuture<Answer> {
        let promise = loop.makePromise(of: Answer.self)
        let deadline = NIODeadline.now() + limit
        let timer = loop.scheduleTask(deadline: deadline) {
            promise.fail(WebhookFault("was not answered within \(limit.nanoseconds / 1_000_000) ms"))
        }
        follow(question, WebhookQuestion.mostRedirects, until: deadline, bytes).cascade(to: promise)
        promise.futureResult.whenComplete { _ in timer.cancel() }
        return promise.futureResult
    }

    private func follow(
        _ question: WebhookQuestion, _ redirects: Int, until deadline: NIODeadline, _ bytes: Int
    ) -> EventLoopFuture<Answer> {
        guard deadline > .now() else { return loop.makeFailedFuture(WebhookFault("was not answered in time")) }
        let address = question.webhook.address
        let token = question.id == nil ? nil : secret
        guard var request = TwilioWebhook.Request(question.form, to: question.webhook, token: token) else {
            return loop.makeFailedFuture(WebhookFault("cannot be asked: OpenSSL refuses HMAC-SHA1 for its signature"))
        }
        request.id = question.id
        let left = max(.milliseconds(1), deadline - .now())
        return sender.send(request, within: HTTPFetch.Bounds(bodyBytes: bytes, time: left))
            .flatMapErrorThrowing { [sender] error in throw WebhookFault(sender.explain(error, address)) }
            .flatMapThrowing { answer -> (HTTPFetch.Answer, WebhookQuestion?) in
                (answer, try question.redirected(answer.status, to: answer.headers.first(name: "location")))
            }
            .flatMap { [self] answer, next in
                if let next {
                    guard redirects > 0 else {
                        let why = "redirects more than \(WebhookQuestion.mostRedirects) times"
                        return loop.makeFailedFuture(WebhookFault(why))
                    }
                    return follow(next, redirects - 1, until: deadline, bytes)
                }
                guard (200..<300).contains(answer.status) else {
                    return loop.makeFailedFuture(WebhookFault("answers with status \(answer.status)"))
                }
                return loop.makeSucceededFuture(Answer(address: address, body: answer.body))
            }
    }

    /// Reports the status of a call. Reports of a call are sent one after the other, each up to three times.
    package func report(_ what: String, of call: CallID, _ question: WebhookQuestion) {
        guard var request = TwilioWebhook.Request(question.form, to: question.webhook, token: secret) else { return }
        request.id = question.id
        isEnded.withLock { isEnded in
            guard !isEnded else { return }
            loop.execute { [courier, request] in
                courier.report(StatusQueue.Report(call: call, what: what, request: request))
            }
        }
    }

    /// Ends all requests. Reports of status have a second until then.
    package func finish() async {
        try? await loop.flatSubmit { [courier] in courier.finish(within: Self.lastReports) }.get()
        isEnded.withLock { $0 = true }
        try? await loop.submit { [sender] in sender.finish() }.get()
        try? await group.shutdownGracefully()
    }
}
