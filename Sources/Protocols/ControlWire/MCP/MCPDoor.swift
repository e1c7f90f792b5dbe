public import Core
internal import JSON

/// An agent's way to one device: the Model Context Protocol on one side, the control socket on the other.
///
/// It owns the tools' calls that run, the events that were not reported yet, and the telephone calls that the agent takes part
/// in: those end with the agent.
public struct MCPDoor: ProtocolCore, Sendable {
    /// What a driver reports.
    public enum Input: Sendable {
        /// A line of the client's.
        case line(LineCutter.Line)
        /// The client has gone.
        case inputEnded
        /// The answer to the request of a tool's call.
        case reply(Int, ControlReply)
        /// It could not be sent, or had no answer.
        case noDevice(Int, String)
        /// A line of the device's about an event.
        case event([UInt8])
        /// The device has gone, with its calls.
        case deviceLost(String)
        /// What became of a tool's sound.
        case sound(Int, MCPSoundEnd)
        /// What is known of a call that ended: a text, and a JSON object.
        case explained(Int, text: String, object: String)
        /// Why it is not known.
        case notExplained(Int, String)
        /// ``nextDeadline`` has come.
        case timerFired
    }

    /// What a driver does, in order.
    public enum Output: Sendable {
        /// Write this line.
        case send([UInt8])
        /// Ask the device, once its events are watched; ``Input/reply(_:_:)`` or ``Input/noDevice(_:_:)`` follows.
        case ask(Int, ControlRequest)
        /// Make sound, or text of sound; ``Input/sound(_:_:)`` follows.
        case sound(Int, MCPSoundOrder)
        /// The tool's call has ended: its files are not needed any more.
        case ended(Int, tool: MCPTool?, isError: Bool)
        /// Listen to this call from now on, so that nothing is lost.
        case listen(UInt64)
        /// The call has ended: what was heard is kept until it is asked for once more.
        case callEnded(UInt64)
        /// Read what is known of a call that ended, by a part of its id or of the other side's name; nil for the last one. It `waits` if
        /// the record may not be written yet.
        case explain(Int, search: String?, account: String?, waits: Bool)
        /// All is done: end.
        case end
    }

    /// An agent that waits for an event.
    private struct Wait {
        let filter: MCPEventLog.Filter
        let deadline: Instant
    }

    /// How long calls of an agent that has gone may take to end.
    private static let ending = Duration.milliseconds(1_500)
    /// Ended calls whose ids are kept, for `explain_call`.
    private static let endedCalls = 64

    private var server: MCPServer
    private let admits: @Sendable (_ callee: String, _ account: String?) -> Bool
    private var courses: [Int: MCPCourse] = [:]
    private var tools: [Int: MCPTool] = [:]
    private var waits: [Int: Wait] = [:]
    private var log = MCPEventLog()
    /// Calls that the agent takes part in.
    private var joined: Set<UInt64> = []
    /// Ids of calls that ended, the newest last.
    private var ended: [(call: UInt64, invite: String)] = []
    /// Since the client has gone: when to end at the latest.
    private var endsBy: Instant?
    private var hasEnded = false

    /// - Parameters:
    ///   - version: The program's.
    ///   - isReadOnly: Whether only those tools are offered that change nothing.
    ///   - admits: Whether a callee may be called by an account, or be the target of a transfer; the account is nil if none is named.
    public init(
        version: String, isReadOnly: Bool, admits: @escaping @Sendable (_ callee: String, _ account: String?) -> Bool
    ) {
        let tools = MCPTool.allCases.filter { !isReadOnly || $0.isReadOnly }
        server = MCPServer(version: version, tools: tools, instructions: MCPTool.instructions)
        self.admits = admits
    }

    /// When the next tool call runs out of time, or the goodbye does; nil for never.
    public var nextDeadline: Instant? {
        guard !hasEnded else { return nil }
        let all = courses.values.compactMap(\.deadline) + waits.values.map(\.deadline) + (endsBy.map { [$0] } ?? [])
        return all.min()
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        guard !hasEnded else { return }
        switch input {
        case .line(let line):
            guard endsBy == nil else { break }
            var steps: [MCPServer.Step] = []
            server.take(line, into: &steps)
            for step in steps { carryOut(step, at: now, &outbox) }
        case .inputEnded: leave(at: now, &outbox)
        case .reply(let call, let reply): feed(.reply(reply), to: call, at: now, &outbox)
        case .noDevice(let call, let why): feed(.noDevice(why), to: call, at: now, &outbox)
        case .event(let line): take(event: line, at: now, &outbox)
        case .deviceLost(let why):
            joined = []
            log.clear()
            for call in courses.keys.sorted() { feed(.noDevice(why), to: call, at: now, &outbox) }
            for call in waits.keys.sorted() { finish(call, .failed(why, ["code": "no_device"]), &outbox) }
        case .sound(let call, let end): feed(.sound(end), to: call, at: now, &outbox)
        case .explained(let call, let text, let object):
            finish(call, .done(text, Self.members(object)), &outbox)
        case .notExplained(let call, let why): finish(call, .failed(why), &outbox)
        case .timerFired: checkTime(at: now, &outbox)
        }
        endIfDone(at: now, &outbox)
    }

    private static func members(_ object: String) -> [String: JSONValue] {
        guard case .object(let members)? = ControlCoding.decode(JSONValue.self, from: Array(object.utf8)) else {
            return [:]
        }
        return members
    }

    // MARK: - Tools

    private mutating func carryOut(_ step: MCPServer.Step, at now: Instant, _ outbox: inout [Output]) {
        switch step {
        case .send(let line): outbox.append(.send(line))
        case .begin(let call, let tool, let order): begin(call, tool, order, at: now, &outbox)
        case .cancel(let call):
            if waits.removeValue(forKey: call) != nil { return outbox.append(ended(call, isError: true)) }
            guard courses[call] != nil else { return outbox.append(ended(call, isError: true)) }
            feed(.cancel, to: call, at: now, &outbox)
        }
    }

    private mutating func begin(
        _ call: Int, _ tool: MCPTool, _ order: MCPOrder, at now: Instant, _ outbox: inout [Output]
    ) {
        tools[call] = tool
        if let (callee, account) = order.callee, !admits(callee, account) {
            let text =
                "\"\(callee)\" may not be called: neither mcp.callees nor account.callees lists it. The device's owner can list it in the "
                + "configuration that --config names"
            return finish(call, .failed(text, ["code": "not_configured"]), &outbox)
        }
        switch order {
        case .wait(let filter, let patience):
            if let (events, missed) = log.take(filter) {
                return finish(call, MCPWords.events(events, missed: missed), &outbox)
            }
            waits[call] = Wait(filter: filter, deadline: now.advanced(by: patience))
        case .explain(let which, let account): explain(call, which, account, &outbox)
        case .list, .place, .answer, .reject, .say, .hear, .press, .play, .transfer, .hangUp:
            var outputs: [MCPCourse.Output] = []
            courses[call] = MCPCourse(order, at: now, into: &outputs)
            // An answer to what is said must not be lost.
            if case .say(_, let number) = order { outbox.append(.listen(number)) }
            carryOut(outputs, of: call, &outbox)
        }
    }

    private mutating func explain(
        _ call: Int, _ which: MCPOrder.Explained, _ account: String?, _ outbox: inout [Output]
    ) {
        switch which {
        case .last: outbox.append(.explain(call, search: nil, account: account, waits: false))
        case .search(let text): outbox.append(.explain(call, search: text, account: account, waits: false))
        case .number(let number):
            guard let invite = ended.last(where: { $0.call == number })?.invite else {
                let text = "no call \(number) has ended in this session; give search, or nothing for the last call"
                return finish(call, .failed(text, ["code": "no_such_call"]), &outbox)
            }
            outbox.append(.explain(call, search: invite, account: account, waits: true))
        }
    }

    private mutating func feed(_ input: MCPCourse.Input, to call: Int, at now: Instant, _ outbox: inout [Output]) {
        var outputs: [MCPCourse.Output] = []
        courses[call]?.handle(input, at: now, into: &outputs)
        carryOut(outputs, of: call, &outbox)
    }

    private mutating func carryOut(_ outputs: [MCPCourse.Output], of call: Int, _ outbox: inout [Output]) {
        for output in outputs {
            switch output {
            case .ask(let action, let account): outbox.append(.ask(call, ControlRequest(action, account: account)))
            case .sound(let order): outbox.append(.sound(call, order))
            case .joined(let number):
                joined.insert(number)
                outbox.append(.listen(number))
            case .finish(let result): finish(call, result, &outbox)
            }
        }
    }

    private mutating func finish(_ call: Int, _ result: MCPToolResult, _ outbox: inout [Output]) {
        courses[call] = nil
        waits[call] = nil
        var steps: [MCPServer.Step] = []
        server.finish(call, with: result, into: &steps)
        for case .send(let line) in steps { outbox.append(.send(line)) }
        outbox.append(ended(call, isError: result.isError))
    }

    private mutating func ended(_ call: Int, isError: Bool) -> Output {
        .ended(call, tool: tools.removeValue(forKey: call), isError: isError)
    }

    // MARK: - Events and time

    private mutating func take(event line: [UInt8], at now: Instant, _ outbox: inout [Output]) {
        guard let event = ControlCoding.decode(ControlEvent.self, from: line),
            let value = ControlCoding.decode(JSONValue.self, from: line)
        else { return }
        log.add(value)
        for call in courses.keys.sorted() { feed(.event(event), to: call, at: now, &outbox) }
        if case .ended(let number, let end) = event {
            joined.remove(number)
            if let invite = end.invite { ended = (ended + [(number, invite)]).suffix(Self.endedCalls) }
            outbox.append(.callEnded(number))
        }
        for (call, wait) in waits.sorted(by: { $0.key < $1.key }) {
            guard let (events, missed) = log.take(wait.filter) else { continue }
            finish(call, MCPWords.events(events, missed: missed), &outbox)
        }
    }

    private mutating func checkTime(at now: Instant, _ outbox: inout [Output]) {
        for call in courses.keys.sorted() { feed(.timeout, to: call, at: now, &outbox) }
        for (call, wait) in waits.sorted(by: { $0.key < $1.key }) where now >= wait.deadline {
            finish(call, .done("Nothing happened.", ["events": [], "missed": 0]), &outbox)
        }
    }

    /// The client has gone: what it began ends, and so do the calls that it took part in.
    private mutating func leave(at now: Instant, _ outbox: inout [Output]) {
        guard endsBy == nil else { return }
        endsBy = now.advanced(by: Self.ending)
        for call in waits.keys.sorted() { finish(call, .failed("the client has gone"), &outbox) }
        for (call, course) in courses.sorted(by: { $0.key < $1.key }) where !course.isBrief {
            feed(.cancel, to: call, at: now, &outbox)
        }
        for (index, number) in joined.sorted().enumerated() {
            // Numbers that no tool's call has.
            let call = -1 - index
            var outputs: [MCPCourse.Output] = []
            courses[call] = MCPCourse(.hangUp(number), at: now, into: &outputs)
            carryOut(outputs, of: call, &outbox)
        }
    }

    private mutating func endIfDone(at now: Instant, _ outbox: inout [Output]) {
        guard let endsBy, courses.isEmpty || now >= endsBy else { return }
        hasEnded = true
        outbox.append(.end)
    }
}
