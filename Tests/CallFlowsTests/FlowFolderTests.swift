import AudioKit
import CallFlow
import CallFlows
import ConfigReader
import Foundation
import Testing

/// A folder of a flow, with its files.
struct FlowFiles {
    let path = FileManager.default.temporaryDirectory.path + "/handset-flow-\(UUID())"

    init(_ documents: [String: String] = [:]) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for (name, text) in documents {
            try "<Response>\(text)</Response>".write(toFile: "\(path)/\(name)", atomically: true, encoding: .utf8)
        }
    }

    /// Writes a tone.
    func addTone(_ name: String, milliseconds: Int = 200, frequencyHz: Double = 1_000) throws {
        var tone = ToneGenerator(frequencyHz: frequencyHz)
        var samples = [Int16](repeating: 0, count: AudioFormat.samples(milliseconds: milliseconds))
        var room = samples.mutableSpan
        tone.fill(&room)
        var writer = try WAVWriter(path: "\(path)/\(name)")
        try writer.append(samples.span)
        try writer.finish()
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}

@Suite("Folders of call flows")
struct FlowFolderTests {
    private func problems(_ files: FlowFiles, hasVoice: Bool? = nil, hasRecordings: Bool? = nil) throws -> [String] {
        let folder = try FlowFolder(file: "\(files.path)/menu.xml")
        return FlowCheck.problems(of: folder, hasVoice: hasVoice, hasRecordings: hasRecordings).map {
            $0.description.replacing("\(files.path)/", with: "")
        }
    }

    @Test("All documents that a flow can come to are checked, each fault with file, line and element")
    func checksAll() throws {
        let files = try FlowFiles([
            "menu.xml": "<Gather action=\"c-{{Digits}}.xml\"><Play>a.wav</Play></Gather>\n<Redirect>end.xml</Redirect>",
            "c-1.xml": "<Play>b.wav</Play>", "c-2.xml": "\n<Refer>5</Refer>",
            "end.xml": "<Redirect>menu.xml</Redirect>",
            "unused.xml": "<Nothing/>",
        ])
        defer { files.remove() }
        try files.addTone("a.wav")
        let found = try problems(files).sorted()
        #expect(found.count == 2)
        #expect(found.first?.hasPrefix("c-1.xml:1: Play: cannot read \"b.wav\": No such file") == true, "\(found)")
        #expect(found.last?.hasPrefix("c-2.xml:2: Refer: is not supported; supported are") == true, "\(found)")
    }

    @Test(
        "Documents that a caller of a queue goes through are checked for the verbs that they may have, and others for Leave"
    )
    func queues() throws {
        let files = try FlowFiles([
            "menu.xml":
                "<Enqueue waitUrl=\"wait.xml\" action=\"end.xml\">q</Enqueue>\n<Dial><Queue url=\"hello.xml\">q</Queue></Dial>"
                + "\n<Leave/>",
            "wait.xml": "<Gather action=\"k-{{Digits}}.xml\"/>\n<Dial>bob</Dial>", "k-1.xml": "<Leave/>",
            "k-2.xml": "\n<Record/>", "hello.xml": "<Hangup/>", "end.xml": "<Hangup/>",
        ])
        defer { files.remove() }
        let found = try problems(files).sorted()
        let expected = [
            "hello.xml:1: Hangup: is not supported before the caller of a queue is joined",
            "k-2.xml:2: Record: is not supported while the caller waits in a queue",
            "menu.xml:3: Leave: the caller waits in no queue",
            "wait.xml:2: Dial: is not supported while the caller waits in a queue",
        ]
        #expect(found.count == expected.count, "\(found)")
        for (problem, start) in zip(found, expected) { #expect(problem.hasPrefix(start), "\(problem)") }
    }

    @Test("A host that a document streams to must be listed, unless it depends on the call")
    func streamHosts() throws {
        let files = try FlowFiles([
            "menu.xml": """
            <Start><Stream url="wss://a.example/"/></Start>
            <Start><Stream url="wss://b.bots.example/{{From}}"/></Start>
            <Connect action="end.xml"><Stream url="wss://b.bots.example/x"/></Connect>
            """, "end.xml": "<Connect><Stream url=\"ws://10.0.0.1:80/\"/></Connect>",
        ])
        defer { files.remove() }
        let folder = try FlowFolder(file: "\(files.path)/menu.xml")
        func problems(_ hosts: [String]?) -> [String] {
            FlowCheck.problems(of: folder, streamHosts: hosts).map {
                $0.description.replacing("\(files.path)/", with: "")
            }
        }
        #expect(problems(nil).isEmpty)
        #expect(problems(["a.example", "*.bots.example", "10.0.0.1"]).isEmpty)
        let found = problems(["*.bots.example"]).sorted()
        #expect(found.count == 2, "\(found)")
        #expect(found.first?.hasPrefix("end.xml:1: Connect: the host \"10.0.0.1\" is neither") == true, "\(found)")
        #expect(found.last?.hasPrefix("menu.xml:1: Start: the host \"a.example\" is neither") == true, "\(found)")
    }

    @Test(
        "A flow that needs a voice or a folder for recordings is refused without it, and an action without files, too")
    func needs() throws {
        let files = try FlowFiles(["menu.xml": "<Say>a</Say><Record/><Gather action=\"c-{{Digits}}.xml\"/>"])
        defer { files.remove() }
        #expect(try problems(files).count == 1)
        #expect(
            try problems(files, hasVoice: false, hasRecordings: false) == [
                "menu.xml:1: Say: there is no voice: behaviour.flow.say in the configuration names the command of one",
                "menu.xml:1: Record: there is no folder for recordings: behaviour.flow.record_folder in the configuration names one",
                "menu.xml:1: Gather: no file is named as \"c-{{Digits}}.xml\", so that every call would fail there",
            ])
    }

    @Test(
        "Callees of Dial that are the same in every call are judged, with file and line; documents that ask them are checked, too"
    )
    func callees() throws {
        let files = try FlowFiles([
            "menu.xml": "<Dial><Client url=\"ask.xml\">bob</Client><Client url=\"ask.xml\">{{Digits}}</Client></Dial>",
            "ask.xml": "\n<Dial action=\"none.xml\">+49 30 1</Dial>",
        ])
        defer { files.remove() }
        let folder = try FlowFolder(file: "\(files.path)/menu.xml")
        var judged: [String] = []
        let found = FlowCheck.problems(ofCalleesIn: folder) { name in
            judged.append(name)
            return name == "bob"
        }
        #expect(judged == ["bob", "+49301"])
        #expect(
            found.map { $0.description.replacing("\(files.path)/", with: "") } == [
                "ask.xml:2: Dial: cannot call \"+49301\": account.callees does not have that callee; list it there"
            ])
        #expect(try problems(files).first?.contains("cannot read") == true)
    }

    @Test("A symbolic link out of the folder, a folder, a pipe and a document that is too long are refused")
    func refusesOtherFiles() throws {
        let files = try FlowFiles(["menu.xml": ""])
        let outside = try FlowFiles(["secret.xml": ""])
        defer {
            files.remove()
            outside.remove()
        }
        let manager = FileManager.default
        try manager.createSymbolicLink(
            atPath: "\(files.path)/link.xml", withDestinationPath: "\(outside.path)/secret.xml")
        try manager.createSymbolicLink(atPath: "\(files.path)/away", withDestinationPath: outside.path)
        try manager.createSymbolicLink(atPath: "\(files.path)/inner.xml", withDestinationPath: "menu.xml")
        try manager.createDirectory(atPath: "\(files.path)/folder.xml", withIntermediateDirectories: true)
        #expect(mkfifo("\(files.path)/pipe.xml", 0o600) == 0)
        try String(repeating: " ", count: 65_537).write(
            toFile: "\(files.path)/long.xml", atomically: true, encoding: .utf8)
        let folder = try FlowFolder(file: "\(files.path)/menu.xml")
        func message(_ name: String) throws -> String? {
            if case .failure(let fault) = folder.load(try FlowFileName(name)) { fault.message } else { nil }
        }
        #expect(try message("menu.xml") == nil)
        #expect(try message("inner.xml") == nil)
        #expect(try message("link.xml")?.contains("it is outside of") == true)
        #expect(try message("away/secret.xml")?.contains("it is outside of") == true)
        #expect(try message("folder.xml")?.contains("it is a folder") == true)
        #expect(try message("pipe.xml")?.contains("it is a named pipe") == true)
        #expect(try message("long.xml")?.contains("65536 bytes at most") == true)
        guard case .failure(let missing) = folder.load(try FlowFileName("none.xml")) else {
            throw FlowUnusable("it was read")
        }
        #expect(missing.isMissing)
    }
}
