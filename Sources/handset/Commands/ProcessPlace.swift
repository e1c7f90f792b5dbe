internal import ArgumentParser
internal import ConfigReader
internal import ControlPlane
internal import ExchangeServer
internal import Files
internal import HTTPTransport
internal import TrunkGateway

/// A kind of process that programs act on over HTTP while it runs.
protocol ControlledProcess: Sendable {
    static var owner: ControlSocketError.Owner { get }
    /// The path of the socket for HTTP, by the configuration file or, without one, as usual.
    static func socket(ofConfiguration config: String?) throws -> String
    /// The path of the socket for HTTP, if `--socket` names this one.
    static func socket(named path: String) -> String
}

extension ControlledProcess {
    static func socket(named path: String) -> String { path }

    /// - Parameter section: What the configuration file says of the interface; nil if it says nothing.
    fileprivate static func path(_ config: String, _ section: ControlSection?) throws -> String {
        guard let section else {
            throw CommandFailure(
                .configuration,
                "\(config) has no section control, so \(owner.noun) of this configuration listens nowhere")
        }
        return section.reaching
    }
}

extension ControlSocketError.Owner {
    /// With its article.
    fileprivate var noun: String {
        switch self {
        case .device: "a device"
        case .exchange: "an exchange"
        case .trunk: "a trunk"
        }
    }
}

/// An exchange that runs.
enum ExchangeProcess: ControlledProcess {
    static let owner = ControlSocketError.Owner.exchange

    static func socket(ofConfiguration config: String?) throws -> String {
        guard let config else { return ControlSection(.exchange).reaching }
        try ConfigurationCheck.expect("serve", path: config)
        return try path(config, ExchangeConfiguration.control(inFile: config))
    }
}

/// A trunk that runs.
enum TrunkProcess: ControlledProcess {
    static let owner = ControlSocketError.Owner.trunk

    static func socket(ofConfiguration config: String?) throws -> String {
        guard let config else { return ControlSection(.trunk).reaching }
        try ConfigurationCheck.expect("trunk", path: config)
        return try path(config, TrunkConfiguration.control(inFile: config))
    }
}

/// Where a process that runs is reached: at its Unix socket, or on TCP.
struct ProcessPlace<Process: ControlledProcess>: ParsableArguments {
    @Option(help: "The \(Process.owner)'s configuration file, which names the socket.", completion: .file())
    var config: String?

    @Option(help: "The \(Process.owner)'s control socket.", completion: .file())
    var socket: String?

    @Option(help: "The \(Process.owner)'s control interface on TCP, such as https://calls.example.org:8557.")
    var url: String?

    @Option(help: "With --url: the file that has its token.", completion: .file())
    var tokenFile: String?

    @Option(
        help: "With --url: PEM, authorities that have signed its certificate, besides those of the system.",
        completion: .file())
    var trustRoots: String?

    func validate() throws {
        let given = [("--config", config), ("--socket", socket), ("--url", url)].filter { $0.1 != nil }.map(\.0)
        guard given.count <= 1 else {
            throw ValidationError("\(given.joined(separator: " and ")) exclude each other.")
        }
        if url != nil, tokenFile == nil { throw ValidationError("--url needs --token-file.") }
        if url == nil, tokenFile != nil || trustRoots != nil {
            throw ValidationError("--token-file and --trust-roots are for --url.")
        }
    }

    /// The options as they were given.
    var arguments: [String] {
        let given = [
            ("--config", config), ("--socket", socket), ("--url", url), ("--token-file", tokenFile),
            ("--trust-roots", trustRoots),
        ]
        return given.flatMap { name, value in value.map { [name, $0] } ?? [] }
    }

    /// The client of the process.
    func client() throws -> ControlHTTPClient {
        guard let url else { return ControlHTTPClient(path: try path(), owner: Process.owner) }
        let endpoint: HTTPEndpoint
        do throws(HTTPEndpoint.Malformed) {
            endpoint = try HTTPEndpoint(url)
        } catch {
            throw CommandFailure(.usage, "--url: \"\(error.text)\" is no address: \(error.cause)")
        }
        guard endpoint.path.isEmpty || endpoint.path == "/" else {
            throw CommandFailure(.usage, "--url: give scheme, host and port alone, without \"\(endpoint.path)\"")
        }
        guard endpoint.isSecure || endpoint.isLoopback else {
            throw CommandFailure(
                .usage, "--url: the token must not cross the network in plain text; give an address with https")
        }
        let trust: TLSTrust
        do throws(TLSTrust.Unreadable) {
            trust = try TLSTrust(trustRootFile: trustRoots)
        } catch {
            throw CommandFailure(.usage, "--trust-roots: \"\(error.path)\" \(error.cause)")
        }
        return ControlHTTPClient(endpoint, token: try token(), trusting: trust, owner: Process.owner)
    }

    /// The path of the process's socket for HTTP.
    func path() throws -> String {
        if let socket { return Process.socket(named: socket) }
        return try Process.socket(ofConfiguration: config)
    }

    private func token() throws -> Secret {
        let path = tokenFile ?? ""
        guard let bytes = try PrivateFile.read(path, maximumBytes: 4_096) else {
            throw CommandFailure(.usage, "--token-file: there is no file \"\(path)\"")
        }
        let text = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }) else {
            throw CommandFailure(.usage, "--token-file: \"\(path)\" has no token, which is one line of ASCII")
        }
        return Secret(text)
    }
}
