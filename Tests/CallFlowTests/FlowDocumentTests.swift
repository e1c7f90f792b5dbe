import CallFlow
import Testing

@Suite("Documents of call flows")
struct FlowDocumentTests {
    private func document(_ inner: String) throws -> FlowDocument {
        try FlowDocument(parsing: Array("<Response>\(inner)</Response>".utf8))
    }

    private func faults(_ inner: String) -> [String] {
        let error = #expect(throws: FlowFaults.self) { try document(inner) }
        return error?.faults.map(\.description) ?? []
    }

    private func verb(_ inner: String) throws -> FlowVerb { try #require(try document(inner).steps.first).verb }

    @Test("Every verb is read, with its line")
    func reads() throws {
        let document = try document(
            """

            <Say>Good   morning.
              Welcome.</Say>
            <Play loop="0">hold/music.wav</Play>
            <Pause/>
            <Gather/>
            <Record/>
            <Redirect>next.xml</Redirect>
            <Hangup/>
            """)
        #expect(document.steps.map(\.line) == [2, 4, 5, 6, 7, 8, 9])
        #expect(document.steps.map(\.verb.name) == ["Say", "Play", "Pause", "Gather", "Record", "Redirect", "Hangup"])
        guard case .say(let text, times: 1) = document.steps[0].verb,
            case .play(let file, times: 1_000) = document.steps[1].verb,
            case .pause(.seconds(1)) = document.steps[2].verb, case .gather(let gather) = document.steps[3].verb,
            case .record(let record) = document.steps[4].verb
        else { throw FlowUnusable("other verbs") }
        #expect(text.source == "Good morning. Welcome." && file.source == "hold/music.wav")
        #expect(gather.keys == 64 && gather.finishKey == "#" && gather.timeout == .seconds(5))
        #expect(gather.action == nil && !gather.actsOnEmptyResult && gather.prompts.isEmpty)
        #expect(record.longest == .seconds(3_600) && record.timeout == .seconds(5) && record.finishKeys.count == 12)
        #expect(record.beeps && record.trims && record.action == nil)
        #expect(try verb("<Reject/>") == .reject(.rejected))
        #expect(try verb(#"<Reject reason="busy"/>"#) == .reject(.busy))
    }

    @Test("Attributes are taken up to their limits")
    func attributes() throws {
        guard
            case .gather(let gather) = try verb(
                """
                <Gather input="dtmf" numDigits="64" finishOnKey="" timeout="600" action="a-{{Digits}}.xml" actionOnEmptyResult="true">
                <Say>a</Say><Play>b.wav</Play><Pause length="3600"/></Gather>
                """),
            case .record(let record) = try verb(
                """
                <Record maxLength="14400" timeout="60" finishOnKey="" playBeep="false" trim="do-not-trim" action="done.xml"/>
                """)
        else { throw FlowUnusable("other verbs") }
        #expect(
            gather.keys == 64 && gather.finishKey == nil && gather.timeout == .seconds(600) && gather.actsOnEmptyResult)
        #expect(
            gather.action?.source == "a-{{Digits}}.xml" && gather.prompts.map(\.verb.name) == ["Say", "Play", "Pause"])
        #expect(record.longest == .seconds(14_400) && record.timeout == .seconds(60) && record.finishKeys.isEmpty)
        #expect(!record.beeps && !record.trims && record.action?.source == "done.xml")
        #expect(try verb(#"<Say loop="1000">a</Say>"#) == verb(#"<Say loop="0">a</Say>"#))
        #expect(try verb(#"<Pause length="1"/>"#) == .pause(.seconds(1)))
    }

    @Test(
        "What a call would not do is refused, with the line, the element and what is supported",
        arguments: [
            (
                "<Refer>5</Refer>",
                "line 1: Refer: is not supported; supported are Connect, Dial, Enqueue, Gather, Hangup, Leave, Pause, Play, Record, Redirect, Reject, Say, Start, Stop"
            ),
            ("<say>a</say>", "line 1: say: is not supported: names are case-sensitive. Did you mean Say?"),
            (
                "\n<Gather><Gather/></Gather>",
                "line 2: Gather: is not supported within Gather; supported there are Pause, Play, Say"
            ),
            ("<Say voice=\"alice\">a</Say>", "line 1: Say: the attribute voice is not supported; supported are loop"),
            ("<Hangup now=\"1\"/>", "line 1: Hangup: the attribute now is not supported; it has none"),
            ("<Say>a <b>c</b></Say>", "line 1: b: is not supported within Say, which has no elements in it"),
            ("<Say> </Say>", "line 1: Say: has no text to say"),
            ("<Pause>5</Pause>", "line 1: Pause: has text, \"5\", and takes none"),
            ("hello", "line 1: Response: has text, \"hello\", and takes none"),
            ("<Pause length=\"0\"/>", "line 1: Pause: length must be a whole number from 1 to 3600, not \"0\""),
            ("<Pause length=\"3601\"/>", "line 1: Pause: length must be a whole number from 1 to 3600, not \"3601\""),
            ("<Say loop=\"1001\">a</Say>", "line 1: Say: loop must be a whole number from 0 to 1000, not \"1001\""),
            ("<Say loop=\"\">a</Say>", "line 1: Say: loop must be a whole number from 0 to 1000, not \"\""),
            ("<Gather numDigits=\"65\"/>", "line 1: Gather: numDigits must be a whole number from 1 to 64, not \"65\""),
            ("<Gather timeout=\"+5\"/>", "line 1: Gather: timeout must be a whole number from 1 to 600, not \"+5\""),
            ("<Gather timeout=\"601\"/>", "line 1: Gather: timeout must be a whole number from 1 to 600, not \"601\""),
            ("<Gather input=\"speech\"/>", "line 1: Gather: input is \"speech\", and only dtmf is supported"),
            (
                "<Gather finishOnKey=\"12\"/>",
                "line 1: Gather: finishOnKey must be one of 0-9, * and #, or empty, not \"12\""
            ),
            (
                "<Gather actionOnEmptyResult=\"yes\"/>",
                "line 1: Gather: actionOnEmptyResult must be true or false, not \"yes\""
            ),
            (
                "<Record finishOnKey=\"A\"/>",
                "line 1: Record: finishOnKey must be made of 0-9, * and #, or be empty, not \"A\""
            ),
            (
                "<Record maxLength=\"14401\"/>",
                "line 1: Record: maxLength must be a whole number from 1 to 14400, not \"14401\""
            ),
            ("<Record timeout=\"61\"/>", "line 1: Record: timeout must be a whole number from 1 to 60, not \"61\""),
            ("<Record trim=\"no\"/>", "line 1: Record: trim must be trim-silence or do-not-trim, not \"no\""),
            ("<Reject reason=\"no\"/>", "line 1: Reject: reason must be rejected or busy, not \"no\""),
            (
                "<Pause/><Reject/>",
                "line 1: Reject: must be the first verb, because a call that is answered cannot be rejected; use Hangup here"
            ),
            ("<Redirect/>", "line 1: Redirect: names no file"),
            (
                "<Say>{{Name}}</Say>",
                "line 1: Say: has {{Name}}, which is unknown; there are {{Digits}}, {{From}}, {{To}}, {{CallSid}}, {{DialCallStatus}}, {{DialCallDuration}}, {{HandoverStatus}}, {{StreamEvent}}, {{QueueResult}}, {{QueueSid}}, {{QueuePosition}}, {{QueueTime}}, {{AvgQueueTime}}, {{CurrentQueueSize}}, {{MaxQueueSize}}"
            ),
            ("<Say>{{Digits</Say>", "line 1: Say: has \"{{\" without \"}}\""),
        ])
    func refuses(inner: String, message: String) { #expect(faults(inner) == [message]) }

    @Test(
        "A name of a file that could lead out of the flow's folder is refused, and so is a URL",
        arguments: [
            "/etc/passwd", "../a.wav", "a/../b.wav", "./a.wav", ".hidden", "a//b", "a/", "https://example.org/a.wav",
            "{{From}}/../a.wav", String(repeating: "a", count: 256), "a&#10;b",
        ])
    func refusesNames(name: String) {
        #expect(faults("<Play>\(name)</Play>").count == 1)
        #expect(faults("<Gather action=\"\(name)\"/>").count == 1)
    }

    @Test("All faults of a document are reported, in its order")
    func reportsAll() {
        let found = faults("<Dial/>\n<Say/>\n<Gather><Sms/><Play/></Gather>")
        #expect(
            found.map { String($0.prefix(13)) } == ["line 1: Dial:", "line 2: Say: ", "line 3: Sms: ", "line 3: Play:"])
    }

    @Test("What is no XML, has a document type, or is too large or too deep is refused")
    func refusesOtherTexts() throws {
        func refuses(_ text: String) -> String {
            (#expect(throws: FlowFaults.self) { try FlowDocument(parsing: Array(text.utf8)) })?.description ?? ""
        }
        #expect(refuses("<Response><Say>a</Response>").hasPrefix("the text is not XML: "))
        #expect(refuses("<!DOCTYPE r [<!ENTITY a 'b'>]><Response/>").contains("document type"))
        #expect(refuses("<Menu/>") == "line 1: Menu: is no call flow: the root of one is Response")
        #expect(refuses(String(repeating: "<Response>", count: 9)).contains("nested at most 8 deep"))
        let filler = String(repeating: " ", count: FlowDocument.longest - "<Response></Response>".utf8.count)
        _ = try FlowDocument(parsing: Array("<Response>\(filler)</Response>".utf8))
        #expect(refuses("<Response>\(filler) </Response>").contains("65536 bytes at most"))
        let text = String(repeating: "a", count: 4_096)
        _ = try document("<Say>\(text)</Say>")
        #expect(faults("<Say>\(text)a</Say>") == ["line 1: Say: has a text of 4097 bytes; at most 4096 are supported"])
    }

    @Test("A document that is cut off at any byte is refused")
    func truncation() throws {
        let whole = Array("<Response><Gather numDigits=\"1\"><Say>é {{Digits}}</Say></Gather><Hangup/></Response>".utf8)
        _ = try FlowDocument(parsing: whole)
        for count in 0..<whole.count {
            #expect(throws: FlowFaults.self) { try FlowDocument(parsing: Array(whole[..<count])) }
        }
    }

    @Test("Keys and names of callers become parts of a file's name, and never a path")
    func fileNames() throws {
        guard case .redirect(let text, _) = try verb("<Redirect>m-{{Digits}}-{{From}}.xml</Redirect>") else {
            throw FlowUnusable("no redirect")
        }
        var values = FlowValues(from: "sip:../ann@example.org", to: "b", callSid: "c")
        values.digits = "1*#"
        #expect(try text.fileName(values).text == "m-1starpound-sip_.._ann@example.org.xml")
        #expect(text.fixedFileName == nil)
        func canName(_ name: String) throws -> Bool { text.canName(try FlowFileName(name)) }
        #expect(try canName("m-1-a.xml"))
        #expect(try canName("m--.xml.xml"))
        #expect(try !canName("m-1-a.wav"))
        #expect(try !canName("m-1/2-a.xml"))
        guard case .say(let said, _) = try verb("<Say>{{Digits}} {{From}} {{To}} {{CallSid}}</Say>") else {
            throw FlowUnusable("no text")
        }
        #expect(said.spoken(values) == "1*# sip:../ann@example.org b c")
        guard case .play(let folder, _) = try verb("<Play>{{From}}/a.wav</Play>") else { throw FlowUnusable("no file") }
        #expect(throws: FlowFileName.Fault.self) { try folder.fileName(FlowValues(from: "..", to: "b", callSid: "c")) }
    }
}
