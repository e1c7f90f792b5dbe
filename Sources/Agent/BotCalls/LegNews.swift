internal import BotWire
public import CallParticipation

/// Orders of a bot's leg to the owner of the media. Each leg has a number of its own.
public enum LegOrder: Sendable, Equatable {
    /// Prepare a leg for a call, and report when its candidates are gathered.
    case open(CallID)
    /// Report the description, with the candidates found so far.
    case describe
    /// Run it, with the bot's answer; its line comes from ``BotCalls/attach(leg:)``.
    case connect(answer: String)
    /// End it, without further events.
    case close
}

/// What happens to a bot's leg.
public enum LegEvent: Sendable, Equatable {
    /// All candidates are found.
    case gathered
    /// The offer.
    case described(String)
    /// ICE and DTLS are done.
    case secured
    /// The bot does not answer on any path.
    case quiet
    /// It answers again.
    case back
    /// The bot has said goodbye.
    case goodbye
    /// The leg cannot run, or has lost its connection: why.
    case failed(String)

    var input: OfferExchange.Input {
        switch self {
        case .gathered: .gathered
        case .described(let text): .described(text)
        case .secured: .secured
        case .quiet: .quiet
        case .back: .back
        case .goodbye: .goodbye
        case .failed(let why): .failed(why)
        }
    }
}

/// The legs of a device's bots by their numbers.
final class LegTable: @unchecked Sendable {
    // Only the event loop uses it.
    private var legs: [UInt64: LegBotSocket] = [:]
    private var last: UInt64 = 0

    subscript(number: UInt64) -> LegBotSocket? { legs[number] }

    /// Adds a leg, and returns its number, which is never used again.
    func add(_ leg: LegBotSocket) -> UInt64 {
        last += 1
        legs[last] = leg
        return last
    }

    func remove(_ number: UInt64) { legs[number] = nil }
}
