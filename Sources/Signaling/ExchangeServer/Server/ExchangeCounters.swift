/// Counters of an exchange since it started, except the first eight, which are current values.
public struct ExchangeCounters: Hashable, Sendable {
    /// TCP connections, logged in or not.
    public var openConnections = 0
    /// Sessions with a connection.
    public var openSessions = 0
    /// Calls that have not ended.
    public var openCalls = 0
    /// Streams over WHIP and WHEP, ringing or up.
    public var openStreams = 0
    /// Bytes that are kept for users, as the budgets count them.
    public var keptBytes = 0
    /// Bytes that wait for the disk.
    public var journalBytes = 0
    /// Bytes that wait for clients that read slowly; those that have read on since may still be counted.
    public var sendBufferBytes = 0
    /// Bytes of requests that wait for their turn.
    public var turnBytes = 0
    /// TCP connections that were accepted.
    public var connections = 0
    /// TCP connections that were refused because there were too many, in all or from one address.
    public var refusedConnections = 0
    /// TCP connections that were closed at once because there was no descriptor for them.
    public var shedConnections = 0
    /// Incomplete requests and messages that were refused because all of them, before login or after it, took up too much
    /// memory.
    public var crowdedOut = 0
    /// Logins that were given a token.
    public var logins = 0
    /// Logins and tokens that were refused.
    public var refusedLogins = 0
    /// Sessions that were started.
    public var sessions = 0
    /// Requests on WebSockets that could be read.
    public var requests = 0
    /// Of those, the ones that were answered with an error.
    public var refusals = 0
    /// Messages on WebSockets that were no request.
    public var malformed = 0
    /// WebSocket connections closed for frames that are too long or no frames.
    public var badFrames = 0
    /// Requests that were refused because too many of their user waited.
    public var crowdedTurns = 0
    /// Events that were sent.
    public var events = 0
    /// Invites that were sent.
    public var invites = 0
    /// Invites that were accepted.
    public var calls = 0
    /// Pushes that a webhook took.
    public var pushes = 0
    /// Pushes that could not be made.
    public var deadPushes = 0
    /// Requests that were refused since one user would have had too much kept.
    public var overBudget = 0
    /// Requests that were refused since too much was kept for all, and who asked had its share of it.
    public var overload = 0
    /// Events that were sent and not kept for devices that resume, because there was no room.
    public var unkeptEvents = 0
    /// Requests that were refused since too much waited for the disk.
    public var crowdedDisk = 0
    /// Transactions of the database.
    public var commits = 0
    /// Traces of calls that were dropped because too many had not ended.
    public var droppedTraces = 0
    /// Candidates of devices that arrived too late to reach a stream's client.
    public var lateCandidates = 0
    /// Connections dropped since their client did not read what was sent to it, or read too slowly while too much waited
    /// for all.
    public var slowClients = 0
    /// Connections dropped because nothing was received from the client.
    public var deadLinks = 0
}
