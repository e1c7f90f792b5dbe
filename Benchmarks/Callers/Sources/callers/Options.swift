import CallControl
import FoundationEssentials
import Logging
import NIOPosix
import SecureTransport
import SignalingClient

/// The command line cannot be understood.
struct UsageError: Error, CustomStringConvertible {
    let problem: String

    var description: String {
        """
        \(problem)
        usage: callers --calls N | --offer N | --setup N
                       --server URL --to USER --token-file FILE --app-key KEY --app-secret-file FILE [--suite gcm|cm]

        --calls N  places N calls, prints a line for each that loadgen understands, then "go"; holds the calls until
                   standard input closes, then hangs up
        --offer N  offers N calls, 20 a second; prints the line of each that is taken at once, then "go"; says on standard
                   error how many were taken, busy and failed, as JSON; hangs up all but K calls for each line "keep K"
                   on standard input, and all when it closes
        --setup N  places N calls one after the other; prints how long it took until media flowed, as JSON
        """
    }
}

/// What the command line asks for.
struct Options {
    /// What to do with the calls.
    enum Task {
        case hold(calls: Int)
        case offer(calls: Int)
        case setUp(calls: Int)
    }

    let task: Task
    let suite: SRTPSuite
    /// Whom to call.
    let callee: UserID
    private let values: [String: String]

    init(_ arguments: some Sequence<String>) throws {
        var values: [String: String] = [:]
        var rest = Array(arguments)[...]
        while let option = rest.popFirst() {
            guard Self.known.contains(option), let value = rest.popFirst() else {
                throw UsageError(problem: "\"\(option)\" is unknown or has no value")
            }
            values[option] = value
        }
        self.values = values

        let tasks: [(String, (Int) -> Task)] = [
            ("--calls", Task.hold), ("--offer", Task.offer), ("--setup", Task.setUp),
        ]
        let asked = tasks.compactMap { name, make in values[name].map { (Int($0) ?? 0, make) } }
        guard asked.count == 1, let (calls, make) = asked.first, calls > 0 else {
            throw UsageError(problem: "give one of --calls, --offer and --setup, with a number")
        }
        task = make(calls)
        switch values["--suite"] {
        case nil, "gcm": suite = .aeadAES128GCM
        case "cm": suite = .aesCM128HMACSHA1
        default: throw UsageError(problem: "--suite takes gcm or cm")
        }
        guard let callee = values["--to"] else { throw UsageError(problem: "--to is required") }
        self.callee = try UserID(callee)
    }

    private static let known: Set = [
        "--calls", "--offer", "--setup", "--server", "--to", "--token-file", "--app-key", "--app-secret-file",
        "--suite",
    ]

    private func value(_ option: String) throws -> String {
        guard let value = values[option] else { throw UsageError(problem: "\(option) is required") }
        return value
    }

    private func secret(_ option: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: try value(option))), as: UTF8.self)
    }

    /// The service that the options name, not yet connected.
    func service() throws -> HandsetService {
        let server = try value("--server")
        let application = HandsetServiceConfiguration.Application(
            name: "callers", version: "1", system: "Linux", key: try value("--app-key"),
            secret: try secret("--app-secret-file"))
        let device = HandsetServiceConfiguration.Device(
            id: DeviceID(ours: "callers-\(UUID().uuidString)"), name: "callers")
        let configuration = HandsetServiceConfiguration(
            addresses: HandsetServiceConfiguration.Addresses(server), application: application,
            credentials: .mediaToken(try secret("--token-file")), device: device)
        return try HandsetService(
            configuration, group: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "callers") { _ in SwiftLogNoOpLogHandler() })
    }
}
