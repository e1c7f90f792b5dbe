internal import ArgumentParser
internal import BlockingWork
internal import CallAgent
internal import CallDiagnosis
internal import ConfigReader
internal import Core

/// `handset explain`: what went wrong in a call, and whose fault it looks like.
struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Say what went wrong in a call, and whose fault it looks like.",
        discussion: """
            It reads the records that a device keeps of its calls (device.call_records), and says of one how it ended, what went \
            wrong and when, the figures that say so, and what to try. Where the figures leave open whose fault it is, it says so. \
            The device may be running: of a call that runs, it asks the device by its control socket. CALL may also be a file that \
            `handset run --capture` has written. docs/explain.md lists all that it can find.
            """)

    @Argument(
        help:
            "The call: a part of its name in the records, of its invite, or of the other side's name. The last one that ended if none is given. Or a capture: a path with a slash, or one that ends in .pcap.",
        completion: .file())
    var call: String?

    @Option(help: "The device's configuration file, which names the records.", completion: .file())
    var config: String?

    @Option(help: "Which of several accounts in it.")
    var account: String?

    @Option(help: "The records themselves, in place of --config.", completion: .file())
    var records: String?

    @Flag(help: "List the last calls, the newest first, with a word for what was found in each.")
    var list = false

    @Flag(help: "Print JSON: an object for the call, or a line for each.")
    var json = false

    func validate() throws {
        if let call, Self.isCapture(call) {
            guard config == nil, records == nil, account == nil, !list else {
                throw ValidationError(
                    "A capture is explained by itself, without --config, --records, --account and --list.")
            }
            return
        }
        guard (config == nil) != (records == nil) else { throw ValidationError("Give either --config or --records.") }
        if list, call != nil { throw ValidationError("--list is for all calls, without CALL.") }
        if account != nil, config == nil { throw ValidationError("--account is for --config.") }
    }

    /// Calls that `--list` shows.
    private static let listed = 50

    /// Whether an argument is the path of a capture.
    private static func isCapture(_ call: String) -> Bool { call.contains("/") || call.hasSuffix(".pcap") }

    func run() async throws {
        if let call, Self.isCapture(call) { return show(try CallExplanation(capture: call)) }
        let calls = try Self.calls(in: try path())
        if list {
            for call in calls.suffix(Self.listed).reversed() {
                Terminal.print(json ? Self.object(call) : Self.line(call))
            }
        } else {
            show(try await Self.explanation(try Self.find(call, in: calls), config: config))
        }
    }

    private func show(_ explanation: CallExplanation) {
        Terminal.print(json ? explanation.object : explanation.text)
    }

    private static func explanation(_ call: KeptCall, config: String?) async throws -> CallExplanation {
        guard !call.isOver else { return CallExplanation(call) }
        return try await CallExplanation(running: call, at: try DeviceProcess.socket(ofConfiguration: config))
    }

    /// What is known of a call, as text and as a JSON object.
    ///
    /// - Parameters:
    ///   - call: A part of its name, of its invite, or of the other side's name; nil for the last one.
    ///   - config: The device's configuration.
    static func explanation(
        of call: String?, config: String?, account: String?
    ) async throws -> (text: String, object: String) {
        guard let config else {
            throw CommandFailure(
                .configuration, "records of calls are found by the device's configuration; give --config")
        }
        let found = try await BlockingThreads.files.run {
            try find(call, in: try calls(in: try path(config: config, account: account)))
        }
        let explanation = try await explanation(found, config: config)
        return (explanation.text, explanation.object)
    }

    private func path() throws -> String {
        if let records { return records }
        guard let config else { throw ValidationError("Give either --config or --records.") }
        return try Self.path(config: config, account: account)
    }

    private static func calls(in path: String) throws -> [KeptCall] {
        let calls = try CallJournal.records(in: path)
        guard !calls.isEmpty else {
            throw CommandFailure(
                .configuration,
                "there is no record of a call in \(path); has the device had one since "
                    + "device.call_records names this file?")
        }
        return calls
    }

    private static func path(config: String, account: String?) throws -> String {
        try ConfigurationCheck.expect("run", path: config)
        let configuration = try DeviceConfiguration.read(path: config, fileChecks: .none, account: account)
        guard let path = configuration.device.callRecords else {
            throw CommandFailure(
                .configuration,
                "\(config) keeps no records of calls. Give device.call_records a file, such as calls.jsonl, and restart the device."
            )
        }
        return path
    }

    private static func find(_ call: String?, in calls: [KeptCall]) throws -> KeptCall {
        guard let call else { return calls.last(where: \.isOver) ?? calls[calls.count - 1] }
        let found = calls.last { $0.matches(call) }
        guard let found else {
            throw CommandFailure(.failed, "there is no record of a call with \"\(call)\"; --list shows the last ones.")
        }
        return found
    }

    // MARK: - Words

    /// What is printed of one call that ended.
    static func text(_ call: KeptCall) -> String { CallExplanation(call).text }

    /// The same in JSON.
    static func object(_ call: KeptCall) -> String { CallExplanation(call).object }

    private static func line(_ call: KeptCall) -> String {
        let codes = call.findings.map(\.code.rawValue).joined(separator: ", ")
        return
            "\(CallExplanation.time(call.began ?? call.ended)) \(call.call.prefix(8)) \(call.direction) \(call.peer): \(call.isOver ? call.reason ?? "" : "running")"
            + (codes.isEmpty ? "" : " (\(codes))")
    }
}
