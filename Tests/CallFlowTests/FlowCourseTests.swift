import CallFlow
import Core
import TestSupport
import Testing

@Suite("The course of a call through a flow")
struct FlowCourseTests {
    private typealias Line = Timeline<FlowCourse>

    private func name(_ text: String) throws -> FlowFileName { try FlowFileName(text) }

    private func document(_ inner: String) throws -> FlowDocument {
        try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8))
    }

    /// A call that has got its first document.
    private func call(_ inner: String, isAnswered: Bool = true) throws -> Line {
        let values = FlowValues(from: "ann", to: "bob", callSid: "call-1")
        var line = Line(FlowCourse(first: try name("menu.xml"), values: values, isAnswered: isAnswered))
        #expect(line.feed(.begin) == [.fetch(try name("menu.xml"))])
        line.feed(.fetched(try document(inner)))
        return line
    }

    /// The last outputs but where the call is in the flow.
    private func outputs(_ line: Line, last count: Int) -> [FlowCourse.Output] {
        line.outputs.filter { if case .reached = $0 { false } else { true } }.suffix(count)
    }

    private func failure(_ line: Line) -> String? {
        if case .fail(let failure)? = line.outputs.last { failure.description } else { nil }
    }

    // MARK: Answering

    @Test("A call is answered before its first sound, and hung up after the last verb")
    func answers() throws {
        var line = try call("<Say>hello {{From}}</Say>", isAnswered: false)
        #expect(line.outputs.last == .answer)
        line.feed(.answered)
        #expect(line.outputs.last == .play(.speech("hello ann"), number: 1))
        #expect(line.feed(.soundEnded(1)).last == .hangUp)
        #expect(line.core.isOver && line.core.nextDeadline == nil)
        #expect(line.feed(.key("1")).isEmpty)
    }

    @Test("Reject as the first verb rejects the call instead of answering it, also after Redirect and Pause")
    func rejects() throws {
        #expect(try call(#"<Reject reason="busy"/>"#, isAnswered: false).outputs.last == .reject(.busy))
        var line = try call("<Pause length=\"2\"/><Redirect>closed.xml</Redirect>", isAnswered: false)
        line.advance(by: .seconds(2), firing: .timerFired)
        #expect(line.outputs.last == .fetch(try name("closed.xml")))
        #expect(line.feed(.fetched(try document("<Reject/>"))).last == .reject(.rejected))
        #expect(failure(try call("<Reject/>"))?.contains("can no longer be rejected") == true)
    }

    @Test(
        "A flow that neither answers nor rejects a call within 30 s has failed; once it answers, the device has the time it needs"
    )
    func answerTime() throws {
        var line = try call("<Pause length=\"31\"/><Hangup/>", isAnswered: false)
        line.advance(by: .milliseconds(29_999), firing: .timerFired)
        #expect(!line.core.isOver)
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(failure(line) == "menu.xml:1: Pause: the call was not answered within 30 s; shorten the Pause")
        var other = try call("<Hangup/>", isAnswered: false)
        other.advance(by: .seconds(60), firing: .timerFired)
        #expect(other.outputs.last == .answer)
        #expect(other.feed(.answered).last == .hangUp)
    }

    @Test("An empty document answers the call and ends it")
    func empty() throws {
        var line = try call("", isAnswered: false)
        #expect(line.outputs.last == .answer)
        #expect(line.feed(.answered).last == .hangUp)
    }

    // MARK: Sounds

    @Test("A sound is played as often as its loop says, one after the other")
    func loops() throws {
        var line = try call(#"<Play loop="3">a.wav</Play><Hangup/>"#)
        for number in 1...3 {
            #expect(line.outputs.last == .play(.file(try name("a.wav")), number: number))
            line.feed(.soundEnded(number))
        }
        #expect(line.outputs.last == .hangUp)
    }

    @Test("The end of another sound changes nothing, and a sound that cannot be played ends the call with its place")
    func sounds() throws {
        var line = try call("<Play>a.wav</Play>")
        #expect(line.feed(.soundEnded(7)).isEmpty)
        line.feed(.soundFailed(1, "there is no such file"))
        #expect(failure(line) == "menu.xml:1: Play: there is no such file")
    }

    @Test("Pause waits for exactly its length")
    func pauses() throws {
        var line = try call("<Pause length=\"3\"/><Hangup/>")
        line.advance(by: .milliseconds(2_999), firing: .timerFired)
        #expect(!line.core.isOver)
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(line.outputs.last == .hangUp)
    }

    // MARK: Gather

    @Test("The last of numDigits keys completes an answer, and the first one stops the prompt")
    func gathersNumber() throws {
        var line = try call(#"<Gather numDigits="2" action="a-{{Digits}}.xml"><Say>menu</Say></Gather>"#)
        #expect(line.outputs.last == .play(.speech("menu"), number: 1))
        #expect(line.feed(.key("4")) == [.stopSound])
        #expect(line.feed(.soundEnded(1)).isEmpty)
        #expect(line.feed(.key("*")) == [.fetch(try name("a-4star.xml"))])
    }

    @Test("finishOnKey completes an answer without being in it; another key, or none, can be given")
    func finishes() throws {
        var line = try call(#"<Gather action="a-{{Digits}}.xml"/>"#)
        line.feed(.key("1"))
        line.feed(.key("2"))
        #expect(line.feed(.key("#")) == [.fetch(try name("a-12.xml"))])
        line = try call(#"<Gather finishOnKey="*" action="a-{{Digits}}.xml"/>"#)
        line.feed(.key("#"))
        #expect(line.feed(.key("*")) == [.fetch(try name("a-pound.xml"))])
        line = try call(#"<Gather finishOnKey="" numDigits="2" action="a-{{Digits}}.xml"/>"#)
        line.feed(.key("#"))
        #expect(line.feed(.key("*")) == [.fetch(try name("a-poundstar.xml"))])
    }

    @Test("An answer without numDigits ends after 64 keys")
    func mostKeys() throws {
        var line = try call(#"<Gather finishOnKey="" action="a.xml"/>"#)
        for _ in 1..<64 { #expect(line.feed(.key("1")).isEmpty) }
        #expect(line.feed(.key("1")) == [.fetch(try name("a.xml"))])
    }

    @Test("The time for a key begins after the prompts, and again with each key")
    func gatherTimes() throws {
        var line = try call(
            #"<Gather timeout="4" action="a-{{Digits}}.xml"><Say>menu</Say><Pause length="2"/></Gather>"#)
        line.advance(by: .seconds(60), firing: .timerFired)
        line.feed(.soundEnded(1))
        line.advance(by: .milliseconds(5_999), firing: .timerFired)
        line.feed(.key("1"))
        line.advance(by: .milliseconds(3_999), firing: .timerFired)
        line.feed(.key("2"))
        line.advance(by: .milliseconds(3_999), firing: .timerFired)
        #expect(outputs(line, last: 1) == [.play(.speech("menu"), number: 1)])
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(line.outputs.last == .fetch(try name("a-12.xml")))
    }

    @Test("Without a key the next verb follows, and with actionOnEmptyResult the action")
    func emptyAnswers() throws {
        var line = try call("<Gather timeout=\"1\" action=\"a.xml\"/><Hangup/>")
        line.advance(by: .seconds(1), firing: .timerFired)
        #expect(line.outputs.last == .hangUp)
        line = try call("<Gather timeout=\"1\" action=\"a{{Digits}}.xml\" actionOnEmptyResult=\"true\"/>")
        line.advance(by: .seconds(1), firing: .timerFired)
        #expect(line.outputs.last == .fetch(try name("a.xml")))
        line = try call("<Gather action=\"a.xml\"/><Hangup/>")
        #expect(line.feed(.key("#")).last == .hangUp)
    }

    @Test("Without an action the document begins again, and knows the keys")
    func currentDocument() throws {
        var line = try call("<Gather numDigits=\"1\"/>")
        #expect(line.feed(.key("7")) == [.fetch(try name("menu.xml"))])
        #expect(
            line.feed(.fetched(try document("<Gather><Say>{{Digits}}</Say></Gather>"))).last
                == .play(.speech("7"), number: 1))
    }

    @Test("Keys outside Gather, the keys A to D and the flash of the hook are no answer")
    func otherKeys() throws {
        var line = try call(#"<Say>a</Say><Gather numDigits="1" action="a-{{Digits}}.xml"/>"#)
        #expect(line.feed(.key("1")).isEmpty)
        line.feed(.soundEnded(1))
        #expect(line.feed(.key("A")).isEmpty && line.feed(.key("!")).isEmpty)
        #expect(line.feed(.key("2")) == [.fetch(try name("a-2.xml"))])
    }

    @Test("Keys that name no document are no answer: the next verb follows; a document that is unusable ends the call")
    func unknownKeys() throws {
        var line = try call(#"<Gather numDigits="1" action="a-{{Digits}}.xml"/><Say>{{Digits}} is no choice</Say>"#)
        line.feed(.key("9"))
        line.feed(.fetchFailed(FlowUnusable("there is no such file", isMissing: true)))
        #expect(line.outputs.last == .play(.speech("9 is no choice"), number: 1))
        line = try call(#"<Gather numDigits="1" action="a-{{Digits}}.xml"/><Hangup/>"#)
        line.feed(.key("9"))
        line.feed(.fetchFailed(FlowUnusable("line 1: Dial: is not supported")))
        #expect(failure(line) == "a-9.xml: line 1: Dial: is not supported")
    }

    // MARK: Record

    @Test("A recording begins after the tone, and ends with silence, which begins when the caller has spoken")
    func records() throws {
        var line = try call("<Record timeout=\"3\" action=\"thanks.xml\"/>")
        #expect(line.outputs.last == .play(.beep, number: 1))
        #expect(line.feed(.soundEnded(1)) == [.record(trims: true)])
        line.advance(by: .milliseconds(2_900), firing: .timerFired)
        line.feed(.speech(isOver: false))
        line.advance(by: .seconds(100), firing: .timerFired)
        line.feed(.speech(isOver: true))
        line.advance(by: .milliseconds(2_999), firing: .timerFired)
        #expect(line.outputs.last == .record(trims: true))
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(line.outputs.last == .stopRecording)
        #expect(
            line.feed(.recorded(FlowRecording(url: "file:///a.wav", duration: .seconds(3)))) == [
                .fetch(try name("thanks.xml"))
            ])
    }

    @Test("A recording ends after maxLength, also while the caller speaks")
    func recordsLongest() throws {
        var line = try call(#"<Record playBeep="false" maxLength="10" trim="do-not-trim"/>"#)
        #expect(line.outputs.last == .record(trims: false))
        line.feed(.speech(isOver: false))
        line.advance(by: .milliseconds(9_999), firing: .timerFired)
        #expect(line.outputs.last == .record(trims: false))
        line.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(line.outputs.last == .stopRecording)
        #expect(
            line.feed(.recorded(FlowRecording(url: "file:///a.wav", duration: .seconds(3)))) == [
                .fetch(try name("menu.xml"))
            ])
    }

    @Test("A caller who speaks already when the recording begins is not silent")
    func recordsSpeaker() throws {
        var line = try call(#"<Record timeout="1"/>"#)
        line.feed(.speech(isOver: false))
        line.feed(.soundEnded(1))
        line.advance(by: .seconds(20), firing: .timerFired)
        #expect(line.outputs.last == .record(trims: true))
    }

    @Test("A key of finishOnKey ends a recording and is its Digits; without speech the next verb follows")
    func recordKeys() throws {
        var line = try call(##"<Record playBeep="false" finishOnKey="#" action="a-{{Digits}}.xml"/><Hangup/>"##)
        #expect(line.feed(.key("1")).isEmpty)
        #expect(line.feed(.key("#")) == [.stopRecording])
        #expect(
            line.feed(.recorded(FlowRecording(url: "file:///a.wav", duration: .seconds(3)))) == [
                .fetch(try name("a-pound.xml"))
            ])
        line = try call(#"<Record playBeep="false" action="a.xml"/><Hangup/>"#)
        line.advance(by: .seconds(5), firing: .timerFired)
        #expect(line.feed(.recorded(nil)).last == .hangUp)
    }

    @Test("A recording that fails, or is not saved within 10 s, ends the call")
    func recordFails() throws {
        var line = try call(#"<Record playBeep="false"/>"#)
        line.feed(.recordingFailed("the disk is full"))
        #expect(failure(line) == "menu.xml:1: Record: the disk is full")
        line = try call(#"<Record playBeep="false"/>"#)
        line.feed(.key("1"))
        line.advance(by: .seconds(10), firing: .timerFired)
        #expect(failure(line) == "menu.xml:1: Record: the recording was not saved within 10 s")
    }

    // MARK: Documents

    @Test("A document that is missing, or not read within 10 s, ends the call with its name")
    func missing() throws {
        var line = try call("<Redirect>b.xml</Redirect>")
        line.feed(.fetchFailed(FlowUnusable("there is no such file", isMissing: true)))
        #expect(failure(line) == "b.xml: there is no such file")
        line = try call("<Redirect>b.xml</Redirect>")
        line.advance(by: .seconds(10), firing: .timerFired)
        #expect(failure(line) == "b.xml: was not read within 10 s")
    }

    @Test(
        "The fifty-first document without a key in between ends a flow that goes round in circles, and a key begins the count again"
    )
    func circles() throws {
        var line = try call("<Redirect>menu.xml</Redirect>")
        let again = try document("<Redirect>menu.xml</Redirect>")
        for _ in 2..<50 { line.feed(.fetched(again)) }
        #expect(!line.core.isOver)
        line.feed(.fetched(again))
        #expect(failure(line)?.contains("the flow has read 50 documents and no key was pressed") == true)
        #expect(line.outputs.count { if case .fetch = $0 { true } else { false } } == 50)

        line = try call("<Redirect>menu.xml</Redirect>")
        for _ in 2..<50 { line.feed(.fetched(again)) }
        line.feed(.key("1"))
        for _ in 0..<49 { line.feed(.fetched(again)) }
        #expect(!line.core.isOver)
    }
}
