// SIP: messages, transactions, digest, dialogs and registration of RFC 3261 and its companions, as pure values.

/// The limits on messages of SIP peers, and on the memory for them.
public enum SIPLimits {
    /// Bytes of one message, headers and body. A UDP datagram holds no more.
    public static let messageBytes = 65_535
    /// Bytes from the start line to the empty line.
    public static let headerBytes = 32_768
    /// Header lines of one message, unfolded.
    public static let headers = 256
    /// Bytes of one header's value, unfolded.
    public static let valueBytes = 8_192
    /// Elements of one comma list, or of several headers of one name together; `Via` and `Route` too.
    public static let elements = 64
    /// Parameters of one value or URI, and headers of one URI.
    public static let parameters = 64
    /// Bytes of a URI.
    public static let uriBytes = 4_096
    /// Parts of a multipart body; parts within parts are not opened.
    public static let parts = 16
    /// The highest sequence number (RFC 3261 §8.1.1.5).
    public static let sequence: UInt32 = 0x7FFF_FFFF
    /// The longest value that is read from a peer's `Retry-After`, `Expires` or `Session-Expires`, in seconds. The
    /// limits below bound its effect on our own timers, so that no server can silence a device, or make it send without
    /// pause, by a number.
    public static let seconds: UInt32 = 86_400 * 7
    /// The longest `Retry-After` that is obeyed, in seconds; our own wait applies in any case.
    public static let retryAfterSeconds: UInt32 = 300
    /// The shortest time that a registration counts as granted for, in seconds: the next one follows after half of it.
    public static let shortestRegistration: UInt32 = 10
    /// The longest time after which a registration is renewed, in seconds, even if more was granted; more if we ask for
    /// more.
    public static let longestRegistration: UInt32 = 3_600
    /// The longest `Min-Expires` of a 423 that we ask for, in seconds.
    public static let leastRegistration: UInt32 = 86_400
    /// The seconds of a `Flow-Timer`.
    public static let keepaliveSeconds: ClosedRange<UInt32> = 5...120
    /// The longest time after which we refresh a session, in seconds.
    public static let refreshSeconds: UInt32 = 1_800
    /// Transactions of one table, client and server together. Over UDP each is kept for 32 s, so 500 calls a second have 32,000.
    public static let transactions = 40_000
    /// Memory of a transaction besides its messages, in bytes: 0.9 kB were measured.
    static let transactionBytes = 1_024
    /// Bytes reserved for our own part of the answer to a request that has none yet: mostly a description.
    static let answerBytes = 4_096
    /// Memory that transactions of peers may take up in one table: a sixteenth of the machine's, in these bounds. With the least, a board
    /// of 128 MB has room for 3,000 usual requests that were answered, 120 a second over UDP, where each is kept for 32 s; or for 100
    /// INVITEs of the largest size without an answer.
    public static let transactionMemory = 8 << 20...64 << 20

    /// Bytes reserved for the transactions of one account's peers, on a machine with `machine` bytes of memory; `nil`
    /// if unknown.
    public static func transactionMemory(of machine: Int?) -> Int {
        min(max((machine ?? 0) / 16, transactionMemory.lowerBound), transactionMemory.upperBound)
    }
    /// Dialogs that one INVITE may fork into.
    public static let forks = 16
    /// Redirections that one call follows (RFC 3261 §8.1.3.4 leaves the number to us).
    public static let redirections = 5
    /// Calls of one user agent.
    public static let calls = 256
    /// Subscriptions to the mailbox of one account. With their routes they take up 1 MB at most.
    public static let subscriptions = 64
    /// Those of one peer, which may have several telephones.
    public static let subscriptionsOfPeer = 8
    /// Addresses that are notified of the mailbox without a subscription.
    public static let mailboxTargets = 8
}
