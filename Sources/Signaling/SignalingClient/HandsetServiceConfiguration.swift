public import CallControl

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
        /// A name without an account: may join rooms and nothing else (AUTH-3).
        case anonymous(name: String)
    }

    /// This device, as it registers itself (DEV-1).
    public struct Device: Hashable, Sendable {
        /// Its id, unique among the user's devices and the same after a restart.
        public var id: DeviceID
        /// What people call it.
        public var name: String
        /// What it can do, in the service's words.
        public var capabilities: [String]
        /// Where pushes go, if anywhere.
        public var pushToken: String?

        /// Makes a device.
        public init(id: DeviceID, name: String, capabilities: [String] = ["audio"], pushToken: String? = nil) {
            self.id = id
            self.name = name
            self.capabilities = capabilities
            self.pushToken = pushToken
        }
    }

    /// What may travel without TLS.
    public enum PlainText: Hashable, Sendable {
        /// Only what stays on this machine.
        case loopbackOnly
        /// Everything; whoever is on the way can listen and take over.
        case allowed
    }

    /// Base URLs.
    public var addresses: Addresses
    /// The program that logs in.
    public var application: Application
    /// What the user proves himself with.
    public var credentials: Credentials
    /// This device.
    public var device: Device
    /// What may travel without TLS. Default: only what stays on this machine.
    public var plainText = PlainText.loopbackOnly
    /// A PEM file of certificates to trust beside the system's.
    public var trustRootFile: String?
    /// How long to go on trying to log in while the service is unwell; `nil`, the default, for ever.
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
        case .anonymous(let name): "the name \(name) without an account"
        }
    }

    /// Shows no secret to a debugger's or logger's reflection either.
    public var customMirror: Mirror { Mirror(self, children: ["kind": description]) }
}
