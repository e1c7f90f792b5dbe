import Core

/// What an operator may set of the exchange's state machine, with the defaults.
public struct ExchangeSettings: Sendable {
    /// How often each connection is pinged; one that is silent for twice that long is dead.
    public var keepalive = Duration.seconds(25)
    /// How long a lost connection's session can be resumed.
    public var resumeWindow = Duration.seconds(60)
    /// How long an access token is good.
    public var tokenLifetime = Duration.seconds(3_600)
    /// How long a refresh token is good.
    public var refreshLifetime = Duration.seconds(2_592_000)
    /// How long a signed token may be good, from its signing to its end.
    public var signedTokenLifetime = Duration.seconds(2_592_000)
    /// How long before its token's end a session is notified.
    public var tokenNotice = Duration.seconds(60)
    /// Messages that one connection may send in a second, for ever.
    public var messagesPerSecond = 100
    /// Messages that one connection may send at once.
    public var messageBurst = 500
    /// Whether users may see who is there.
    public var tellsPresence = true
    /// The connections to telephone networks, which `handset trunk` carries.
    public var trunks: [Trunk] = []
    /// How long records of calls are kept.
    public var callRecordRetention = Duration.seconds(90 * 86_400)

    /// The defaults.
    public init() {}

    /// Takes from `other` what may change while an exchange runs: lifetimes of tokens, the notice before a token's end, message
    /// rates of connections, and who may call telephone numbers.
    package mutating func adopt(_ other: ExchangeSettings) {
        tokenLifetime = other.tokenLifetime
        refreshLifetime = other.refreshLifetime
        signedTokenLifetime = other.signedTokenLifetime
        tokenNotice = other.tokenNotice
        messagesPerSecond = other.messagesPerSecond
        messageBurst = other.messageBurst
        trunks = other.trunks
    }

    var messages: TokenBucket.Rate { TokenBucket.Rate(burst: messageBurst, perSecond: Double(messagesPerSecond)) }
}

extension ExchangeCore {
    /// What the state machine works by: what an operator has set, with the members of that as its own, and bounds that follow from
    /// the configuration's other sections or are the same everywhere.
    @dynamicMemberLookup
    package struct Settings: Sendable {
        /// What an operator has set.
        package var chosen: ExchangeSettings

        /// Refusals for too many messages, past which a connection is closed.
        var messagesRefused = 100
        /// How long an opened socket may stay without a session.
        var loginWindow = Duration.seconds(10)
        /// How long an ended invite is remembered, to report how it ended and to recognise repeated idempotency keys.
        var inviteMemory = Duration.seconds(300)
        /// How often what is too old is dropped.
        var pruningInterval = Duration.seconds(600)
        /// Malformed messages in a minute, past which a connection is closed.
        var malformedPerMinute = 100
        /// How many invites may be open at once.
        var invites = InviteLimits()
        /// Sessions that one user may have at once.
        var sessionsPerUser = 64
        /// Tokens that are remembered of the exchange's own, and as many of each API key.
        package var tokens = mostTokens
        /// Bytes that may be kept.
        package var kept = StorageQuota.Limits()
        /// Ended invites of one user that are remembered; the oldest go.
        var endedInvitesPerUser = 1_024
        /// Whether steps of invites are put out for traces.
        package var tracesInvites = false
        /// How pushes are made, and for which kinds of tokens.
        package var push: PushQueue.Settings

        /// The default of ``tokens``, and the most that any machine has.
        package static let mostTokens = 200_000

        package init(
            _ chosen: ExchangeSettings = ExchangeSettings(), push: PushConfiguration = PushConfiguration()
        ) {
            self.chosen = chosen
            self.push = PushQueue.Settings(push)
        }

        package subscript<Value>(dynamicMember member: WritableKeyPath<ExchangeSettings, Value>) -> Value {
            get { chosen[keyPath: member] }
            set { chosen[keyPath: member] = newValue }
        }
    }
}
