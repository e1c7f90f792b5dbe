internal import ArgumentParser
internal import CallAgent
internal import CallDiagnosis
internal import ConfigReader
internal import Core

/// `handset explain`: what went wrong in a call, and whose fault it looks like.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Say what went wrong in a call, and whose fault it looks like.",
        discussion: """
            It reads the records that a device keeps of its calls (device.call_records), and says of one how it ended, what went \
            wrong, the figures that say so, and what to try. Where the figures leave open whose fault it is, it says so. The \
            device may be running. docs/explain.md lists all that it can find.
            """)

    @Argument(
        help:
            "The call: a part of its name in the records, of its invite, or of the other side's name. The last one if none is given."
    )
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
        guard (config == nil) != (records == nil) else { throw ValidationError("Give either --config or --records.") }
        if list, call != nil { throw ValidationError("--list is for all calls, without CALL.") }
        if account != nil, config == nil { throw ValidationError("--account is for --config.") }
    }

    /// Calls that `--list` shows.
    private static let listed = 50

    func run() throws {
        let calls = try Self.calls(in: try path())
        if list {
            for call in calls.suffix(Self.listed).reversed() {
                Terminal.print(json ? Self.object(call) : Self.line(call))
            }
        } else {
            let found = try Self.find(call, in: calls)
            Terminal.print(json ? Self.object(found) : Self.text(found))
        }
    }

    /// What is known of a call that ended, as text and as a JSON object.
    ///
    /// - Parameters:
    ///   - call: A part of its name, of its invite, or of the other side's name; nil for the last one.
    ///   - config: The device's configuration.
    static func explanation(
        of call: String?, config: String?, account: String?
    ) throws -> (text: String, object: String) {
        guard let config else {
            throw CommandFailure(
                .configuration, "records of calls are found by the device's configuration; give --config")
        }
        let found = try find(call, in: try calls(in: try path(config: config, account: account)))
        return (text(found), object(found))
    }

    private func path() throws -> String {
        if let records { return records }
        guard let config else { throw ValidationError("Give either --config or --records.") }
        return try Self.path(config: config, account: account)
    }

    private static func calls(in path: String) throws -> [KeptCall] {
        let calls = try CallJournal.records(in: path).filter { $0.facts != nil }
        guard !calls.isEmpty else {
            throw CommandFailure(
                .configuration,
                "there is no record of a call that has ended in \(path); has the device had one since "
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
        guard let call else { return calls[calls.count - 1] }
        let found = calls.last { $0.matches(call) }
        guard let found else {
            throw CommandFailure(.failed, "there is no record of a call with \"\(call)\"; --list shows the last ones.")
        }
        return found
    }

    // MARK: - Words

    private static func findings(_ call: KeptCall) -> [Finding] { call.findings }

    /// What is printed of one call.
    static func text(_ call: KeptCall) -> String {
        let findings = findings(call)
        var lines = ["\(time(call)) \(call.facts?.outcome ?? "")"]
        if let decidedBy = call.decidedBy { lines.append("Decided by \(decidedBy).") }
        for finding in findings { lines += [""] + FindingText(finding).lines }
        if findings.isEmpty { lines += ["", call.remarkWithoutFindings] }
        return lines.joined(separator: "\n")
    }

    private static func line(_ call: KeptCall) -> String {
        let codes = findings(call).map(\.code.rawValue).joined(separator: ", ")
        return "\(time(call)) \(call.call.prefix(8)) \(call.direction) \(call.peer): \(call.reason ?? "")"
            + (codes.isEmpty ? "" : " (\(codes))")
    }

    private static func time(_ call: KeptCall) -> String {
        (call.began ?? call.ended).map { WallClock(unixMilliseconds: $0).rfc3339 } ?? "?"
    }

    /// The same in JSON.
    static func object(_ call: KeptCall) -> String {
        var object = JSONObjectText()
        object.add("call", call.call)
        object.add("invite", call.invite)
        object.add("time", time(call))
        object.add("direction", call.direction)
        object.add("peer", call.peer)
        object.add("reason", call.reason)
        object.add("decided_by", call.decidedBy)
        object.add("outcome", call.facts?.outcome)
        object.add("has_media", call.media != nil)
        object.add("findings", objects: findings(call).map { FindingText($0).object })
        return object.text
    }
}
