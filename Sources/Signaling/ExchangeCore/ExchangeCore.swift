package import JSON
package import SignalWire
package import Timekeeping

/// The exchange as a value: who is logged in, which invites are open, which calls and rooms there are.
///
/// It owns every timer of an invite, so that one fires though its inviter is gone (INV-7). Sockets, clocks and
/// randomness are with the driver, ``ExchangeHub``.
package struct ExchangeCore: ProtocolCore, Sendable {
    /// What can happen.
    package enum Input: Sendable {
        /// A login succeeded and was given an access token, and perhaps a refresh token.
        case tokenIssued(SecretDigest, Grant, refresh: SecretDigest? = nil, mark: RefreshToken.Mark? = nil)
        /// A good refresh token was exchanged for a new pair.
        case tokenRefreshed(
            SecretDigest, access: SecretDigest, refresh: SecretDigest, family: SecretDigest? = nil)
        /// A signed token was shown and found to be good until then; `login` is given by its issuer and `jti`.
        case tokenPresented(SecretDigest, Grant, login: SecretDigest? = nil, expires: Instant)
        /// A token has reached its bearer.
        case tokenUsed(SecretDigest)
        /// The login that a token belongs to is over: its bearer has logged out.
        case tokenRevoked(SecretDigest)
        /// A refresh token of a login came up that its bearer does not use any more: somebody has a copy.
        case tokenCopied(SecretDigest)
        /// All logins of a user are over.
        case userRevoked(UserID)
        /// There are other accounts from now on; who has none any more is logged out.
        case accountsChanged([Account])
        /// A WebSocket was opened.
        case connected(ConnectionID)
        /// The exchange itself stands for a device, whose user it has made sure of by `token`.
        case attached(ConnectionID, Endpoint, token: SecretDigest? = nil)
        /// A well-formed request came in.
        case request(ConnectionID, RPCID, ClientRequest)
        /// A request came in with a signed token that is not good, or cannot be read.
        case badToken(ConnectionID, RPCID, RPCError, closes: Bool)
        /// Something came in that is no request.
        case malformed(ConnectionID, RPCMessage.Malformed)
        /// The socket is gone, whatever the reason.
        case disconnected(ConnectionID)
        /// The operator has something to tell a user's devices (CONN-11).
        case notify(UserID, JSONValue)
        /// Every device is to connect anew within a time, at the address that is given if there is one (CONN-12).
        case move(within: Duration, to: String?)
        /// An attempt at a push is over.
        case pushAnswered(PushID, attempt: Int, PushAnswer)
        /// The exchange closes all connections; their devices will be back, and need no pushes for it.
        case goingDown
        /// One of the deadlines has come that ``takeDue(at:atMost:)`` has taken out.
        case due(Deadline)
        /// It is time to try pushes. Early calls are harmless.
        case pushesAreDue
        /// ``nextDeadline`` has come: what is due is done, whosever turn it takes. Early calls are harmless.
        case timer
    }

    /// What is to be done.
    package enum Output: Hashable, Sendable {
        case respond(ConnectionID, RPCID, ClientResponse)
        case refuse(ConnectionID, RPCID?, RPCError)
        /// Send one event to several devices of one user.
        case event([ConnectionID], ToldEvent)
        case close(ConnectionID, CloseReason)
        case note(ExchangeNote)
        /// Ask the webhook for the push's kind of token, and tell ``Input/pushAnswered(_:attempt:_:)`` what it said.
        case push(StoredPush)
        /// Write this to disk before anything else that the input caused is done.
        case persist(Change)
    }

    /// What the core will have to look at later.
    package enum Deadline: Hashable, Sendable {
        case inviteTimesOut(InviteID)
        case inviteIsForgotten(InviteID)
        case accountIsMissed(UserID)
        case sessionIsForgotten(SessionID)
        case callMayBeOrphaned(CallKey)
        case loginIsDue(ConnectionID)
        case tokensAreSwept
        case tokenIsChecked(ConnectionID)
        case pruningIsDue
        case eventsExpire(Principal)
        case eventsArePruned
    }

    /// The settings that matter here.
    package struct Settings: Sendable {
        package var keepalive = Duration.seconds(25)
        package var resumeWindow = Duration.seconds(60)
        package var tokenLifetime = Duration.seconds(3_600)
        package var refreshLifetime = Duration.seconds(2_592_000)
        package var signedTokenLifetime = Duration.seconds(2_592_000)
        /// How long before its token's end a session is told of it.
        package var tokenNotice = Duration.seconds(60)
        /// Messages that one connection may send.
        package var messages = TokenBucket.Rate(burst: 500, perSecond: 100)
        /// Refusals for too many messages, past which a connection is closed.
        var messagesRefused = 100
        /// How long an opened socket may stay without a session.
        var loginWindow = Duration.seconds(10)
        /// How long an ended invite is remembered, for errors that say how it ended and for idempotency keys.
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
        /// Bytes that may be kept.
        package var kept = Ledger.Limits()
        /// Ended invites of one user that are remembered; the oldest go.
        var endedInvitesPerUser = 1_024
        /// Whether users may see who is there.
        package var tellsPresence = true
        /// How pushes are made, and for which kinds of tokens.
        package var push = PushQueue.Settings()
        /// How long pushes that could not be made are kept.
        package var deadPushRetention = Duration.seconds(30 * 86_400)

        /// The defaults.
        package init() {}
    }

    /// What the core knows of a socket, logged in or not.
    struct Connection: Sendable {
        var malformedCount = 0
        var malformedSince = Instant.zero
        /// When it is closed if it has no session.
        var loginDue: Instant
        /// What it may still send.
        var messages: TokenBucket?
        /// Messages refused since it last sent no more than it may.
        var refusedCount = 0
    }

    /// How many timers are met in one turn, and outputs of theirs past which the rest waits for its turn.
    package static let timersAtOnce = 256

    let settings: Settings
    package internal(set) var accounts: Accounts
    var tokens = TokenStore()
    var isSweepDue = false
    var connections: [ConnectionID: Connection] = [:]
    var sessions = Sessions()
    var invites = ChangeTrackingMap<InviteID, InviteRecord>()
    /// Which invite a user's idempotency key stands for, and back.
    var inviteByKey: [InviteKey: InviteID] = [:]
    var keyByInvite: [InviteID: InviteKey] = [:]
    var openInvites = OpenInvites()
    var invitePlaces = InvitePlaces()
    var acquaintances = Acquaintances()
    var endedInvites = EndedInvites()
    /// The number of the newest invite.
    var lastInvite: UInt64 = 0
    var groups = Groups()
    var pushes = PushBoard()
    var pushQueue: PushQueue
    var calls = Calls()
    var rooms = Rooms()
    var presence = PresenceBoard()
    package var logs: [Principal: EventLog] = [:]
    var guests = Guests()
    /// Those without an account of whom the disk is to keep nothing more.
    var gone: [Principal] = []
    /// Who pays for what is kept.
    var ledger: Ledger
    /// On whose behalf the exchange is at work; `nil`: on its own.
    var actsFor: Principal?
    /// The number of the newest body of an event.
    var lastBody: UInt64 = 0
    var isEventPruningPlanned = false
    var ids: IDSource
    var deadlines = DeadlineQueue<Deadline>()
    var isPruningPlanned = false
    var isGoingDown = false
    package private(set) var counters = CoreCounters()

    /// A key is one user's own.
    struct InviteKey: Hashable, Sendable {
        var user: UserID
        var key: IdempotencyKey
    }

    /// - Parameter run: Random bits, others for each run of the exchange.
    package init(accounts: [Account], settings: Settings = Settings(), run: RunSeed) {
        self.accounts = Accounts(accounts)
        self.settings = settings
        ledger = Ledger(settings.kept)
        ids = IDSource(run)
        pushQueue = PushQueue(settings.push, seed: run.number)
    }

    package var nextDeadline: Instant? {
        guard let push = pushQueue.nextDeadline else { return deadlines.earliest }
        return min(deadlines.earliest ?? push, push)
    }

    package mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        actsFor = nil
        switch input {
        case .tokenIssued(let token, let grant, let refresh, let mark):
            issue(token, grant, refresh: refresh, mark: mark, at: now, into: &outbox)
        case .tokenRefreshed(let old, let access, let refresh, let family):
            rotate(old, access: access, refresh: refresh, family: family, at: now)
        case .tokenPresented(let token, let grant, let login, let expires):
            admit(token, of: login ?? token, grant, expires: expires, at: now, into: &outbox)
        case .tokenUsed(let token): tokens.confirm(token, at: now)
        case .tokenRevoked(let token):
            if let login = tokens.login(of: token) { end(login, at: now, into: &outbox) }
        case .tokenCopied(let login): end(login, .copied, at: now, into: &outbox)
        case .userRevoked(let user): endLogins(of: user, at: now, into: &outbox)
        case .accountsChanged(let accounts): replaceAccounts(accounts, at: now, into: &outbox)
        case .badToken(let connection, let id, let error, let closes):
            refuse(error, to: id, from: connection, closes: closes, at: now, into: &outbox)
        case .connected(let connection):
            expectLogin(on: connection, at: now)
        case .attached(let connection, let endpoint, let token):
            attach(endpoint, on: connection, token: token, at: now, into: &outbox)
        case .request(let connection, let id, let request):
            answer(request, id: id, from: connection, at: now, into: &outbox)
        case .malformed(let connection, let malformed):
            refuse(malformed, from: connection, at: now, into: &outbox)
        case .disconnected(let connection):
            lose(connection, at: now, into: &outbox)
        case .notify(let user, let payload):
            let event = body(of: .notification(NotificationReceived(payload: payload)))
            for session in sessions.sessions(of: user) { tell(session.endpoint, event, at: now, into: &outbox) }
        case .move(let within, let url): requestMoves(within: within, to: url, into: &outbox)
        case .pushAnswered(let id, let attempt, let answer):
            feedPushes(.answered(id, attempt: attempt, answer), at: now, into: &outbox)
        case .goingDown: isGoingDown = true
        case .due(let deadline): meet(deadline, at: now, into: &outbox)
        case .pushesAreDue: feedPushes(.timer, at: now, into: &outbox)
        case .timer:
            // What is left is due at once, and has its turn after others'. Those count as well that put nothing out by
            // themselves: what they changed is written.
            var met = 0
            while met < Self.timersAtOnce, outbox.count < Self.timersAtOnce, let deadline = deadlines.takeDue(at: now) {
                meet(deadline, at: now, into: &outbox)
                met += 1
            }
            feedPushes(.timer, at: now, into: &outbox)
        }
        announcePresence(into: &outbox)
        recordChanges(at: now, into: &outbox)
        sweepDeadlines()
    }

    /// Answers one request. The response comes before every event that the request causes.
    private mutating func answer(
        _ request: ClientRequest, id: RPCID, from connection: ConnectionID, at now: Instant,
        into outbox: inout [Output]
    ) {
        guard connections[connection] != nil else { return }
        actsFor = sessions[connection]?.endpoint.principal
        counters.requests += 1
        guard mayAsk(id, on: connection, at: now, into: &outbox) else { return }
        let place = outbox.count
        do {
            let response = try perform(request, from: connection, at: now, into: &outbox)
            outbox.insert(.respond(connection, id, response), at: place)
        } catch {
            counters.refusals += 1
            outbox.insert(.refuse(connection, id, error), at: place)
            if case .sessionStart = request, error.isAboutToken { outbox.append(.close(connection, .tokenRejected)) }
        }
    }

    /// Goes on counting where an earlier core ended.
    package mutating func goOn(from earlier: CoreCounters) { counters = earlier }

    /// Changes the counters; they are set from nowhere else.
    mutating func count(_ counter: WritableKeyPath<CoreCounters, Int>, by number: Int = 1) {
        counters[keyPath: counter] += number
    }
}
