internal import AudioKit
internal import CallFlow
internal import CallWebhooks
public import ConfigReader

/// Checks a flow before a call: its first document, all that this one names, and so on.
///
/// A name that depends on the call, such as `choice-{{Digits}}.xml`, is checked by the files that a call could name.
public struct FlowCheck {
    private let folder: FlowFolder
    /// Whether there is a voice for Say; nil if that is unknown.
    private let hasVoice: Bool?
    /// Whether there is a folder for Record; nil if that is unknown.
    private let hasRecordings: Bool?
    /// Why a host may not be streamed to; nil if that is unknown.
    private let refusal: ((String) -> String?)?
    private var problems: [ConfigProblem] = []
    /// A document, and what a call goes through it for.
    private struct Visit: Hashable {
        let name: FlowFileName
        let role: FlowDocumentRole
    }

    private var waiting: [Visit]
    private var known: Set<Visit>
    /// Those that were read; nil for one that is wrong.
    private var documents: [FlowFileName: FlowDocument?] = [:]
    private var names: [FlowFileName]?
    /// Callees of Dial that are the same in every call.
    private var callees: [(document: FlowFileName, line: Int, name: String)] = []

    /// Documents that are checked at most.
    private static let mostDocuments = 1_000

    /// Checks one document, and nothing that it names.
    public static func problems(ofDocumentIn folder: FlowFolder) -> [ConfigProblem] {
        var check = FlowCheck(folder)
        _ = check.document(folder.first)
        return check.problems
    }

    /// Checks a flow, by files on the disk.
    ///
    /// - Parameters:
    ///   - hasVoice: Whether the configuration has a voice; nil for a flow without a configuration.
    ///   - hasRecordings: The same of the folder for recordings.
    ///   - streamHosts: The hosts that its documents may stream to; nil likewise.
    /// - Returns: All problems, by file.
    public static func problems(
        of folder: FlowFolder, hasVoice: Bool? = nil, hasRecordings: Bool? = nil, streamHosts: [String]? = nil
    ) -> [ConfigProblem] {
        let hosts = streamHosts.map { HostGuard(own: [], allowed: $0, section: "behaviour.flow") }
        let refusal = hosts.map { hosts in { (host: String) in Self.refusal(of: host, by: hosts) } }
        var check = FlowCheck(folder, hasVoice, hasRecordings, refusal)
        check.run()
        return check.problems
    }

    /// Checks who is called by a flow's Dial, as far as that is the same in every call.
    ///
    /// - Parameter admits: Whether a name may be called.
    /// - Returns: Those that may not, by file.
    public static func problems(ofCalleesIn folder: FlowFolder, admits: (String) -> Bool) -> [ConfigProblem] {
        var check = FlowCheck(folder)
        check.run()
        return check.callees.filter { !admits($0.name) }.map { callee in
            ConfigProblem(
                file: folder.shownPath(of: callee.document), line: callee.line, key: "Dial",
                message: "cannot call \"\(callee.name)\": account.callees does not have that callee; list it there")
        }
    }

    private init(
        _ folder: FlowFolder, _ hasVoice: Bool? = nil, _ hasRecordings: Bool? = nil,
        _ refusal: ((String) -> String?)? = nil
    ) {
        self.folder = folder
        self.refusal = refusal
        self.hasVoice = hasVoice
        self.hasRecordings = hasRecordings
        waiting = [Visit(name: folder.first, role: .flow)]
        known = Set(waiting)
    }

    private mutating func run() {
        while let visit = waiting.popLast(), known.count <= Self.mostDocuments {
            for step in document(visit.name)?.steps ?? [] { check(step, of: visit) }
        }
    }

    private mutating func document(_ name: FlowFileName) -> FlowDocument? {
        if let known = documents[name] { return known }
        do throws(FlowFaults) {
            let document = try folder.document(name)
            documents[name] = document
            return document
        } catch {
            for fault in error.faults { add(name, fault.line, fault.element, fault.message) }
            documents[name] = .some(nil)
            return nil
        }
    }

    private mutating func add(_ name: FlowFileName, _ line: Int, _ element: String, _ message: String) {
        problems.append(ConfigProblem(file: folder.shownPath(of: name), line: line, key: element, message: message))
    }

    private mutating func check(_ step: FlowDocument.Step, of visit: Visit) {
        let role = visit.role
        func add(_ message: String) { self.add(visit.name, step.line, step.verb.name, message) }
        guard role.admits(step.verb) else { return add(role.refusal) }
        switch step.verb {
        case .say:
            if hasVoice == false {
                add("there is no voice: behaviour.flow.say in the configuration names the command of one")
            }
        case .play(let file, _): if let why = check(sound: file) { add(why) }
        case .redirect(let next, _): if let why = follow(next, for: role) { add(why) }
        case .gather(let gather):
            for prompt in gather.prompts { check(prompt, of: visit) }
            if let next = gather.action, let why = follow(next, for: role) { add(why) }
        case .record(let record):
            if hasRecordings == false {
                add("there is no folder for recordings: behaviour.flow.record_folder in the configuration names one")
            }
            if let next = record.action, let why = follow(next, for: role) { add(why) }
        case .dial(let dial):
            switch dial.destination {
            case .callees(let named, let asking):
                callees += named.compactMap(\.fixed).map { (visit.name, step.line, $0) }
                if let asking, let why = follow(asking, for: role) { add(why) }
            case .queue(_, let whisper, _): if let whisper, let why = follow(whisper, for: .whisper) { add(why) }
            case .room: break
            }
            if let next = dial.action, let why = follow(next, for: role) { add(why) }
        case .connect(let connect):
            if let why = check(connect.stream) { add(why) }
            if let next = connect.action, let why = follow(next, for: role) { add(why) }
        case .start(let stream): if let why = check(stream) { add(why) }
        case .enqueue(let enqueue):
            if let wait = enqueue.wait, let why = follow(wait, for: .wait) { add(why) }
            if let next = enqueue.action, let why = follow(next, for: role) { add(why) }
        case .pause, .stop, .leave, .reject, .hangup: return
        }
    }

    private func check(_ stream: FlowStream) -> String? { stream.url.fixedSocketHost.flatMap { refusal?($0) } }

    private static func refusal(of host: String, by hosts: HostGuard) -> String? {
        do throws(HostGuard.Refusal) {
            try hosts.check(host)
            return nil
        } catch {
            return error.description
        }
    }

    /// Has the documents of an action or Redirect checked, too.
    ///
    /// - Returns: What is wrong; nil if nothing is.
    private mutating func follow(_ text: FlowText, for role: FlowDocumentRole) -> String? {
        let named = candidates(text)
        for name in named {
            let visit = Visit(name: name, role: role)
            if known.insert(visit).inserted { waiting.append(visit) }
        }
        return named.isEmpty ? "no file is named as \"\(text.source)\", so that every call would fail there" : nil
    }

    private mutating func check(sound text: FlowText) -> String? {
        let named = candidates(text)
        for name in named {
            do throws(FlowUnusable) {
                let path = try folder.path(of: name)
                guard let why = Self.unplayable(path) else { continue }
                return why
            } catch {
                return error.message
            }
        }
        return named.isEmpty ? "no file is named as \"\(text.source)\"" : nil
    }

    private mutating func candidates(_ text: FlowText) -> [FlowFileName] {
        if let name = text.fixedFileName { return [name] }
        let all = names ?? folder.names()
        names = all
        return all.filter(text.canName)
    }

    /// Reads the beginning of a file as a call would.
    private static func unplayable(_ path: String) -> String? {
        do throws(AudioFileError) {
            var reader = try AudioFileReader(path: path)
            var block = [Int16](repeating: 0, count: 4_800)
            var room = block.mutableSpan
            _ = try reader.read(into: &room)
            return nil
        } catch {
            return "\(error)"
        }
    }
}
