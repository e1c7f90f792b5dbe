import BotWire
import CallFlow
import Core
import TestSupport
import Testing

@Suite("The course of a call through a flow of a server")
struct FlowServerTests {
    private typealias Line = Timeline<FlowCourse>

    private static let first = "https://flows.example/menu/main?shop=1"

    private func address(_ text: String = first) throws -> WebAddress {
        try #require(WebAddress(text, WebAddress.Scheme.requests))
    }

    private func page(_ inner: String, at text: String = first) throws -> FlowPage {
        let address = try address(text)
        return FlowPage(
            try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8), from: address), at: address)
    }

    private func call(
        _ inner: String, fallback: String? = nil, method: Webhook.Method = .post, isAnswered: Bool = true
    ) throws -> Line {
        let server = FlowServer(
            first: Webhook(try address(), method), fallback: try fallback.map { Webhook(try address($0)) })
        let values = FlowValues(from: "+49 30", to: "bob", callSid: "CA1")
        var line = Line(FlowCourse(asking: server, values: values, isAnswered: isAnswered))
        #expect(
            line.feed(.begin) == [
                .request(FlowRequest(Webhook(try address(), method), isAnswered: isAnswered), number: 1)
            ])
        line.feed(.received(try page(inner), number: 1))
        return line
    }

    /// What the last output asks the server, as text.
    private func asked(_ line: Line) -> String? {
        guard case .request(let request, _)? = line.outputs.last else { return nil }
        let fields = request.result.map { " \($0.name)=\($0.value)" }.joined()
        return "\(request.webhook.method.rawValue) \(request.webhook.address.text)\(fields)"
    }

    private func failure(_ line: Line) -> String? {
        if case .fail(let failure)? = line.outputs.last { failure.description } else { nil }
    }

    // MARK: Requests

    @Test("A reference is resolved against the document that has it, after redirections of HTTP, too")
    func references() throws {
        let cases = [
            ("next", "https://flows.example/menu/next"), ("../end?a=1", "https://flows.example/end?a=1"),
            ("/top", "https://flows.example/top"), ("?shop=2", "https://flows.example/menu/main?shop=2"),
            ("//other.example/x", "https://other.example/x"), ("http://other.example", "http://other.example"),
            ("a?from={{From}}", "https://flows.example/menu/a?from=%2B49%2030"),
        ]
        for (reference, target) in cases {
            #expect(asked(try call("<Redirect>\(reference)</Redirect>")) == "POST \(target)")
        }
        var line = try call("<Redirect method=\"GET\">a/b</Redirect>")
        #expect(asked(line) == "GET https://flows.example/menu/a/b")
        line.feed(.received(try page("<Redirect>c</Redirect>", at: "https://flows.example/moved/here"), number: 2))
        #expect(asked(line) == "POST https://flows.example/moved/c")
    }

    @Test("Keys are sent to the action; without one, the current document's URL is asked again, with its query")
    func gathers() throws {
        var line = try call("<Gather numDigits=\"1\" action=\"choice\" method=\"GET\"/>", isAnswered: false)
        line.feed(.answered)
        line.feed(.key("*"))
        #expect(asked(line) == "GET https://flows.example/menu/choice Digits=*")
        line = try call("<Gather/>")
        line.feed(.key("4"))
        line.feed(.key("2"))
        line.feed(.key("#"))
        #expect(asked(line) == "POST \(Self.first) Digits=42")
        line = try call("<Gather timeout=\"1\"/><Redirect>none</Redirect>")
        line.advance(by: .seconds(1), firing: .timerFired)
        #expect(asked(line) == "POST https://flows.example/menu/none")
    }

    @Test("A recording is sent to the action with its length and the key that ended it; an empty one is not")
    func records() throws {
        var line = try call("<Record playBeep=\"false\" action=\"/kept\"/><Redirect>nothing</Redirect>")
        line.feed(.speech(isOver: false))
        line.feed(.key("5"))
        line.feed(.recorded(FlowRecording(url: "file:///m/a.wav", duration: .milliseconds(3_900))))
        #expect(
            asked(line)
                == "POST https://flows.example/kept RecordingUrl=file:///m/a.wav RecordingDuration=3 Digits=5")
        line = try call("<Record playBeep=\"false\"/><Redirect>nothing</Redirect>")
        line.advance(by: .seconds(5), firing: .timerFired)
        line.feed(.recorded(nil))
        #expect(asked(line) == "POST https://flows.example/menu/nothing")
    }

    @Test("A caller who hangs up ends a recording, of which the action is asked; without a recording nothing is")
    func hangsUp() throws {
        let kept = FlowRecording(url: "file:///m/a.wav", duration: .milliseconds(3_900))
        let fields = [("RecordingUrl", "file:///m/a.wav"), ("RecordingDuration", "3"), ("Digits", "hangup")]
            .map { FormFields.Field($0.0, $0.1) }
        var line = try call("<Record playBeep=\"false\" action=\"/kept\" method=\"GET\"/>")
        line.feed(.speech(isOver: false))
        let last = try #require(line.core.lastRequest(of: kept))
        #expect(
            last.request
                == FlowRequest(
                    Webhook(try address("https://flows.example/kept"), .get), isAnswered: true, result: fields))
        #expect(last.number == 2)
        line.feed(.key("5"))
        #expect(line.core.lastRequest(of: kept)?.request == last.request, "it is being saved")
        #expect(
            try call("<Record playBeep=\"false\"/>").core.lastRequest(of: kept)?.request.webhook.address == address())
        #expect(try call("<Gather/>").core.lastRequest(of: kept) == nil)
    }

    @Test("How a dialled call ended is sent to the action; without one, the next verb follows")
    func dials() throws {
        var line = try call("<Dial action=\"after\"><Client url=\"ask\">ann</Client></Dial>")
        let asked = try address("https://flows.example/menu/ask")
        let order = FlowDialOrder(.callees(["ann"], asking: .url(asked)), timeout: .seconds(30))
        #expect(line.outputs.contains(.dial(order)))
        line.feed(.dialEnded(.busy, .zero))
        #expect(
            self.asked(line) == "POST https://flows.example/menu/after DialCallStatus=busy DialCallDuration=0")
        line = try call("<Dial>ann</Dial><Hangup/>")
        line.feed(.dialEnded(.completed, .seconds(3)))
        #expect(line.outputs.last == .hangUp)
    }

    @Test("Sounds are URLs, and are resolved as documents are")
    func sounds() throws {
        let line = try call("<Play>sounds/a.wav</Play>")
        #expect(line.outputs.last == .play(.url(try address("https://flows.example/menu/sounds/a.wav")), number: 1))
    }

    @Test("A document of a server is refused for a URL that none can ask, without its user, password or query")
    func refusesURLs() throws {
        for reference in ["ftp://a/", "https://user:secret@a/x", "a b", "javascript:x"] {
            do {
                _ = try page("<Redirect>\(reference)</Redirect>")
                Issue.record("\(reference) is taken")
            } catch let faults as FlowFaults {
                let text = faults.description
                #expect(text.hasPrefix("line 1: Redirect: ") && !text.contains("secret"), "\(text)")
            }
        }
        #expect(throws: FlowFaults.self) { try page("<Gather method=\"PUT\"/>") }
        #expect(throws: FlowFaults.self) {
            try FlowDocument(parsing: Array("<Response><Gather method=\"GET\"/></Response>".utf8))
        }
    }

    @Test("Placeholders change neither the host nor the path of a URL")
    func hostileValues() throws {
        guard
            case .redirect(let text, _)? = try page("<Redirect>https://a.example/{{From}}?d={{Digits}}</Redirect>")
                .document.steps.first?.verb
        else { throw FlowUnusable("no redirect") }
        var values = FlowValues(from: "../@evil.example/#", to: "b", callSid: "c")
        values.digits = "*#"
        #expect(
            try text.address(values, from: address()).text
                == "https://a.example/..%2F%40evil.example%2F%23?d=%2A%23")
    }

    // MARK: Faults

    @Test(
        "A server that fails is replaced by the fallback once, which learns of the fault; then the call ends with both causes"
    )
    func fallsBack() throws {
        var line = try call("<Redirect>next?key=secret</Redirect>", fallback: "https://spare.example/flow")
        let outputs = line.feed(.requestFailed(FlowUnusable("answers with status 500"), number: 2))
        guard case .fellBack(let fault)? = outputs.first else { throw FlowUnusable("no fallback") }
        #expect(fault.description == "https://flows.example/menu/next: answers with status 500")
        #expect(
            asked(line)
                == "POST https://spare.example/flow ErrorCode=11200 ErrorUrl=https://flows.example/menu/next")
        line.feed(.received(try page("<Redirect>again</Redirect>", at: "https://spare.example/flow"), number: 3))
        line.feed(.requestFailed(FlowUnusable("is no call flow"), number: 4))
        #expect(
            failure(line)
                == "https://spare.example/again: is no call flow; the fallback was asked because "
                + "https://flows.example/menu/next: answers with status 500")
        #expect(line.core.isOver && line.core.nextDeadline == nil)
    }

    @Test("Without a fallback the call ends, and so it does if nothing is ever answered")
    func fails() throws {
        var line = try call("<Redirect>next</Redirect>")
        line.feed(.requestFailed(FlowUnusable("answers with status 404"), number: 2))
        #expect(failure(line) == "https://flows.example/menu/next: answers with status 404")
        line = try call("<Redirect>next</Redirect>", fallback: "https://spare.example/")
        line.advance(by: .seconds(24), firing: .timerFired)
        #expect(failure(line)?.hasPrefix("https://spare.example/: was not answered within 12 s") == true)
    }

    @Test("An answer that comes after its request was given up changes nothing")
    func late() throws {
        var line = try call("<Redirect>next</Redirect>", fallback: "https://spare.example/")
        line.advance(by: .seconds(12), firing: .timerFired)
        #expect(line.feed(.received(try page("<Hangup/>"), number: 2)).isEmpty)
        #expect(line.feed(.requestFailed(FlowUnusable("closed"), number: 2)).isEmpty)
        #expect(line.feed(.received(try page("<Hangup/>"), number: 3)).last == .hangUp)
    }

    @Test(
        "A flow that a server sends round in circles ends, with verbs that take no time soon, and with others at last")
    func circles() throws {
        var line = try call("<Redirect>a</Redirect>")
        var number = 2
        while !line.core.isOver {
            line.feed(.received(try page("<Redirect>a</Redirect>"), number: number))
            number += 1
        }
        #expect(number == FlowCourse.mostIdleRequests + 1 && failure(line)?.contains("round in circles") == true)
        line = try call("<Pause/><Redirect>a</Redirect>")
        number = 2
        while !line.core.isOver {
            line.advance(by: .seconds(1), firing: .timerFired)
            line.feed(.received(try page("<Pause/><Redirect>a</Redirect>"), number: number))
            number += 1
        }
        #expect(number == FlowCourse.mostRequests + 2 && failure(line)?.contains("1000 times, the limit") == true)
    }

    @Test("A call dials 50 times at most, in one document or in many")
    func mostDials() throws {
        var line = try call(String(repeating: "<Dial>ann</Dial>", count: FlowCourse.mostDials + 1))
        for _ in 1...FlowCourse.mostDials {
            #expect(!line.core.isOver)
            line.feed(.dialEnded(.failed, .zero))
        }
        #expect(failure(line)?.hasSuffix("Dial: the call has dialled 50 times, the limit") == true)
    }

    @Test("A trial walks through a server's flow, and prints what it asks")
    func trial() throws {
        let server = FlowServer(first: Webhook(try address()))
        let values = FlowValues(from: "ann", to: "bob", callSid: "CA1")
        var trial = FlowTrial(asking: server, values: values, keys: "7")
        var requests: [FlowRequest] = []
        let menu = try page("<Gather numDigits=\"1\" action=\"choice\"/>")
        let end = try page("<Hangup/>", at: "https://flows.example/menu/choice")
        let ended = trial.run(
            document: { _ in .failure(FlowUnusable("there is no folder")) },
            page: { request in
                requests.append(request)
                return .success(requests.count == 1 ? menu : end)
            }, length: { _ in .success(.seconds(1)) }, note: { _, _ in })
        #expect(ended == .hungUp && requests.map(\.isAnswered) == [false, true])
        #expect(requests.last?.result == [FormFields.Field("Digits", "7")])
    }
}
