internal import Core
internal import JSON

/// One call of a tool, from its begin to its result: which requests it makes of the device, and which events it waits for.
///
/// A cancelled call ends what it began, and its result is not sent.
struct MCPCourse: Sendable {
    enum Input: Sendable {
        case reply(ControlReply)
        /// The device could not be asked.
        case noDevice(String)
        case event(ControlEvent)
        case sound(MCPSoundEnd)
        /// A time that ``deadline`` has named has come.
        case timeout
        case cancel
    }

    enum Output: Sendable {
        case ask(ControlRequest.Action, account: String?)
        case sound(MCPSoundOrder)
        /// The agent takes part in this call from now on.
        case joined(UInt64)
        case finish(MCPToolResult)
    }

    /// What it waits for.
    private enum Stage {
        /// The answer to a request, which is the result.
        case asking
        /// A call to be placed: the answer, and meanwhile events, which may come before it.
        case placing(to: String, early: [ControlEvent])
        /// A call to be established.
        case ringing(UInt64, giveUp: String)
        /// The end of a call, after the request to end it.
        case ending(UInt64, MCPToolResult?)
        /// A text to become sound.
        case speaking(UInt64)
        /// A file to be heard out.
        case playing(UInt64, path: String, what: String, Progress)
        /// Speech, as text.
        case hearing
        /// The other side to follow a transfer.
        case transferring(UInt64, to: String)
        /// Nothing: there is a result.
        case finished
    }

    /// How far a file has been played or stopped.
    private enum Progress: Sendable {
        /// The device was asked; what ends now is an earlier file, maybe of the same path.
        case asked
        case begun
        case cancelled
        case late
    }

    /// Times that no argument sets.
    private enum Patience {
        /// Of an incoming call, from its answer to its sound.
        static let establishing = Duration.seconds(30)
        /// Of a call that was hung up.
        static let ending = Duration.seconds(10)
        /// Of a transfer, which rings at another party.
        static let transfer = Duration.seconds(120)
        /// Of a file beyond its length, if that is known.
        static let playing = Duration.seconds(30)
        /// Of a file of unknown length.
        static let longestFile = Duration.seconds(3_600)
    }

    private var stage: Stage
    private var isCancelled = false
    /// When to give up waiting; nil for never.
    private(set) var deadline: Instant?

    /// Whether there is a result.
    var isFinished: Bool {
        if case .finished = stage { return true }
        return false
    }

    /// Whether it waits for nothing but an answer of the device, which comes soon.
    var isBrief: Bool {
        if case .asking = stage { return true }
        return false
    }

    /// Begins one. `wait` and `explain` ask the device nothing, and have no course.
    ///
    /// - Returns: Nil for those.
    init?(_ order: MCPOrder, at now: Instant, into outputs: inout [Output]) {
        switch order {
        case .list(let account):
            stage = .asking
            outputs.append(.ask(.status, account: account))
        case .place(let to, let account, let patience):
            stage = .placing(to: to, early: [])
            deadline = now.advanced(by: patience)
            outputs.append(.ask(.call(to: to), account: account))
        case .answer(let call):
            stage = .ringing(call, giveUp: "was answered, and had no sound within 30 s")
            deadline = now.advanced(by: Patience.establishing)
            outputs.append(.ask(.answer(call), account: nil))
        case .reject(let call, let isBusy):
            stage = .ending(call, nil)
            deadline = now.advanced(by: Patience.ending)
            outputs.append(.ask(.reject(call, isBusy: isBusy), account: nil))
        case .say(let text, let call):
            stage = .speaking(call)
            outputs.append(.sound(.speak(text)))
        case .hear(let call, let most, let pause):
            stage = .hearing
            outputs.append(.sound(.hear(call, most: most, pause: pause)))
        case .press(let keys, let call):
            stage = .asking
            outputs.append(.ask(.dtmf(keys, call), account: nil))
        case .play(let file, let call):
            stage = .playing(call, path: file, what: "the file", .asked)
            deadline = now.advanced(by: Patience.longestFile)
            outputs.append(.ask(.play(file: file, call), account: nil))
        case .transfer(let call, let to, let other):
            stage = .transferring(call, to: to)
            deadline = now.advanced(by: Patience.transfer)
            outputs.append(.ask(.transfer(call, to: to, replacing: other), account: nil))
        case .hangUp(let call):
            stage = .ending(call, nil)
            deadline = now.advanced(by: Patience.ending)
            outputs.append(.ask(.hangUp(call), account: nil))
        case .wait, .explain: return nil
        }
    }

    mutating func handle(_ input: Input, at now: Instant, into outputs: inout [Output]) {
        switch input {
        case .reply(let reply): take(reply, at: now, &outputs)
        case .noDevice(let why): finish(.failed(why + placedAllTheSame, ["code": "no_device"]), &outputs)
        case .event(let event): take(event, at: now, &outputs)
        case .sound(let end): take(end, at: now, &outputs)
        case .timeout:
            guard let deadline, now >= deadline else { return }
            giveUp(at: now, &outputs)
        case .cancel:
            isCancelled = true
            cancel(at: now, &outputs)
        }
    }

    /// What an agent must know if the answer to a request to place a call did not come.
    private var placedAllTheSame: String {
        guard case .placing = stage else { return "" }
        return "; the call may have been placed all the same: list_calls shows it, and hang_up ends it"
    }

    // MARK: - Answers

    private mutating func take(_ reply: ControlReply, at now: Instant, _ outputs: inout [Output]) {
        if let fault = reply.error {
            // A call that has gone meanwhile has ended, and its event comes.
            if case .ending(_, .some) = stage, !isCancelled { return }
            if case .playing(_, _, _, .late) = stage { return }
            return finish(MCPToolResult(fault), &outputs)
        }
        switch stage {
        case .asking: finish(Self.result(of: reply), &outputs)
        case .placing(let to, let early):
            guard let call = reply.call else { return finish(.failed("the device named no call"), &outputs) }
            if isCancelled { return end(call, .failed("cancelled"), at: now, &outputs) }
            if deadline == nil {
                let text = "call \(call) to \(to) was not answered in time, and was ended"
                return end(call, .failed(text, ["code": "not_answered"]), at: now, &outputs)
            }
            stage = .ringing(call, giveUp: "to \(to) was not answered in time, and was ended")
            for event in early { take(event, at: now, &outputs) }
        case .ringing, .ending, .speaking, .playing, .hearing, .transferring, .finished: break
        }
    }

    private static func result(of reply: ControlReply) -> MCPToolResult {
        guard let status = reply.status else {
            return .done("Done.", reply.call.map { ["call": .unsigned($0)] } ?? [:])
        }
        return .done(MCPWords.list(status), MCPWords.members(status))
    }

    // MARK: - Events

    private mutating func take(_ event: ControlEvent, at now: Instant, _ outputs: inout [Output]) {
        switch (stage, event) {
        case (.placing(let to, let early), _):
            // Of other calls, too: which one it is is known with the answer. Of the kinds that count alone, so that many others fit.
            guard event.decidesPlacing, early.count < MCPLimits.keptEvents else { return }
            stage = .placing(to: to, early: early + [event])
        case (.ringing(let call, _), .established(let other, _)) where other == call:
            outputs.append(.joined(call))
            finish(.done("Call \(call) is established.", ["call": .unsigned(call), "state": "talking"]), &outputs)
        case (.ringing(let call, _), .ended(let other, let end)) where other == call:
            finish(.failed(MCPWords.unanswered(call, end), MCPWords.members(call, end)), &outputs)
        case (.ending(let call, let result), .ended(let other, let end)) where other == call:
            var result = result ?? .done(MCPWords.ended(call, end))
            result.structured.merge(MCPWords.members(call, end)) { own, _ in own }
            finish(result, &outputs)
        case (.playing(let call, let path, let what, .asked), .play(let other, let file))
        where other == call && file.path == path && file.state == "started":
            stage = .playing(call, path: path, what: what, .begun)
        case (.playing(let call, let path, let what, let progress), .play(let other, let file))
        where other == call && file.path == path:
            takeEnd(of: file, what, progress, &outputs)
        case (.transferring(let call, let to), .transfer(let other, let state, _)) where other == call:
            take(transfer: state, call, to, &outputs)
        case (.playing(let call, _, let what, _), .ended(let other, let end)) where other == call:
            let text = "call \(call) ended before the other side had heard all of \(what)"
            finish(.failed(text, MCPWords.members(call, end)), &outputs)
        case (.transferring(let call, let to), .ended(let other, let end)) where other == call:
            // The other side may hang up at once when it has taken the transfer.
            let text = "call \(call) ended before a word about its transfer to \(to) came"
            finish(.failed(text, MCPWords.members(call, end)), &outputs)
        case (.asking, _), (.ringing, _), (.ending, _), (.speaking, _), (.playing, _), (.hearing, _),
            (.transferring, _), (.finished, _):
            break
        }
    }

    private mutating func takeEnd(
        of file: ControlEvent.File, _ what: String, _ progress: Progress, _ outputs: inout [Output]
    ) {
        switch (file.state, file.reason, progress) {
        case ("started", _, _), ("ended", _, .asked): break
        case ("ended", "played", _):
            finish(.done("The other side has heard all of \(what).", ["heard": "all"]), &outputs)
        case ("ended", _, .late):
            finish(.failed("\(what) did not end in time, and was stopped", ["heard": "a part"]), &outputs)
        case ("ended", let reason, _):
            let why = reason == "stopped" ? "another sound was played, or a user stopped it" : reason ?? "unknown"
            finish(.failed("\(what) ended early: \(why)", ["heard": "a part"]), &outputs)
        default:
            finish(.failed(file.error ?? "\(what) could not be played", ["code": "file_unusable"]), &outputs)
        }
    }

    private mutating func take(transfer state: String, _ call: UInt64, _ to: String, _ outputs: inout [Output]) {
        let members: [String: JSONValue] = ["call": .unsigned(call), "state": .string(state)]
        switch state {
        case "accepted": finish(.done("The other side of call \(call) calls \(to) now.", members), &outputs)
        case "failed", "refused":
            finish(.failed("the transfer to \(to) was not carried out: \(state)", members), &outputs)
        default: break
        }
    }

    // MARK: - Sound

    private mutating func take(_ end: MCPSoundEnd, at now: Instant, _ outputs: inout [Output]) {
        if isCancelled { return finish(.failed("cancelled"), &outputs) }
        switch (stage, end) {
        case (_, .failed(let why)): finish(.failed(why), &outputs)
        case (.speaking(let call), .spoken(let path, let length)):
            stage = .playing(call, path: path, what: "the text", .asked)
            deadline = now.advanced(by: length + Patience.playing)
            outputs.append(.ask(.play(file: path, call), account: nil))
        case (.hearing, .heard(let heard)): finish(heard.result, &outputs)
        case (_, .spoken), (_, .heard): break
        }
    }

    // MARK: - Ends

    private mutating func giveUp(at now: Instant, _ outputs: inout [Output]) {
        deadline = nil
        switch stage {
        case .ringing(let call, let giveUp):
            end(call, .failed("call \(call) \(giveUp)", ["code": "not_answered"]), at: now, &outputs)
        case .placing: break  // The call is ended when its number is known.
        case .ending(_, let result): finish(result ?? .failed("the call has not ended yet"), &outputs)
        case .playing(let call, let path, let what, .asked), .playing(let call, let path, let what, .begun):
            stage = .playing(call, path: path, what: what, .late)
            deadline = now.advanced(by: Patience.ending)
            outputs.append(.ask(.stop(call), account: nil))
        case .playing(_, _, let what, _): finish(.failed("\(what) could not be stopped"), &outputs)
        case .transferring(let call, let to):
            finish(.failed("call \(call) was not transferred to \(to) within 120 s"), &outputs)
        case .asking, .speaking, .hearing, .finished: break
        }
    }

    private mutating func cancel(at now: Instant, _ outputs: inout [Output]) {
        switch stage {
        case .placing: break  // The call is ended when its number is known.
        case .ringing(let call, _): end(call, .failed("cancelled"), at: now, &outputs)
        case .speaking, .hearing: outputs.append(.sound(.stop))
        case .playing(let call, let path, let what, _):
            stage = .playing(call, path: path, what: what, .cancelled)
            outputs.append(.ask(.stop(call), account: nil))
        case .asking, .transferring, .finished: finish(.failed("cancelled"), &outputs)
        case .ending: break  // It ends already.
        }
    }

    /// Hangs up a call that this began, and waits for its end.
    private mutating func end(
        _ call: UInt64, _ result: MCPToolResult, at now: Instant, _ outputs: inout [Output]
    ) {
        stage = .ending(call, result)
        deadline = now.advanced(by: Patience.ending)
        outputs.append(.ask(.hangUp(call), account: nil))
    }

    private mutating func finish(_ result: MCPToolResult, _ outputs: inout [Output]) {
        guard !isFinished else { return }
        stage = .finished
        deadline = nil
        outputs.append(.finish(result))
    }
}

/// What the sound of a tool needs: programs, files and time.
public enum MCPSoundOrder: Hashable, Sendable {
    /// Make a file of a text.
    case speak(String)
    /// Listen to a call's other side, for `most` at most, and until a pause after speech; and recognise it.
    case hear(UInt64, most: Duration, pause: Duration)
    /// End either.
    case stop
}

/// What became of it.
public enum MCPSoundEnd: Hashable, Sendable {
    /// The text is in a file, which is kept until the tool's call has ended.
    case spoken(path: String, length: Duration)
    case heard(Heard)
    /// Why not, and what to try.
    case failed(String)

    /// What the other side said.
    public struct Heard: Hashable, Sendable {
        /// Why listening ended.
        public enum End: String, Sendable {
            /// The other side has spoken, and paused.
            case pause
            /// The time has passed.
            case timeout
            /// The call ended.
            case callEnded = "call_ended"
        }

        let text: String
        let seconds: Double
        let end: End

        /// - Parameters:
        ///   - text: Empty for silence.
        ///   - seconds: Length of the sound that was listened to.
        public init(text: String, seconds: Double, end: End) {
            self.text = text
            self.seconds = seconds
            self.end = end
        }

        fileprivate var result: MCPToolResult {
            let told = text.isEmpty ? "(Nothing was said.)" : text
            return .done(
                end == .callEnded ? "\(told)\n(The call has ended.)" : told,
                [
                    "text": .string(text), "seconds": .number((seconds * 10).rounded() / 10),
                    "ended_by": .string(end.rawValue),
                ])
        }
    }
}

/// What results say in words, and their members.
enum MCPWords {
    static func members(_ call: UInt64, _ end: ControlEvent.End) -> [String: JSONValue] {
        [
            "call": .unsigned(call), "state": "ended", "peer": .string(end.peer), "reason": .string(end.reason),
            "ended_by": .string(end.endedBy), "duration_s": .number(end.durationSeconds),
        ]
    }

    static func unanswered(_ call: UInt64, _ end: ControlEvent.End) -> String {
        "call \(call) with \(end.peer) was not established: \(end.reason) (ended by \(end.endedBy))"
    }

    static func ended(_ call: UInt64, _ end: ControlEvent.End) -> String {
        "Call \(call) with \(end.peer) has ended: \(end.reason), after \(end.durationSeconds) s."
    }

    static func list(_ status: ControlStatus) -> String {
        let accounts = status.accounts ?? []
        var lines =
            accounts.isEmpty
            ? ["The device \(status.device) is \(status.connection)\(status.user.map { " as \($0)" } ?? "")."]
            : accounts.map { "Account \($0.account) is \($0.connection)\($0.user.map { " as \($0)" } ?? "")." }
        lines += status.calls.map { call in
            "Call \(call.call) \(call.isIncoming ? "from" : "to") \(call.peer): \(call.state.rawValue)"
                + (call.durationSeconds.map { ", \($0) s" } ?? "") + (call.account.map { " (account \($0))" } ?? "")
        }
        if status.calls.isEmpty { lines.append("There are no calls.") }
        if status.callCount > status.calls.count {
            lines.append("\(status.callCount - status.calls.count) older calls are not listed.")
        }
        return lines.joined(separator: "\n")
    }

    static func members(_ status: ControlStatus) -> [String: JSONValue] {
        var members: [String: JSONValue] = [
            "device": .string(status.device), "connection": .string(status.connection),
            "calls": .array(status.calls.map(value)), "call_count": .integer(Int64(status.callCount)),
        ]
        members["user"] = status.user.map { .string($0) }
        members["accounts"] = status.accounts.map { .array($0.map(value)) }
        return members
    }

    /// A value of the control socket, as it is written there.
    private static func value(_ entry: some Encodable) -> JSONValue {
        ControlCoding.decode(JSONValue.self, from: ControlCoding.line(entry)) ?? .null
    }

    static func events(_ events: [JSONValue], missed: Int) -> MCPToolResult {
        let lines = events.map { event in
            let name = event["event"]?.string ?? ""
            let call = event["call"]?.integer.map { "call \($0): " } ?? ""
            let more = ["from", "to", "key", "state", "peer", "reason"].compactMap { key in
                event[key]?.string.map { "\(key) \($0)" }
            }
            return "\(call)\(name)\(more.isEmpty ? "" : ", ")\(more.joined(separator: ", "))"
        }
        return .done(
            lines.joined(separator: "\n") + (missed > 0 ? "\n\(missed) older events were dropped." : ""),
            ["events": .array(events), "missed": .integer(Int64(missed))])
    }
}

extension ControlEvent {
    /// Whether it may say that a call which is being placed is answered, or has ended.
    fileprivate var decidesPlacing: Bool {
        if case .established = self { return true }
        if case .ended = self { return true }
        return false
    }
}
