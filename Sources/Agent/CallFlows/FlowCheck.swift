internal import AudioKit
internal import CallFlow
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
    private var problems: [ConfigProblem] = []
    private var waiting: [FlowFileName]
    private var known: Set<FlowFileName>
    private var names: [FlowFileName]?
    /// Callees of Dial that are the same in every call.
    private var callees: [(document: FlowFileName, line: Int, name: String)] = []

    /// Documents that are checked at most.
    private static let mostDocuments = 1_000

    /// Checks one document, and nothing that it names.
    public static func problems(ofDocumentIn folder: FlowFolder) -> [ConfigProblem] {
        var check = FlowCheck(folder, nil, nil)
        _ = check.document(folder.first)
        return check.problems
    }

    /// Checks a flow, by files on the disk.
    ///
    /// - Parameters:
    ///   - hasVoice: Whether the configuration has a voice; nil for a flow without a configuration.
    ///   - hasRecordings: The same of the folder for recordings.
    /// - Returns: All problems, by file.
    public static func problems(of folder: FlowFolder, hasVoice: Bool? = nil, hasRecordings: Bool? = nil)
        -> [ConfigProblem]
    {
        var check = FlowCheck(folder, hasVoice, hasRecordings)
        check.run()
        return check.problems
    }

    /// Checks who is called by a flow's Dial, as far as that is the same in every call.
    ///
    /// - Parameter admits: Whether a name may be called.
    /// - Returns: Those that may not, by file.
    public static func problems(ofCalleesIn folder: FlowFolder, admits: (String) -> Bool) -> [ConfigProblem] {
        var check = FlowCheck(folder, nil, nil)
        check.run()
        return check.callees.filter { !admits($0.name) }.map { callee in
            ConfigProblem(
                file: folder.shownPath(of: callee.document), line: callee.line, key: "Dial",
                message: "cannot call \"\(callee.name)\": account.callees does not have that callee; list it there")
        }
    }

    private init(_ folder: FlowFolder, _ hasVoice: Bool?, _ hasRecordings: Bool?) {
        self.folder = folder
        self.hasVoice = hasVoice
        self.hasRecordings = hasRecordings
        waiting = [folder.first]
        known = [folder.first]
    }

    private mutating func run() {
        while let name = waiting.popLast(), known.count <= Self.mostDocuments {
            for step in document(name)?.steps ?? [] { check(step, of: name) }
        }
    }

    private mutating func document(_ name: FlowFileName) -> FlowDocument? {
        do throws(FlowFaults) {
            return try folder.document(name)
        } catch {
            for fault in error.faults { add(name, fault.line, fault.element, fault.message) }
            return nil
        }
    }

    private mutating func add(_ name: FlowFileName, _ line: Int, _ element: String, _ message: String) {
        problems.append(ConfigProblem(file: folder.shownPath(of: name), line: line, key: element, message: message))
    }

    private mutating func check(_ step: FlowDocument.Step, of document: FlowFileName) {
        func add(_ message: String) { self.add(document, step.line, step.verb.name, message) }
        switch step.verb {
        case .say:
            if hasVoice == false {
                add("there is no voice: behaviour.flow.say in the configuration names the command of one")
            }
        case .play(let file, _): if let why = check(sound: file) { add(why) }
        case .redirect(let next, _): if let why = follow(next) { add(why) }
        case .gather(let gather):
            for prompt in gather.prompts { check(prompt, of: document) }
            if let next = gather.action, let why = follow(next) { add(why) }
        case .record(let record):
            if hasRecordings == false {
                add("there is no folder for recordings: behaviour.flow.record_folder in the configuration names one")
            }
            if let next = record.action, let why = follow(next) { add(why) }
        case .dial(let dial):
            if case .callees(let named, let asking) = dial.destination {
                callees += named.compactMap(\.fixed).map { (document, step.line, $0) }
                if let asking, let why = follow(asking) { add(why) }
            }
            if let next = dial.action, let why = follow(next) { add(why) }
        case .pause, .reject, .hangup: return
        }
    }

    /// Has the documents of an action or Redirect checked, too.
    ///
    /// - Returns: What is wrong; nil if nothing is.
    private mutating func follow(_ text: FlowText) -> String? {
        let named = candidates(text)
        for name in named where known.insert(name).inserted { waiting.append(name) }
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
