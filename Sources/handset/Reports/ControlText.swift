internal import ControlWire

/// What a device reports over its control socket, in words for people. Pure.
enum ControlText {
    /// A device's status, a fact to a line.
    static func status(_ status: ControlStatus) -> String {
        var lines: [String] = []
        func add(_ label: String, _ value: String) { lines.append("  " + label.padded(to: 12) + value) }
        if let accounts = status.accounts {
            let connected = accounts.count { $0.connection == "connected" }
            lines.append("\(connected) of \(accounts.count) accounts connected")
            let width = accounts.map(\.account.count).reduce(11, max) + 1
            for account in accounts {
                lines.append("  " + printable(account.account).padded(to: width) + Self.account(account))
            }
        } else {
            let user = status.user.map { " as \($0)" } ?? ""
            lines.append("\(printable(status.device)): \(status.connection)\(printable(user)) at \(status.server)")
            add("behaviour", status.behaviour)
        }
        if let sound = status.sound { add("sound", Self.sound(sound)) }
        if let card = status.card {
            let names =
                card.playback == card.capture
                ? card.playback ?? "none" : "\(card.playback ?? "none") out, \(card.capture ?? "none") in"
            add(
                "card",
                "\(names): \(card.isRunning ? "running" : "not there"), lost \(card.losses), xruns "
                    + "\(card.playbackXruns) out \(card.captureXruns) in")
        }
        if let levels = status.levels {
            add(
                "levels",
                "microphone \(levels.microphoneDBFS) dBFS, loudspeaker \(levels.loudspeakerDBFS) dBFS")
        }
        if let load = status.load { add("load", Self.load(load)) }
        if status.isDraining == true { add("draining", "new calls are refused") }
        if status.calls.isEmpty { add("calls", "none") }
        for call in status.calls { add("call \(call.call)", Self.call(call)) }
        if status.callCount > status.calls.count { add("", "and \(status.callCount - status.calls.count) older") }
        return lines.joined(separator: "\n")
    }

    /// An account, in one line.
    static func account(_ account: ControlAccount) -> String {
        let user = account.user.map { " as \(printable($0))" } ?? ""
        let calls = account.callCount == 0 ? "" : ", \(account.callCount) \(account.callCount == 1 ? "call" : "calls")"
        let failure = account.failure.map { ": \(printable($0))" } ?? ""
        return
            "\(printable(account.connection))\(user) at \(printable(account.server)), \(printable(account.behaviour))\(calls)"
            + "\(account.isDraining ? ", draining" : "")\(failure)"
    }

    /// Mute and volumes.
    static func sound(_ sound: ControlSound) -> String {
        "\(sound.isMuted ? "muted" : "not muted"), volume \(decibels(sound.volumeDB)) dB, microphone "
            + "\(decibels(sound.microphoneDB)) dB"
    }

    /// How busy the device is, and what it does about it.
    static func load(_ load: ControlLoad) -> String {
        let effort = load.complexityLimit < 10 ? ", Opus complexity limited to \(load.complexityLimit)" : ""
        return
            "\(Int((load.busy * 100).rounded())) % of a core\(effort)\(load.takesCalls ? "" : ", new calls are refused")"
    }

    /// The state of a call.
    static func call(_ call: ControlCall) -> String {
        let way = (call.account.map { "\(printable($0)): " } ?? "") + (call.isIncoming ? "from" : "to")
        let time = call.durationSeconds.map { " \(clock($0))" } ?? ""
        return "\(way) \(printable(call.peer)): \(call.state.rawValue)\(time)\(call.isHeld ? ", held" : "")"
            + (call.isRecorded ? ", recorded" : "") + (call.slot.map { ", parked in slot \($0)" } ?? "")
    }

    /// Something that happened; nil for levels, which are no line of their own.
    static func event(_ event: ControlEvent) -> String? {
        switch event {
        case .connection(let state): "\(printable(state)) \(state == "connected" ? "to" : "from") the service"
        case .identified(let call, let invite): "call \(call) has the id \(printable(invite))"
        case .incoming(let call, let user): "call \(call) comes in from \(printable(user))"
        case .calling(let call, let user): "call \(call) goes out to \(printable(user))"
        case .answered(let call): "call \(call) is answered"
        case .established(let call, let time): "call \(call) is established, after \(decibels(time)) ms"
        case .media(let call, let time, _): "call \(call): media flows both ways, after \(decibels(time)) ms"
        case .ended(let call, let end):
            "call \(call) with \(printable(end.peer)) ended after \(clock(end.durationSeconds)): "
                + printable(end.reason) + (end.hangUpCause.map { " (hung up: \(printable($0)))" } ?? "")
        case .digit(let call, let key): "call \(call): the peer pressed \(printable(key))"
        case .speech(let call, let state, let at):
            "call \(call): the caller's speech \(state == "end" ? "ends" : "begins"), at \(decibels(at)) ms"
        case .interrupted(let call, let played):
            "call \(call): the caller interrupts, after \(decibels(played)) ms of sound"
        case .response(let call, let time): "call \(call): an answer after \(decibels(time)) ms"
        case .playbackEnded(let call): "call \(call): the file has ended"
        case .play(let call, let file): "call \(call): " + Self.file(file, started: "plays", ended: "played")
        case .recording(let call, let file):
            "call \(call): " + (file.room.map { "conference \(printable($0)): " } ?? "")
                + Self.file(file, started: "is recorded to", ended: "was recorded to")
        case .voicemail(_, let message):
            printable("a message of \(message.durationSeconds) s from \(message.caller): \(message.path)")
        case .attached(let call): "call \(call): a program takes part"
        case .detached(let call): "call \(call): the program has left"
        case .transfer(let call, let state, let target):
            "call \(call): transfer to \(printable(target)) \(printable(state))"
        case .handover(let call, let step):
            "call \(call): hand-over to \(printable(step.to)) \(printable(step.state))"
                + (step.reason.map { ": \(printable($0))" } ?? "")
        case .park(let call, let state, let slot): "call \(call): slot \(slot) \(printable(state))"
        case .queued(let call, let queue, let position):
            "call \(call): waits in \(printable(queue)), at place \(position)"
        case .leftQueue(let call, let queue, let result, let seconds):
            "call \(call): has left \(printable(queue)) after \(clock(seconds)): \(printable(result))"
        case .sending(let call, let reason?): "call \(call) sends no more: \(printable(reason))"
        case .sending(let call, nil): "call \(call) sends again"
        case .sound(let sound): Self.sound(sound)
        case .card(let state): "card: \(printable(state))"
        case .load(let load): "load: \(Self.load(load))"
        case .levels, .unknown: nil
        }
    }

    private static func file(_ file: ControlEvent.File, started: String, ended: String) -> String {
        let path = printable(file.path)
        if file.state == "failed" { return "\(path) has failed: \(printable(file.error ?? "unknown"))" }
        guard file.state == "ended" else { return "\(started) \(path)" }
        let why = [file.reason, file.durationSeconds.map { clock($0) }, file.error].compactMap(\.self)
        return "\(ended) \(path) (\(why.map(printable).joined(separator: ", ")))"
    }

    /// What was done, after a request other than status and watch.
    static func done(_ request: ControlRequest, _ reply: ControlReply) -> String {
        if let queues = reply.queues { return Self.queues(queues) }
        if let rooms = reply.conferences { return conferences(rooms) }
        if let sound = reply.sound { return Self.sound(sound) }
        let call = reply.call.map { "call \($0)" } ?? "done"
        return switch request.action {
        case .call(let user): "calling \(printable(user)): \(call)"
        case .answer: "\(call): answered"
        case .reject: "\(call): rejected"
        case .hangUp: "\(call): hung up"
        case .card: "\(call): has the card"
        case .dtmf(let keys, _): "\(call): pressed \(printable(keys))"
        case .drain(true): "draining: new calls are refused"
        case .drain(false): "new calls are accepted again"
        case .play(let file, _): "\(call): plays \(printable(file))"
        case .stop: "\(call): stopped"
        case .record(.start, _): "\(call): is recorded to \(printable(reply.file ?? ""))"
        case .record(.stop, _): "\(call): the recording ends"
        case .attach: "\(call): a program takes part"
        case .detach: "\(call): the program leaves"
        case .calls: "\(reply.calls?.count ?? 0) calls"
        case .history: "\(reply.history?.count ?? 0) records"
        case .transfer(_, let target, _): "\(call): the peer is asked to call \(printable(target))"
        case .bridge(_, let other, _): "\(call): joined to call \(other)"
        case .unbridge: "\(call): no longer joined to another call"
        case .handover(_, let asked):
            "\(call): \(printable(asked.target)) is called\(reply.toCall.map { ", by call \($0)" } ?? "")"
        case .cancelHandover: "\(call): the hand-over is taken back"
        case .park: "\(call): parked in slot \(reply.slot ?? 0)"
        case .pickUp(let slot, _, _):
            "\(call): joined to \(reply.toCall.map { "call \($0)" } ?? "the call") of slot \(slot)"
        case .conferenceMute(_, true): "\(call): muted in its room"
        case .conferenceMute(_, false): "\(call): heard in its room again"
        case .conferenceRemove: "\(call): removed from its room"
        case .conferenceRecord(_, .start): "\(call): its room is recorded to \(printable(reply.file ?? ""))"
        case .conferenceRecord(_, .stop): "\(call): the recording of its room ends"
        case .status, .mute, .volume, .watch, .conferences, .queues: call
        case .queueTake(let queue, _, _):
            "\(call): joined to \(reply.toCall.map { "call \($0)" } ?? "the caller") of \(printable(queue))"
        case .queueRemove: "\(call): removed from its queue"
        }
    }

    /// Queues, each with its callers below it.
    private static func queues(_ queues: [ControlQueue]) -> String {
        guard !queues.isEmpty else { return "no queue" }
        return queues.map { queue in
            let callers = queue.callers.map { caller in
                "  call \(caller.call) \(printable(caller.peer ?? "unknown")), \(clock(caller.waitedSeconds))"
            }
            let account = queue.account.map { "\(printable($0)): " } ?? ""
            return (["\(account)\(printable(queue.queue)): \(queue.callers.count) callers"] + callers)
                .joined(separator: "\n")
        }.joined(separator: "\n")
    }

    /// Rooms, each with its members below it.
    private static func conferences(_ rooms: [ControlConference]) -> String {
        guard !rooms.isEmpty else { return "no conference" }
        return rooms.map { room in
            let members = room.members.map { member in
                "  call \(member.call) \(printable(member.peer ?? "unknown"))\(member.speaks ? ", speaks" : "")"
                    + (member.muted ? ", muted" : "")
            }
            let recorded = room.file.map { ", recorded to \(printable($0))" } ?? ""
            return (["\(printable(room.room)): \(room.members.count) members\(recorded)"] + members)
                .joined(separator: "\n")
        }.joined(separator: "\n")
    }

    /// Seconds as minutes and seconds.
    static func clock(_ seconds: Double) -> String {
        let whole = Int(max(0, min(seconds, 1e9)))
        return "\(whole / 60):\(whole % 60 < 10 ? "0" : "")\(whole % 60)"
    }

    /// A foreign text, without control characters that a terminal would obey.
    static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { JSONText.isControl($0) ? "?" : $0 }))
    }

    private static func decibels(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e6 ? "\(Int(value))" : "\(value)"
    }
}
