public import ConfigReader
internal import HTTPTransport
package import Tracing

/// Where a process sends traces of its calls: the section `traces`.
public struct TraceConfiguration: Sendable, Equatable {
    /// Whose `traceparent` becomes the parent of a call's span. That of others becomes a link, so that they neither choose what is
    /// recorded here nor put spans into traces of ours (W3C Trace Context §5 and §6).
    public enum Parents: String, CaseIterable, Sendable {
        case none
        /// Users of the exchange, which has logged them in.
        case users
        /// Also callers at a SIP server, and those that a trunk brings.
        case all
    }

    /// The address of the collector's OTLP over HTTP.
    public let url: String
    /// What the collector must be presented; nil for nothing.
    public var token: Secret?
    /// The header that has it; `Authorization` has the word `Bearer` before it.
    public var tokenHeader = "Authorization"
    /// A file of PEM certificates to trust besides the system's.
    public var trustRoots: String?
    /// The share of calls that are recorded, 0 to 1.
    public var share = 1.0
    /// Whose `traceparent` becomes the parent.
    public var parents = Parents.users
    /// Whether spans have the names and numbers of both sides.
    public var hasNames = false
    /// As the process is called in traces.
    public var service = "handset"

    /// Sends everything to a collector that needs no token.
    public init(url: String) { self.url = url }

    /// The keys of the section.
    public struct Keys: ConfigKeys {
        let url = ConfigKey.url(
            "url", schemes: ["https", "http"],
            "where the collector takes OTLP over HTTP; without a path it is `/v1/traces`"
        ).required
        let token = ConfigKey.secret("token", "what the collector must be presented, as a bearer token")
        let tokenHeader = ConfigKey<String>.parsed(
            "token_header", "name of a header",
            "the header with the token; in another one than `Authorization` it is alone", show: { $0 }, Self.headerName
        ).defaulting(to: "Authorization")
        let trustRoots = ConfigKey.path(
            "trust_roots", readable: true, "PEM certificates to trust besides the system's")
        let share = ConfigKey.number(
            "sample", in: 0...1,
            "the share of calls that are recorded; the trace's name decides, so that both sides agree"
        ).defaulting(to: 1)
        let parents = ConfigKey.choice(
            "parents", of: Parents.self,
            "whose `traceparent` becomes the parent of a call's span: users of the exchange, all callers, or none; that of others "
                + "becomes a link"
        ).defaulting(to: .users)
        let hasNames = ConfigKey.bool("names", "whether spans have the names and numbers of both sides")
            .defaulting(to: false)
        let service = ConfigKey.string("service", "as the process is called in traces (`service.name`)").defaulting(
            to: "handset")

        /// The keys with their usual values.
        public init() {}

        /// A token of RFC 9110 §5.6.2, which is no header of the request itself.
        private static func headerName(_ text: String) throws(ConfigValueFault) -> String {
            let isToken = text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
                    || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
            let own = ["host", "content-length", "content-type", "connection", "transfer-encoding", "user-agent"]
            guard isToken, !own.contains(text.lowercased()) else {
                throw ConfigValueFault(
                    "must be the name of a header that the request does not have anyhow, such as api-key")
            }
            return text
        }
    }

    /// Reads the section, noting every problem.
    ///
    /// - Returns: Nil if it cannot be used.
    public init?(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        token = section.value(\.token, &problems)
        tokenHeader = section.value(\.tokenHeader, &problems)
        trustRoots = section.value(\.trustRoots, &problems)
        share = section.value(\.share, &problems)
        parents = section.value(\.parents, &problems)
        hasNames = section.value(\.hasNames, &problems)
        service = section.value(\.service, &problems)
        if section.has(\.tokenHeader), !section.has(\.token) {
            problems.append(section.problem(\.tokenHeader, "is for a token; give token_file, or remove this key"))
        }
        guard let url = section.value(\.url, &problems) else { return nil }
        self.url = url
        do throws(HTTPEndpoint.Malformed) {
            judge(try HTTPEndpoint(url), section, &problems)
        } catch {
            problems.append(section.problem(\.url, "\"\(error.text)\" is no address of a collector: \(error.cause)"))
            return nil
        }
    }

    private func judge(
        _ endpoint: HTTPEndpoint, _ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]
    ) {
        guard !endpoint.isSecure, !endpoint.isLoopback else { return }
        guard section.has(\.token) else {
            problems.append(
                section.warning(
                    \.url,
                    "sends traces in plain text to another machine; use https, or a network that no stranger reads"))
            return
        }
        problems.append(
            section.problem(
                \.url,
                "would send the token in plain text to another machine; use https, or a collector on this machine"))
    }

    /// Where requests go.
    var endpoint: (HTTPEndpoint, target: String)? {
        guard let endpoint = try? HTTPEndpoint(url) else { return nil }
        return (endpoint, endpoint.path.isEmpty || endpoint.path == "/" ? "/v1/traces" : endpoint.target)
    }

    /// Which traces are recorded, unless their parent decides.
    package var sampling: TraceSampling { TraceSampling(share: share) }
}
