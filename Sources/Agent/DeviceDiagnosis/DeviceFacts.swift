public import Core

/// The facts of one step, or why they were not gathered.
public enum Gathered<Facts: Hashable & Sendable>: Hashable, Sendable {
    case facts(Facts)
    case skipped(String)
}

/// What was gathered about a device that has no call.
public struct DeviceFacts: Hashable, Sendable {
    /// The configuration file.
    public var configuration: ConfigurationFacts
    /// Whether a device of this configuration runs, and what shows it.
    public var device = Gathered<RunningFacts>.skipped(unread)
    /// The names that are looked up.
    public var names = Gathered<[NameFacts]>.skipped(unread)
    /// The servers of the account.
    public var servers = Gathered<[ServerFacts]>.skipped(unread)
    /// This machine's clock when the diagnosis began.
    public var time: WallClock
    /// Whether that time can be right: it is not before this version's release.
    public var isTimePlausible = true
    /// The login.
    public var login = Gathered<LoginFacts>.skipped(unread)
    /// Ports that the device listens on.
    public var ports = Gathered<[PortFacts]>.skipped(unread)
    /// What STUN and TURN servers answer.
    public var nat = Gathered<[STUNFacts]>.skipped(unread)
    /// What TURN servers give for the login that the device has.
    public var relays = Gathered<[RelayFacts]>.skipped(unread)
    /// The sound card.
    public var card = Gathered<SoundCardFacts>.skipped(unread)
    /// Real-time priority and locked memory.
    public var rights = Gathered<RightsFacts>.skipped(unread)
    /// Folders that the device writes to.
    public var folders = Gathered<[FolderFacts]>.skipped(unread)
    /// The limit on open files.
    public var descriptors = Gathered<DescriptorFacts>.skipped(unread)
    /// A call of the device to itself.
    public var call = Gathered<OwnCallFacts>.skipped(unread)

    /// Why nothing was gathered without a configuration.
    public static let unread = "the configuration cannot be used"

    /// Begins with the configuration.
    public init(_ configuration: ConfigurationFacts, at time: WallClock) {
        self.configuration = configuration
        self.time = time
    }
}

/// A configuration file, as the device would read it.
public struct ConfigurationFacts: Hashable, Sendable {
    /// The file.
    public var path: String
    /// Why it is refused: file, line, key and what is allowed.
    public var errors: [String]
    /// What it is warned of.
    public var warnings: [String]

    /// Names the file.
    public init(path: String, errors: [String] = [], warnings: [String] = []) {
        self.path = path
        self.errors = errors
        self.warnings = warnings
    }
}

/// Whether a device of the configuration runs.
public struct RunningFacts: Hashable, Sendable {
    /// Whether it runs.
    public var isRunning: Bool
    /// What shows it, such as its control socket or a lock.
    public var evidence: [String]

    /// Takes both.
    public init(isRunning: Bool, evidence: [String]) {
        self.isRunning = isRunning
        self.evidence = evidence
    }
}

/// The lookup of a name.
public struct NameFacts: Hashable, Sendable {
    /// What came of it.
    public enum Result: Hashable, Sendable {
        /// Its addresses, at least one.
        case found([String])
        /// The name does not exist, or has no address.
        case unknown
        /// No name server has answered, or none could.
        case unanswered
    }

    /// The name.
    public var name: String
    /// What came of it.
    public var result: Result

    /// Takes both.
    public init(_ name: String, _ result: Result) {
        self.name = name
        self.result = result
    }
}

/// What reached a server of the account.
public struct ServerFacts: Hashable, Sendable {
    /// A connection to one of its addresses.
    public struct Attempt: Hashable, Sendable {
        /// What came of it.
        public enum Result: Hashable, Sendable {
            /// It was made, or a question over UDP was answered, within this number of milliseconds.
            case open(milliseconds: Int)
            /// The machine answered that nothing listens there.
            case refused
            /// No answer came in this number of seconds.
            case silent(seconds: Int)
            /// No answer to a question over UDP came in this number of seconds.
            case unanswered(seconds: Int)
            /// This machine cannot send there; with the system's words.
            case unreachable(String)
        }

        /// Address and port.
        public var address: String
        /// What came of it.
        public var result: Result

        /// Takes both.
        public init(_ address: String, _ result: Result) {
            self.address = address
            self.result = result
        }
    }

    /// What a server that took the connection did with a request.
    public enum Answer: Hashable, Sendable {
        /// It answered over HTTP, at this time of this machine, with this time of its own if it sent one.
        case answered(status: Int, date: WallClock?, at: WallClock)
        /// Nothing came in this number of seconds.
        case silent(seconds: Int)
        /// It does not speak the protocol, or closed the connection; with the transport's words.
        case failed(String)
        /// No request was sent, for this reason.
        case notTried(String)
    }

    /// How people name it, such as `https://example.org`.
    public var url: String
    /// Its addresses, in the order in which they were tried; empty if none is known.
    public var attempts: [Attempt]
    /// What it answered; nil without a connection.
    public var answer: Answer?
    /// The certificate that it showed; nil without TLS, or if it showed none.
    public var certificate: CertificateFacts?
    /// Whether it is spoken to over TLS.
    public var isSecure: Bool

    /// Makes a server that nothing was tried with.
    public init(url: String, isSecure: Bool, attempts: [Attempt] = []) {
        self.url = url
        self.isSecure = isSecure
        self.attempts = attempts
    }

    /// Whether a connection was made.
    public var isReached: Bool {
        attempts.contains { if case .open = $0.result { true } else { false } }
    }
}

/// A server's certificate.
public struct CertificateFacts: Hashable, Sendable {
    /// The names that it is for.
    public var names: [String]
    /// Who signed it.
    public var issuer: String
    /// When it begins to be valid.
    public var notBefore: WallClock
    /// When it ends to be valid.
    public var notAfter: WallClock
    /// Whether it is for the server's name.
    public var isForServer: Bool
    /// Whether a handshake with the authorities that this device trusts took it; nil if that did not come to a result.
    public var isTrusted: Bool?

    /// Takes all of them.
    public init(
        names: [String], issuer: String, notBefore: WallClock, notAfter: WallClock, isForServer: Bool, isTrusted: Bool?
    ) {
        self.names = names
        self.issuer = issuer
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.isForServer = isForServer
        self.isTrusted = isTrusted
    }
}

/// A login that was tried.
public enum LoginFacts: Hashable, Sendable {
    /// The server took it, as this user.
    case granted(user: String)
    /// A SIP server took the name and the password of this address; no registration was made or changed.
    case confirmed(address: String)
    /// The SIP server knows no such user, in these words.
    case unknownUser(cause: String)
    /// The server's certificate is not trusted, in these words.
    case untrusted(cause: String)
    /// The SIP server did not answer a REGISTER in this number of seconds.
    case unanswered(seconds: Int)
    /// The server refused it, in these words.
    case refused(cause: String, advice: String)
    /// The server takes no token of that age.
    case expired(cause: String)
    /// It failed otherwise.
    case failed(cause: String, advice: String)
    /// It had no result after this number of seconds.
    case late(seconds: Int)
}

/// A port that the device listens on, or a range of which it takes some.
public struct PortFacts: Hashable, Sendable {
    /// What it is, such as `media.port: UDP 0.0.0.0:16384`.
    public var what: String
    /// Ports in the range; 1 for a port of its own.
    public var count: Int
    /// Of these, those that another program has, the first ones.
    public var inUse: [Int]
    /// How many another program has.
    public var countInUse: Int
    /// Ports that calls may need at a time.
    public var needed: Int
    /// Why none can be taken for another reason, in the system's words.
    public var fault: String?

    /// Makes a port that can be taken.
    public init(_ what: String, count: Int = 1, needed: Int = 1, inUse: [Int] = [], countInUse: Int? = nil) {
        self.what = what
        self.count = count
        self.needed = needed
        self.inUse = inUse
        self.countInUse = countInUse ?? inUse.count
    }
}

/// What a STUN or TURN server answered over UDP.
public struct STUNFacts: Hashable, Sendable {
    /// What it answered.
    public enum Answer: Hashable, Sendable {
        /// The address that it sees.
        case mapped(SocketAddress)
        /// It is a TURN server, and asks for a login.
        case relays
        /// It refused the question with this code.
        case refused(code: Int)
        /// It answered without an address.
        case unusable
        /// Nothing came in this number of seconds.
        case silent(seconds: Int)
        /// It was not asked, for this reason.
        case notTried(String)
    }

    /// The server as the configuration or the service names it.
    public var url: String
    /// Its address; nil if none is known.
    public var address: SocketAddress?
    /// The address of this machine that it was asked from.
    public var local: SocketAddress?
    /// What it answered.
    public var answer: Answer

    /// Takes all of them.
    public init(_ url: String, at address: SocketAddress?, from local: SocketAddress? = nil, _ answer: Answer) {
        self.url = url
        self.address = address
        self.local = local
        self.answer = answer
    }
}

/// What a TURN server gave when it was asked for a relayed address.
public struct RelayFacts: Hashable, Sendable {
    /// What came of it.
    public enum Result: Hashable, Sendable {
        /// This address, which was given back.
        case relayed(SocketAddress)
        /// It refuses the login, in these words.
        case unauthorized(String)
        /// It takes the login, and refuses an address, in these words; or it is no TURN server.
        case refused(String)
        /// It names another server.
        case redirected(to: SocketAddress)
        /// No connection to it could be made.
        case unreachable(String)
        /// Nothing came in this number of seconds.
        case silent(seconds: Int)
        /// It was not asked, for this reason.
        case notTried(String)
    }

    /// The server as the configuration or the service names it.
    public var url: String
    /// Whether the configuration names it, and its login, rather than the service.
    public var isConfigured: Bool
    /// What came of it.
    public var result: Result

    /// Takes all of them.
    public init(_ url: String, _ isConfigured: Bool, _ result: Result) {
        self.url = url
        self.isConfigured = isConfigured
        self.result = result
    }
}

/// A trial of the sound card, without a sound.
public struct SoundCardFacts: Hashable, Sendable {
    /// What was tried.
    public var what: String
    /// Why it cannot be opened.
    public var failure: String?
    /// The direction that moved nothing.
    public var stalled: String?
    /// The loudest sample that was captured, in dBFS; −100 is nothing but zeros; nil without a microphone.
    public var peakDBFS: Double?

    /// Makes a card that works.
    public init(_ what: String, peakDBFS: Double? = nil) {
        self.what = what
        self.peakDBFS = peakDBFS
    }
}

/// Rights that the configuration needs.
public struct RightsFacts: Hashable, Sendable {
    /// The user that the diagnosis runs as.
    public var user: Int
    /// The priority that media threads ask for; nil if none is configured.
    public var priority: Int?
    /// Why it was refused.
    public var priorityRefusal: String?
    /// Why memory cannot be locked.
    public var lockRefusal: String?

    /// Makes rights of which none is refused.
    public init(user: Int, priority: Int?) {
        self.user = user
        self.priority = priority
    }
}

/// A folder that the device writes to.
public struct FolderFacts: Hashable, Sendable {
    /// The folder.
    public var path: String
    /// The key that names it, or a file in it.
    public var key: String
    /// Why nothing can be written there.
    public var fault: String?
    /// Bytes that the disk has room for; nil if that is not known.
    public var freeBytes: Int?
    /// The limit of all recordings in it together, in bytes; nil without one.
    public var limitBytes: Int?
    /// What they take up now, in bytes.
    public var heldBytes = 0
    /// Bytes that an hour of recordings takes up; nil if none are made there.
    public var hourBytes: Int?

    /// Makes a folder that can be written to.
    public init(_ path: String, key: String, freeBytes: Int? = nil) {
        self.path = path
        self.key = key
        self.freeBytes = freeBytes
    }
}

/// The limit on open files.
public struct DescriptorFacts: Hashable, Sendable {
    /// Descriptors that a process may have.
    public var limit: Int
    /// Calls that the device takes at a time; nil for as many as the machine carries.
    public var calls: Int?

    /// Takes both.
    public init(limit: Int, calls: Int?) {
        self.limit = limit
        self.calls = calls
    }
}

/// A call of the device to itself.
public enum OwnCallFacts: Hashable, Sendable {
    /// Sound flowed both ways this number of milliseconds after the call was placed.
    case flowed(milliseconds: Int)
    /// It failed.
    case failed(String)
}
