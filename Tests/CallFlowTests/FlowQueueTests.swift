import BotWire
import CallFlow
import Core
import TestSupport
import Testing

@Suite("Enqueue, Leave and Queue in call flows")
struct FlowQueueTests {
    private typealias Line = Timeline<FlowCourse>

    private static let base = "https://flows.example/menu"

    private func address(_ text: String = base) throws -> WebAddress {
        try #require(WebAddress(text, WebAddress.Scheme.requests))
    }

    private func document(_ inner: String) throws -> FlowDocument {
        try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8))
    }

    private func page(_ inner: String, at text: String = base) throws -> FlowPage {
        let address = try address(text)
        return FlowPage(
            try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8), from: address), at: address)
    }

    private func call(_ inner: String, isAsking: Bool = false) throws -> Line {
        let values = FlowValues(from: "ann", to: "desk", callSid: "c")
        var line = Line(
            FlowCourse(first: try FlowFileName("menu.xml"), values: values, isAnswered: true, isAsking: isAsking))
        line.feed(.begin)
        line.feed(.fetched(try document(inner)))
        return line
    }

    private func served(_ inner: String) throws -> Line {
        let values = FlowValues(from: "ann", to: "desk", callSid: "c")
        var line = Line(
            FlowCourse(asking: FlowServer(first: Webhook(try address())), values: values, isAnswered: true))
        line.feed(.begin)
        line.feed(.received(try page(inner), number: 1))
        return line
    }

    private func place(_ position: Int = 2, of size: Int = 3, in line: Line) -> QueuePlace {
        QueuePlace(
            sid: "QU1", position: position, size: size, most: 100, since: line.now, meanSince: line.now)
    }

    private func outputs(_ line: Line, last count: Int) -> [FlowCourse.Output] {
        line.outputs.filter { if case .reached = $0 { false } else { true } }.suffix(count)
    }

    /// What the last output asks the server, as text.
    private func asked(_ line: Line) -> String? {
        guard case .request(let request, _)? = line.outputs.last else { return nil }
        let fields = request.result.map { " \($0.name)=\($0.value)" }.joined()
        return "\(request.webhook.method.rawValue) \(request.webhook.address.text)\(fields)"
    }

    private func faults(_ inner: String, from base: WebAddress? = nil) -> String {
        do throws(FlowFaults) {
            _ = try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8), from: base)
            return ""
        } catch {
            return error.description
        }
    }

    private func file(_ name: String) throws -> FlowFileName { try FlowFileName(name) }

    // MARK: Waiting

    @Test("A caller enters the queue, goes through its document again and again, and knows its place")
    func waits() throws {
        var line = try call("<Enqueue waitUrl=\"wait.xml\">support-{{From}}</Enqueue><Say>after</Say>")
        #expect(line.outputs.last == .enqueue("support-ann", hasMusic: false))
        #expect(line.core.nextDeadline == nil)
        #expect(line.feed(.queued(place(in: line))) == [.fetch(try file("wait.xml"))])
        let wait = try document(
            "<Say>{{QueuePosition}} of {{CurrentQueueSize}}, {{QueueTime}} s</Say><Pause length=\"20\"/>")
        line.feed(.fetched(wait))
        #expect(line.outputs.last == .play(.speech("2 of 3, 0 s"), number: 1))
        // A place that changes meanwhile counts for what follows.
        #expect(line.feed(.queued(place(1, of: 2, in: line))).isEmpty)
        line.feed(.soundEnded(1))
        // Far more rounds than documents without a key are read otherwise.
        for round in 0..<200 {
            line.advance(by: .seconds(20), firing: .timerFired)
            #expect(line.outputs.last == .fetch(try file("wait.xml")), "round \(round)")
            line.feed(.fetched(wait))
            line.feed(.soundEnded(round + 2))
        }
        #expect(line.outputs.contains(.play(.speech("1 of 2, 20 s"), number: 2)))
        #expect(!line.core.isOver)
    }

    @Test("Without a document the caller hears music, and nothing is due")
    func music() throws {
        var line = try call("<Enqueue>q</Enqueue>")
        #expect(line.outputs.last == .enqueue("q", hasMusic: true))
        #expect(line.feed(.queued(place(in: line))).isEmpty)
        #expect(line.core.nextDeadline == nil)
        #expect(line.feed(.dequeued(by: "CA2", nil)) == [.readyToJoin])
        #expect(line.feed(.queueJoined).isEmpty)
        #expect(line.feed(.queueEnded(.bridged, .seconds(3))).last == .hangUp)
    }

    @Test("Behind the queue the action follows, with its result, or the next verb of the document with Enqueue")
    func continues() throws {
        for result in QueueResult.allCases {
            var line = try call("<Enqueue action=\"after-{{QueueResult}}.xml\">q</Enqueue>")
            #expect(
                line.feed(.queueEnded(result, .zero)) == [.fetch(try file("after-\(result.rawValue).xml"))])
            // A result without a document is no fault: the next verb follows.
            line.feed(.fetchFailed(FlowUnusable("there is none", isMissing: true)))
            #expect(line.outputs.last == .hangUp)
        }
        var line = try call("<Enqueue waitUrl=\"wait.xml\">q</Enqueue><Say>{{QueueResult}} {{QueueTime}}</Say>")
        line.feed(.queued(place(in: line)))
        line.feed(.fetched(try document("<Play>a.wav</Play>")))
        #expect(line.outputs.last == .play(.file(try file("a.wav")), number: 1))
        #expect(
            outputs(line, last: 0).isEmpty
                && line.feed(.queueEnded(.redirected, .seconds(65))).filter { $0 != .stopSound }.last
                    == .play(.speech("redirected 65"), number: 2)
        )
        #expect(outputs(line, last: 2).first == .stopSound)
    }

    @Test(
        "Leave, also behind a key, takes the caller out of the queue; a late answer of the queue's document counts no more"
    )
    func leaves() throws {
        var line = try call("<Enqueue waitUrl=\"wait.xml\">q</Enqueue><Say>after</Say>")
        line.feed(.queued(place(in: line)))
        line.feed(.fetched(try document("<Gather numDigits=\"1\" action=\"key-{{Digits}}.xml\"/>")))
        #expect(line.feed(.key("1")) == [.fetch(try file("key-1.xml"))])
        line.feed(.fetched(try document("<Leave/>")))
        #expect(line.outputs.last == .leaveQueue(.leave))
        #expect(line.feed(.fetched(try document("<Say>late</Say>"))).isEmpty)
        line.feed(.queueEnded(.leave, .seconds(9)))
        #expect(line.outputs.last == .play(.speech("after"), number: 1))
    }

    @Test("Hangup in the queue's document ends the call")
    func hangsUp() throws {
        var line = try call("<Enqueue waitUrl=\"wait.xml\">q</Enqueue>")
        line.feed(.queued(place(in: line)))
        #expect(line.feed(.fetched(try document("<Hangup/>"))).last == .hangUp)
        #expect(line.core.isOver)
    }

    @Test("A key without a document continues in the queue's document, and not behind Enqueue")
    func missingKey() throws {
        var line = try call("<Enqueue waitUrl=\"wait.xml\">q</Enqueue><Say>after</Say>")
        line.feed(.queued(place(in: line)))
        line.feed(
            .fetched(try document("<Gather numDigits=\"1\" action=\"key-{{Digits}}.xml\"/><Say>wait</Say>")))
        line.feed(.key("5"))
        line.feed(.fetchFailed(FlowUnusable("there is none", isMissing: true)))
        #expect(line.outputs.last == .play(.speech("wait"), number: 1))
    }

    // MARK: Faults

    @Test(
        "A caller leaves the queue with an error if its document is missing, has another verb, or goes round in circles",
        arguments: [
            ("<Dial>bob</Dial>", "wait.xml:1: Dial: is not supported while the caller waits in a queue"),
            ("<Record/>", "wait.xml:1: Record: is not supported while the caller waits in a queue"),
            ("<Enqueue>r</Enqueue>", "wait.xml:1: Enqueue: is not supported while the caller waits in a queue"),
        ])
    func faults(_ wait: String, _ why: String) throws {
        var line = try call("<Enqueue waitUrl=\"wait.xml\">q</Enqueue><Say>{{QueueResult}}</Say>")
        line.feed(.queued(place(in: line)))
        let found = line.feed(.fetched(try document(wait)))
        guard case .fault(let fault)? = found.first else {
            Issue.record("\(found)")
            return
        }
        #expect(fault.description.hasPrefix(why), "\(fault)")
        #expect(found.last == .leaveQueue(.error))
        line.feed(.queueEnded(.error, .zero))
        #expect(line.outputs.last == .play(.speech("error"), number: 1))
    }

    @Test("An empty document for the queue, and one that is missing, end the waiting and not the call")
    func circles() throws {
        var line = try call("<Enqueue waitUrl=\"wait.xml\">q</Enqueue>")
        line.feed(.queued(place(in: line)))
        for _ in 0..<60 where line.outputs.last == .fetch(try file("wait.xml")) {
            line.feed(.fetched(try document("")))
        }
        #expect(line.outputs.last == .leaveQueue(.error))
        line = try call("<Enqueue waitUrl=\"wait.xml\">q</Enqueue>")
        line.feed(.queued(place(in: line)))
        line.feed(.fetchFailed(FlowUnusable("there is none", isMissing: true)))
        #expect(line.outputs.last == .leaveQueue(.error) && !line.core.isOver)
    }

    @Test("A flow that enters a full queue again and again goes round in circles")
    func fullCircle() throws {
        var line = try call("<Enqueue>q</Enqueue><Redirect>menu.xml</Redirect>")
        for _ in 0..<60 where line.outputs.last == .enqueue("q", hasMusic: true) {
            line.feed(.queueEnded(.queueFull, .zero))
            line.feed(.fetched(try document("<Enqueue>q</Enqueue><Redirect>menu.xml</Redirect>")))
        }
        guard case .fail(let failure)? = line.outputs.last else {
            Issue.record("\(String(describing: line.outputs.last))")
            return
        }
        #expect(failure.message.contains("round in circles"))
    }

    @Test("Leave without a queue, and a queue for a callee that is asked, end the call")
    func misplaced() throws {
        for (line, why) in [
            (try call("<Leave/>"), "menu.xml:1: Leave: the caller waits in no queue"),
            (try call("<Enqueue>q</Enqueue>", isAsking: true), "menu.xml:1: Enqueue: a callee that is asked"),
        ] {
            guard case .fail(let failure)? = line.outputs.last else {
                Issue.record("\(line.outputs)")
                continue
            }
            #expect(failure.description.hasPrefix(why))
        }
    }

    @Test("What Enqueue, Leave and Queue do not support is refused")
    func refuses() throws {
        #expect(faults("<Enqueue/>") == "line 1: Enqueue: names no queue")
        #expect(faults("<Enqueue>\(String(repeating: "a", count: 65))</Enqueue>").contains("more than 64 bytes"))
        #expect(
            faults("<Enqueue workflowSid=\"W\">q</Enqueue>")
                == "line 1: Enqueue: the attribute workflowSid is not supported; supported are action, waitUrl")
        #expect(
            faults("<Enqueue waitUrlMethod=\"PUT\">q</Enqueue>", from: try address())
                == "line 1: Enqueue: waitUrlMethod must be POST or GET, not \"PUT\"")
        #expect(faults("<Leave a=\"1\"/>").contains("it has none"))
        #expect(faults("<Dial><Queue/></Dial>") == "line 1: Queue: names no queue")
        #expect(faults("<Dial><Queue>q</Queue><Client>b</Client></Dial>").contains("takes one caller at a time"))
        #expect(
            faults("<Dial><Queue reservationSid=\"W\">q</Queue></Dial>")
                == "line 1: Queue: the attribute reservationSid is not supported; supported are url")
    }

    // MARK: Calls that take callers

    @Test(
        "Dial with Queue waits for a caller with the ringing tone, and a minute more while that one goes through a document"
    )
    func takes() throws {
        var line = try call(
            "<Dial timeout=\"20\"><Queue url=\"hello.xml\">q</Queue></Dial><Say>{{DialCallStatus}}</Say>")
        let order = FlowDialOrder(
            .queue("q", whisper: FlowWhisper(.file(try file("hello.xml")))), timeout: .seconds(20))
        #expect(outputs(line, last: 2) == [.dial(order), .play(.ringBack, number: 1)])
        line.advance(by: .seconds(19), firing: .timerFired)
        #expect(line.feed(.calleeAsked).isEmpty)
        line.advance(by: .seconds(59), firing: .timerFired)
        #expect(line.feed(.calleeAnswered) == [.stopSound, .connect])
        line.feed(.dialEnded(.completed, .seconds(4)))
        #expect(line.outputs.last == .play(.speech("completed"), number: 2))
        line = try call("<Dial timeout=\"20\"><Queue>q</Queue></Dial>")
        line.advance(by: .seconds(20), firing: .timerFired)
        #expect(line.outputs.last == .stopDialling(isTimeout: true))
    }

    @Test(
        "The caller goes through the document of the call that takes it, which may have four verbs, and is then ready")
    func whisper() throws {
        var line = try call("<Enqueue waitUrl=\"wait.xml\">q</Enqueue>")
        line.feed(.queued(place(in: line)))
        line.feed(.fetched(try document("<Play>a.wav</Play>")))
        let whisper = FlowWhisper(.file(try file("hello.xml")))
        #expect(
            line.feed(.dequeued(by: "CA2", whisper)) == [.stopSound, .fetch(try file("hello.xml"))])
        line.feed(.fetched(try document("<Say>hello</Say>")))
        // The end of the sound that was stopped is none of the new one.
        #expect(line.feed(.soundEnded(1)).isEmpty)
        #expect(line.feed(.soundEnded(2)).last == .readyToJoin)
        // The call that was about to take it is gone: from the beginning.
        #expect(line.feed(.requeued) == [.fetch(try file("wait.xml"))])
        line.feed(.fetched(try document("<Pause/>")))
        line.feed(.dequeued(by: "CA3", whisper))
        // A wrong document of that call is no fault of the caller's.
        let found = line.feed(.fetched(try document("<Hangup/>")))
        guard case .fault(let fault)? = found.first else {
            Issue.record("\(found)")
            return
        }
        #expect(
            fault.description.contains("hello.xml:1: Hangup: is not supported before the caller of a queue is joined"))
        #expect(found.last == .readyToJoin)
    }

    // MARK: Servers

    @Test("A server is asked for the queue's document with place and times, and for the action with the result")
    func server() throws {
        var line = try served(
            "<Enqueue waitUrl=\"wait\" waitUrlMethod=\"GET\" action=\"/after\">q</Enqueue>")
        line.feed(.queued(place(in: line)))
        #expect(
            asked(line)
                == "GET https://flows.example/wait QueueSid=QU1 QueuePosition=2 QueueTime=0 AvgQueueTime=0 "
                + "CurrentQueueSize=3 MaxQueueSize=100")
        line.feed(.received(try page("<Pause length=\"30\"/>", at: "https://flows.example/wait"), number: 2))
        line.advance(by: .seconds(30), firing: .timerFired)
        #expect(asked(line)?.contains("QueuePosition=2 QueueTime=30 AvgQueueTime=30") == true)
        line.feed(.dequeued(by: "CA2", FlowWhisper(.url(try address("https://agents.example/hello")), .get)))
        #expect(asked(line) == "GET https://agents.example/hello QueueSid=QU1 QueueTime=30 DequeueingCallSid=CA2")
        // The answer for the queue's document is late.
        #expect(line.feed(.received(try page("<Say>late</Say>"), number: 3)).isEmpty)
        guard case .request(_, let number)? = line.outputs.last else { return }
        line.feed(.received(try page("<Say>hello</Say>"), number: number))
        line.feed(.soundEnded(1))
        #expect(line.outputs.last == .readyToJoin)
        line.feed(.queueJoined)
        line.feed(.queueEnded(.bridged, .seconds(30)))
        #expect(asked(line) == "POST https://flows.example/after QueueResult=bridged QueueSid=QU1 QueueTime=30")
        var full = try served("<Enqueue action=\"/after\">q</Enqueue>")
        full.feed(.queueEnded(.queueFull, .zero))
        #expect(asked(full) == "POST https://flows.example/after QueueResult=queue-full")
    }

    @Test("A server that fails in a queue is not replaced by the fallback: the caller leaves the queue")
    func serverFails() throws {
        var line = try served("<Enqueue waitUrl=\"wait\">q</Enqueue>")
        line.feed(.queued(place(in: line)))
        line.feed(.requestFailed(FlowUnusable("has answered 500"), number: 2))
        #expect(line.outputs.last == .leaveQueue(.error))
    }

    @Test("The server learns of a caller who hangs up in a queue, or while it is joined")
    func lastRequest() throws {
        var line = try served("<Enqueue action=\"/after\">q</Enqueue>")
        #expect(try call("<Enqueue action=\"a.xml\">q</Enqueue>").core.lastRequest(ofQueueAt: .zero) == nil)
        line.feed(.queued(place(in: line)))
        line.advance(by: .seconds(5), firing: .timerFired)
        func last() -> [String]? {
            line.core.lastRequest(ofQueueAt: line.now)?.request.result.map { "\($0.name)=\($0.value)" }
        }
        #expect(last() == ["QueueResult=hangup", "QueueSid=QU1", "QueueTime=5"])
        line.feed(.dequeued(by: "CA2", nil))
        line.feed(.queueJoined)
        #expect(last()?.first == "QueueResult=bridged")
    }

    // MARK: Trials

    @Test(
        "A trial waits with the result that is chosen",
        arguments: [
            (QueueResult.bridged, ["0 s queued", "10 s taken", "15 s bridged", "bridged 10"]),
            (.queueFull, ["0 s queue-full", "queue-full 0"]),
            (.redirected, ["0 s queued", "10 s redirected", "redirected 10"]),
            (.leave, ["0 s queued", "30 s leave", "leave 30"]),
        ])
    func trial(_ result: QueueResult, _ expected: [String]) throws {
        var trial = FlowTrial(
            first: try file("menu.xml"), values: FlowValues(from: "a", to: "b", callSid: "c"), keys: "",
            queueResult: result)
        let texts = [
            "menu.xml": "<Enqueue waitUrl=\"wait.xml\">q</Enqueue><Say>{{QueueResult}} {{QueueTime}}</Say>",
            "wait.xml": "<Pause length=\"30\"/><Leave/>",
        ]
        var notes: [String] = []
        let end = trial.run(
            document: { name in
                do throws(FlowFaults) {
                    let text = "<Response>\(texts[name.text] ?? "")</Response>"
                    return .success(try FlowDocument(parsing: Array(text.utf8)))
                } catch {
                    return .failure(FlowUnusable(error.description))
                }
            },
            length: { _ in .success(.seconds(1)) },
            note: { time, note in
                switch note {
                case .queued: notes.append("\(time.text) queued")
                case .taken: notes.append("\(time.text) taken")
                case .queueEnded(let result): notes.append("\(time.text) \(result.rawValue)")
                case .output(.play(.speech(let text), _)): notes.append(text)
                case .output, .missing, .length, .key, .connected, .dialEnded, .streamEnded, .recorded: break
                }
            })
        #expect(end == .hungUp)
        #expect(notes == expected)
    }
}
