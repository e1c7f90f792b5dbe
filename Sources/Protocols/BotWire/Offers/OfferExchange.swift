public import Core

/// One WebRTC leg to a bot, from its offer by HTTP to its end, as a value.
///
/// The driver has the leg's media, which gathers candidates, writes descriptions, and connects by ICE and DTLS, and
/// sends requests. The driver also limits the time until the leg is established.
public struct OfferExchange: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// Begin. Comes once.
        case begin
        /// The leg has found all its candidates.
        case gathered
        /// The leg's description, as ``Output/describe`` asked.
        case described(String)
        /// The bot's server answers.
        case answered(OfferResponse)
        /// The request could not be sent or got no answer, or the leg's media cannot run or has lost its connection: why.
        case failed(String)
        /// ICE and DTLS are done: sound can flow.
        case secured
        /// The bot does not answer on any path.
        case quiet
        /// It answers again.
        case back
        /// The bot has ended the leg, by RTCP (BYE) or by DTLS (close_notify).
        case goodbye
        /// The call ended, or continues without the bot.
        case end
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        /// Prepare the leg's media and gather candidates.
        case open
        /// Write the offer, with all candidates found so far.
        case describe
        /// Send this; ``Input/answered(_:)`` or ``Input/failed(_:)`` follows.
        case send(OfferRequest)
        /// Run the leg's media with the bot's answer.
        case connect(answer: String)
        /// The leg is established.
        case opened
        /// Notify the bot's server that the call ended. No output follows.
        case hangUp(OfferRequest)
        /// The leg's media is to end.
        case release
        /// The leg ended: the bot is done, or something failed. Comes once and last, and not after ``Input/end``.
        case closed(failure: String?)
    }

    /// Maximum time to wait for candidates.
    public static let gathering = Duration.milliseconds(500)
    /// Maximum silence of a bot on all paths.
    public static let patience = Duration.seconds(5)
    /// How long the leg plays on after a goodbye: what the jitter buffer has.
    public static let lastPackets = Duration.milliseconds(250)

    private enum State: Sendable {
        case new
        case gathering(until: Instant)
        case describing
        case asking
        case connecting(hangUp: WebAddress?)
        case standing(hangUp: WebAddress?)
        case quiet(hangUp: WebAddress?, until: Instant)
        case leaving(until: Instant)
        case over
    }

    private let form: OfferForm
    private let address: WebAddress
    private let token: String?
    private var state = State.new

    /// Makes one.
    ///
    /// - Parameters:
    ///   - address: Target of the offer.
    ///   - token: The bearer token; nil for none.
    public init(_ form: OfferForm, to address: WebAddress, token: String?) {
        self.form = form
        self.address = address
        self.token = token
    }

    /// When it must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch state {
        case .gathering(let until), .quiet(_, let until), .leaving(let until): until
        case .new, .describing, .asking, .connecting, .standing, .over: nil
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (state, input) {
        // The server answered after the exchange ended: end the call that it has begun.
        case (.over, .answered(let response)):
            guard let hangUp = (try? form.answer(response, from: address))?.hangUp else { return }
            outbox.append(.hangUp(form.hangUp(at: hangUp, token: token)))
        case (.over, _): break
        case (.new, .begin):
            state = .gathering(until: now.advanced(by: Self.gathering))
            outbox.append(.open)
        case (.gathering, .gathered): describe(into: &outbox)
        case (.gathering(let until), .timerFired) where now >= until: describe(into: &outbox)
        case (.describing, .described(let description)):
            state = .asking
            outbox.append(.send(form.request(description, to: address, token: token)))
        case (.asking, .answered(let response)): take(response, into: &outbox)

        case (.connecting(let hangUp), .secured):
            state = .standing(hangUp: hangUp)
            outbox.append(.opened)
        case (.standing(let hangUp), .quiet):
            state = .quiet(hangUp: hangUp, until: now.advanced(by: Self.patience))
        case (.quiet(let hangUp, _), .back): state = .standing(hangUp: hangUp)
        case (.quiet(_, let until), .timerFired) where now >= until:
            fail("the bot does not answer any more", into: &outbox)
        case (.standing, .goodbye), (.quiet, .goodbye):
            state = .leaving(until: now.advanced(by: Self.lastPackets))
        case (.leaving(let until), .timerFired) where now >= until: close(nil, into: &outbox)
        // The connection ends after a goodbye.
        case (.leaving, .failed): close(nil, into: &outbox)

        case (.connecting, .goodbye): fail("the bot has closed the leg before it stood", into: &outbox)
        case (_, .failed(let why)): fail(why, into: &outbox)
        case (_, .end):
            tellEnd(into: &outbox)
            outbox.append(.release)
            state = .over
        case (_, .begin), (_, .gathered), (_, .described), (_, .answered), (_, .secured), (_, .quiet), (_, .back),
            (_, .goodbye), (_, .timerFired):
            break  // Late, early, or repeated.
        }
    }

    private mutating func describe(into outbox: inout [Output]) {
        state = .describing
        outbox.append(.describe)
    }

    private mutating func take(_ response: OfferResponse, into outbox: inout [Output]) {
        do throws(OfferFault) {
            let answer = try form.answer(response, from: address)
            state = .connecting(hangUp: answer.hangUp)
            outbox.append(.connect(answer: answer.description))
        } catch {
            fail(error.description, into: &outbox)
        }
    }

    private mutating func fail(_ why: String, into outbox: inout [Output]) {
        tellEnd(into: &outbox)
        close(why, into: &outbox)
    }

    private mutating func close(_ failure: String?, into outbox: inout [Output]) {
        state = .over
        outbox.append(.release)
        outbox.append(.closed(failure: failure))
    }

    /// A bot that has said goodbye knows.
    private func tellEnd(into outbox: inout [Output]) {
        switch state {
        case .connecting(let hangUp?), .standing(let hangUp?), .quiet(let hangUp?, _):
            outbox.append(.hangUp(form.hangUp(at: hangUp, token: token)))
        case .connecting(nil), .standing(nil), .quiet(nil, _), .new, .gathering, .describing, .asking, .leaving, .over:
            break
        }
    }
}
