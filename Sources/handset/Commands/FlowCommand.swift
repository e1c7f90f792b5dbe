internal import ArgumentParser
internal import AudioKit
internal import BotWire
internal import CallFlow
internal import CallFlows
internal import ConfigReader
internal import Core
internal import NIOCore
internal import NIOPosix

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
            caller is connected for five, unless --dial says otherwise. In a queue the caller is the only one, and is taken after ten \
            seconds, unless --queue says otherwise. No bot is connected: that of a Connect leaves after five seconds. Files last as long as they are; the texts of Say last as long as \
            people take to say them, because no voice is run. It ends with an error if the flow does, and if it reaches four hours.

            A URL is asked as behaviour.flow.url is: each request is printed with its fields. The server does not learn that there is \
            no call, and receives no reports of status.
            """)

    @Argument(
        help: "The flow's first document: a file, or the URL of a server.", completion: .file(extensions: ["xml"]))
    var file: String

    @Option(help: "How a URL is asked: POST or GET.")
    var method = Webhook.Method.post.rawValue

    @Option(help: "The URL that is asked once if the server fails.")
    var fallbackURL: String?

    @Option(
        name: .customLong("allowed-host"),
        help: "A host besides those of the URLs that documents may name.")
    var allowedHosts: [String] = []

    @Option(help: "A file with the secret that signs requests to a URL.", completion: .file())
    var secretFile: String?

    @Option(help: "Keys that the caller presses: 0-9, * and #.")
    var digits = ""

    @Option(help: "The caller, who is {{From}} in the flow.")
    var from = "caller"

    @Option(help: "The callee, who is {{To}} in the flow.")
    var to = "callee"

    @Option(help: "How dialled calls end: completed, busy, no-answer or failed.")
    var dial = DialStatus.completed.rawValue

    @Option(
        help:
            "How waiting in a queue ends: bridged, leave (as the queue's document says), queue-full, redirected or timeout."
    )
    var queue = QueueResult.bridged.rawValue

    func validate() throws {
        guard Self.queueResults.map(\.rawValue).contains(queue) else {
            let all = Self.queueResults.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("--queue must be one of \(all), not \"\(queue)\".")
        }
        guard let status = DialStatus(rawValue: dial), status != .canceled else {
            throw ValidationError("--dial must be completed, busy, no-answer or failed, not \"\(dial)\".")
        }
        guard digits.allSatisfy("0123456789*#".contains) else {
            throw ValidationError("--digits must be made of 0-9, * and #, not \"\(digits)\".")
        }
        guard Webhook.Method(rawValue: method) != nil else {
            throw ValidationError("--method must be POST or GET, not \"\(method)\".")
        }
        if let host = allowedHosts.first(where: { !FlowServerPlan.isHost($0) }) {
            throw ValidationError(
                "--allowed-host must be a host's name or address, or *.example.org, not \"\(host)\".")
        }
        if let fallbackURL, WebAddress(fallbackURL, WebAddress.Scheme.requests) == nil {
            throw ValidationError("--fallback-url must be a URL of http or https, without a user and a password.")
        }
    }

    private var values: FlowValues { FlowValues(from: from, to: to, callSid: Self.callSid) }
    private var dialResult: DialStatus { DialStatus(rawValue: dial) ?? .completed }
    private static let queueResults: [QueueResult] = [.bridged, .leave, .queueFull, .redirected, .timeout]
    private var queueResult: QueueResult { QueueResult(rawValue: queue) ?? .bridged }
    private static let callSid = "CA-trial"

    func run() throws {
        if file.contains("://") { return try runServer() }
        let folder: FlowFolder
        do throws(FlowUnusable) {
            folder = try FlowFolder(file: file)
        } catch {
            throw CommandFailure(.configuration, "\(file): \(error.message)")
        }
        let trial = FlowTrial(
            first: folder.first, values: values, keys: digits, dialResult: dialResult, queueResult: queueResult)
        try run(
            trial, document: { folder.load($0) }, page: { _ in .failure(FlowUnusable("there is no server")) },
            length: { Self.length($0, folder) })
    }

    /// Walks through a server's flow.
    private func runServer() throws {
        guard let address = WebAddress(file, WebAddress.Scheme.requests) else {
            throw CommandFailure(
                .usage, "the URL must begin with http:// or https://, and have no user and no password")
        }
        var plan = FlowServerPlan(first: Webhook(address, Webhook.Method(rawValue: method) ?? .post))
        plan.fallback = fallbackURL.flatMap { WebAddress($0, WebAddress.Scheme.requests) }
        plan.allowedHosts = allowedHosts
        plan.secret = try secret()
        let link = FlowServerLink(plan) { what, _ in Terminal.printError(what) }
        defer { _ = Self.wait { await link.finish() } }
        let call = FlowWireCall(values, isOutgoing: false)
        let fallback = plan.fallback.map { Webhook($0, plan.first.method) }
        let trial = FlowTrial(
            asking: FlowServer(first: plan.first, fallback: fallback), values: values, keys: digits,
            dialResult: dialResult, queueResult: queueResult)
        var number = 0
        try run(
            trial, document: { _ in .failure(FlowUnusable("there is no folder")) },
            page: { request in
                number += 1
                let count = number
                return Self.wait { await link.page(request, number: count, for: call) }
                    ?? .failure(FlowUnusable("cannot be asked"))
            }, length: { Self.length($0, link, call) })
    }

    private func secret() throws -> Secret? {
        guard let secretFile else { return nil }
        switch SmallFile.secret(path: secretFile) {
        case .success(let secret):
            if FlowServerPlan.isSecret(secret) { return secret }
            throw CommandFailure(
                .configuration,
                "the secret in \(secretFile) is shorter than \(FlowServerPlan.shortestSecret) bytes; "
                    + "`openssl rand -hex 32` makes some")
        case .failure(let failure):
            throw CommandFailure(
                .configuration, "cannot read the secret in \(secretFile): \(failure.message); check --secret-file")
        }
    }

    private static func wait<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value? {
        let promise = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: Value.self)
        promise.completeWithTask(work)
        return try? promise.futureResult.wait()
    }

    private func run(
        _ trial: FlowTrial, document: (FlowFileName) -> Result<FlowDocument, FlowUnusable>,
        page: (FlowRequest) -> Result<FlowPage, FlowUnusable>,
        length: (FlowSound) -> Result<Duration, FlowUnusable>
    ) throws {
        var trial = trial
        var unused = digits.count
        var last = Duration.zero
        let end = trial.run(
            document: document, page: page, length: length,
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

    /// How long a sound of the folder lasts.
    private static func length(_ sound: FlowSound, _ folder: FlowFolder) -> Result<Duration, FlowUnusable> {
        length(sound) { address throws(FlowUnusable) in
            guard case .file(let name) = address else { throw FlowUnusable("\(address) is a URL") }
            return try length(ofFile: try folder.path(of: name))
        }
    }

    /// How long a sound of a server lasts.
    private static func length(
        _ sound: FlowSound, _ link: FlowServerLink, _ call: FlowWireCall
    ) -> Result<Duration, FlowUnusable> {
        length(sound) { address throws(FlowUnusable) in
            guard case .url(let url) = address else { throw FlowUnusable("\(address) is a file") }
            guard let found = wait({ await link.sound(at: url, for: call) }) else {
                throw FlowUnusable("cannot be asked")
            }
            return try length(ofFile: try found.get().path)
        }
    }

    /// People say two to three words a second.
    private static func length(
        _ sound: FlowSound, of file: (FlowAddress) throws(FlowUnusable) -> Duration
    ) -> Result<Duration, FlowUnusable> {
        let address: FlowAddress
        switch sound {
        case .beep: return .success(.milliseconds(400))
        case .ringBack: return .success(.seconds(5))
        case .speech(let text): return .success(.milliseconds(500 + 400 * text.split(separator: " ").count))
        case .file(let name): address = .file(name)
        case .url(let url): address = .url(url)
        }
        do throws(FlowUnusable) {
            return .success(try file(address))
        } catch {
            return .failure(error)
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
        case .queued(let place): "    waits in the queue, at place \(place.position)"
        case .taken: "    a call takes the caller"
        case .queueEnded(let result): "    leaves the queue: \(result.rawValue)"
        case .streamEnded: "    the bot leaves the call"
        case .recorded(let time): "    \(time.text) are recorded"
        }
    }

    private static func line(_ request: FlowRequest) -> String {
        let fields = request.result.map { " \($0.name)=\($0.value)" }.joined()
        let status = request.isAnswered ? TwilioWebhook.Status.inProgress : .ringing
        return
            "\(request.webhook.method.rawValue) \(request.webhook.address.shown) CallStatus=\(status.rawValue)\(fields)"
    }

    private static func dial(_ order: FlowDialOrder) -> String {
        switch order.destination {
        case .callees(let names, let asking):
            "    calls \(names.joined(separator: ", ")) for up to \(order.timeout.text)"
                + (asking.map { ", asked by \($0)" } ?? "")
        case .queue(let name, let whisper):
            "    takes a caller of the queue \(name), or waits for one for up to \(order.timeout.text)"
                + (whisper.map { "; that caller goes through \($0.address)" } ?? "")
        case .room(let name, _, _): "    joins the conference \(name)"
        }
    }

    private static func parameters(_ order: FlowStreamOrder) -> String {
        order.parameters.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
    }

    private static func line(_ output: FlowCourse.Output) -> String? {
        switch output {
        case .reached(let place): place.element.isEmpty ? "\(place): the document ends" : "\(place)"
        case .fetch(let name): "reads \(name)"
        case .request(let request, _): line(request)
        case .fellBack(let failure): "\(failure); the fallback is asked"
        case .answer: "answers the call"
        case .reject(let how): "rejects the call: \(how.rawValue)"
        case .play(.file(let name), _): "    plays \(name)"
        case .play(.url(let address), _): "    plays \(address.shown)"
        case .play(.speech(let text), _): "    says \"\(text)\""
        case .play(.beep, _): "    plays the tone"
        case .play(.ringBack, _): nil
        case .dial(let order): dial(order)
        case .connect, .stopDialling, .accept, .leaveQueue, .readyToJoin: nil
        case .enqueue(let name, let hasMusic): "    enters the queue \(name)\(hasMusic ? ", and hears music" : "")"
        case .openStream(let order): "    connects with the bot at \(order.address.shown)\(parameters(order))"
        case .fork(let order, _):
            "    streams the \(order.tracks.rawValue) to \(order.address.shown)\(parameters(order))"
        case .endFork: "    ends the stream"
        case .fault(let failure): "\(failure)"
        case .stopSound: "    stops the sound"
        case .record: "    records the caller"
        case .stopRecording: nil
        case .hangUp: "hangs up"
        case .fail: nil
        }
    }
}
