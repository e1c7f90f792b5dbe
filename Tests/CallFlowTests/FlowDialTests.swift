import CallFlow
import Core
import TestSupport
import Testing

@Suite("Dial in call flows")
struct FlowDialTests {
    private typealias Line = Timeline<FlowCourse>

    private func document(_ inner: String) throws -> FlowDocument {
        try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8))
    }

    private func call(_ inner: String, isAnswered: Bool = true, isAsking: Bool = false) throws -> Line {
        let values = FlowValues(from: "ann", to: "desk", callSid: "c")
        var line = Line(
            FlowCourse(
                first: try FlowFileName("menu.xml"), values: values, isAnswered: isAnswered, isAsking: isAsking))
        line.feed(.begin)
        line.feed(.fetched(try document(inner)))
        return line
    }

    private func order(_ line: Line) -> FlowDialOrder? {
        line.outputs.lazy.compactMap { if case .dial(let order) = $0 { order } else { nil } }.last
    }

    private func outputs(_ line: Line, last count: Int) -> [FlowCourse.Output] {
        line.outputs.filter { if case .reached = $0 { false } else { true } }.suffix(count)
    }

    private func faults(_ inner: String) -> String {
        do throws(FlowFaults) {
            _ = try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8))
            return ""
        } catch {
            return error.description
        }
    }

    @Test("Callees of every kind are called at once, while the caller hears the ringing tone again and again")
    func callees() throws {
        var line = try call(
            """
            <Dial timeout="20"><Number>+49 (30) 123-45</Number><Client>bob</Client><Sip>sip:{{Digits}}7@example.org</Sip></Dial>
            """)
        #expect(
            order(line)
                == FlowDialOrder(
                    .callees(["+493012345", "bob", "sip:7@example.org"], asking: nil), timeout: .seconds(20)))
        #expect(line.outputs.last == .play(.ringBack, number: 1))
        #expect(line.feed(.soundEnded(1)) == [.play(.ringBack, number: 2)])
        #expect(line.feed(.calleeAnswered) == [.stopSound, .connect])
        #expect(line.core.nextDeadline == nil)
    }

    @Test("A name in Dial itself stays as it is, and a number loses what makes it easier to read")
    func names() throws {
        for (text, name) in [("bob-smith", "bob-smith"), ("+49 (30) 1-2/3", "+4930123"), ("{{From}}-1", "ann-1")] {
            #expect(order(try call("<Dial>\(text)</Dial>"))?.destination == .callees([name], asking: nil))
        }
    }

    @Test("Behind the dialled call the next verb follows, or the action with status and duration")
    func action() throws {
        var line = try call("<Dial>bob</Dial><Say>{{DialCallStatus}} after {{DialCallDuration}}</Say>")
        line.feed(.calleeAnswered)
        line.feed(.dialEnded(.completed, .milliseconds(61_900)))
        #expect(line.outputs.last == .play(.speech("completed after 61"), number: 2))
        line = try call("<Dial action=\"after-{{DialCallStatus}}.xml\">bob</Dial>")
        #expect(
            line.feed(.dialEnded(.noAnswer, .zero)) == [.stopSound, .fetch(try FlowFileName("after-no-answer.xml"))])
        // A result without a document is no fault: the next verb follows.
        line.feed(.fetchFailed(FlowUnusable("there is none", isMissing: true)))
        #expect(line.outputs.last == .hangUp)
    }

    @Test("A flow learns how a hand-over of its call has ended, and continues where it was")
    func handover() throws {
        var line = try call("<Pause length=\"5\"/><Say>{{HandoverStatus}}</Say>")
        #expect(line.feed(.handoverEnded("busy")).isEmpty)
        line.advance(by: .seconds(5), firing: .timerFired)
        #expect(line.outputs.last == .play(.speech("busy"), number: 1))
        // Without one it is empty, and an action of that name need not exist.
        line = try call("<Gather numDigits=\"1\" action=\"after-{{HandoverStatus}}.xml\"/><Say>on</Say>")
        #expect(line.feed(.key("1")) == [.fetch(try FlowFileName("after-.xml"))])
        line.feed(.fetchFailed(FlowUnusable("there is none", isMissing: true)))
        #expect(line.outputs.last == .play(.speech("on"), number: 1))
    }

    @Test("At its timeout Dial gives up, and waits for the end that is reported")
    func timeout() throws {
        var line = try call("<Dial timeout=\"5\">bob</Dial><Say>gone</Say>")
        line.advance(by: .seconds(5), firing: .timerFired)
        #expect(outputs(line, last: 2) == [.stopSound, .stopDialling(isTimeout: true)])
        #expect(line.core.nextDeadline == nil && line.feed(.calleeAnswered).isEmpty)
        #expect(line.feed(.dialEnded(.noAnswer, .zero)).last == .play(.speech("gone"), number: 2))
    }

    @Test("A callee that is asked has a minute, also if it answers late")
    func asking() throws {
        var line = try call("<Dial timeout=\"5\"><Client url=\"ask.xml\">bob</Client></Dial>")
        #expect(order(line)?.destination == .callees(["bob"], asking: .file(try FlowFileName("ask.xml"))))
        line.advance(by: .seconds(4), firing: .timerFired)
        #expect(line.feed(.calleeAsked).isEmpty)
        line.advance(by: .seconds(59), firing: .timerFired)
        #expect(line.feed(.calleeAnswered) == [.stopSound, .connect])
    }

    @Test("The callee that is asked accepts at the end of its document, declines with Hangup, and cannot dial")
    func accepts() throws {
        var line = try call("<Say>{{From}}</Say>", isAsking: true)
        #expect(line.feed(.soundEnded(1)) == [.accept])
        #expect(line.core.isOver)
        #expect(try call("<Hangup/>", isAsking: true).outputs.last == .hangUp)
        guard case .fail(let failure)? = try call("<Dial>bob</Dial>", isAsking: true).outputs.last else {
            Issue.record("dialled")
            return
        }
        #expect(
            failure.description
                == "menu.xml:1: Dial: a callee that is asked cannot be connected with another one; remove Dial")
    }

    @Test("The caller ends the connection with * only if hangupOnStar says so, and timeLimit ends it by itself")
    func limits() throws {
        var line = try call("<Dial hangupOnStar=\"true\">bob</Dial>")
        line.feed(.calleeAnswered)
        #expect(line.feed(.key("1")).isEmpty)
        #expect(line.feed(.key("*")) == [.stopDialling(isTimeout: false)])
        line = try call("<Dial timeLimit=\"60\">bob</Dial>")
        line.feed(.calleeAnswered)
        #expect(line.feed(.key("*")).isEmpty)
        line.advance(by: .seconds(60), firing: .timerFired)
        #expect(line.outputs.last == .stopDialling(isTimeout: false))
    }

    @Test(
        "With answerOnBridge the caller is answered when a callee is there, hears no tone of the flow, and is connected once it hears"
    )
    func answersOnBridge() throws {
        var line = try call("<Dial answerOnBridge=\"true\">bob</Dial>", isAnswered: false)
        #expect(order(line)?.timeout == .seconds(25))
        #expect(outputs(line, last: 1).first.map { if case .dial = $0 { true } else { false } } == true)
        #expect(line.feed(.calleeAnswered) == [.answer])
        line.advance(by: .seconds(60), firing: .timerFired)
        #expect(!line.core.isOver)
        #expect(line.feed(.answered) == [.connect])
        line = try call("<Dial answerOnBridge=\"true\">bob</Dial>", isAnswered: false)
        #expect(line.feed(.dialEnded(.busy, .zero)).last == .answer)
    }

    @Test("Conference is a room with its limit, which answers the caller and plays no ringing tone")
    func room() throws {
        var line = try call("<Dial><Conference maxParticipants=\"5\" beep=\"false\">team</Conference></Dial>")
        #expect(order(line)?.destination == .room("team", mostMembers: 5, hasTones: false))
        #expect(line.feed(.calleeAnswered).last == .connect)
    }

    @Test("What Dial does not support is refused, with what it does")
    func refuses() {
        let known = "supported are action, answerOnBridge, hangupOnStar, timeLimit, timeout"
        #expect(
            faults("<Dial callerId=\"+1\">bob</Dial>")
                == "line 1: Dial: the attribute callerId is not supported; \(known)")
        #expect(faults("<Dial/>") == "line 1: Dial: names no one to connect with")
        #expect(
            faults("<Dial><Sim>q</Sim></Dial>").hasPrefix(
                "line 1: Sim: is not supported within Dial; supported there are Client, Conference, Number, Queue, Sip")
        )
        #expect(faults("<Dial>1<Number>2</Number></Dial>").contains("beside Number; put it into a Number"))
        #expect(faults("<Dial><Conference>a</Conference><Number>2</Number></Dial>").contains("one room at a time"))
        #expect(
            faults("<Dial answerOnBridge=\"true\" timeout=\"26\">b</Dial>").contains(
                "timeout must be a whole number from 1 to 25"))
        #expect(
            faults("<Dial answerOnBridge=\"true\"><Conference>a</Conference></Dial>").contains(
                "not supported with Conference"))
        #expect(
            faults("<Dial><Client url=\"a.xml\">b</Client><Client>c</Client></Dial>").contains("different url"))
        let many = String(repeating: "<Client>b</Client>", count: FlowDial.mostCallees)
        #expect(faults("<Dial>\(many)</Dial>") == "")
        #expect(faults("<Dial>\(many)<Client>b</Client></Dial>").contains("has 11 callees; at most 10 are supported"))
    }

    @Test("A trial dials with the result that is chosen", arguments: DialStatus.allCases)
    func trial(_ status: DialStatus) throws {
        let text = "<Dial timeout=\"10\" timeLimit=\"3\" action=\"end.xml\">bob</Dial>"
        var trial = FlowTrial(
            first: try FlowFileName("menu.xml"), values: FlowValues(from: "a", to: "b", callSid: "c"), keys: "",
            dialResult: status)
        var notes: [String] = []
        let end = trial.run(
            document: { name in
                do throws(FlowFaults) {
                    let inner = name.text == "menu.xml" ? text : "<Say>{{DialCallStatus}} {{DialCallDuration}}</Say>"
                    return .success(try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8)))
                } catch {
                    return .failure(FlowUnusable(error.description))
                }
            },
            length: { _ in .success(.seconds(1)) },
            note: { time, note in
                switch note {
                case .connected: notes.append("\(time.text) connected")
                case .dialEnded(let status): notes.append("\(time.text) \(status.rawValue)")
                case .output(.play(.speech(let text), _)): notes.append(text)
                case .output, .missing, .length, .key, .queued, .taken, .queueEnded, .streamEnded, .recorded: break
                }
            })
        let expected: [String] =
            switch status {
            case .completed: ["2 s connected", "5 s completed", "completed 3"]
            case .busy: ["2 s busy", "busy 0"]
            case .failed: ["0 s failed", "failed 0"]
            case .noAnswer, .canceled: ["10 s no-answer", "no-answer 0"]
            }
        #expect(end == .hungUp && notes == expected, "\(notes)")
    }
}
