public import ConfigReader
public import ExchangeCore
public import SignalWire

/// The configuration that an exchange starts with, as plain data.
@dynamicMemberLookup
public struct ExchangeConfiguration: Sendable {
    /// The files of a certificate, both in PEM form.
    public struct Certificate: Hashable, Sendable {
        /// The chain, the exchange's own certificate first.
        public var chainPath: String
        /// The private key.
        public var keyPath: String

        /// Names the files.
        public init(chainPath: String, keyPath: String) {
            self.chainPath = chainPath
            self.keyPath = keyPath
        }
    }

    /// Whether to listen without TLS.
    public enum PlainText: String, CaseIterable, Sendable {
        /// On loopback addresses only.
        case loopback
        /// On any address: anyone who can observe the network reads everything.
        case allowed
    }

    /// The address to listen on: a name or an address, without brackets.
    public var host = "127.0.0.1"
    /// The port to listen on; 0 lets the system choose.
    public var port = 8_080
    /// The certificate; without one the exchange speaks plain text.
    public var certificate: Certificate?
    /// The exchange is its own authority, in the place of ``certificate``.
    public var ownAuthority: OwnAuthority?
    /// Where plain text is allowed, if there is no certificate.
    public var plainText = PlainText.loopback
    /// Where clients open the WebSocket, if it is not under the host that they asked for it: behind a proxy.
    public var webSocketURL: String?
    /// The applications that may log users in.
    public var apps: [RegisteredApp] = []
    /// The keys with which applications sign tokens (AUTH-5).
    public var apiKeys: [SigningKey] = []
    /// The users.
    public var users: [Account] = []
    /// A file with more users, which `handset user` writes and the exchange looks at every second.
    public var usersFile: UsersFile?
    /// The users that the file had when the configuration was read.
    public var fileUsers: [Account] = []
    /// Whether anyone with an application's token may log in by a name alone (AUTH-3).
    public var allowsAnonymous = true
    /// Lifetimes of sessions and tokens, messages, presence, trunks and call records: what the exchange's state machine works by.
    public var core = ExchangeSettings()
    /// Whether browsers are shown the web phone, at `/`.
    public var showsWebPhone = false
    /// Web pages that may open a WebSocket beside the exchange's own, as origins such as `https://calls.example.org`.
    public var allowedOrigins: [String] = []
    /// Users that the web phone offers to everyone, with their media tokens; anyone who opens the page can read these.
    public var guests: [WebConfiguration.Guest] = []
    /// The STUN and TURN servers that clients receive.
    public var iceServers: [ICEServerConfiguration] = []
    /// How long devices ring for a stream (WHIP, WHEP) before its client is refused because no device answered.
    public var streamRinging = Duration.seconds(30)
    /// How many logins may fail.
    public var failedLogins = FailedLogins()
    /// TCP connections in all; `nil` for as many as the limit on open files and a quarter of the memory beyond 64 MiB leave
    /// room for, up to 200,000.
    public var connections: Int?
    /// TCP connections from one address, IPv6 by /64; `nil` for an eighth of all. This machine's own addresses have
    /// ``connectionsFromThisMachine``, and a proxy's connections count for the clients that it names.
    public var connectionsPerAddress: Int?
    /// TCP connections from this machine's own addresses (127.0.0.0/8 and `::1`) together; `nil` for half of all.
    public var connectionsFromThisMachine: Int?
    /// Bytes that all clients together who have not logged in may make the exchange hold; `nil` for a sixteenth of the
    /// memory of the machine or the control group, between 4 and 16 MiB.
    public var loginMemoryBytes: Int?
    /// Bytes kept for all users: events, invites, pushes, calls, sessions, groups and push tokens. `nil` for a quarter
    /// of the memory of the machine or the control group beyond 64 MiB, between 8 and 256 MiB.
    public var keptMemoryBytes: Int?
    /// Host names and addresses that clients may call the exchange by, besides its own; a first label of `*` matches
    /// any label.
    public var allowedHosts: [String] = []
    /// Proxies whose `X-Forwarded-For` says where a client is, by their addresses.
    public var trustedProxies: [String] = []

    /// How devices that are not connected are notified of invites.
    public var push = PushConfiguration()

    /// Where what must survive the process is kept; without a database the exchange forgets it all.
    public var databasePath: String?
    /// What a commit waits for.
    public var databaseDurability = ExchangeStore.Durability.full
    /// What to do with a database that is damaged.
    public var databaseIfCorrupt = ExchangeStore.CorruptFilePolicy.refuse
    /// How many records of calls are kept.
    public var callRecordLimits = RecordLimits()

    /// Warnings to the operator about a usable configuration.
    public internal(set) var warnings: [ConfigProblem] = []

    /// Makes a configuration with defaults: loopback, port 8080, no users.
    public init() {}

    /// The settings of ``core`` by their own names.
    public subscript<Value>(dynamicMember member: WritableKeyPath<ExchangeSettings, Value>) -> Value {
        get { core[keyPath: member] }
        set { core[keyPath: member] = newValue }
    }
}
