import BotWire
import Testing
import Core

@testable import BotCalls

@Suite("The course of a bot's call")
struct BotCourseTests {
    private struct Bench {
        var course: BotCourse
        var now = Instant.zero
        var outputs: [BotCourse.Output] = []

        init(isAnswered: Bool = false, hasFallback: Bool = false) {
            course = BotCourse(isAnswered: isAnswered, hasFallback: hasFallback, timeout: .seconds(5))
        }

        mutating func feed(_ input: BotCourse.Input) {
            outputs = []
            course.handle(input, at: now, into: &outputs)
        }

        mutating func wait(_ time: Duration) {
            now = now.advanced(by: time)
            feed(.timerFired)
        }
    }

    private func webhook(_ text: String = "http://bot.example/answer") throws -> Webhook {
        Webhook(try #require(WebAddress(text, WebAddress.Scheme.requests)))
    }

    private func socket(_ text: String = "ws://bot.example/ws") throws -> BotCourse.Stream {
        BotCourse.Stream(address: try #require(WebAddress(text, WebAddress.Scheme.sockets)))
    }

    private func markup(_ text: String) throws -> CallMarkup {
        try CallMarkup(
            Array("<Response>\(text)</Response>".utf8),
            from: WebAddress("http://bot.example/answer", WebAddress.Scheme.requests))
    }

    @Test("The call is accepted when the stream is open, and ends when the bot is done")
    func directly() throws {
        var bench = Bench()
        let stream = try socket()
        bench.feed(.connect(stream))
        #expect(bench.outputs == [.open(stream)] && bench.course.status == .ringing)
        bench.feed(.opened)
        #expect(bench.outputs == [.accept] && bench.course.status == .inProgress)
        bench.feed(.streamOver)
        #expect(bench.outputs == [.hangUp(failure: nil)])
        bench.feed(.streamOver)
        #expect(bench.outputs.isEmpty)
    }

    @Test("A webhook's answer is followed verb by verb: stream, wait, redirect, hang up")
    func verbs() throws {
        var bench = Bench()
        bench.feed(.ask(try webhook()))
        #expect(bench.outputs == [.ask(try webhook())])
        bench.feed(
            .told(
                try markup(
                    "<Connect><Stream url=\"ws://bot.example/ws\"/></Connect><Pause length=\"3\"/><Redirect>/more</Redirect>"
                )))
        #expect(bench.outputs == [.open(try socket())])
        bench.feed(.opened)
        #expect(bench.outputs == [.accept])
        bench.feed(.streamOver)
        #expect(bench.outputs.isEmpty && bench.course.nextDeadline == bench.now.advanced(by: .seconds(3)))
        bench.wait(.seconds(3))
        #expect(bench.outputs == [.ask(try webhook("http://bot.example/more"))])
        bench.feed(.told(try markup("<Hangup/>")))
        #expect(bench.outputs == [.hangUp(failure: nil)])
    }

    @Test(
        "A transfer takes the call; if it fails the action is asked, or what follows is done; a request ends the wait")
    func transfers() throws {
        var bench = Bench()
        bench.feed(.ask(try webhook()))
        bench.feed(.told(try markup("<Dial>bob</Dial><Pause/>")))
        #expect(bench.outputs == [.accept, .transfer(to: "bob")])
        bench.feed(.transferFailed)
        #expect(bench.outputs.isEmpty && bench.course.nextDeadline == bench.now.advanced(by: .seconds(1)))
        bench.feed(.redirect(.markup(try markup("<Dial action=\"/after\">carol</Dial><Hangup/>"))))
        #expect(bench.outputs == [.transfer(to: "carol")])
        bench.feed(.transferFailed)
        #expect(bench.outputs == [.ask(try webhook("http://bot.example/after"), dialFailed: true)])
        bench.feed(.told(try markup("<Dial>dave</Dial>")))
        #expect(bench.outputs == [.transfer(to: "dave")])
        bench.wait(.seconds(239))
        #expect(bench.outputs.isEmpty)
        bench.wait(.seconds(1))
        #expect(bench.outputs == [.hangUp(failure: nil)], "a peer that says nothing of it")
        bench = Bench(isAnswered: true)
        bench.feed(.connect(try socket()))
        bench.feed(.opened)
        bench.feed(.redirect(.markup(try markup("<Dial>bob</Dial>"))))
        #expect(bench.outputs == [.finishStream], "the bot is heard out first")
        bench.feed(.streamOver)
        #expect(bench.outputs == [.transfer(to: "bob")])
        bench.feed(.end)
        #expect(bench.outputs == [.hangUp(failure: nil)])
    }

    @Test("Who is to be rejected is not answered, with the reason")
    func rejections() throws {
        for (text, reason) in [
            ("<Reject reason=\"busy\"/>", CallMarkup.RejectReason.busy), ("<Reject/>", .rejected),
            ("<Hangup/>", .rejected),
            ("", .rejected),
        ] {
            var bench = Bench()
            bench.feed(.ask(try webhook()))
            bench.feed(.told(try markup(text)))
            guard case .reject(reason, _)? = bench.outputs.first, bench.outputs.count == 1 else {
                Issue.record("\(text): \(bench.outputs)")
                continue
            }
        }
    }

    @Test("A bot that is not there in time has the call rejected; question and connection have the time together")
    func late() throws {
        var bench = Bench()
        bench.feed(.ask(try webhook()))
        bench.wait(.seconds(3))
        #expect(bench.outputs.isEmpty)
        bench.feed(.told(try markup("<Connect><Stream url=\"ws://bot.example/ws\"/></Connect>")))
        bench.wait(.seconds(2))
        #expect(bench.outputs.first == .abandon)
        guard case .reject(nil, let why)? = bench.outputs.last else {
            Issue.record("\(bench.outputs)")
            return
        }
        #expect(why.contains("5 s"))
        bench.feed(.opened)
        #expect(bench.outputs.isEmpty, "too late")
    }

    @Test("With a fallback the call is accepted, hears it, and ends")
    func fallback() throws {
        var bench = Bench(hasFallback: true)
        bench.feed(.connect(try socket()))
        bench.feed(.failed("nothing listens"))
        #expect(bench.outputs == [.accept, .fallBack("nothing listens")])
        bench.feed(.streamOver)
        #expect(bench.outputs == [.hangUp(failure: nil)])
    }

    @Test("A bot that fails in mid-call ends it with a reason, or has the fallback played")
    func failsLater() throws {
        var bench = Bench()
        bench.feed(.connect(try socket()))
        bench.feed(.opened)
        bench.feed(.failed("gone"))
        #expect(bench.outputs == [.hangUp(failure: "gone")])
        bench = Bench(hasFallback: true)
        bench.feed(.connect(try socket()))
        bench.feed(.opened)
        bench.feed(.failed("gone"))
        #expect(bench.outputs == [.fallBack("gone")])
    }

    @Test("A request to end the call has the bot heard out first")
    func end() throws {
        var bench = Bench()
        bench.feed(.connect(try socket()))
        bench.feed(.opened)
        bench.feed(.end)
        #expect(bench.outputs == [.finishStream])
        bench.feed(.end)
        #expect(bench.outputs.isEmpty)
        bench.feed(.streamOver)
        #expect(bench.outputs == [.hangUp(failure: nil)])
    }

    @Test("A redirect has the bot heard out, and then connects with the other one")
    func redirect() throws {
        var bench = Bench()
        bench.feed(.connect(try socket()))
        bench.feed(.opened)
        bench.feed(.redirect(.markup(try markup("<Connect><Stream url=\"ws://other.example/ws\"/></Connect>"))))
        #expect(bench.outputs == [.finishStream])
        bench.feed(.streamOver)
        #expect(bench.outputs == [.open(try socket("ws://other.example/ws"))])
        bench.feed(.opened)
        #expect(bench.outputs.isEmpty, "the call stands already")
    }

    @Test("A redirect while the fallback plays stops it, and the webhook's answer is followed")
    func redirectOfFallback() throws {
        var bench = Bench(hasFallback: true)
        bench.feed(.connect(try socket()))
        bench.feed(.failed("nothing listens"))
        bench.feed(.redirect(.ask(try webhook())))
        #expect(bench.outputs == [.stopFallback, .ask(try webhook())])
        bench.feed(.told(try markup("<Connect><Stream url=\"ws://other.example/ws\"/></Connect>")))
        #expect(bench.outputs == [.open(try socket("ws://other.example/ws"))])
    }

    @Test("Answers that redirect for ever are given up")
    func redirectLoop() throws {
        var bench = Bench()
        bench.feed(.ask(try webhook()))
        var questions = 1
        while questions < 100 {
            bench.feed(.told(try markup("<Redirect>/again</Redirect>")))
            guard case .ask? = bench.outputs.first else { break }
            questions += 1
        }
        #expect(questions == WireLimits.redirects)
        guard case .reject(nil, _)? = bench.outputs.last else {
            Issue.record("\(bench.outputs)")
            return
        }
    }

    @Test("A call that was placed with its instructions follows them once it is answered")
    func placedWithInstructions() throws {
        var bench = Bench(isAnswered: true)
        bench.feed(.told(try markup("<Connect><Stream url=\"ws://bot.example/ws\"/></Connect>")))
        #expect(bench.outputs == [.open(try socket())] && bench.course.status == .inProgress)
    }

    @Test("A stream has the name and the status callback of the answer, and nothing else")
    func statusCallback() throws {
        var bench = Bench()
        bench.feed(.ask(try webhook()))
        let stream =
            "<Stream url=\"ws://bot.example/ws\" name=\"n\" statusCallback=\"/s\" statusCallbackMethod=\"GET\"/>"
        bench.feed(.told(try markup("<Connect>\(stream)</Connect>")))
        var expected = try socket()
        expected.statusCallback = Webhook(try webhook("http://bot.example/s").address, .get)
        expected.name = "n"
        #expect(bench.outputs == [.open(expected)])
    }

    @Test("The answer's action is asked once the stream has ended")
    func action() throws {
        var bench = Bench()
        bench.feed(.ask(try webhook()))
        bench.feed(
            .told(try markup("<Connect action=\"/next\"><Stream url=\"ws://bot.example/ws\"/></Connect><Hangup/>")))
        bench.feed(.opened)
        bench.feed(.streamOver)
        #expect(bench.outputs == [.ask(try webhook("http://bot.example/next"))])
    }
}
