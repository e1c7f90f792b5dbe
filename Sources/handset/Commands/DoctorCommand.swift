internal import ArgumentParser
internal import CallAgent
internal import DeviceDiagnosis

/// `handset doctor`: what is wrong with a device that has no call, and whose fault it looks like.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Say what is wrong with a device that has no call, and whose fault it looks like.",
        discussion: """
            It looks at configuration, names, servers, certificates, clock, login, ports, NAT, sound card, rights, disk and open \
            files, and says of each what it saw, what is wrong, and what to try. Where the facts leave open whose fault it is, it says \
            so. The device may be running: then nothing is tried that it would notice. It takes up to a minute if nothing answers. \
            docs/doctor.md lists all that it can find.
            """)

    @Option(help: "The device's configuration file.", completion: .file())
    var config: String

    @Option(help: "Which of several accounts in it.", completion: Completions.accounts)
    var account: String?

    @Flag(
        help: "Also place a call of the device to itself, through its exchange. Every device of the account rings, too."
    )
    var call = false

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() async throws {
        let facts = try await DeviceExamination(path: config, account: account, placesCall: call).gather()
        let diagnosis = DeviceDiagnosis(facts)
        let report = DoctorReport(config: config, account: account, diagnosis: diagnosis)
        Terminal.print(json ? report.json : report.text)
        if let first = diagnosis.findings.first { throw ExitCode(ExitStatus(first.code).rawValue) }
    }
}

extension ExitStatus {
    /// The status of a diagnosis whose first finding is this.
    init(_ code: DeviceFinding.Code) {
        self =
            switch code {
            case .configurationWrong: .configuration
            case .nameUnknown, .namesUnanswered, .connectionRefused, .connectionTimeout, .noRoute, .serverSilent,
                .sipSilent, .registrarSilent, .wrongProtocol, .relayUnreachable:
                .serverUnreachable
            case .certificateExpired, .certificateEarly, .certificateWrongName, .certificateUntrusted:
                .certificateNotTrusted
            case .loginRefused, .userUnknown, .tokenExpired, .relayUnauthorized: .loginRefused
            case .portInUse: .portInUse
            case .cardUnusable, .cardStalled: .soundCardUnusable
            case .folderUnusable, .diskFull: .recordingFailed
            case .certificateEndsSoon, .clockImplausible, .clockOff, .loginFailed, .portUnusable, .udpBlocked,
                .stunSilent, .mappingDependent, .relayRefused, .microphoneSilent, .realtimeRefused, .memoryLockRefused,
                .diskSmall,
                .descriptorsFew, .callFailed:
                .failed
            }
    }
}

/// What `handset doctor` prints.
struct DoctorReport {
    let config: String
    let account: String?
    let diagnosis: DeviceDiagnosis

    /// A line for each thing that a step looked at, and below it what is wrong.
    var text: String {
        let style = TerminalStyle.standardOutput
        var lines: [String] = []
        for step in diagnosis.steps {
            let (word, rest): (String, [String]) =
                switch step.outcome {
                case .fine: (style.green("fine"), step.evidence)
                case .found: (style.red("WRONG"), step.evidence)
                case .skipped(let reason): (style.dim("skipped"), [reason] + step.evidence)
                }
            lines.append("\(step.name.rawValue.padded(to: 14)) \(word)")
            lines += rest.map { "    \($0)" }
            for finding in step.findings { lines += FindingText(finding).lines.map { "  \($0)" } }
        }
        return (lines + ["", sum]).joined(separator: "\n")
    }

    private var sum: String {
        let count = diagnosis.findings.count
        return count == 0
            ? "Nothing is wrong that can be seen from here."
            : "\(count) \(count == 1 ? "thing is" : "things are") wrong."
    }

    /// One JSON object.
    var json: String {
        var object = JSONObjectText()
        object.add("file", config)
        object.add("account", account)
        object.add("findings", diagnosis.findings.count)
        object.add("steps", objects: diagnosis.steps.map(Self.object))
        return object.text
    }

    private static func object(_ step: DeviceStep) -> JSONObjectText {
        var object = JSONObjectText()
        object.add("step", step.name.rawValue)
        switch step.outcome {
        case .fine: object.add("outcome", "fine")
        case .found: object.add("outcome", "wrong")
        case .skipped(let reason):
            object.add("outcome", "skipped")
            object.add("reason", reason)
        }
        object.add("seen", texts: step.evidence)
        object.add("findings", objects: step.findings.map { FindingText($0).object })
        return object
    }
}
