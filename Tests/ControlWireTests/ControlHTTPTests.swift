import Core
import Foundation
import JSON
import Testing

@testable import ControlWire

@Suite("Requests over HTTP as values")
struct ControlHTTPTests {
    private func request(
        _ method: String, _ target: String, _ body: String = "", type: String? = "application/json", key: String? = nil
    ) throws(ControlProblem) -> ControlRequest? {
        let operation = try ControlOperation(
            ControlHTTPRequest(method, target, contentType: type, idempotencyKey: key, body: Array(body.utf8)))
        guard case .request(let request) = operation.work else { return nil }
        return request
    }

    private func problem(
        _ method: String, _ target: String, _ body: String = "", type: String? = "application/json"
    ) -> ControlProblem? {
        do throws(ControlProblem) {
            _ = try request(method, target, body, type: type)
            return nil
        } catch {
            return error
        }
    }

    @Test("Each action of the socket's wire is a request of HTTP, with the same members")
    func actions() throws {
        #expect(try request("GET", "/v1/status") == ControlRequest(.status))
        #expect(try request("HEAD", "/v1/status?account=desk") == ControlRequest(.status, account: "desk"))
        #expect(try request("GET", "/v1/calls?after=7&limit=2") == ControlRequest(.calls(.page(after: 7, limit: 2))))
        #expect(try request("GET", "/v1/calls/7") == ControlRequest(.calls(.one(7))))
        #expect(try request("POST", "/v1/calls", #"{"to":"bob"}"#) == ControlRequest(.call(to: "bob")))
        #expect(try request("POST", "/v1/calls/7/answer", type: nil) == ControlRequest(.answer(7)))
        #expect(
            try request("POST", "/v1/calls/7/reject", #"{"busy":true}"#) == ControlRequest(.reject(7, isBusy: true)))
        #expect(try request("POST", "/v1/calls/7/hangup", "{}") == ControlRequest(.hangUp(7)))
        #expect(try request("POST", "/v1/calls/7/dtmf", #"{"keys":"1#"}"#) == ControlRequest(.dtmf("1#", 7)))
        #expect(try request("POST", "/v1/calls/7/play", #"{"file":"/a"}"#) == ControlRequest(.play(file: "/a", 7)))
        #expect(
            try request("POST", "/v1/calls/7/record", #"{"start":true}"#)
                == ControlRequest(.record(.start(file: nil), 7)))
        #expect(
            try request("POST", "/v1/calls/7/transfer", #"{"to":"carol","to_call":8}"#)
                == ControlRequest(.transfer(7, to: "carol", replacing: 8)))
        #expect(try request("POST", "/v1/calls/7/card") == ControlRequest(.card(7)))
        #expect(try request("POST", "/v1/sound/mute") == ControlRequest(.mute(true)))
        #expect(
            try request("POST", "/v1/sound/volume", #"{"playback_db":-6}"#)
                == ControlRequest(.volume(playbackDB: -6, microphoneDB: nil)))
        #expect(try request("POST", "/v1/drain") == ControlRequest(.drain(true)))
    }

    @Test(
        "The history is searched by name, outcome, findings and time, page by page, and a record has a path of its own")
    func history() throws {
        #expect(try request("GET", "/v1/history") == ControlRequest(.history(.init())))
        #expect(try request("GET", "/v1/history/a3F0-1_") == ControlRequest(.history(.init(record: "a3F0-1_"))))
        var query = ControlHistoryQuery()
        (query.search, query.outcome, query.hasFindings) = ("zoë & co", "busy", false)
        (query.from, query.to, query.limit) = (0, ControlLimits.times.upperBound, 1)
        query.before = .init(time: 7, record: "a-1")
        let target =
            "/v1/history?search=zo%C3%AB+%26+co&outcome=busy&findings=false&from_ms=0&to_ms=253402300799999&limit=1"
            + "&before=7.a-1"
        #expect(try request("GET", target) == ControlRequest(.history(query)))
        for wrong in [
            "limit=0", "limit=65", "from_ms=-1", "findings=1", "before=7", "before=x.a", "before=7.", "search=",
        ] {
            #expect(problem("GET", "/v1/history?\(wrong)")?.fault.code == .wrongValue, "\(wrong)")
        }
        let longest = String(repeating: "a", count: ControlLimits.recordBytes)
        #expect(problem("GET", "/v1/history/\(longest)") == nil)
        for name in [longest + "a", "", "a.b", "a%2Fb", ".."] {
            #expect(problem("GET", "/v1/history/\(name)")?.fault.code == .notFound, "\(name)")
        }
        #expect(problem("POST", "/v1/history")?.fault.code == .methodNotAllowed)
    }

    private func recording(_ method: String, _ target: String, range: String? = nil) throws(ControlProblem)
        -> ControlRecordingQuery?
    {
        var request = ControlHTTPRequest(method, target)
        request.range = range
        let operation = try ControlOperation(request)
        guard case .recording(let query) = operation.work else { return nil }
        return query
    }

    @Test("A recording is named by its record and its number, and no path can be given")
    func recordings() throws {
        let first = try #require(try recording("GET", "/v1/history/a3F0-1_/recording"))
        #expect(first.record == "a3F0-1_" && first.number == 1 && first.account == nil)
        let third = try #require(try recording("GET", "/v1/history/a/recording?number=3&account=desk"))
        #expect(third.number == 3 && third.account == "desk")
        for query in ["number=0", "number=17", "number=-1", "number=x", "file=/etc/passwd", "path=a"] {
            #expect(problem("GET", "/v1/history/a/recording?\(query)")?.fault.code == .wrongValue, "\(query)")
        }
        for path in [
            "a/recording/", "a/recording/b.wav", "../recording", "..%2F..%2Fetc/recording", "a%2Fb/recording",
            "/recording",
            "a/recording/../../b", "a.wav/recording",
        ] {
            #expect(problem("GET", "/v1/history/\(path)")?.fault.code == .notFound, "\(path)")
        }
        #expect(
            problem("POST", "/v1/history/a/recording")?.answer.fields.first { $0.name == "Allow" }?.value == "GET, HEAD"
        )
        #expect(problem("GET", "/v1/history/a/recording?token=x")?.fault.code == .tokenInURL)
    }

    @Test("A range selects bytes as RFC 9110 says; what is none, and several ranges, select the whole file")
    func ranges() {
        let expected: [(String?, ByteSelection)] = [
            (nil, .whole), ("bytes=0-0", .part(0..<1)), ("bytes=0-", .part(0..<1_000)), ("BYTES=1-99", .part(1..<100)),
            ("bytes=999-", .part(999..<1_000)), ("bytes=0-999", .part(0..<1_000)),
            ("bytes=500-9999", .part(500..<1_000)),
            ("bytes=0-99999999999999999999999", .part(0..<1_000)), ("bytes=-1", .part(999..<1_000)),
            ("bytes=-1000", .part(0..<1_000)), ("bytes=-99999999999999999999999", .part(0..<1_000)),
            ("bytes=1000-", .unsatisfiable), ("bytes=1000-1001", .unsatisfiable), ("bytes=-0", .unsatisfiable),
            ("bytes=99999999999999999999999-", .unsatisfiable),
            ("bytes=2-1", .whole), ("bytes=-", .whole), ("bytes=", .whole), ("bytes=1", .whole), ("bytes=a-b", .whole),
            ("bytes=1-2,4-5", .whole), ("bytes=--1", .whole), ("bytes=+1-2", .whole), ("lines=1-2", .whole),
            ("", .whole),
            ("bytes=1-2-3", .whole), ("bytes=٣-٤", .whole), ("bytes =0-1", .whole),
        ]
        for (field, selection) in expected {
            #expect(ByteSelection(field, of: 1_000) == selection, "\(field ?? "none")")
        }
        #expect(
            ByteSelection("bytes=0-", of: 0) == .unsatisfiable && ByteSelection("bytes=-5", of: 0) == .unsatisfiable)
        #expect(ByteSelection(nil, of: 0) == .whole)
    }

    @Test("The answer with a part says which it is; ranges are for GET, and not of another version of the file")
    func heads() throws {
        func head(_ method: String, _ range: String?, if tag: String? = nil) throws -> (ControlHTTPAnswer, Range<Int>?)
        {
            var request = ControlHTTPRequest(method, "/v1/history/a/recording")
            (request.range, request.ifRange) = (range, tag)
            guard case .recording(let query) = try ControlOperation(request).work else {
                return (.init(status: 0, body: []), nil)
            }
            let (answer, body) = query.head(of: 1_000, entityTag: "\"v1\"", contentType: "audio/wav")
            return (answer, body)
        }
        func field(_ name: String, of answer: ControlHTTPAnswer) -> String? {
            answer.fields.first { $0.name == name }?.value
        }
        let (part, bytes) = try head("GET", "bytes=10-19")
        #expect(part.status == 206 && bytes == 10..<20 && part.contentType == "audio/wav")
        #expect(field("Content-Range", of: part) == "bytes 10-19/1000" && field("Accept-Ranges", of: part) == "bytes")
        let (whole, all) = try head("GET", nil)
        #expect(whole.status == 200 && all == 0..<1_000 && field("ETag", of: whole) == "\"v1\"")
        #expect(field("Content-Range", of: whole) == nil)
        #expect(try head("HEAD", "bytes=10-19").0.status == 200)
        #expect(try head("GET", "bytes=10-19", if: "\"v1\"").0.status == 206)
        for tag in ["\"v2\"", "W/\"v1\"", "Sun, 29 Nov 2026 12:00:00 GMT"] {
            #expect(try head("GET", "bytes=10-19", if: tag).0.status == 200, "\(tag)")
        }
        let (none, nothing) = try head("GET", "bytes=1000-")
        #expect(none.status == 416 && nothing == nil && field("Content-Range", of: none) == "bytes */1000")
        #expect(none.contentType == ControlProblem.contentType)
    }

    @Test("Records are in the order of their ends, and those of one moment in that of their names")
    func positions() {
        let positions: [ControlHistoryQuery.Position] = [
            .init(time: 2, record: "a"), .init(time: 1, record: "b"), .init(time: 1, record: "a"),
        ]
        #expect(positions.sorted().map(\.description) == ["1.a", "1.b", "2.a"])
        for position in positions { #expect(ControlHistoryQuery.Position(position.description) == position) }
    }

    @Test("Every request of the wire has a route, except watch, which is the stream of events")
    func complete() {
        let names = ControlRoute.all.compactMap { route -> ControlRequest.Name? in
            if case .request(let name, _) = route.work { return name }
            return nil
        }
        #expect(Set(names).union([.watch]) == Set(ControlRequest.Name.allCases))
    }

    @Test("An unknown member, parameter or path is refused by its name, and a wrong method with those that there are")
    func unknown() throws {
        let member = try #require(problem("POST", "/v1/calls", #"{"to":"bob","when":1}"#))
        #expect(member.status == 422 && member.fault.message.contains("\"when\"; it has to"))
        // Members that the path and the query give cannot be given twice.
        #expect(problem("POST", "/v1/calls/7/answer", #"{"call":8}"#)?.fault.code == .wrongValue)
        #expect(problem("POST", "/v1/calls", #"{"to":"bob","request":"drain"}"#)?.fault.code == .wrongValue)
        #expect(problem("GET", "/v1/calls?limt=2")?.fault.message.contains("\"limt\"") == true)
        #expect(problem("GET", "/v1/calls?limit=2&limit=3")?.fault.code == .wrongValue)
        #expect(problem("GET", "/v1/calls?limit=65")?.fault.code == .wrongValue)
        for path in ["/", "/v1", "/v1/status/", "/v1/calls/0", "/v1/calls/x", "/v1/calls/-1", "v1/status", ""] {
            #expect(problem("GET", path)?.fault.code == .notFound, "\(path)")
        }
        let method = try #require(problem("DELETE", "/v1/calls"))
        #expect(method.answer.status == 405)
        #expect(method.answer.fields.first { $0.name == "Allow" }?.value == "GET, HEAD, POST")
        #expect(problem("HEAD", "/v1/events")?.answer.fields.first?.value == "GET")
    }

    @Test("A token in a URL, a body of another type, that is too long, too deep or no object is refused")
    func refused() {
        for name in ["token", "access_token", "Authorization", "api_key"] {
            #expect(problem("GET", "/v1/status?\(name)=x")?.fault.code == .tokenInURL, "\(name)")
        }
        for target in ["/v1/status?token=x", "/?a=%ZZ&Access_Token", "/v1/x?limit=2&%74oken=x"] {
            #expect(ControlOperation.tokenProblem(inTarget: target)?.fault.code == .tokenInURL, "\(target)")
        }
        for target in ["/v1/status", "/token", "/v1/calls?limit=2", "?", ""] {
            #expect(ControlOperation.tokenProblem(inTarget: target) == nil, "\(target)")
        }
        #expect(problem("POST", "/v1/calls", "to=bob", type: "text/plain")?.status == 415)
        #expect(problem("POST", "/v1/calls", #"{"to":"bob"}"#, type: nil)?.status == 415)
        #expect(problem("POST", "/v1/calls", "[]")?.fault.code == .malformed)
        let deep = String(repeating: "[", count: 9) + String(repeating: "]", count: 9)
        #expect(problem("POST", "/v1/calls", #"{"to":\#(deep)}"#)?.fault.code == .malformed)
        let long = #"{"to":"\#(String(repeating: "b", count: ControlLimits.requestBytes))"}"#
        #expect(problem("POST", "/v1/calls", long)?.status == 413)
    }

    @Test("Any bytes as a target or a body are a request or a problem")
    func anything() {
        var seed: UInt64 = 7
        func next() -> UInt8 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: seed >> 33)
        }
        for _ in 0..<2_000 {
            let text = String(decoding: (0..<(Int(next()) % 40)).map { _ in next() }, as: UTF8.self)
            _ = problem("GET", "/v1/calls?" + text)
            _ = problem("POST", "/v1/calls/" + text, text)
        }
    }

    @Test("A problem is in the form of RFC 9457, with the code of the error")
    func problems() throws {
        let answer = ControlProblem(ControlFault(.noSuchCall, "there is no call 7")).answer
        #expect(answer.status == 404 && answer.contentType == "application/problem+json")
        let details = try JSONDecoder().decode(JSONValue.self, from: Data(answer.body))
        #expect(details["type"] == "urn:handset:problem:no_such_call" && details["code"] == "no_such_call")
        #expect(details["detail"] == "there is no call 7" && details["status"] == 404)
        // A code of a later version.
        #expect(ControlProblem(ControlFault(.init(rawValue: "new"), "x")).status == 409)
    }

    @Test("Every code in Tests/Frozen/control.txt has a status and a title")
    func codes() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let frozen = try String(contentsOf: root.appendingPathComponent("Frozen/control.txt"), encoding: .utf8)
        let codes = frozen.split(separator: "\n").filter { $0.hasPrefix("error ") }.map { String($0.dropFirst(6)) }
        #expect(codes.count > 20)
        #expect(Set(codes) == Set(ControlProblem.kinds.map(\.code.rawValue)))
    }
}

@Suite("The description in OpenAPI")
struct ControlDescriptionTests {
    private let document = ControlDescription.document

    private func names(_ value: JSONValue?) -> Set<String> {
        guard case .object(let members)? = value else { return [] }
        return Set(members.keys)
    }

    @Test("It has every route with its answer, and every code of an error")
    func routes() throws {
        #expect(document["openapi"] == "3.1.0")
        for route in ControlRoute.all {
            let operation = try #require(document["paths"]?[route.path]?[route.method.rawValue.lowercased()])
            #expect(operation["operationId"] == .string(route.name))
            #expect(names(operation["responses"]).contains { $0.hasPrefix("2") })
            for kind in ControlDescription.problems(of: route) {
                let text = String(decoding: ControlCoding.line(try #require(operation["responses"])), as: UTF8.self)
                #expect(text.contains("\"\(kind.code.rawValue)\""), "\(route.path) \(kind.code.rawValue)")
            }
        }
        let text = String(decoding: ControlDescription.openAPI, as: UTF8.self)
        for kind in ControlProblem.kinds {
            #expect(text.contains("\"\(kind.code.rawValue)\""), "\(kind.code.rawValue)")
        }
        #expect(Set(ControlRoute.all.map(\.name)).count == ControlRoute.all.count)
    }

    @Test("References lead to schemas, and the schemas have the members that are written")
    func schemas() throws {
        let schemas = try #require(document["components"]?["schemas"])
        let text = String(decoding: ControlDescription.openAPI, as: UTF8.self)
        for part in text.components(separatedBy: "#/components/schemas/").dropFirst() {
            #expect(schemas[String(part.prefix { $0 != "\"" })] != nil)
        }
        var status = ControlStatus(
            version: "1", pid: 1, uptimeSeconds: 1, device: "d", connection: "c", user: "u", server: "s", behaviour: "b"
        )
        (status.sound, status.isDraining) = (ControlSound(isMuted: true, volumeDB: 0, microphoneDB: 0), true)
        status.card = ControlCard(
            playback: "p", capture: "c", isRunning: true, losses: 0, playbackXruns: 0, captureXruns: 0)
        status.levels = ControlLevels(
            microphoneDBFS: 0, microphonePeakDBFS: 0, loudspeakerDBFS: 0, loudspeakerPeakDBFS: 0)
        status.load = ControlLoad(busy: 0, complexityLimit: 1, takesCalls: true)
        var account = ControlAccount(account: "a", device: "d", connection: "c", server: "s", behaviour: "b")
        (account.user, account.failure) = ("u", "f")
        status.accounts = [account]
        var call = ControlCall(
            call: 1, invite: "i", peer: "p", isIncoming: true, state: .talking, durationSeconds: 1, account: "a")
        var media = ControlCallMedia()
        media.roundTrip = 1
        call.media = media
        call.slot = 1
        status.calls = [call]
        var record = ControlRecord(
            record: "r", peer: "p", isIncoming: true, reason: "busy", endedBy: "local", outcome: "o")
        (record.account, record.invite, record.began, record.ended) = ("a", "i", 1, 2)
        (record.answeredAfter, record.establishedAfter, record.mediaAfter) = (1, 2, 3)
        (record.cause, record.error, record.hangUpCause, record.remark) = ("c", "e", "h", "r")
        (record.transferredBy, record.transferredTo, record.decidedBy, record.media) = ("t", "t", "d", [:])
        let recording = ControlRecording(number: 1, file: "/a.wav", began: 1)
        (record.timeline, record.moments, record.recordings) = ([:], [], [recording])
        let finding = ControlFinding(code: "c", side: "s", whose: "w", text: "t", because: "b", advice: "a")
        func expect(_ value: some Encodable, is name: String, and more: Set<String> = []) throws {
            let written = try JSONDecoder().decode(JSONValue.self, from: Data(ControlCoding.line(value)))
            #expect(names(schemas[name]?["properties"]) == names(written).union(more), "\(name)")
        }
        try expect(status, is: "Status", and: ["events"])
        try expect(call, is: "Call")
        try expect(media, is: "Media")
        try expect(record, is: "Record")
        try expect(finding, is: "Finding")
        try expect(recording, is: "Recording")
        try expect(account, is: "Account")
        try expect(try #require(status.sound), is: "Sound")
        try expect(try #require(status.card), is: "Card")
        try expect(try #require(status.load), is: "Load")
        try expect(try #require(status.levels), is: "Levels")
    }
}

@Suite("Requests that are sent again")
struct IdempotencyTableTests {
    private let answer = ControlHTTPAnswer(status: 201, body: [1])
    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

    private func code(_ verdict: IdempotencyTable.Verdict) -> ControlFault.Code? {
        if case .refuse(let problem) = verdict { return problem.fault.code }
        return nil
    }

    @Test("A request is carried out once; another one with its key is refused, and so is one before the answer")
    func once() {
        var table = IdempotencyTable()
        #expect(table.begin("k", fingerprint: [1], at: at(0)) == .proceed)
        #expect(code(table.begin("k", fingerprint: [1], at: at(1))) == .idempotencyBusy)
        table.finish("k", with: answer)
        #expect(table.begin("k", fingerprint: [1], at: at(2)) == .replay(answer))
        #expect(code(table.begin("k", fingerprint: [2], at: at(2))) == .idempotencyMismatch)
    }

    @Test("A request that failed may be tried again with its key")
    func failed() {
        var table = IdempotencyTable()
        #expect(table.begin("k", fingerprint: [1], at: at(0)) == .proceed)
        table.finish("k", with: ControlHTTPAnswer(status: 503, body: []))
        #expect(table.begin("k", fingerprint: [1], at: at(1)) == .proceed)
    }

    @Test("Requests that fail, each with a new key, leave nothing behind")
    func failures() {
        var table = IdempotencyTable()
        for number in 0..<10_000 {
            #expect(table.begin("\(number)", fingerprint: [1], at: at(0)) == .proceed)
            table.finish("\(number)", with: ControlHTTPAnswer(status: 503, body: []))
            #expect(table.count == 0 && table.places <= 66)
        }
    }

    @Test("An answer is kept for half an hour, and one that is missing longer keeps its key")
    func time() {
        var table = IdempotencyTable()
        #expect(table.begin("k", fingerprint: [1], at: at(0)) == .proceed)
        #expect(table.begin("slow", fingerprint: [1], at: at(0)) == .proceed)
        table.finish("k", with: answer)
        #expect(table.begin("k", fingerprint: [1], at: at(1_799)) == .replay(answer))
        #expect(table.begin("k", fingerprint: [2], at: at(1_800)) == .proceed)
        #expect(code(table.begin("slow", fingerprint: [1], at: at(4_000))) == .idempotencyBusy)
    }

    @Test("At 10,000 keys, or 8 MiB, a further key is refused, and there is room again when the oldest expire")
    func bounds() {
        var table = IdempotencyTable()
        for number in 0..<IdempotencyTable.capacity {
            #expect(table.begin("\(number)", fingerprint: [1], at: at(0)) == .proceed)
            table.finish("\(number)", with: answer)
        }
        #expect(code(table.begin("more", fingerprint: [1], at: at(1))) == .tooMany)
        #expect(table.begin("7", fingerprint: [1], at: at(1)) == .replay(answer))
        #expect(table.begin("more", fingerprint: [1], at: at(1_800)) == .proceed)
        #expect(table.count == 1)
        var large = IdempotencyTable()
        let body = ControlHTTPAnswer(status: 201, body: [UInt8](repeating: 1, count: 4_096))
        var count = 0
        while large.begin("\(count)", fingerprint: [1], at: at(0)) == .proceed {
            large.finish("\(count)", with: body)
            count += 1
        }
        #expect((2_000...2_048).contains(count), "\(count)")
    }
}
