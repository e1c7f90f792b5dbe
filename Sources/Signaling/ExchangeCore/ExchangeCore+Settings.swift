package import Core

extension ExchangeCore {
    /// The settings that matter here.
    package struct Settings: Sendable {
        package var keepalive = Duration.seconds(25)
        package var resumeWindow = Duration.seconds(60)
        package var tokenLifetime = Duration.seconds(3_600)
        package var refreshLifetime = Duration.seconds(2_592_000)
        package var signedTokenLifetime = Duration.seconds(2_592_000)
        /// How long before its token's end a session is notified.
        package var tokenNotice = Duration.seconds(60)
        /// Messages that one connection may send.
        package var messages = TokenBucket.Rate(burst: 500, perSecond: 100)
        /// Refusals for too many messages, past which a connection is closed.
        var messagesRefused = 100
        /// How long an opened socket may stay without a session.
        var loginWindow = Duration.seconds(10)
        /// How long an ended invite is remembered, to report how it ended and to recognise repeated idempotency keys.
        var inviteMemory = Duration.seconds(300)
        /// How long records of calls are kept.
        package var recordRetention = Duration.seconds(90 * 86_400)
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
        /// Whether users may see who is there.
        package var tellsPresence = true
        /// The ways to telephone networks.
        package var trunks: [Trunk] = []
        /// How pushes are made, and for which kinds of tokens.
        package var push = PushQueue.Settings()
        /// How long pushes that could not be made are kept.
        package var deadPushRetention = Duration.seconds(30 * 86_400)

        /// The default of ``tokens``, and the most that any machine has.
        package static let mostTokens = 200_000

        /// The defaults.
        package init() {}
    }
}
