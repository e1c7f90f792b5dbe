public import CallControl
internal import HTTPTransport
internal import SignalWire

/// How a device reaches an exchange and who it is there.
public struct HandsetServiceConfiguration: Sendable {
    /// Base URLs of the service's parts. The embedded exchange serves all three on one port.
    public struct Addresses: Hashable, Sendable {
        /// Where logins go, such as `https://exchange.example:8443`.
        public var authentication: String
        /// Where a user's identities are asked for.
        public var identity: String
        /// Where the connection's resources are asked for.
        public var events: String

        /// One address for everything.
        public init(_ all: String) { self.init(authentication: all, identity: all, events: all) }

        /// An address for each.
        public init(authentication: String, identity: String, events: String) {
            self.authentication = authentication
            self.identity = identity
            self.events = events
        }
    }

    /// The program that logs in: `{name}/{version} {system}` is its `User-Agent` (contract AUTH-1).
    public struct Application: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Its version.
        public var version: String
        /// The system it runs on.
        public var system: String
        /// The key the service knows it by.
        public var key: String
        /// What proves it; never printed.
        public var secret: String

        /// Makes an application.
        public init(name: String, version: String, system: String, key: String, secret: String) {
            self.name = name
            self.version = version
            self.system = system
            self.key = key
            self.secret = secret
        }

        var userAgent: String { "\(name)/\(version) \(system)" }
    }

    /// What the user proves himself with; never printed.
    public enum Credentials: Hashable, Sendable {
        case mediaToken(String)
        case password(user: String, String)
        /// A user's long-lived access token (AUTH-4).
        case accessToken(user: String, TokenSource)
        /// A token that starts sessions directly, and expires: a user's token, or one signed for one session (AUTH-4,
        /// AUTH-5).
        case sessionToken(user: String?, TokenSource)
        /// A key of this device's own (AUTH-13).
        case key(user: String, DeviceLoginKey)
        /// A name without an account: may join rooms and nothing else (AUTH-3).
        case anonymous(name: String)
        /// Nothing but what ``HandsetServiceConfiguration/sessionStore`` has from an earlier login (AUTH-10).
        case kept
    }

    /// This device, as it registers itself (DEV-1).
    public struct Device: Hashable, Sendable {
        /// Its id, unique among the user's devices and the same after a restart.
        public var id: DeviceID
        /// What people call it.
        public var name: String
        /// What it can do, in the service's words.
        public var capabilities: [String]
        /// Where pushes go while the device is not connected, in the place of what was said before; nil leaves that as it
        /// was, and an empty list ends it (DEV-2).
        public var push: [PushTarget]?

        /// Makes a device.
        public init(id: DeviceID, name: String, capabilities: [String] = ["audio"], push: [PushTarget]? = nil) {
            self.id = id
            self.name = name
            self.capabilities = capabilities
            self.push = push
        }
    }

    /// One way to push to a device; the token is never printed.
    public struct PushTarget: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
        /// Which service: `apns`, `fcm` or any other name.
        public var kind: String
        /// What that service knows the device by.
        public var token: String

        /// Makes a target.
        public init(kind: String, token: String) {
            self.kind = kind
            self.token = token
        }

        /// The kind alone.
        public var description: String { "a token of \(kind)" }
        /// Shows no token to a debugger's or logger's reflection either.
        public var customMirror: Mirror { Mirror(self, children: ["kind": kind]) }
    }

    /// Which open invites to groups a device receives when it connects; it always receives all other open invites.
    ///
    /// After a connection that was lost for longer than the resume window it always receives all.
    public enum Start: String, CaseIterable, Hashable, Sendable {
        /// Those of the last 30 s.
        case cold
        /// All open invites.
        case warm
    }

    /// What may travel without TLS.
    public enum PlainText: Hashable, Sendable {
        /// Only what stays on this machine.
        case loopbackOnly
        /// Everything; anyone on the network path can listen and take over.
        case allowed
    }

    /// Base URLs.
    public var addresses: Addresses
    /// Base URLs of further exchanges on the same database, one for each: while one serves, the others refuse. They are tried in this
    /// order, and the one that served last is asked first.
    public var moreServers: [String] = []
    /// The program that logs in.
    public var application: Application
    /// What the user proves himself with.
    public var credentials: Credentials
    /// This device.
    public var device: Device
    /// Where the login is kept over restarts; `nil`, the default, keeps none.
    public var sessionStore: SessionStore?
    /// Whether a login that the service makes by itself ends when it disconnects: for a program that places one call, whose
    /// logins would otherwise take the places of the user's other devices. A login that ``sessionStore`` keeps, and a token
    /// that was given, never end by that. Default: false.
    public var endsLogin = false
    /// Which invites to groups the device receives when it connects (INV-14). Default: those of the last 30 s.
    public var start = Start.cold
    /// What may travel without TLS. Default: only what stays on this machine.
    public var plainText = PlainText.loopbackOnly
    /// A PEM file of certificates to trust beside the system's.
    public var trustRootFile: String?
    /// How long to retry the login while the service is unavailable; `nil`, the default, for ever.
    public var loginPatience: Duration?
    /// Times and limits of the connection.
    public var connection = ConnectionTimings()
    /// For the answer to one request. Default 10 s.
    public var requestTimeout: Duration = .seconds(10)

    /// Makes a configuration with the defaults.
    public init(addresses: Addresses, application: Application, credentials: Credentials, device: Device) {
        self.addresses = addresses
        self.application = application
        self.credentials = credentials
        self.device = device
    }
}

extension HandsetServiceConfiguration {
    /// Finds out whether a service can be used at this base URL.
    ///
    /// - Throws: ``SignalingError`` if it is no address, or secrets would cross a network in the clear.
    public static func check(address: String, _ plainText: PlainText) throws(SignalingError) {
        try HTTPEndpoint.of(address).check(plainText, for: "use \(address)")
    }

    /// Finds out whether the service takes a name, as of a device or a room.
    ///
    /// - Parameter member: What is named, such as `the room's name`.
    /// - Throws: ``SignalingError`` if it does not.
    public static func check(name: String, of member: String) throws(SignalingError) {
        _ = try DeviceID(name, of: member, doing: "use the name")
    }

    /// Finds out whether ``trustRootFile`` can be this file.
    ///
    /// - Throws: ``SignalingError`` if it cannot be read, or holds no certificate in PEM form.
    public static func check(trustRootFile: String) throws(SignalingError) {
        _ = try TLSTrust.of(trustRootFile)
    }
}

extension HandsetServiceConfiguration.Application: CustomStringConvertible, CustomReflectable {
    /// Everything but the secret.
    public var description: String { "\(userAgent), key \(key)" }
    /// Shows no secret to a debugger's or logger's reflection either.
    public var customMirror: Mirror { Mirror(self, children: ["key": key]) }
}

extension HandsetServiceConfiguration.Credentials: CustomStringConvertible, CustomReflectable {
    /// The kind and the user, without what proves him.
    public var description: String {
        switch self {
        case .mediaToken: "a media token"
        case .password(let user, _): "the password of \(user)"
        case .accessToken(let user, let source): "an access token of \(user) from \(source)"
        case .sessionToken(_, let source): "a session token from \(source)"
        case .key(let user, let key): "\(key) of \(user)"
        case .anonymous(let name): "the name \(name) without an account"
        case .kept: "the login kept from earlier"
        }
    }

    /// The user, if the credentials name one.
    var user: String? {
        switch self {
        case .password(let user, _), .accessToken(let user, _), .key(let user, _): user
        case .sessionToken(let user, _): user
        case .mediaToken, .anonymous, .kept: nil
        }
    }

    /// Whether they make a login of the service's own, rather than be one.
    var logsIn: Bool {
        switch self {
        case .mediaToken, .password, .accessToken, .key, .anonymous: true
        case .sessionToken, .kept: false
        }
    }

    /// Whether there can be another access token than the first.
    var canRenew: Bool {
        if case .sessionToken(_, .fixed) = self { false } else { true }
    }

    /// Shows no secret to a debugger's or logger's reflection either.
    public var customMirror: Mirror { Mirror(self, children: ["kind": description]) }
}
