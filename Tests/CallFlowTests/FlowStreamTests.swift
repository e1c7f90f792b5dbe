import BotWire
import CallFlow
import Core
import TestSupport
import Testing

@Suite("Streams of call flows")
struct FlowStreamTests {
    private typealias Line = Timeline<FlowCourse>

    private static let url = "wss://bot.example/talk"

    private func document(_ inner: String) throws -> FlowDocument {
        try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8))
    }

    private func faults(_ inner: String) -> [String] {
        let error = #expect(throws: FlowFaults.self) { try document(inner) }
        return error?.faults.map(\.description) ?? []
    }

    private func order(_ parameters: [String: String] = [:], _ tracks: ForkTracks = .inbound) throws -> FlowStreamOrder
    {
        FlowStreamOrder(
            to: try #require(WebAddress(Self.url, WebAddress.Scheme.sockets)), parameters: parameters, tracks: tracks)
    }

    /// An answered call that has got its first document.
    private func call(_ inner: String, isAsking: Bool = false) throws -> Line {
        let values = FlowValues(from: "ann", to: "bob", callSid: "call-1")
        var line = Line(
            FlowCourse(first: try FlowFileName("menu.xml"), values: values, isAnswered: true, isAsking: isAsking))
        line.feed(.begin)
        line.feed(.fetched(try document(inner)))
        return line
    }

    private func failure(_ line: Line) -> String? {
        if case .fail(let failure)? = line.outputs.last { failure.description } else { nil }
    }

    // MARK: Documents

    @Test("Connect, Start and Stop are read with their attributes, their parameters and their defaults")
    func reads() throws {
        let steps = try document(
            """
            <Start><Stream name="log" track="both_tracks" url=" \(Self.url) "/></Start>
            <Connect action="after.xml"><Stream url="\(Self.url)"><Parameter name="who" value="{{From}}"/></Stream></Connect>
            <Stop><Stream name="log"/></Stop>
            """
        ).steps.map(\.verb)
        guard case .start(let fork) = steps[0], case .connect(let connect) = steps[1], case .stop("log") = steps[2]
        else {
            throw FlowUnusable("other verbs")
        }
        #expect(fork.name == "log" && fork.tracks == .both && fork.url.source == Self.url && fork.parameters.isEmpty)
        #expect(
            connect.action?.source == "after.xml" && connect.stream.name == nil && connect.stream.tracks == .inbound)
        #expect(connect.stream.parameters.map(\.name) == ["who"])
        #expect(connect.stream.parameters.first?.value.source == "{{From}}")
    }

    @Test(
        "What a call would not do is refused, with the line and the element",
        arguments: [
            ("\n<Connect><Stream/></Connect>", "line 2: Stream: has no url, which names a server by wss:// or ws://"),
            (
                "<Connect><Stream url=\"https://bot.example/\"/></Connect>",
                "line 1: Stream: url must begin with wss:// or ws://, have no user and no password"
            ),
            ("<Connect/>", "line 1: Connect: has 0 Stream; exactly one is supported"),
            (
                "<Connect><ConversationRelay url=\"\(url)\"/></Connect>",
                "line 1: ConversationRelay: is not supported within Connect; supported there is Stream"
            ),
            (
                "<Connect><Stream url=\"\(url)\" track=\"both_tracks\"/></Connect>",
                "line 1: Stream: track must be inbound_track, not \"both_tracks\""
            ),
            (
                "<Start><Stream url=\"\(url)\" track=\"all\"/></Start>",
                "line 1: Stream: track must be one of inbound_track, outbound_track, both_tracks, not \"all\""
            ),
            (
                "<Start><Stream url=\"\(url)\" statusCallback=\"https://a.example/\"/></Start>",
                "line 1: Stream: the attribute statusCallback is not supported; supported are name, track, url"
            ),
            (
                "<Start action=\"a.xml\"><Stream url=\"\(url)\"/></Start>",
                "line 1: Start: the attribute action is not supported; it has none"
            ),
            ("<Stop><Stream/></Stop>", "line 1: Stream: has no name"),
            ("<Start><Stream url=\"\(url)\"><Parameter/></Stream></Start>", "line 1: Parameter: has no name"),
            (
                "<Start><Stream url=\"\(url)\"><Parameter name=\"a\"/>\n<Parameter name=\"a\"/></Stream></Start>",
                "line 2: Parameter: has the name of another one"
            ),
        ])
    func refuses(inner: String, start: String) {
        let found = faults(inner)
        #expect(found.count == 1 && found[0].hasPrefix(start), "\(found)")
    }

    @Test("A name has 64 bytes, a parameter 500, and a stream 64 parameters")
    func limits() throws {
        func stream(name: Int, value: Int, parameters: Int) -> String {
            let all = (0..<parameters).map { "<Parameter name=\"p\($0)\"/>" }.joined()
            let name = String(repeating: "n", count: name)
            let value = String(repeating: "v", count: value)
            return "<Start><Stream url=\"\(Self.url)\" name=\"\(name)\"><Parameter name=\"long\" value=\"\(value)\"/>"
                + "\(all)</Stream></Start>"
        }
        _ = try document(stream(name: 64, value: 496, parameters: 63))
        #expect(faults(stream(name: 65, value: 0, parameters: 0)).count == 1)
        #expect(faults(stream(name: 1, value: 497, parameters: 0)).count == 1)
        #expect(faults(stream(name: 1, value: 0, parameters: 64)).count == 1)
    }

    // MARK: Connect

    @Test("Connect has the call until the bot leaves, for which no time is set, and the next verb follows")
    func connects() throws {
        var line = try call(
            "<Connect><Stream url=\"\(Self.url)\"><Parameter name=\"who\" value=\"a {{From}}\"/></Stream></Connect><Say>bye</Say>"
        )
        #expect(line.outputs.last == .openStream(try order(["who": "a ann"])))
        #expect(line.core.nextDeadline == nil)
        #expect(line.feed(.key("1")).isEmpty && line.feed(.speech(isOver: false)).isEmpty)
        line.advance(by: .seconds(3_600), firing: .timerFired)
        #expect(line.feed(.streamEnded(FlowStreamEnd(sid: "MZ1"))).last == .play(.speech("bye"), number: 1))
        #expect(line.feed(.streamEnded(FlowStreamEnd(sid: "MZ1"))).isEmpty)
    }

    @Test("An action follows by how it has ended, and a bot that fails does not end the call")
    func action() throws {
        let connect = "<Connect action=\"{{StreamEvent}}.xml\"><Stream url=\"\(Self.url)\"/></Connect><Say>bye</Say>"
        var line = try call(connect)
        #expect(
            line.feed(.streamEnded(FlowStreamEnd(sid: "MZ1"))) == [.fetch(try FlowFileName("stream-stopped.xml"))])
        line = try call(connect)
        let outputs = line.feed(.streamEnded(FlowStreamEnd(sid: "MZ1", failure: "no one is there")))
        guard case .fault(let fault)? = outputs.first else { throw FlowUnusable("\(outputs)") }
        #expect(fault.description == "menu.xml:1: Connect: no one is there")
        #expect(outputs.last == .fetch(try FlowFileName("stream-error.xml")))
        line.feed(.fetchFailed(FlowUnusable("there is none", isMissing: true)))
        #expect(line.outputs.last == .play(.speech("bye"), number: 1))
    }

    @Test("A server is notified of which stream has ended, and how")
    func tellsServer() throws {
        let first = try #require(WebAddress("https://flows.example/menu", WebAddress.Scheme.requests))
        let inner =
            "<Response><Connect action=\"after\" method=\"GET\"><Stream name=\"talk\" url=\"\(Self.url)\"/></Connect></Response>"
        let values = FlowValues(from: "ann", to: "bob", callSid: "call-1")
        for failure in [nil, "it broke"] {
            var line = Line(FlowCourse(asking: FlowServer(first: Webhook(first)), values: values, isAnswered: true))
            line.feed(.begin)
            line.feed(
                .received(FlowPage(try FlowDocument(parsing: Array(inner.utf8), from: first), at: first), number: 1))
            guard
                case .request(let request, number: 2)? = line.feed(
                    .streamEnded(FlowStreamEnd(sid: "MZ1", failure: failure))
                ).last
            else { throw FlowUnusable("\(line.outputs)") }
            #expect(request.webhook.address.text == "https://flows.example/after" && request.webhook.method == .get)
            let fields = request.result.map { "\($0.name)=\($0.value)" }
            #expect(
                fields == [
                    "StreamSid=MZ1", "StreamEvent=stream-\(failure == nil ? "stopped" : "error")", "StreamName=talk",
                ]
                    + (failure.map { ["StreamError=\($0)"] } ?? []))
        }
    }

    @Test("A callee that is asked has no bot, and a caller that waits in a queue has no stream")
    func refusesByRole() throws {
        let asked = try call("<Connect><Stream url=\"\(Self.url)\"/></Connect>", isAsking: true)
        #expect(failure(asked)?.contains("cannot be connected with a bot") == true)
        for inner in [
            "<Connect><Stream url=\"\(Self.url)\"/></Connect>", "<Start><Stream url=\"\(Self.url)\"/></Start>",
        ] {
            let verb = try #require(try document(inner).steps.first).verb
            #expect(FlowDocumentRole.flow.admits(verb))
            #expect(!FlowDocumentRole.wait.admits(verb) && !FlowDocumentRole.whisper.admits(verb))
        }
    }

    // MARK: Start and Stop

    @Test("Start forks the call while the flow continues, and Stop ends what has its name")
    func forks() throws {
        var line = try call(
            """
            <Start><Stream name="log" track="outbound_track" url="\(Self.url)"/></Start><Say>a</Say>
            <Stop><Stream name="other"/></Stop><Stop><Stream name="log"/></Stop><Say>b</Say>
            """)
        let begun = line.outputs.filter { if case .reached = $0 { false } else { true } }.suffix(2)
        #expect(begun == [.fork(try order([:], .outbound), number: 1), .play(.speech("a"), number: 1)])
        let ended = line.feed(.soundEnded(1)).filter { if case .reached = $0 { false } else { true } }
        #expect(ended == [.endFork(1), .play(.speech("b"), number: 2)])
    }

    @Test("A call has four forks; a fifth is reported and passed over until one has ended, and a name has one fork")
    func mostForks() throws {
        let unnamed = "<Start><Stream url=\"\(Self.url)\"/></Start>"
        let named = "<Start><Stream name=\"a\" url=\"\(Self.url)\"/></Start>"
        func numbers(_ line: Line) -> [Int] {
            line.outputs.compactMap { if case .fork(_, let number) = $0 { number } else { nil } }
        }
        func faults(_ line: Line) -> Int { line.outputs.count { if case .fault = $0 { true } else { false } } }
        var line = try call(named + named + unnamed + unnamed + unnamed + "<Say>a</Say>" + unnamed + "<Say>b</Say>")
        #expect(numbers(line) == [1, 2, 3, 4] && faults(line) == 0)
        line.feed(.soundEnded(1))
        #expect(numbers(line) == [1, 2, 3, 4] && faults(line) == 1)
        #expect(line.outputs.last == .play(.speech("b"), number: 2))
        line = try call(named + unnamed + unnamed + unnamed + "<Say>a</Say>" + unnamed + "<Say>b</Say>")
        line.feed(.forkEnded(2))
        line.feed(.soundEnded(1))
        #expect(numbers(line) == [1, 2, 3, 4, 5] && faults(line) == 0)
    }

    @Test("In a trial the bot leaves after five seconds")
    func trial() throws {
        var notes: [String] = []
        let documents = [
            "menu.xml": "<Connect action=\"{{StreamEvent}}.xml\"><Stream url=\"\(Self.url)\"/></Connect>",
            "stream-stopped.xml": "<Say>bye</Say>",
        ]
        var trial = FlowTrial(
            first: try FlowFileName("menu.xml"), values: FlowValues(from: "ann", to: "bob", callSid: "c"), keys: "")
        let end = trial.run(
            document: { name in
                guard let inner = documents[name.text], let found = try? document(inner) else {
                    return .failure(FlowUnusable("there is none", isMissing: true))
                }
                return .success(found)
            }, length: { _ in .success(.seconds(1)) },
            note: { time, note in
                switch note {
                case .streamEnded: notes.append("\(time.text) left")
                case .output(.play(.speech(let text), _)): notes.append("\(time.text) \(text)")
                case .output, .missing, .length, .key, .connected, .dialEnded, .queued, .taken, .queueEnded, .recorded:
                    break
                }
            })
        #expect(end == .hungUp && notes == ["5 s left", "5 s bye"], "\(notes)")
    }
}
