public import ConfigReader
internal import HTTPTransport

/// Where a process shows how it is doing: the section `monitoring`.
public struct MonitoringConfiguration: Sendable, Equatable {
    /// The address to listen at.
    public var listen: ConfigEndpoint
    /// What a client must present to read metrics, as a bearer token; nil for nothing, which is possible on loopback addresses alone.
    public var token: Secret?

    /// Listens at an address, without a token.
    public init(listen: ConfigEndpoint) { self.listen = listen }

    /// The keys of the section.
    public struct Keys: ConfigKeys {
        let listen = ConfigKey.endpoint(
            "listen", "where it answers `/metrics`, `/livez` and `/readyz`, over HTTP without TLS"
        ).required
        let token = ConfigKey.secret(
            "token",
            "what a client must present to read `/metrics`, as a bearer token; required except on loopback addresses")

        /// The keys with their usual values.
        public init() {}
    }

    /// Reads the section, noting every problem.
    ///
    /// - Returns: Nil if it cannot be used.
    public init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        let endpoint = section.value(\.listen, &problems)
        token = section.value(\.token, &problems)
        guard let endpoint else { return nil }
        listen = endpoint
        guard HostName(endpoint.host)?.isLoopback != true else { return }
        guard section.has(\.token) else {
            let message =
                "is an address that other machines reach; give token_file, so that not everyone reads the metrics, or listen on "
                + "127.0.0.1"
            problems.append(section.problem(\.listen, message))
            return
        }
        problems.append(
            section.warning(
                \.listen,
                "metrics and their token cross the network in plain text; use a network that no stranger reads"))
    }
}
