import Foundation
import JSON
import Testing

@testable import ControlWire

@Suite("Requests of a client over HTTP")
struct ControlHTTPCallTests {
    private static let actions: [ControlRequest.Action] = [
        .status, .mute(true), .mute(false), .volume(playbackDB: -6, microphoneDB: 3.5),
        .volume(playbackDB: nil, microphoneDB: 0), .call(to: "bob \"x\" & é@example.org"), .answer(1), .answer(nil),
        .reject(1, isBusy: true), .reject(nil, isBusy: false), .hangUp(1), .hangUp(nil), .card(1), .dtmf("1#", 1),
        .dtmf("*", nil), .drain(true), .drain(false), .play(file: "/a b.wav", 1), .play(file: "/a.wav", nil), .stop(1),
        .stop(nil), .record(.start(file: "/b.wav"), 1), .record(.start(file: nil), nil), .record(.stop, 1),
        .record(.stop, nil), .attach(1), .attach(nil), .detach(1), .detach(nil),
        .transfer(1, to: "carol", replacing: 2), .transfer(1, to: "carol", replacing: nil),
        .bridge(1, to: 2, goesBack: true), .unbridge(1), .unbridge(nil), .cancelHandover(1),
        .park(1, ControlParking(music: "/a.wav", longestSeconds: 60, endsThen: true)), .park(nil, ControlParking()),
        .pickUp(slot: 1, 2, goesBack: true), .conferences, .conferenceMute(1, true), .conferenceMute(1, false),
        .conferenceRemove(1), .conferenceRecord(1, .start(file: "/b.wav")), .conferenceRecord(1, .stop),
        .calls(.one(7)), .calls(.page(after: 1, limit: 2)), .calls(.page(after: 0, limit: 64)),
        .history(ControlHistoryQuery(record: "r")), .history(query), .handover(1, handover),
    ]

    private static var query: ControlHistoryQuery {
        var query = ControlHistoryQuery()
        (query.search, query.outcome, query.hasFindings) = ("b o&b", "busy", true)
        (query.from, query.to) = (1, 2)
        return query
    }

    private static var handover: ControlHandover {
        var asked = ControlHandover(to: "carol")
        (asked.whisper, asked.acceptKey, asked.music, asked.ringSeconds) = (.text("a \"b\""), "1", .bot, 20)
        return asked
    }

    @Test("What is written for a request is read as that request", arguments: Self.actions, [nil, "de sk"])
    func requests(_ action: ControlRequest.Action, _ account: String?) throws {
        let call = ControlHTTPCall(ControlRequest(action, account: account, id: 7))
        let operation = try ControlOperation(
            ControlHTTPRequest(
                call.method, call.target, contentType: call.body.isEmpty ? nil : "application/json", body: call.body))
        guard case .request(let read) = operation.work else {
            Issue.record("\(call.target) is no request")
            return
        }
        #expect(read == ControlRequest(action, account: account), "\(call.target)")
    }

    @Test("A call that need not be named is `current`, and a request that needs one refuses that")
    func current() throws {
        #expect(ControlHTTPCall(ControlRequest(.hangUp(nil))).target == "/v1/calls/current/hangup")
        for path in ["card", "transfer", "bridge", "conference_mute"] {
            #expect(throws: ControlProblem.self) {
                try ControlOperation(ControlHTTPRequest("POST", "/v1/calls/current/\(path)"))
            }
        }
        #expect(throws: ControlProblem.self) { try ControlOperation(ControlHTTPRequest("GET", "/v1/calls/current")) }
        #expect(
            ControlHTTPCall.events(levels: true, account: "a b", after: "oldest")
                == "/v1/events?after=oldest&levels=true&account=a%20b")
    }

    @Test("An answer is read as the socket of lines has it")
    func answers() throws {
        func reply(_ action: ControlRequest.Action, _ reply: ControlReply) throws -> (
            reply: ControlReply, line: [UInt8]
        ) {
            let call = ControlHTTPCall(ControlRequest(action))
            let operation = try ControlOperation(
                ControlHTTPRequest(call.method, call.target, contentType: "application/json", body: call.body))
            let answer = operation.answer(reply, events: ControlEventsState(cursor: "c", clients: 0, dropped: 0))
            return call.reply(status: answer.status, body: answer.body)
        }
        let call = ControlCall(
            call: 1, invite: "i", peer: "p", isIncoming: true, state: .talking, durationSeconds: 1, account: "a")
        var status = ControlStatus(
            version: "1", pid: 1, uptimeSeconds: 1, device: "d", connection: "c", user: "u", server: "s", behaviour: "b"
        )
        status.levels = ControlLevels(
            microphoneDBFS: -.infinity, microphonePeakDBFS: 0, loudspeakerDBFS: 0, loudspeakerPeakDBFS: 0)
        (status.calls, status.callCount) = ([call], 1)
        let read = try reply(.status, ControlReply(status: status))
        #expect(read.reply.ok && read.reply.status?.calls == [call])
        #expect(String(decoding: read.line, as: UTF8.self).contains(#""cursor":"c""#))
        #expect(try reply(.hangUp(1), ControlReply(call: 1, account: "a")).reply == ControlReply(call: 1, account: "a"))
        let sound = ControlSound(isMuted: true, volumeDB: -6, microphoneDB: 0)
        #expect(try reply(.mute(true), ControlReply(sound: sound)).reply.sound == sound)
        #expect(try reply(.drain(true), ControlReply()).reply == ControlReply())
        var calls = ControlReply()
        (calls.calls, calls.more) = ([call], true)
        #expect(try reply(.calls(.page(after: 0, limit: 1)), calls).reply == calls)
        let fault = ControlFault(.severalCalls, "name one")
        #expect(try reply(.hangUp(nil), ControlReply(id: nil, fault)).reply == ControlReply(id: nil, fault))
    }

    @Test("What is no answer of a device is a failure", arguments: ["", "[]", "{}", "nonsense", #"{"call":"x"}"#])
    func foreign(body: String) {
        for action in [.status, .hangUp(1), .conferences, .mute(true), .calls(.one(1))] as [ControlRequest.Action] {
            for status in [200, 404, 500] {
                let reply = ControlHTTPCall(ControlRequest(action)).reply(status: status, body: Array(body.utf8)).reply
                #expect(!reply.ok && reply.error?.code == .failed, "\(action) \(status)")
            }
        }
    }
}
