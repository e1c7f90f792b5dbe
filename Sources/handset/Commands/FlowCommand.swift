internal import ArgumentParser
internal import AudioKit
internal import CallFlow
internal import CallFlows
internal import ConfigReader
internal import Core

/// `handset flow`: call flows in TwiML.
struct FlowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "flow", abstract: "Work on call flows in TwiML, which docs/flows.md explains.",
        subcommands: [FlowTryCommand.self])
}

/// `handset flow try`.
struct FlowTryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "try", abstract: "Walk through a call flow without a call, and print what would happen and when.",
        discussion: """
            The caller presses one key after the other, each half a second after a Gather has played its prompts or has taken the \
            key before, and speaks for three seconds at a Record. No callee is called: those of a Dial answer after two seconds, and the \
            caller is connected for five, unless --dial says otherwise. Files last as long as they are; the texts of Say last as long as \
            people take to say them, because no voice is run. It ends with an error if the flow does, and if it reaches four hours.
            """)

    @Argument(help: "The flow's first document.", completion: .file(extensions: ["xml"]))
    var file: String

    @Option(help: "Keys that the caller presses: 0-9, * and #.")
    var digits = ""

    @Option(help: "The caller, who is {{From}} in the flow.")
    var from = "caller"

    @Option(help: "The callee, who is {{To}} in the flow.")
    var to = "callee"

    @Option(help: "How dialled calls end: completed, busy, no-answer or failed.")
    var dial = DialStatus.completed.rawValue

    func validate() throws {
        guard let status = DialStatus(rawValue: dial), status != .canceled else {
            throw ValidationError("--dial must be completed, busy, no-answer or failed, not \"\(dial)\".")
        }
        guard digits.allSatisfy("0123456789*#".contains) else {
            throw ValidationError("--digits must be made of 0-9, * and #, not \"\(digits)\".")
        }
    }

    func run() throws {
        let folder: FlowFolder
        do throws(FlowUnusable) {
            folder = try FlowFolder(file: file)
        } catch {
            throw CommandFailure(.configuration, "\(file): \(error.message)")
        }
        var unused = digits.count
        var trial = FlowTrial(
            first: folder.first, values: FlowValues(from: from, to: to, callSid: "CA-trial"), keys: digits,
            dialResult: DialStatus(rawValue: dial) ?? .completed)
        var last = Duration.zero
        let end = trial.run(
            document: { folder.load($0) }, length: { Self.length($0, folder) },
            note: { time, note in
                last = time
                if case .key = note { unused -= 1 }
                if let text = FlowTrialText.line(note) { print(time, text) }
            })
        if unused > 0 { print(last, "not pressed, because the flow did not ask for them: \(digits.suffix(unused))") }
        try report(end)
    }

    private func print(_ time: Duration, _ text: String) {
        let tenths = Int(time.milliseconds / 100)
        let seconds = "\(tenths / 10).\(tenths % 10)"
        Terminal.print("\(String(repeating: " ", count: max(0, 7 - seconds.count)))\(seconds) s  \(text)")
    }

    private func report(_ end: FlowTrial.End) throws(CommandFailure) {
        switch end {
        case .hungUp, .rejected: return
        case .failed(let failure): throw CommandFailure(.configuration, failure.description)
        case .tooLong:
            throw CommandFailure(
                .failed, "the flow does not end: the call would be hung up after four hours. End it with Hangup.")
        }
    }

    /// How long a sound lasts. People say two to three words a second.
    private static func length(_ sound: FlowSound, _ folder: FlowFolder) -> Result<Duration, FlowUnusable> {
        switch sound {
        case .beep: return .success(.milliseconds(400))
        case .ringBack: return .success(.seconds(5))
        case .speech(let text): return .success(.milliseconds(500 + 400 * text.split(separator: " ").count))
        case .file(let name):
            do throws(FlowUnusable) {
                return .success(try length(ofFile: try folder.path(of: name)))
            } catch {
                return .failure(error)
            }
        }
    }

    private static func length(ofFile path: String) throws(FlowUnusable) -> Duration {
        do throws(AudioFileError) {
            var reader = try AudioFileReader(path: path)
            var block = [Int16](repeating: 0, count: AudioFormat.sampleRate)
            var samples = 0
            while true {
                var room = block.mutableSpan
                let count = try reader.read(into: &room)
                if count == 0 { return .seconds(AudioFormat.milliseconds(samples: samples) / 1_000) }
                samples += count
            }
        } catch {
            throw FlowUnusable("\(error)")
        }
    }
}

/// What happens in a trial, as text.
private enum FlowTrialText {
    /// Nil for what another line says.
    static func line(_ note: FlowTrial.Note) -> String? {
        switch note {
        case .output(let output): line(output)
        case .missing(let name): "    there is no \(name)"
        case .length(let time): "    for \(time.text)"
        case .key(let key): "    key \(key)"
        case .connected: "    the caller is connected"
        case .dialEnded(let status): "    the dialled call ends: \(status.rawValue)"
        case .recorded(let time): "    \(time.text) are recorded"
        }
    }

    private static func dial(_ order: FlowDialOrder) -> String {
        switch order.destination {
        case .callees(let names, let asking):
            "    calls \(names.joined(separator: ", ")) for up to \(order.timeout.text)"
                + (asking.map { ", asked by \($0)" } ?? "")
        case .room(let name, _, _): "    joins the conference \(name)"
        }
    }

    private static func line(_ output: FlowCourse.Output) -> String? {
        switch output {
        case .reached(let place): place.element.isEmpty ? "\(place): the document ends" : "\(place)"
        case .fetch(let name): "reads \(name)"
        case .answer: "answers the call"
        case .reject(let how): "rejects the call: \(how.rawValue)"
        case .play(.file(let name), _): "    plays \(name)"
        case .play(.speech(let text), _): "    says \"\(text)\""
        case .play(.beep, _): "    plays the tone"
        case .play(.ringBack, _): nil
        case .dial(let order): dial(order)
        case .connect, .stopDialling, .accept: nil
        case .stopSound: "    stops the sound"
        case .record: "    records the caller"
        case .stopRecording: nil
        case .hangUp: "hangs up"
        case .fail: nil
        }
    }
}
