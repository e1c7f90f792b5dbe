import BotWire
import JSON
import Testing
import Core

@Suite("WebRTC legs that are offered by HTTP")
struct OfferExchangeTests {
    private struct Bench {
        var exchange: OfferExchange
        var now = Instant.zero
        var outputs: [OfferExchange.Output] = []

        init(_ form: OfferForm, token: String? = nil) throws {
            exchange = OfferExchange(form, to: try OfferExchangeTests.address(), token: token)
        }

        mutating func feed(_ inputs: OfferExchange.Input...) {
            outputs = []
            for input in inputs { exchange.handle(input, at: now, into: &outputs) }
        }

        mutating func wait(_ time: Duration) {
            now = now.advanced(by: time)
            feed(.timerFired)
        }

        /// The leg stands.
        static func standing(
            _ form: OfferForm = .smallWebRTC(data: [:]), _ response: OfferResponse = OfferExchangeTests.answer
        ) throws -> Bench {
            var bench = try Bench(form, token: "key")
            bench.feed(.begin, .gathered, .described(OfferExchangeTests.offer), .answered(response), .secured)
            try #require(bench.outputs.last == .opened)
            return bench
        }
    }

    private static let offer = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\n"
    private static let answer = OfferResponse(
        status: 200,
        body: Array(#"{"sdp":"v=0\r\nthe answer","type":"answer","pc_id":"SmallWebRTCConnection#0-1"}"#.utf8))
    private static let created = OfferResponse(
        status: 201, location: "/v1/realtime/calls/rtc_1", body: Array("v=0\r\nthe answer".utf8))

    private static func address(_ text: String = "https://bot.example/api/offer") throws -> WebAddress {
        try #require(WebAddress(text, WebAddress.Scheme.requests))
    }

    private func sent(_ outputs: [OfferExchange.Output]) throws -> OfferRequest {
        guard case .send(let request)? = outputs.last else { throw Mismatch() }
        return request
    }

    private struct Mismatch: Error {}

    @Test("A leg is offered with all candidates once they are gathered, and is open when ICE and DTLS are done")
    func smallWebRTC() throws {
        var bench = try Bench(.smallWebRTC(data: ["who": "a \"caller\""]))
        bench.feed(.begin)
        #expect(bench.outputs == [.open] && bench.exchange.nextDeadline == .zero.advanced(by: .milliseconds(500)))
        bench.feed(.gathered)
        #expect(bench.outputs == [.describe] && bench.exchange.nextDeadline == nil)
        bench.feed(.described(Self.offer))
        let request = try sent(bench.outputs)
        #expect(request.contentType == "application/json" && request.authorization == nil)
        let body = try #require(JSONValue(plain: request.body, nesting: 4))
        #expect(
            body == ["sdp": .string(Self.offer), "type": "offer", "request_data": ["who": "a \"caller\""]])
        bench.feed(.answered(Self.answer))
        #expect(bench.outputs == [.connect(answer: "v=0\r\nthe answer")])
        bench.feed(.secured)
        #expect(bench.outputs == [.opened])
        bench.feed(.end)
        #expect(bench.outputs == [.release], "its server sees the leg's end")
        bench.feed(.failed("late"), .goodbye, .timerFired)
        #expect(bench.outputs.isEmpty)
    }

    @Test("Candidates are waited for, half a second at most")
    func slowGathering() throws {
        var bench = try Bench(.smallWebRTC(data: [:]))
        bench.feed(.begin)
        bench.wait(.milliseconds(499))
        #expect(bench.outputs.isEmpty)
        bench.wait(.milliseconds(1))
        #expect(bench.outputs == [.describe])
        bench.feed(.gathered)
        #expect(bench.outputs.isEmpty, "it is described once")
    }

    @Test("A realtime call is offered as a description with a bearer token, and hung up where its Location is")
    func realtime() throws {
        var bench = try Bench(.realtime(session: nil), token: "key")
        bench.feed(.begin, .gathered, .described(Self.offer))
        let request = try sent(bench.outputs)
        #expect(request.contentType == "application/sdp" && request.authorization == "Bearer key")
        #expect(request.body == Array(Self.offer.utf8))
        bench.feed(.answered(Self.created), .secured)
        bench.feed(.end)
        guard case .hangUp(let hangUp)? = bench.outputs.first else { throw Mismatch() }
        #expect(hangUp.address.text == "https://bot.example/v1/realtime/calls/rtc_1/hangup")
        #expect(hangUp.authorization == "Bearer key" && hangUp.body.isEmpty && hangUp.contentType == nil)
        #expect(bench.outputs.dropFirst() == [.release])
    }

    @Test("With a session the offer is a form of two parts, whose boundary occurs in neither")
    func multipart() throws {
        let session = #"{"type":"realtime","instructions":"handset-part-0"}"#
        let request = OfferForm.realtime(session: Array(session.utf8)).request(
            Self.offer, to: try Self.address(), token: nil)
        #expect(request.contentType == "multipart/form-data; boundary=handset-part-1")
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == "--handset-part-1\r\nContent-Disposition: form-data; name=\"sdp\"\r\nContent-Type: application/sdp\r\n\r\n\(Self.offer)\r\n"
                + "--handset-part-1\r\nContent-Disposition: form-data; name=\"session\"\r\nContent-Type: application/json\r\n\r\n\(session)\r\n"
                + "--handset-part-1--\r\n")
        #expect(OfferForm.isSession(session))
        for other in ["", "[1]", "\"a\"", "{", String(repeating: " ", count: 16_383) + "{}"] {
            #expect(!OfferForm.isSession(other))
        }
    }

    @Test(
        "Locations are hung up at the same server; those at another, which is not to get the token, are left alone",
        arguments: [
            ("rtc_1", "https://bot.example/api/rtc_1/hangup"),
            ("/calls/rtc_1?model=a", "https://bot.example/calls/rtc_1/hangup"),
            ("http://other.example/c/1", nil), ("http://bot.example/c/1", nil), ("https://bot.example:444/c/1", nil),
            ("//other.example/1", nil), ("", nil),
            ("/", nil), ("/calls/", nil), ("ftp://a/b", nil), ("a b", nil), ("/a\r\nb", nil),
        ])
    func location(_ location: String, _ expected: String?) throws {
        var response = Self.created
        response.location = location
        let answer = try OfferForm.realtime(session: nil).answer(response, from: try Self.address())
        #expect(answer.hangUp?.text == expected)
    }

    @Test("Answers that cannot be used fail the leg with words that say why")
    func badAnswers() throws {
        let good = Self.answer.body
        for (form, response, why) in [
            (OfferForm.smallWebRTC(data: [:]), OfferResponse(status: 302, body: good), "redirects are not followed"),
            (.realtime(session: nil), OfferResponse(status: 401, body: good), "auth_token_file"),
            (.smallWebRTC(data: [:]), OfferResponse(status: 500, body: []), "status 500"),
            (.smallWebRTC(data: [:]), OfferResponse(status: 200, body: Array("v=0".utf8)), "not a JSON object"),
            (.smallWebRTC(data: [:]), OfferResponse(status: 200, body: Array("null".utf8)), "not a JSON object"),
            (
                .smallWebRTC(data: [:]), OfferResponse(status: 200, body: Array(#"{"type":"offer","sdp":"v=0"}"#.utf8)),
                "type"
            ),
            (
                .smallWebRTC(data: [:]), OfferResponse(status: 200, body: Array(#"{"type":"answer","sdp":1}"#.utf8)),
                "sdp"
            ),
            (
                .smallWebRTC(data: [:]), OfferResponse(status: 200, body: Array(#"{"type":"answer","sdp":"x"}"#.utf8)),
                "not SDP"
            ),
            (.realtime(session: nil), OfferResponse(status: 201, body: [0xFF]), "UTF-8"),
            (.realtime(session: nil), OfferResponse(status: 201, body: []), "not SDP"),
            (
                .realtime(session: nil), OfferResponse(status: 201, body: [UInt8](repeating: 0x76, count: 65_537)),
                "65536 bytes"
            ),
        ] {
            var bench = try Bench(form)
            bench.feed(.begin, .gathered, .described(Self.offer))
            bench.feed(.answered(response))
            guard case .closed(let failure?)? = bench.outputs.last else { throw Mismatch() }
            #expect(failure.contains(why), "\(failure)")
            #expect(bench.outputs.first == .release)
        }
        for count in good.indices {
            #expect(throws: OfferFault.self) {
                try OfferForm.smallWebRTC(data: [:]).answer(
                    OfferResponse(status: 200, body: Array(good[..<count])), from: try Self.address())
            }
        }
    }

    @Test("A bot that closes is heard until its last packets are played, and needs no notification")
    func goodbye() throws {
        var bench = try Bench.standing(.realtime(session: nil), Self.created)
        bench.feed(.goodbye)
        #expect(bench.outputs.isEmpty)
        bench.feed(.goodbye)
        bench.wait(.milliseconds(249))
        #expect(bench.outputs.isEmpty)
        bench.wait(.milliseconds(1))
        #expect(bench.outputs == [.release, .closed(failure: nil)])
        bench = try Bench.standing()
        bench.feed(.goodbye)
        bench.feed(.failed("the path is gone"))
        #expect(bench.outputs == [.release, .closed(failure: nil)])
    }

    @Test("A bot that is silent for five seconds has failed; one that comes back has not")
    func silence() throws {
        var bench = try Bench.standing()
        bench.feed(.quiet)
        bench.wait(.milliseconds(4_999))
        bench.feed(.back)
        #expect(bench.exchange.nextDeadline == nil)
        bench.wait(.seconds(60))
        #expect(bench.outputs.isEmpty)
        bench.feed(.quiet)
        bench.wait(.seconds(5))
        #expect(bench.outputs == [.release, .closed(failure: "the bot does not answer any more")])
    }

    @Test("Any failure ends the leg once, and notifies the server if it has begun a call")
    func failures() throws {
        var bench = try Bench(.realtime(session: nil))
        bench.feed(.begin)
        bench.feed(.failed("no media"))
        #expect(bench.outputs == [.release, .closed(failure: "no media")])
        bench.feed(.failed("again"), .gathered, .end)
        #expect(bench.outputs.isEmpty)
        bench = try Bench.standing(.realtime(session: nil), Self.created)
        bench.feed(.failed("no path"))
        #expect(bench.outputs.count == 3 && bench.outputs.dropFirst() == [.release, .closed(failure: "no path")])
        guard case .hangUp = bench.outputs[0] else { throw Mismatch() }
        bench = try Bench(.smallWebRTC(data: [:]))
        bench.feed(.begin, .gathered, .described(Self.offer), .answered(Self.answer))
        bench.feed(.goodbye)
        #expect(bench.outputs == [.release, .closed(failure: "the bot has closed the leg before it stood")])
    }

    @Test("A call that the server begins after its caller has gone is hung up")
    func lateAnswer() throws {
        var bench = try Bench(.realtime(session: nil))
        bench.feed(.begin, .gathered, .described(Self.offer))
        bench.feed(.end)
        #expect(bench.outputs == [.release])
        bench.feed(.answered(Self.created))
        guard case .hangUp? = bench.outputs.first else { throw Mismatch() }
        #expect(bench.outputs.count == 1)
    }

    @Test("A leg's wire passes sound on both ways, and nothing else")
    func wire() {
        var wire = LegWire()
        var outputs: [WireOutput] = []
        func feed(_ input: WireInput) -> [WireOutput] {
            outputs = []
            wire.handle(input, at: .zero, into: &outputs)
            return outputs
        }
        #expect(wire.transport == .offer && wire.callerFormat == .linear(48_000))
        #expect(feed(.sound([1, 2])).isEmpty && feed(.message(.binary([1, 2]))).isEmpty)
        #expect(feed(.connected(WireCall(call: "", stream: "", account: "", from: "", to: ""))).isEmpty)
        #expect(feed(.sound([1, 2])) == [.send(.binary([1, 2]))])
        #expect(feed(.message(.binary([3, 4]))) == [.play([3, 4], .linear(48_000))])
        #expect(feed(.digit("1", heldMilliseconds: 100)).isEmpty && feed(.message(.text([3]))).isEmpty)
        #expect(wire.counts.messages == 1 && wire.counts.soundBytes == 2)
        #expect(feed(.ended(.callOver)) == [.close])
        #expect(feed(.sound([1, 2])).isEmpty && feed(.ended(.callOver)).isEmpty)
    }
}
