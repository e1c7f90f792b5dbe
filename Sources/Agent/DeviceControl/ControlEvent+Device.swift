internal import AudioDevices
internal import AudioKit
internal import CallAgent
internal import CallControl
internal import ControlWire
internal import MediaEngine
internal import Core
internal import Voicemail

extension ControlEvent {
    /// The event as clients receive it; nil if they do not.
    init?(_ event: DeviceEvent) {
        switch event {
        case .signaling(.connected), .signaling(.reconnected): self = .connection("connected")
        case .signaling(.reconnecting): self = .connection("reconnecting")
        case .signaling(.disconnected): self = .connection("disconnected")
        case .identified(let call, let invite): self = .identified(call: call.number, invite: invite.text)
        case .incoming(let call, let user): self = .incoming(call: call.number, from: user.text)
        case .answered(let call): self = .answered(call: call.number)
        case .established(let call, let time):
            self = .established(call: call.number, establishedMilliseconds: Self.milliseconds(time))
        case .flowing(let call, let time, let establishedAfter):
            self = .media(
                call: call.number, setUpMilliseconds: Self.milliseconds(time),
                establishedMilliseconds: Self.milliseconds(establishedAfter))
        case .playbackEnded(let call): self = .playbackEnded(call: call.number)
        case .playing(let call, let path): self = .play(call: call.number, File(state: "started", path: path))
        case .playingEnded(let call, let path, let end):
            self = .play(call: call.number, File(state: "ended", path: path, reason: end.rawValue))
        case .recording(let call, let path):
            self = .recording(call: call.number, File(state: "started", path: path))
        case .recordingEnded(let call, let end, let reason):
            self = .recording(call: call.number, File(end, because: reason.rawValue))
        case .roomRecording(let call, let room, let path):
            var file = File(state: "started", path: path)
            file.room = room
            self = .recording(call: call.number, file)
        case .roomRecordingEnded(let call, let room, let end):
            var file = File(end, because: nil)
            file.room = room
            self = .recording(call: call.number, file)
        case .voicemail(let call, let message, let path):
            var left = Voicemail(
                id: message.id, caller: message.caller, received: message.received, durationSeconds: message.seconds,
                path: path)
            left.name = message.name
            left.called = message.called
            if message.isCut { left.isCut = true }
            self = .voicemail(call: call?.number, left)
        case .attached(let call): self = .attached(call: call.number)
        case .detached(let call): self = .detached(call: call.number)
        case .transferRequested(let call, let target, let isAccepted):
            self = .transfer(call: call.number, state: isAccepted ? "requested" : "refused", to: target.text)
        case .transferProgress(let call, let target, let progress):
            self = .transfer(call: call.number, state: progress.rawValue, to: target.text)
        case .handover(let call, let report):
            self = .handover(
                call: call.number,
                Handover(
                    state: report.state.rawValue, to: report.target, toCall: report.call?.number, reason: report.reason)
            )
        case .parking(let call, let slot, let state): self = .park(call: call.number, state: state, slot: slot)
        case .queued(let call, let queue, let position):
            self = .queued(call: call.number, queue: queue, position: position)
        case .leftQueue(let call, let queue, let result, let time):
            self = .leftQueue(
                call: call.number, queue: queue, result: result, waitedSeconds: (time.seconds * 10).rounded() / 10)
        case .digit(let call, let key, _): self = .digit(call: call.number, key: String(key))
        case .speech(let call, let isOver, let at):
            self = .speech(call: call.number, isOver ? "end" : "begin", positionMilliseconds: Self.milliseconds(at))
        case .interrupted(let call, let played):
            self = .interrupted(call: call.number, playedMilliseconds: Self.milliseconds(played))
        case .responded(let call, let time):
            self = .response(call: call.number, afterMilliseconds: Self.milliseconds(time))
        case .sendingStopped(let call, let reason): self = .sending(call: call.number, stopped: reason.rawValue)
        case .sendingResumed(let call): self = .sending(call: call.number, stopped: nil)
        case .ended(let call, let record, _):
            self = .ended(
                call: call.number,
                End(
                    peer: record.peer.text, reason: record.reason.rawValue, endedBy: record.endedBy.rawValue,
                    durationSeconds: (record.duration.seconds * 10).rounded() / 10,
                    hangUpCause: record.hangUpCause?.rawValue, invite: record.invite?.text))
        case .card(let event):
            guard let state = Self.name(of: event) else { return nil }
            self = .card(state)
        case .loadChanged(let load): self = .load(ControlLoad(load))
        case .fileFailed(let call, let error):
            var file = File(state: "failed", path: error.path)
            file.error = "\(error)"
            switch error.purpose {
            case .play: self = .play(call: call.number, file)
            case .record: self = .recording(call: call.number, file)
            }
        case .signaling, .invited, .invite, .realtimePriorityRefused: return nil
        }
    }

    /// To a tenth.
    private static func milliseconds(_ time: Duration) -> Double { (time.seconds * 10_000).rounded() / 10 }

    private static func name(of event: CardEvent) -> String? {
        switch event {
        case .opened: "opened"
        case .unavailable: "unavailable"
        case .running: "running"
        case .lost: "lost"
        case .stalled: "stalled"
        case .xruns: "xruns"
        case .suspended: "suspended"
        case .resumed: "resumed"
        case .stopped: "stopped"
        case .priorityRefused, .report: nil
        }
    }
}

extension ControlEvent.File {
    /// A recording that has ended.
    fileprivate init(_ end: RecordingEnd, because reason: String?) {
        self.init(state: "ended", path: end.path, reason: reason)
        durationSeconds = (end.duration.seconds * 1_000).rounded() / 1_000
        guard let failure = end.failure else { return }
        missedSeconds = (end.missed.seconds * 1_000).rounded() / 1_000
        error = "\(failure)"
    }
}

extension ControlLoad {
    init(_ load: DeviceLoad) {
        self.init(
            busy: load.busiest.share, complexityLimit: load.complexityLimit, takesCalls: load.takesCalls)
    }
}
