import ControlWire
import Foundation
import JSON
import TestSupport
import Testing

/// What programs read and write at a device's control socket: Tests/Frozen/control.txt.
struct FrozenControlTests {
    private static let sound = ControlSound(isMuted: true, volumeDB: -6, microphoneDB: 3)
    private static let levels = ControlLevels(
        microphoneDBFS: -30, microphonePeakDBFS: -20, loudspeakerDBFS: -40, loudspeakerPeakDBFS: -35)
    private static let load = ControlLoad(busy: 0.5, complexityLimit: 10, takesCalls: true)

    private static let actions: [ControlRequest.Action] = [
        .status, .mute(true), .mute(false), .volume(playbackDB: -6, microphoneDB: 3), .call(to: "bob"), .answer(1),
        .reject(1, isBusy: true), .hangUp(1), .card(1), .dtmf("1#", 1), .watch(levels: true),
        .drain(true), .drain(false),
        .play(file: "/a.wav", 1), .stop(1), .record(.start(file: "/b.wav"), 1), .record(.stop, 1), .attach(1),
        .detach(1), .transfer(1, to: "carol", replacing: 2),
        .bridge(1, to: 2, goesBack: true), .unbridge(1),
        .handover(1, handover(.text("a"), .bot)), .handover(1, handover(.file("/a.wav"), .file("/b.wav"))),
        .cancelHandover(1), .park(1, ControlParking(music: "/a.wav", longestSeconds: 60)),
        .pickUp(slot: 1, 2, goesBack: true), .conferences, .conferenceMute(1, true),
        .conferenceMute(1, false),
        .conferenceRemove(1), .conferenceRecord(1, .start(file: "/b.wav")), .conferenceRecord(1, .stop),
        .queues, .queueTake("support", 1, goesBack: true), .queueRemove(1),
        .calls(.one(1)), .calls(.page(after: 1, limit: 2)), .history(.init(record: "r")),
        .history(query),
    ]

    private static var query: ControlHistoryQuery {
        var query = ControlHistoryQuery()
        (query.search, query.outcome, query.hasFindings) = ("bob", "busy", true)
        (query.from, query.to, query.before) = (1, 2, .init(time: 1, record: "r"))
        return query
    }

    private static var record: ControlRecord {
        var record = ControlRecord(
            record: "r", peer: "bob", isIncoming: true, reason: "completed", endedBy: "remote", outcome: "why")
        (record.account, record.invite, record.began, record.ended) = ("desk", "i", 1, 2)
        (record.answeredAfter, record.establishedAfter, record.mediaAfter) = (1, 2, 3)
        (record.cause, record.error, record.hangUpCause, record.remark) = ("why", "why", "request", "why")
        (record.transferredBy, record.transferredTo, record.decidedBy) = ("carol", "carol", "rule")
        record.findings = [
            .init(code: "jitter", side: "path_here", whose: "why", text: "what", because: "why", advice: "what")
        ]
        record.media = ["received": 1]
        record.timeline = ["rows": 1]
        record.moments = [["at": 1, "kind": "direction", "text": "inactive"]]
        record.recordings = [ControlRecording(number: 1, file: "/b.wav", began: 1)]
        return record
    }

    private static var media: ControlCallMedia {
        var media = ControlCallMedia()
        media.roundTrip = 1
        return media
    }

    private static var file: ControlEvent.File {
        var file = ControlEvent.File(state: "ended", path: "/b.wav", reason: "failed")
        (file.durationSeconds, file.missedSeconds, file.error, file.room) = (1.5, 0.5, "why", "team")
        return file
    }

    private static var failedFile: ControlEvent.File {
        var file = ControlEvent.File(state: "failed", path: "/a.wav")
        file.error = "why"
        return file
    }

    private static func handover(
        _ whisper: ControlHandover.Whisper, _ music: ControlHandover.Music
    ) -> ControlHandover {
        var asked = ControlHandover(to: "carol")
        (asked.whisper, asked.music, asked.acceptKey, asked.ringSeconds) = (whisper, music, "1", 20)
        return asked
    }

    private static var message: ControlEvent.Voicemail {
        var message = ControlEvent.Voicemail(
            id: "k3x9ab", caller: "ann", received: "2026-11-29T10:40:05.000Z", durationSeconds: 12.3, path: "/a.wav")
        (message.name, message.called, message.isCut) = ("Ann", "bob", true)
        return message
    }

    private static let events: [ControlEvent] = [
        .play(call: 1, .init(state: "ended", path: "/a.wav", reason: "played")), .play(call: 1, failedFile),
        .recording(call: 1, file),
        .voicemail(call: 1, message), .attached(call: 1), .detached(call: 1),
        .transfer(call: 1, state: "requested", to: "carol"),
        .handover(call: 1, .init(state: "busy", to: "carol", toCall: 2, reason: "why")),
        .park(call: 1, state: "parked", slot: 1),
        .queued(call: 1, queue: "support", position: 2),
        .leftQueue(call: 1, queue: "support", result: "bridged", waitedSeconds: 1.5),
        .connection("connected"), .identified(call: 1, invite: "i"), .incoming(call: 1, from: "bob"),
        .calling(call: 1, to: "bob"), .answered(call: 1),
        .established(call: 1, establishedMilliseconds: 50),
        .media(call: 1, setUpMilliseconds: 80, establishedMilliseconds: 50),
        .ended(
            call: 1,
            .init(
                peer: "bob", reason: "completed", endedBy: "remote", durationSeconds: 2, hangUpCause: "request",
                invite: "i")),
        .digit(call: 1, key: "5"), .playbackEnded(call: 1),
        .speech(call: 1, "begin", positionMilliseconds: 20.5), .interrupted(call: 1, playedMilliseconds: 1.5),
        .response(call: 1, afterMilliseconds: 700.5), .sending(call: 1, stopped: "why"), .sound(sound),
        .card("running"), .load(load), .levels(levels), .levels(nil),
    ]

    private static let codes: [ControlFault.Code] = [
        .malformed, .tooLong, .unknownRequest, .wrongValue, .noSuchCall, .severalCalls, .wrongState, .noSoundCard,
        .notConnected, .tooMany, .failed, .fileUnusable, .notConfigured, .noSuchAccount, .severalAccounts,
        .notFound, .methodNotAllowed, .unauthorized, .tokenInURL, .foreignHost, .foreignOrigin, .unsupportedMediaType,
        .idempotencyMismatch, .idempotencyBusy, .noSuchRecording, .rangeNotSatisfiable,
    ]

    private static var status: ControlStatus {
        var status = ControlStatus(
            version: "1.0.0", pid: 7, uptimeSeconds: 1, device: "d", connection: "connected", user: "alice",
            server: "s", behaviour: "card")
        status.sound = sound
        status.card = ControlCard(
            playback: "p", capture: "c", isRunning: true, losses: 0, playbackXruns: 0, captureXruns: 0)
        status.levels = levels
        status.load = load
        status.isDraining = true
        status.callCount = 1
        status.calls = [
            ControlCall(
                call: 1, invite: "i", peer: "bob", isIncoming: true, state: .talking, durationSeconds: 1,
                account: "desk")
        ]
        status.calls[0].media = media
        status.calls[0].slot = 1
        var account = ControlAccount(
            account: "desk", device: "d", connection: "waiting", server: "s", behaviour: "card")
        (account.user, account.failure) = ("alice", "why")
        status.accounts = [account]
        return status
    }

    /// A member of what is written for a value, which is a text.
    private func name(_ key: String, of value: some Encodable) throws -> String {
        guard
            case .object(let members) = try JSONDecoder().decode(JSONValue.self, from: Data(ControlCoding.line(value)))
        else { return "" }
        return try #require(members[key]?.string)
    }

    @Test("Requests, answers, errors and events keep their members")
    func members() throws {
        var present: Set<String> = []
        func take(_ line: [UInt8], as prefix: String) throws {
            var members = JSONMembers()
            try members.take(line)
            present.formUnion(members.lines("\(prefix) "))
        }
        for action in Self.actions {
            let request = ControlRequest(action, account: "desk", id: 1)
            try take(ControlCoding.line(request), as: "request \(try name("request", of: request))")
        }
        for name in ControlRequest.Name.allCases { present.insert("request \(name.rawValue)") }
        for event in Self.events {
            try take(
                ControlCoding.line(event, of: "desk", atMilliseconds: 1), as: "event \(try name("event", of: event))")
        }
        for code in Self.codes {
            present.insert("error \(code.rawValue)")
            try take(ControlCoding.line(ControlReply(id: 1, ControlFault(code, "why"))), as: "answer")
        }
        var reply = ControlReply(
            id: 1, call: 1, account: "desk", file: "/b.wav", sound: Self.sound, status: Self.status)
        (reply.calls, reply.more) = (Self.status.calls, true)
        (reply.toCall, reply.slot) = (2, 1)
        (reply.history, reply.next) = ([Self.record], "1.r")
        var conference = ControlConference(
            room: "team", members: [.init(call: 1, peer: "bob", speaks: true, muted: false)])
        conference.file = "/b.wav"
        reply.conferences = [conference]
        reply.queues = [
            ControlQueue(
                queue: "support", account: "desk", callers: [.init(call: 1, peer: "bob", waitedSeconds: 1.5)])
        ]
        try take(ControlCoding.line(reply), as: "answer")
        for state in [ControlCall.State.calling, .ringing, .connecting, .talking, .ending] {
            present.insert("call state \(state.rawValue)")
        }
        let differences = try FrozenList("control").differences(from: present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }
}
