internal import BotWire
internal import Core

/// What becomes of one call of a bot: the answer to its webhook is followed, its stream opened and heard out, and requests of the
/// bot's server are carried out.
///
/// The call is accepted when the first stream is open, or when an answer waits first. Until then a failure rejects it, unless
/// there is a fallback.
struct BotCourse: ProtocolCore, Sendable {
    enum Input: Equatable, Sendable {
        /// Ask this webhook what to do.
        case ask(Webhook)
        /// Connect with this bot.
        case connect(Stream)
        /// The webhook answers.
        case told(CallMarkup)
        /// The webhook does not answer, or the bot cannot be reached, or its stream has failed.
        case failed(String)
        /// The bot can be sent messages.
        case opened
        /// The stream has ended, and all was heard.
        case streamOver
        /// The transfer that was asked for did not come about. One that did ends the call.
        case transferFailed
        /// A request: end the call.
        case end
        /// A request: do something else with the call.
        case redirect(BotRequest.Instructions)
        case callOver
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    enum Output: Equatable, Sendable {
        /// - Parameter dialFailed: Whether it is asked because a transfer has failed.
        case ask(Webhook, dialFailed: Bool = false)
        case open(Stream)
        /// Have what the bot says heard to its end, and close the stream.
        case finishStream
        /// Give up what is being asked or opened.
        case abandon
        /// The call can be accepted.
        case accept
        case reject(CallMarkup.RejectReason?, String)
        /// Play the fallback; ``Input/streamOver`` follows at its end.
        case fallBack(String)
        /// Play no more of the fallback.
        case stopFallback
        case hangUp(failure: String?)
        /// Transfer the call.
        case transfer(to: String)
    }

    /// A bot that a call is connected with.
    struct Stream: Equatable, Sendable {
        var address: WebAddress
        var parameters: [String: String] = [:]
        var action: Webhook?
        /// The webhook for the stream's events, and the stream's name there.
        var statusCallback: Webhook?
        var name: String?
        var callerFormat: PlivoWire.ContentType?
    }

    private enum State: Sendable {
        case new
        case asking(until: Instant)
        case opening(Stream, rest: [CallMarkup.Verb], until: Instant)
        case streaming(Stream, rest: [CallMarkup.Verb])
        /// The bot is heard out before this is done.
        case finishing(Next)
        case waiting(rest: [CallMarkup.Verb], until: Instant)
        case transferring(action: Webhook?, rest: [CallMarkup.Verb], until: Instant)
        case fallingBack
        case over
    }

    private enum Next: Sendable {
        case hangUp
        case verbs([CallMarkup.Verb])
        case ask(Webhook)
    }

    /// Longer than a peer may take to say anything of a transfer, and than the target rings.
    static let transferTime = Duration.seconds(240)

    private let hasFallback: Bool
    private let timeout: Duration
    private var isAnswered: Bool
    private var state = State.new
    /// Questions in a row, without a stream or a wait between them.
    private var questions = 0
    /// Before the call is answered all has to be done by then.
    private var answerDeadline: Instant?

    /// - Parameters:
    ///   - isAnswered: Whether the call is established already, as one that this side has placed.
    ///   - timeout: For the call to be answered, and for each later question or connection.
    init(isAnswered: Bool, hasFallback: Bool, timeout: Duration) {
        self.isAnswered = isAnswered
        self.hasFallback = hasFallback
        self.timeout = timeout
    }

    var nextDeadline: Instant? {
        switch state {
        case .asking(let until), .opening(_, _, let until), .waiting(_, let until), .transferring(_, _, let until):
            until
        case .new, .streaming, .finishing, .fallingBack, .over: nil
        }
    }

    /// How the call goes, in Twilio's words.
    var status: TwilioWebhook.Status { isAnswered ? .inProgress : .ringing }

    mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (state, input) {
        case (.over, _): break
        case (_, .callOver): state = .over
        case (.new, .ask(let webhook)): ask(webhook, at: now, into: &outbox)
        case (.new, .connect(let stream)): open(stream, rest: [], at: now, into: &outbox)
        case (_, .ask), (_, .connect): break

        // A call that was placed can have its instructions with it.
        case (.asking, .told(let markup)), (.new, .told(let markup)): run(markup.verbs[...], at: now, into: &outbox)
        case (.asking, .failed(let why)), (.opening, .failed(let why)), (.streaming, .failed(let why)):
            fail(why, into: &outbox)
        case (.finishing(let next), .failed), (.finishing(let next), .streamOver):
            run(next, at: now, into: &outbox)
        case (.opening(let stream, let rest, _), .opened):
            state = .streaming(stream, rest: rest)
            questions = 0
            accept(into: &outbox)
        case (.streaming(let stream, let rest), .streamOver):
            if let action = stream.action {
                ask(action, at: now, into: &outbox)
            } else {
                run(rest[...], at: now, into: &outbox)
            }
        case (.transferring(let action, let rest, _), .transferFailed):
            resume(action, rest, at: now, into: &outbox)
        case (.fallingBack, .streamOver), (.fallingBack, .failed): hangUp(into: &outbox)
        case (_, .told), (_, .failed), (_, .opened), (_, .streamOver), (_, .transferFailed): break

        case (_, .end): interrupt(.hangUp, at: now, into: &outbox)
        case (_, .redirect(.markup(let markup))): interrupt(.verbs(markup.verbs), at: now, into: &outbox)
        case (_, .redirect(.ask(let webhook))): interrupt(.ask(webhook), at: now, into: &outbox)
        case (_, .timerFired):
            if let deadline = nextDeadline, now >= deadline { timeOut(at: now, into: &outbox) }
        }
    }

    private mutating func timeOut(at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .waiting(let rest, _): run(rest[...], at: now, into: &outbox)
        case .transferring(let action, let rest, _): resume(action, rest, at: now, into: &outbox)
        case .asking:
            outbox.append(.abandon)
            fail("the webhook did not answer within \(timeout.text)", into: &outbox)
        case .opening:
            outbox.append(.abandon)
            fail("the bot did not take part in the call within \(timeout.text)", into: &outbox)
        case .new, .streaming, .finishing, .fallingBack, .over: break
        }
    }

    // MARK: - What is to be done

    /// A transfer has failed: the call continues.
    private mutating func resume(
        _ action: Webhook?, _ rest: [CallMarkup.Verb], at now: Instant, into outbox: inout [Output]
    ) {
        guard let action else { return run(rest[...], at: now, into: &outbox) }
        ask(action, dialFailed: true, at: now, into: &outbox)
    }

    private mutating func ask(
        _ webhook: Webhook, dialFailed: Bool = false, at now: Instant, into outbox: inout [Output]
    ) {
        questions += 1
        guard questions <= WireLimits.redirects else {
            return fail("the webhooks' answers redirect more than \(WireLimits.redirects) times", into: &outbox)
        }
        state = .asking(until: deadline(at: now))
        outbox.append(.ask(webhook, dialFailed: dialFailed))
    }

    private mutating func open(
        _ stream: Stream, rest: [CallMarkup.Verb], at now: Instant, into outbox: inout [Output]
    ) {
        state = .opening(stream, rest: rest, until: deadline(at: now))
        outbox.append(.open(stream))
    }

    private mutating func deadline(at now: Instant) -> Instant {
        if isAnswered { return now.advanced(by: timeout) }
        let deadline = answerDeadline ?? now.advanced(by: timeout)
        answerDeadline = deadline
        return deadline
    }

    /// Follows instructions.
    private mutating func run(
        _ verbs: ArraySlice<CallMarkup.Verb>, at now: Instant, into outbox: inout [Output]
    ) {
        let rest = Array(verbs.dropFirst())
        switch verbs.first {
        case .stream(let stream):
            open(
                Stream(
                    address: stream.address, parameters: stream.parameters, action: stream.action,
                    statusCallback: stream.statusCallback, name: stream.name, callerFormat: stream.callerFormat),
                rest: rest, at: now, into: &outbox)
        case .pause(let seconds):
            // As at Twilio, who waits takes the call.
            accept(into: &outbox)
            questions = 0
            state = .waiting(rest: rest, until: now.advanced(by: .seconds(seconds)))
        case .redirect(let webhook): ask(webhook, at: now, into: &outbox)
        case .transfer(let transfer):
            // Only who has taken a call can transfer it.
            accept(into: &outbox)
            state = .transferring(
                action: transfer.action, rest: rest, until: now.advanced(by: Self.transferTime))
            outbox.append(.transfer(to: transfer.target))
        case .reject(let reason) where !isAnswered: reject(reason, "the webhook rejected it", &outbox)
        case .hangUp where !isAnswered: reject(.rejected, "the webhook hung up", &outbox)
        case nil where !isAnswered: reject(.rejected, "the webhook's answer names no stream", &outbox)
        case .reject, .hangUp, nil: hangUp(into: &outbox)
        }
    }

    private mutating func run(_ next: Next, at now: Instant, into outbox: inout [Output]) {
        switch next {
        case .hangUp: hangUp(into: &outbox)
        case .verbs(let verbs): run(verbs[...], at: now, into: &outbox)
        case .ask(let webhook): ask(webhook, at: now, into: &outbox)
        }
    }

    /// Does something else with the call: at once, or once the bot is heard out.
    private mutating func interrupt(_ next: Next, at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .streaming:
            state = .finishing(next)
            outbox.append(.finishStream)
        case .finishing: state = .finishing(next)
        case .asking, .opening:
            outbox.append(.abandon)
            if case .hangUp = next, !isAnswered { return reject(.rejected, "the bot's server ended it", &outbox) }
            run(next, at: now, into: &outbox)
        case .fallingBack:
            // It must not continue while something else is asked, or is opened.
            outbox.append(.stopFallback)
            run(next, at: now, into: &outbox)
        case .waiting, .transferring: run(next, at: now, into: &outbox)
        case .new, .over: break
        }
    }

    private mutating func accept(into outbox: inout [Output]) {
        guard !isAnswered else { return }
        isAnswered = true
        outbox.append(.accept)
    }

    private mutating func fail(_ why: String, into outbox: inout [Output]) {
        if hasFallback {
            accept(into: &outbox)
            state = .fallingBack
            outbox.append(.fallBack(why))
        } else if isAnswered {
            state = .over
            outbox.append(.hangUp(failure: why))
        } else {
            reject(nil, why, &outbox)
        }
    }

    private mutating func reject(_ reason: CallMarkup.RejectReason?, _ why: String, _ outbox: inout [Output]) {
        state = .over
        outbox.append(.reject(reason, why))
    }

    private mutating func hangUp(into outbox: inout [Output]) {
        state = .over
        outbox.append(.hangUp(failure: nil))
    }
}
