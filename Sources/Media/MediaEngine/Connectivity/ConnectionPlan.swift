package import Realtime
public import ICE
package import Core
public import SecureTransport

/// How a call is to be connected, by ICE or at the address in its peer's description: the local side.
public struct ConnectionPlan: Sendable {
    /// Role, servers, policy, times.
    public var ice: ICEConfiguration
    /// The credentials in our description.
    public var credentials: ICECredentials
    /// Which of the machine's interfaces may be used.
    public var interfaces: InterfaceFilter
    /// Candidates are gathered; not for a peer whose description shows that it has no ICE.
    public var gathers = true
    /// The call gets its own socket instead of the worker's shared one.
    ///
    /// The calling side does so: two calls between the same two sockets could not be distinguished during their DTLS
    /// handshakes.
    public var hasOwnSocket: Bool
    /// The identity for the DTLS handshake; nil if keys come from the descriptions.
    public var handshake: Handshake?

    /// Parameters of the DTLS handshake.
    public struct Handshake: Sendable {
        /// Our certificate.
        public var identity: DTLSIdentity
        /// Suites and times.
        public var configuration: DTLSConfiguration

        /// Makes it.
        public init(_ identity: DTLSIdentity, _ configuration: DTLSConfiguration) {
            self.identity = identity
            self.configuration = configuration
        }
    }

    /// Makes a plan.
    public init(
        ice: ICEConfiguration, credentials: ICECredentials, interfaces: InterfaceFilter = InterfaceFilter(),
        hasOwnSocket: Bool, handshake: Handshake?
    ) {
        self.ice = ice
        self.credentials = credentials
        self.interfaces = interfaces
        self.hasOwnSocket = hasOwnSocket
        self.handshake = handshake
    }
}

/// Which of the machine's network interfaces are used for calls.
public struct InterfaceFilter: Sendable, Equatable {
    /// If not empty, only these; a trailing `*` matches anything.
    public var allowed: [String]
    /// Never these.
    public var denied: [String]

    /// Allows all that reach other machines.
    public init(allowed: [String] = [], denied: [String] = []) {
        self.allowed = allowed
        self.denied = denied
    }

    /// The addresses at which a socket bound to `bound` can be reached, each with its port.
    ///
    /// Loopback counts only if it is allowed by name, or if there is nothing else.
    package func addresses(of bound: SocketAddress, among interfaces: [NetworkInterface]) -> [SocketAddress] {
        guard bound.isUnspecified else { return [bound] }
        let usable = interfaces.filter { interface in
            interface.address.isIPv6 == bound.isIPv6 && !interface.address.isLinkLocalIPv6
                && !denied.contains { Self.matches(interface.name, $0) }
                && (allowed.isEmpty || allowed.contains { Self.matches(interface.name, $0) })
        }
        let outward = usable.filter { !$0.address.isLoopback }
        let chosen = allowed.isEmpty && !outward.isEmpty ? outward : usable
        return chosen.map { interface in
            var address = interface.address
            address.port = bound.port
            return address
        }
    }

    private static func matches(_ name: String, _ pattern: String) -> Bool {
        pattern.hasSuffix("*") ? name.hasPrefix(pattern.dropLast()) : name == pattern
    }
}
