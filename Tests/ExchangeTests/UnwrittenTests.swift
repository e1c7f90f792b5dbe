@testable import ExchangeCore
@testable import ExchangeServer
import HTTPTransport
import JSON
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOWebSocket
import SignalWire
import Testing
import Core
import Realtime

@Suite("What the exchange answers over HTTP while nothing can be stored") struct UnwrittenTests {
    private let key: SigningKey

    init() throws { key = try #require(SigningKey(name: "school", secret: String(repeating: "k", count: 32))) }

    private func request(
        _ method: HTTPMethod, _ path: String, bearer: Redacted<String>? = nil, body: [UInt8] = [],
        type: String = "application/json"
    ) -> RESTRequest {
        var headers: HTTPHeaders = ["Host": "localhost", "Content-Type": type]
        if let bearer { headers.add(name: "Authorization", value: "Bearer \(bearer.secret)") }
        return RESTRequest(method: method, path: path, headers: headers, body: body, trace: TraceID())
    }

    private func refreshing(_ token: Redacted<String>) throws -> RESTRequest {
        request(.POST, "/v1.1/token", body: try SignalCoding.encode(TokenRequest(refreshToken: token)))
    }

    private func signed(for user: UserID) throws -> Redacted<String> {
        let now = MonotonicClock.wallTime.seconds
        let token = SignedToken(application: "school", user: user, issued: now, expires: now + 600)
        return Redacted(try SignedTokenMint.sign(token, with: key))
    }

    @Test("An exchange that gives its database up answers as a standby, so that clients ask the next one at once")
    func givenUp() throws {
        let scenario = HubScenario(users: ["alice", "bob"], apiKeys: [key])
        let service = scenario.makeRESTService()
        var answers: [HTTPAnswer] = []
        func ask(_ path: String) throws {
            service.answer(request(.GET, path, bearer: try signed(for: "bob"))) { answers.append($0) }
        }
        // One is in flight behind a change that is being written, and two come while and after the database is given up.
        _ = scenario.hub.issueTokens(Grant(user: "alice", isAnonymous: false, application: "app"))
        try ask("/v1/allidentities")
        _ = scenario.hub.handOver()
        try ask("/v1/connection")
        scenario.settle()
        #expect(scenario.hub.failure != nil)
        try ask("/v1/connection")
        scenario.settle()
        try #require(answers.count == 3)
        #expect(answers[0].status == .ok, "what was accepted is answered")
        for answer in answers.dropFirst() {
            let failure = try SignalCoding.decode(RESTFailure.self, from: answer.body)
            #expect(failure.error.code == "standby" && answer.headers["Retry-After"].isEmpty)
        }
    }

    @Test("Once another process has taken the database, nothing is answered on sockets, and over HTTP as by a standby")
    func taken() throws {
        let scenario = HubScenario(users: ["alice", "bob"], apiKeys: [key])
        let service = scenario.makeRESTService()
        scenario.disk.fault = StoreError(.fenced, "it was taken")
        _ = scenario.hub.issueTokens(Grant(user: "alice", isAnonymous: false, application: "app"))
        scenario.settle()
        // Its connection was accepted by the system while this process was stopped.
        let late = try scenario.connect()
        let device = DeviceDescription(id: "d", name: "device")
        try scenario.ask(SessionStart(token: Redacted("token of bob"), device: device), on: late)
        scenario.settle()
        var frames: [WebSocketOpcode] = []
        while let frame = try late.readOutbound(as: WebSocketFrame.self) { frames.append(frame.opcode) }
        #expect(frames == [.connectionClose])
        var answer: HTTPAnswer?
        service.answer(request(.GET, "/v1/connection", bearer: try signed(for: "bob"))) { answer = $0 }
        scenario.settle()
        let failure = try SignalCoding.decode(RESTFailure.self, from: try #require(answer).body)
        #expect(failure.error.code == "standby")
    }

    @Test(
        "A hand-over whose last write is in doubt ends at once, and asks no client to move",
        arguments: [StoreError.Code.unknown, .fenced])
    func doubt(code: StoreError.Code) throws {
        for isPrepared in [true, false] {
            let scenario = HubScenario(users: ["alice"])
            let device = try scenario.device(of: "alice")
            scenario.disk.fault = StoreError(code, "the connection to the database was lost")
            _ = scenario.hub.issueTokens(Grant(user: "alice", isAnonymous: false, application: "app"))
            var hasEnded = false
            let ending = isPrepared ? scenario.hub.prepareHandOver() : scenario.hub.handOver(to: "ws://two.test/v1/rtc")
            ending.assumeIsolated().whenComplete { _ in hasEnded = true }
            scenario.settle()
            #expect(hasEnded, "SIGTERM waits for it")
            _ = scenario.hub.stop()
            var texts: [String] = []
            while let frame = try device.readOutbound(as: WebSocketFrame.self) {
                if frame.opcode == .text { texts.append(String(buffer: frame.data)) }
            }
            #expect(!texts.contains { $0.contains("ws://two.test") }, "\(texts)")
        }
    }

    @Test(
        "CONN-12: Clients of an exchange that ends are asked to move once another serves, and hear nothing else of it")
    func moves() throws {
        let scenario = HubScenario(users: ["alice", "bob"])
        let device = try scenario.device(of: "alice")
        func frames() throws -> [String] {
            var texts: [String] = []
            while let frame = try device.readOutbound(as: WebSocketFrame.self) {
                texts.append(frame.opcode == .text ? String(buffer: frame.data) : "\(frame.opcode)")
            }
            return texts
        }
        let commits = scenario.disk.commits.count
        _ = scenario.hub.handOver(to: "ws://two.test/v1/rtc")
        scenario.hub.notify(user: "alice", payload: "late")
        scenario.settle()
        #expect(scenario.disk.commits.count == commits + 1, "the event's number is reserved, and nothing written after")
        #expect(try frames().isEmpty, "there is nowhere to move to yet")
        _ = scenario.hub.stop(isFollowed: true)
        let asked = try frames()
        try #require(asked.count == 1)
        #expect(asked[0].contains("moveRequested") && asked[0].contains("ws://two.test/v1/rtc"), "\(asked)")
        scenario.advance(by: .milliseconds(900))
        #expect(try frames().isEmpty, "it may connect there first")
        scenario.advance(by: .milliseconds(200))
        #expect(try frames().count == 1, "then its socket is closed")
    }

    @Test("While the database cannot be written, requests get 503 with Retry-After: 5, and no login is lost")
    func failed() throws {
        let scenario = HubScenario(users: ["alice", "bob", "carol"], apiKeys: [key])
        let service = scenario.makeRESTService()
        func answer(_ request: RESTRequest) throws -> HTTPAnswer {
            var answer: HTTPAnswer?
            service.answer(request) { answer = $0 }
            scenario.advance(by: .milliseconds(10))
            return try #require(answer, "\(request.path)")
        }
        let grant = Grant(user: "alice", isAnonymous: false, application: "app")
        let tokens = try #require(scenario.hub.issueTokens(grant))
        let refresh = try #require(tokens.refresh)
        scenario.settle()
        let (bob, carol) = (try signed(for: "bob"), try signed(for: "carol"))
        let requests = [
            try refreshing(refresh), request(.POST, "/v1.1/logout", bearer: tokens.access),
            request(.GET, "/v1/allidentities", bearer: bob),
            request(.POST, "/whip/alice", bearer: carol, type: "application/sdp"),
            request(.DELETE, "/whip/session/s", bearer: carol),
            request(.POST, "/v1.1/login"), request(.POST, "/v1.1/enroll"),
        ]
        scenario.disk.fault = StoreError(.full, "the disk is full")
        _ = scenario.hub.issueTokens(grant)
        scenario.advance(by: .milliseconds(10))
        #expect(scenario.hub.failure != nil)
        for request in requests {
            let refusal = try answer(request)
            #expect(refusal.status == .serviceUnavailable, "\(request.path)")
            #expect(refusal.headers["Retry-After"] == ["5"], "\(request.path)")
        }
        #expect(try answer(request(.GET, "/")).status == .ok, "the page needs no database")
        // The exchange cannot know whose body this is.
        let long = service.tooLong(limit: SignalLimits.loginBytes, trace: TraceID())
        #expect(long.status == .serviceUnavailable && long.headers["Retry-After"] == ["5"])

        scenario.disk.fault = nil
        scenario.settle()
        #expect(scenario.hub.failure == nil)
        #expect(service.tooLong(limit: SignalLimits.loginBytes, trace: TraceID()).status == .payloadTooLarge)
        #expect(try answer(request(.GET, "/v1/allidentities", bearer: bob)).status == .ok)
        let stream = try answer(request(.POST, "/whip/alice", bearer: carol, type: "application/sdp"))
        #expect(stream.status == .badRequest, "the token is accepted, and no description is there")
        #expect(try answer(request(.GET, "/v1/allidentities", bearer: tokens.access)).status == .ok, "not logged out")
        #expect(try answer(refreshing(refresh)).status == .ok)
    }

    @Test("While too many changes wait for the disk, a refresh token gets 503 and remains valid")
    func behind() throws {
        var limits = CommitGate.Limits()
        limits.changes = 1
        let scenario = HubScenario(users: ["alice"], limits: limits, apiKeys: [key])
        let service = scenario.makeRESTService()
        let grant = Grant(user: "alice", isAnonymous: false, application: "app")
        let refresh = try #require(scenario.hub.issueTokens(grant)?.refresh)
        scenario.settle()
        // The first is on its way to the disk, the second waits.
        for _ in 0..<2 { _ = scenario.hub.issueTokens(grant) }
        #expect(scenario.hub.journal?.isFull == true)
        var answers: [HTTPAnswer] = []
        service.answer(try refreshing(refresh)) { answers.append($0) }
        scenario.settle()
        #expect(answers.first?.status == .serviceUnavailable && answers.first?.headers["Retry-After"] == ["5"])
        #expect(scenario.hub.snapshot().crowdedDisk == 1)
        service.answer(try refreshing(refresh)) { answers.append($0) }
        scenario.settle()
        #expect(answers.last?.status == .ok && answers.count == 2)
    }
}
