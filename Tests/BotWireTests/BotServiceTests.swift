import BotWire
import Foundation
import JSON
import TestSupport
import Testing

@Suite("Requests to bots' servers")
struct TwilioWebhookTests {
    private static let url = "https://mycompany.com/myapp.php?foo=1&bar=2"

    @Test("Signatures are those of Twilio's documentation, and of its algorithm in Python's hmac")
    func signatures() {
        func form(_ number: String) -> FormFields {
            FormFields([
                .init("To", "+18005551212"), .init("CallSid", "CA1234567890ABCDE"), .init("From", number),
                .init("Digits", "1234"), .init("Caller", number),
            ])
        }
        let odd = FormFields([
            .init("a", "x y"), .init("Sid", "CA124"), .init("Sid", "CA123"), .init("B", "ä €"), .init("Sid", "CA123"),
            .init("b", ""),
        ])
        #expect(
            TwilioSignature.text(of: Self.url, form("+14158675309"), token: "12345") == "RSOYDt4T1cUTdK1PDd93/VVr8B8=")
        #expect(
            TwilioSignature.text(of: Self.url, form("+12349013030"), token: "12345") == "0/KCTR6DLpKmkAf8muzZqo1nDgQ=")
        #expect(TwilioSignature.text(of: "wss://bot.example/ws", token: "12345") == "ZP1CdL+sV2pQZPttopnfF5CMYMM=")
        #expect(TwilioSignature.text(of: Self.url, odd, token: "Tökén") == "ePaFTRcEEQf6WFMit3r+b0Qn0KI=")
    }

    @Test("The answer webhook is a signed form with the call's facts, or a signed URL")
    func request() throws {
        let webhook = TwilioWebhook(WireBench.calls["twilio"]!, .ringing, more: [.init("Digits", "1 2")])
        let address = try #require(WebAddress("http://bot.example:7860/answer?x=1", WebAddress.Scheme.requests))
        let post = try #require(webhook.request(to: Webhook(address), token: "token"))
        let fields = [
            "CallSid=CA00000000000000000000000000000001", "AccountSid=AC00000000000000000000000000000003",
            "From=%2B15550100", "To=%2B15550199", "Caller=%2B15550100", "Called=%2B15550199", "CallStatus=ringing",
            "ApiVersion=2010-04-01", "Direction=inbound", "Digits=1+2",
        ]
        #expect(String(decoding: post.body, as: UTF8.self) == fields.joined(separator: "&"))
        #expect(post.target == "/answer?x=1" && post.contentType == "application/x-www-form-urlencoded")
        #expect(post.signature == TwilioSignature.text(of: address.text, webhook.form, token: "token"))
        let get = try #require(webhook.request(to: Webhook(address, .get), token: "token"))
        #expect(get.target.hasPrefix("/answer?x=1&CallSid=CA0") && get.body.isEmpty && get.contentType == nil)
        #expect(get.signature == TwilioSignature.text(of: "http://bot.example:7860" + get.target, token: "token"))
        #expect(webhook.request(to: Webhook(address), token: nil)?.signature == nil)
    }

    @Test("A stream's callback is a signed form with its name, its event, the time, and why it failed")
    func streamNews() throws {
        let address = try #require(WebAddress("http://bot.example:7860/stream", WebAddress.Scheme.requests))
        var news = StreamWebhook(
            WireCall(call: "CA1", stream: "MZ1", account: "AC1", from: "a", to: "b"), name: nil, .started,
            unixMilliseconds: 1_709_208_000_250)
        let post = try #require(news.request(to: Webhook(address), token: "token"))
        #expect(
            String(decoding: post.body, as: UTF8.self)
                == "AccountSid=AC1&CallSid=CA1&StreamSid=MZ1&StreamEvent=stream-started"
                + "&Timestamp=2024-02-29T12%3A00%3A00.250Z")
        #expect(post.signature == TwilioSignature.text(of: address.text, news.form, token: "token"))
        (news.name, news.event) = ("n", .failed("no answer"))
        let get = try #require(news.request(to: Webhook(address, .get), token: nil))
        #expect(get.target.hasSuffix("&StreamName=n&StreamError=no+answer") && get.body.isEmpty)
        #expect(get.target.contains("StreamEvent=stream-error") && get.signature == nil)
        #expect(StreamWebhook.Event.stopped.name == "stream-stopped")
    }

    @Test(
        "Times are written as in RFC 3339",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"), (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599_001, "2024-12-31T23:59:59.001Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1970-01-01T00:00:00.000Z"), (.max, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func times(milliseconds: Int64, text: String) {
        let call = WireCall(call: "CA1", stream: "MZ1", account: "AC1", from: "a", to: "b")
        let news = StreamWebhook(call, name: nil, .stopped, unixMilliseconds: milliseconds)
        #expect(news.form.values("Timestamp") == [text])
    }

    @Test("A form comes back as it was, and broken escapes, bytes and sizes are refused")
    func forms() {
        let form = FormFields([.init("a b", "ä&=+%"), .init("", ""), .init("a b", "*-._~")])
        #expect(FormFields(body: form.body) == form)
        #expect(
            FormFields(body: Array("&&x&y=&=z&a=b=c".utf8))?.fields == [
                .init("x", ""), .init("y", ""), .init("", "z"), .init("a", "b=c"),
            ])
        for body in ["%", "a=%4", "a=%zz", "%%%", "a=%FF", "a=%C3%28", "a=%ED%A0%80"] {
            #expect(FormFields(body: Array(body.utf8)) == nil, "\(body)")
        }
        #expect(FormFields(body: [0x61, 0x3D, 0xFF]) == nil)
        #expect(FormFields(body: Array(String(repeating: "a&", count: WireLimits.fields + 1).utf8)) == nil)
        #expect(FormFields(body: [UInt8](repeating: 0x61, count: WireLimits.requestBytes + 1)) == nil)
    }

    @Test("An address has one scheme, host, port and target for every reader")
    func addresses() throws {
        let sound: [(String, String, Int, String)] = [
            ("http://bot.example", "bot.example", 80, "/"), ("HTTPS://Bot.Example/", "bot.example", 443, "/"),
            ("https://127.0.0.1:7860/a/b?c=d/e", "127.0.0.1", 7_860, "/a/b?c=d/e"),
            ("http://[::1]:8080?x", "::1", 8_080, "/?x"), ("http://[2001:DB8::1]/@x", "2001:db8::1", 80, "/@x"),
        ]
        for (text, host, port, target) in sound {
            let address = try #require(WebAddress(text, WebAddress.Scheme.requests), "\(text)")
            #expect((address.host, address.port, address.target) == (host, port, target))
            #expect(address.text == text)
        }
        let broken = [
            "", "http", "http:", "http:/a", "http://", "http:///a", "//a", "ftp://a", "ws://a", "http://user@a",
            "http://a:b@c/",
            "http://a\\b", "http://a b", "http://a/\n", "http://a#b", "http://a:0", "http://a:65536", "http://a:",
            "http://a:x",
            "http://::1", "http://[::1", "http://[a]", "http://a%2eb", "http://ä", "http://a..b", "http://.a",
            "http://[::1]x",
            "http://a/ä", "http://a/\u{0}", "http://\(String(repeating: "a", count: 254))",
            "http://a/\(String(repeating: "a", count: WireLimits.addressBytes))",
        ]
        for text in broken { #expect(WebAddress(text, WebAddress.Scheme.requests) == nil, "\(text.prefix(40))") }
    }

    @Test("A reference in an answer is read against where the answer came from")
    func references() throws {
        let base = try #require(WebAddress("http://bot.example:7860/a/b?c=d", WebAddress.Scheme.requests))
        let rootless = try #require(WebAddress("http://bot.example?c=d", WebAddress.Scheme.requests))
        let cases = [
            ("/x?t=1:2", "http://bot.example:7860/x?t=1:2", "http://bot.example/x?t=1:2"),
            ("x", "http://bot.example:7860/a/x", "http://bot.example/x"),
            ("?y", "http://bot.example:7860/a/b?y", "http://bot.example/?y"),
            ("https://other/", "https://other/", "https://other/"),
            ("//other/", "http://other/", "http://other/"),
            ("../x#part", "http://bot.example:7860/x", "http://bot.example/x"),
        ]
        for (reference, full, short) in cases {
            #expect(base.resolving(reference)?.text == full && rootless.resolving(reference)?.text == short)
        }
        for reference in ["", "javascript:x", "ftp://a/", "http://u@a/", "a b", "\\\\other"] {
            #expect(base.resolving(reference) == nil, "\(reference)")
        }
    }
}

@Suite("Answers of bots' servers")
struct CallMarkupTests {
    private func read(_ text: String, _ dialect: CallMarkup.Dialect = .twilio) throws -> [CallMarkup.Verb] {
        try CallMarkup(
            Array(text.utf8), dialect, from: WebAddress("http://bot.example/answer", WebAddress.Scheme.requests)
        ).verbs
    }

    private func botStream(_ verb: CallMarkup.Verb?) throws -> BotStream {
        guard case .stream(let stream)? = verb else { throw TestFailure() }
        return stream
    }
    private struct TestFailure: Error {}

    @Test("The answers of Pipecat's runner are understood: for Twilio, Telnyx and Plivo")
    func runner() throws {
        let twilio = """
            <?xml version="1.0" encoding="UTF-8"?>
            <Response>
              <Connect>
                <Stream url="wss://bot.example/ws"></Stream>
              </Connect>
            </Response>
            """
        #expect(try botStream(read(twilio).first).address.text == "wss://bot.example/ws")
        let telnyx = twilio.replacing("></Stream>", with: " bidirectionalMode=\"rtp\"></Stream>")
        #expect(try botStream(read(telnyx).first).address.text == "wss://bot.example/ws")
        let plivo = """
            <?xml version="1.0" encoding="UTF-8"?>
            <Response>
              <Stream bidirectional="true" keepCallAlive="true" contentType="audio/x-mulaw;rate=8000">wss://bot.example/ws</Stream>
            </Response>
            """
        let stream = try botStream(read(plivo, .plivo).first)
        #expect(stream.address.text == "wss://bot.example/ws" && stream.callerFormat == .mulaw)
    }

    @Test("A stream has parameters, a name and callbacks, and what follows it counts after it")
    func everything() throws {
        let verbs = try read(
            """
            <Response>
              <Connect action="/after" method="get">
                <Stream url="ws://127.0.0.1:7860/ws" name="n" track="inbound_track" statusCallback="https://b/s" other="x">
                  <Parameter name="from_number" value="+1"/><Parameter name="empty"/>
                </Stream>
              </Connect>
              <Pause length="60"/><Pause/><Redirect method="POST">next?x=1&amp;y=2</Redirect><Hangup/>
            </Response>
            """)
        let stream = try botStream(verbs.first)
        #expect(stream.parameters == ["from_number": "+1", "empty": ""] && stream.name == "n")
        #expect(stream.action?.address.text == "http://bot.example/after" && stream.action?.method == .get)
        #expect(stream.statusCallback?.address.text == "https://b/s" && stream.statusCallback?.method == .post)
        let next = try #require(WebAddress("http://bot.example/next?x=1&y=2", WebAddress.Scheme.requests))
        #expect(
            Array(verbs.dropFirst()) == [.pause(seconds: 60), .pause(seconds: 1), .redirect(Webhook(next)), .hangUp])
        #expect(try read("<Response><Reject reason='busy'/></Response>") == [.reject(.busy)])
        #expect(try read("<Response><Reject/></Response>") == [.reject(.rejected)])
        #expect(try read("<Response/>").isEmpty)
        #expect(
            try read("<Response><Wait length='2'/><Hangup reason='busy'/></Response>", .plivo) == [
                .pause(seconds: 2), .reject(.busy),
            ])
    }

    @Test(
        "A transfer has one target in each dialect's words, and an action; what the caller's own call cannot have is ignored"
    )
    func transfers() throws {
        func targets(_ text: String, _ dialect: CallMarkup.Dialect = .twilio) throws -> [String] {
            try read("<Response>\(text)</Response>", dialect).map {
                guard case .transfer(let transfer) = $0 else { throw TestFailure() }
                return transfer.target
            }
        }
        let numbers = "<Dial>+49 (30) 123-456</Dial><Dial callerId='+1' timeout='9'><Number>030.1</Number></Dial>"
        #expect(try targets(numbers) == ["+4930123456", "0301"])
        let others = "<Dial><Client>bob-1</Client></Dial><Dial><Client><Identity>bob</Identity></Client></Dial>"
        #expect(try targets(others) == ["bob-1", "bob"])
        let addresses = "<Dial><Sip>sip:bob@sip.test</Sip></Dial><Refer><Sip> sip:bob@sip.test </Sip></Refer>"
        #expect(try targets(addresses) == ["sip:bob@sip.test", "sip:bob@sip.test"])
        #expect(
            try targets("<Dial><Number>1</Number></Dial><Dial><User>sip:bob@a</User></Dial>", .plivo) == [
                "1", "sip:bob@a",
            ])
        let after = try #require(WebAddress("http://bot.example/after", WebAddress.Scheme.requests))
        #expect(
            try read("<Response><Dial action='/after' method='GET'>1</Dial><Hangup/></Response>") == [
                .transfer(BotTransfer(to: "1", action: Webhook(after, .get))), .hangUp,
            ])
    }

    @Test(
        "A <Dial> without one target that can be called is a fault",
        arguments: [
            "<Dial/>", "<Dial> </Dial>", "<Dial><Conference>secret</Conference></Dial>",
            "<Dial><Queue>secret</Queue></Dial>",
            "<Dial><Number>1</Number><Number>2</Number></Dial>", "<Dial>1<Number>2</Number></Dial>",
            "<Dial><Number sendDigits='1'>2</Number></Dial>", "<Dial><Number><secret/></Number></Dial>",
            "<Dial><Sip>\(String(repeating: "1", count: 257))</Sip></Dial>", "<Dial action='file:///secret'>1</Dial>",
            "<Refer>secret</Refer>", "<Refer><Number>1</Number></Refer>",
        ])
    func faultyTransfers(text: String) {
        let fault = #expect(throws: MarkupFault.self) { try read("<Response>\(text)</Response>") }
        #expect(fault?.description.isEmpty == false && fault?.description.contains("secret") == false)
    }

    @Test(
        "What is not followed is a fault that says what to do, and does not repeat the answer",
        arguments: [
            "", "secret", "<secret/>", "<Response><secret/></Response>", "<Response>secret</Response>",
            "<Response><Connect/></Response>", "<Response><Connect><Stream/></Connect></Response>",
            "<Response><Connect><Stream url='https://secret/'/></Connect></Response>",
            "<Response><Connect><Stream url='wss://user:secret@a/'/></Connect></Response>",
            "<Response><Connect><Stream url='wss://a/'/><Stream url='wss://b/'/></Connect></Response>",
            "<Response><Connect><Stream url='wss://a/' track='both_tracks'/></Connect></Response>",
            "<Response><Connect><Stream url='wss://a/'><secret/></Stream></Connect></Response>",
            "<Response><Connect><Stream url='wss://a/'><Parameter value='x'/></Stream></Connect></Response>",
            "<Response><Connect><Stream url='wss://a/'><Parameter name='x'/><Parameter name='x'/></Stream></Connect></Response>",
            "<Response><Connect><Stream url='wss://a/'><Parameter name='x' value='\(String(repeating: "x", count: 500))'/></Stream></Connect></Response>",
            "<Response><Connect action='file:///secret'><Stream url='wss://a/'/></Connect></Response>",
            "<Response><Connect action='/' method='PUT'><Stream url='wss://a/'/></Connect></Response>",
            "<Response><Pause length='0'/></Response>", "<Response><Pause length='-1'/></Response>",
            "<Response><Pause length='99999999999999999999'/></Response>",
            "<Response><Reject reason='secret'/></Response>",
            "<Response><Hangup>secret</Hangup></Response>", "<Response><Redirect/></Response>",
            "<Response><Redirect>gopher://secret/</Redirect></Response>",
            "<Response><Connect><Stream url='wss://a/'><Parameter name='x'><y/></Parameter></Stream></Connect></Response>",
            "<Response>\(String(repeating: "<Pause/>", count: 33))</Response>",
            "<Response>\(String(repeating: " ", count: 65_536))</Response>",
        ])
    func faults(text: String) {
        let fault = #expect(throws: MarkupFault.self) { try read(text) }
        #expect(fault?.description.isEmpty == false && fault?.description.contains("secret") == false)
    }

    @Test("A verb of Twilio's that is not followed is named, and so is its line")
    func named() {
        let fault = #expect(throws: MarkupFault.self) { try read("<Response>\n<Say>secret</Say></Response>") }
        #expect(fault?.line == 2 && fault?.description.contains("<Say>") == true)
    }

    @Test("An answer with a document type is refused before any entity is declared")
    func bomb() {
        let lots = (0..<9).map { "<!ENTITY a\($0 + 1) \"&a\($0);&a\($0);&a\($0);&a\($0);\">" }.joined()
        let text = "<!DOCTYPE r [<!ENTITY a0 \"x\">\(lots)]><Response><Connect>&a9;</Connect></Response>"
        let fault = #expect(throws: MarkupFault.self) { try read(text) }
        #expect(fault?.description.contains("document type") == true)
    }

    @Test(
        "Of Plivo's streams those are refused that go one way, or have another format",
        arguments: [
            "<Stream>wss://a/</Stream>", "<Stream bidirectional='true'>https://a/</Stream>",
            "<Stream bidirectional='true' contentType='audio/mpeg'>wss://a/</Stream>",
            "<Stream bidirectional='true' audioTrack='both'>wss://a/</Stream>",
            "<Stream bidirectional='true' extraHeaders='=x'>wss://a/</Stream>",
            "<Stream bidirectional='true'>wss://a/<x/></Stream>", "<Connect/>",
        ])
    func plivoFaults(text: String) {
        #expect(throws: MarkupFault.self) { try read("<Response>\(text)</Response>", .plivo) }
    }

    @Test("An answer that is cut off anywhere is refused, and one with changed bytes is refused or another one")
    func damaged() {
        let text =
            "<Response><Connect><Stream url='wss://a/'><Parameter name='x' value='y'/></Stream></Connect><Hangup/></Response>"
        for length in 0..<text.utf8.count {
            #expect(throws: MarkupFault.self) { try CallMarkup(Array(text.utf8.prefix(length))) }
        }
        var random = SeededGenerator(seed: 2)
        for _ in 0..<3_000 {
            var bytes = Array(text.utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            for case .stream(let stream) in (try? CallMarkup(bytes))?.verbs ?? [] {
                #expect(!stream.address.host.isEmpty)
            }
        }
    }
}

@Suite("Requests of bots")
struct BotRequestTests {
    private static let account = "/2010-04-01/Accounts/AC1"

    private func request(
        _ target: String, _ body: String = "", method: String = "POST",
        type: String? = "application/x-www-form-urlencoded",
        authorization: String? = nil
    ) throws(ServiceFault) -> BotRequest {
        try BotRequest(
            ServiceRequest(
                method: method, target: target, authorization: authorization, contentType: type, body: Array(body.utf8))
        )
    }

    @Test("A call is ended, canceled or redirected in Twilio's words")
    func updates() throws {
        let call = Self.account + "/Calls/CA1.json"
        #expect(try request(call, "Status=completed").order() == .end(call: "CA1", onlyUnanswered: false))
        #expect(try request(call, "Status=canceled").order() == .end(call: "CA1", onlyUnanswered: true))
        let document = FormFields([.init("Twiml", "<Response><Hangup/></Response>")])
        let markup = try CallMarkup(Array("<Response><Hangup/></Response>".utf8))
        #expect(
            try request(call, String(decoding: document.body, as: UTF8.self)).order()
                == .redirect(call: "CA1", .markup(markup)))
        let address = try #require(WebAddress("http://a/b", WebAddress.Scheme.requests))
        #expect(
            try request(call, "Url=http://a/b&Method=GET", type: "Application/X-WWW-Form-Urlencoded; charset=utf-8")
                .order()
                == .redirect(call: "CA1", .ask(Webhook(address, .get))))
        #expect(try request(call + "?x=y", "Status=completed").order() == .end(call: "CA1", onlyUnanswered: false))
    }

    @Test("A call is placed with what Twilio asks for, and what is missing or wrong is said")
    func places() throws {
        let calls = Self.account + "/Calls.json"
        let order = try request(
            calls,
            "To=%2B1&From=a&Url=http://a/b&StatusCallback=http://a/s&StatusCallbackEvent=ringing&StatusCallbackEvent=answered&Timeout=30&Record=true"
        ).order()
        guard case .place(let placed) = order else {
            Issue.record("a call is to be placed")
            return
        }
        #expect((placed.to, placed.from, placed.timeoutSeconds) == ("+1", "a", 30))
        #expect(placed.statusEvents == ["ringing", "answered"] && placed.statusCallback?.address.text == "http://a/s")
        let wrong = [
            "", "To=1", "To=1&From=2", "From=2&Url=http://a/", "To=1&From=2&Url=file:///etc/passwd",
            "To=1&From=2&Url=http://a/&Twiml=x", "To=1&To=2&From=2&Url=http://a/", "To=1%0A&From=2&Url=http://a/",
            "To=1&From=2&Url=http://a/&Timeout=0", "To=1&From=2&Url=http://a/&Timeout=x",
            "To=1&From=2&Url=http://a/&StatusCallbackEvent=x", "To=1&From=2&Url=http://a/&Method=PUT",
            "To=1&From=2&Twiml=<x/>",
            "To=\(String(repeating: "1", count: 257))&From=2&Url=http://a/", "%", "a=%FF",
        ]
        for body in wrong {
            let fault = #expect(throws: ServiceFault.self) { try request(calls, body).order() }
            #expect(fault?.kind == .badRequest, "\(body.prefix(60))")
        }
        for (body, code) in [
            ("From=2&Url=http://a/", 21_201), ("To=1&Url=http://a/", 21_213), ("To=1&From=2", 21_205),
            ("To=1&From=2&Url=file:///x", 21_205), ("To=1&From=2&Twiml=<x/>", 12_100),
        ] as [(String, Int64)] {
            let fault = try #require(throws: ServiceFault.self) { try request(calls, body).order() }
            let answer = try JSONDecoder().decode(JSONValue.self, from: Data(ServiceAnswer.refused(fault).body))
            #expect(answer["code"]?.integer == code && answer["status"]?.integer == 400)
        }
        for body in ["", "Status=secret", "Status=", "Status=completed&Status=completed"] {
            let fault = #expect(throws: ServiceFault.self) {
                try request(Self.account + "/Calls/CA1.json", body).order()
            }
            #expect(fault?.kind == .badRequest && fault?.description.contains("secret") == false)
        }
        let json = #expect(throws: ServiceFault.self) {
            try request(Self.account + "/Calls/CA1.json", "{}", type: "application/json").order()
        }
        #expect(json?.kind == .badRequest)
    }

    @Test("A call is transferred in Telnyx's words and redirected in Plivo's")
    func transfers() throws {
        func order(_ target: String, _ body: String) throws -> BotRequest.Order {
            try request(target, body, type: "application/json").order()
        }
        #expect(
            try order("/v2/calls/a/actions/transfer", #"{"to":"+1","from":"+2"}"#)
                == .transfer(call: "a", BotTransfer(to: "+1")))
        #expect(
            try order("/v2/calls/a/actions/refer", #"{"sip_address":"sip:bob@sip.test"}"#)
                == .transfer(call: "a", BotTransfer(to: "sip:bob@sip.test")))
        let address = try #require(WebAddress("http://a/b", WebAddress.Scheme.requests))
        #expect(
            try order("/v1/Account/a/Call/b/", #"{"legs":"aleg","aleg_url":"http://a/b","aleg_method":"GET"}"#)
                == .redirect(call: "b", .ask(Webhook(address, .get))))
        for body in ["", "[]", "{}", #"{"to":7}"#, #"{"to":""}"#, String(repeating: "[", count: 1_000)] {
            let fault = #expect(throws: ServiceFault.self) { try order("/v2/calls/a/actions/transfer", body) }
            #expect(fault?.kind == .badRequest && fault?.service == .telnyx)
        }
        for body in ["", "{}", #"{"legs":"bleg","aleg_url":"http://a/"}"#, #"{"aleg_url":"file:///x"}"#] {
            let fault = #expect(throws: ServiceFault.self) { try order("/v1/Account/a/Call/b/", body) }
            #expect(fault?.kind == .badRequest && fault?.service == .plivo)
        }
    }

    @Test("Other paths and methods are refused, in the words of the service that they look like")
    func paths() {
        let nothing = [
            "", "/", "x", "//", "/2010-04-01", "/2010-04-01/Accounts/AC1/Calls/CA1",
            "/2010-04-01/Accounts/AC1/Calls/.json",
            "/2010-04-01/Accounts//Calls.json", "/2010-04-01/Accounts/AC1/Messages.json", "/v2/calls/a/actions/speak",
            "/v2/calls",
            "/v2/calls/a%2Fb/actions/hangup", "/v2/calls/a%00/actions/hangup", "/v2/calls/%/actions/hangup",
            "/v2/calls/../actions/hangup/x", "/v1/Account/a/Calls/b",
            "/v2/calls/\(String(repeating: "a", count: 257))/actions/hangup",
        ]
        for target in nothing {
            let fault = #expect(throws: ServiceFault.self) { try request(target) }
            #expect(fault?.kind == .noSuchPath, "\(target.prefix(60))")
        }
        let fault = #expect(throws: ServiceFault.self) { try request("/v2/calls/a/actions/hangup", method: "GET") }
        #expect(fault?.kind == .wrongMethod && fault?.service == .telnyx)
        #expect(throws: ServiceFault.self) { try request("/v1/Account/a/Call/b", method: "GET") }
        #expect(throws: ServiceFault.self) { try request("/v2/calls/a/actions/transfer", method: "DELETE") }
        #expect(throws: Never.self) { try request("/v1/Account/a/Call/b", method: "DELETE") }
    }

    @Test("Credentials match as a whole or not at all, and are never printed")
    func credentials() throws {
        func credentials(_ text: String?) throws -> ServiceCredentials {
            try request("/v2/calls/a/actions/hangup", authorization: text).credentials
        }
        let pair = try credentials("Basic dXNlcjpzZWM6cmV0")
        #expect(pair.match(user: "user", password: "sec:ret") && !pair.match(user: "user", password: "sec"))
        #expect(!pair.match(user: "", password: "") && !pair.match(key: "user:sec:ret"))
        #expect(try credentials("basic  dXNlcjpzZWM6cmV0").match(user: "user", password: "sec:ret"))
        #expect(try credentials("BEARER secret").match(key: "secret"))
        for text in [nil, "", "Basic", "Basic ", "Basic dXNlcg==", "Basic ?", "Bearer ", "Digest x", "Bearer"] {
            let none = try credentials(text)
            #expect(!none.match(user: "", password: "") && !none.match(key: ""))
        }
        let printed = "\(try request("/v2/calls/a/actions/hangup", authorization: "Bearer secret"))"
        #expect(!printed.contains("secret") && !printed.contains("\(Array("secret".utf8))"))
    }

    @Test("Each service's answer has its status and its code")
    func answers() throws {
        let call = WireBench.calls["twilio"]!
        #expect(BotService.allCases.map { ServiceAnswer.done($0, call, .completed).status } == [200, 200, 204])
        #expect(
            BotService.allCases.map { ServiceAnswer.redirected($0, call, .inProgress).status } == [200, 200, 202])
        #expect(ServiceAnswer.placed(call).status == 201)
        func value(_ answer: ServiceAnswer) throws -> JSONValue {
            try JSONDecoder().decode(JSONValue.self, from: Data(answer.body))
        }
        #expect(try value(.placed(call))["sid"]?.string == call.call)
        // What the stock serializers look for when a call is over already.
        let missing = ServiceAnswer.refused(ServiceFault(.noSuchCall, .twilio, "x"))
        #expect(try missing.status == 404 && value(missing)["code"]?.integer == 20_404)
        let over = ServiceAnswer.refused(ServiceFault(.callOver, .telnyx, "x"))
        guard case .array(let errors)? = try value(over)["errors"] else {
            Issue.record("there are no errors")
            return
        }
        #expect(over.status == 422 && errors.first?["code"]?.string == "90018")
        #expect(ServiceAnswer.refused(ServiceFault(.callOver, .plivo, "x")).status == 404)
        for service in BotService.allCases {
            for kind in ServiceFault.Kind.allCases {
                let answer = ServiceAnswer.refused(ServiceFault(kind, service, "x"))
                #expect((400...599).contains(answer.status) && answer.contentType == "application/json")
            }
            #expect(ServiceAnswer.refused(ServiceFault(.unauthorized, service, "x")).status == 401)
        }
    }
}
