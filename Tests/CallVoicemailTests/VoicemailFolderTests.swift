import AudioKit
import CallVoicemail
import Files
import Foundation
import TestSupport
import Testing
import Voicemail

@Suite("The folder of a mailbox")
struct VoicemailFolderTests {
    /// A folder with files of a test.
    private struct Box {
        let path = FileManager.default.temporaryDirectory.path + "/handset-box-\(UUID())"
        var folder: VoicemailFolder { VoicemailFolder(path: path) }

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

        func addSound(_ name: String, seconds: Double) throws {
            var writer = try WAVWriter(path: "\(path)/\(name)", sampleRate: VoicemailBounds.rate)
            try writer.append([Int16](repeating: 1_000, count: Int(seconds * Double(VoicemailBounds.rate))).span)
            try writer.finish()
        }

        func addDetails(_ name: String, caller: String) throws {
            try #"{"caller":"\#(caller)","heard":false,"id":"x","received":"2026-11-29T10:40:05.000Z"}"#.write(
                toFile: "\(path)/\(name)", atomically: true, encoding: .utf8)
        }

        var files: [String] {
            ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).filter { $0 != ".lock" }.sorted()
        }

        func remove() { try? FileManager.default.removeItem(atPath: path) }
    }

    @Test("Messages are listed with the oldest first, marked and deleted by their names")
    func changes() throws {
        let box = try Box()
        defer { box.remove() }
        for (stem, caller) in [("2026-11-30_from_b_id2", "ben"), ("2026-11-29_from_a_id1", "ann")] {
            try box.addSound("\(stem).wav", seconds: 2)
            try box.addDetails("\(stem).json", caller: caller)
        }
        #expect(try box.folder.messages().map(\.message.caller) == ["ann", "ben"])
        #expect(try box.folder.messages().map(\.message.id) == ["id1", "id2"])
        try box.folder.mark("id2", isHeard: true)
        #expect(try box.folder.messages().map(\.message.isHeard) == [false, true])
        #expect(try box.folder.message("id2").message.seconds == 2)
        try box.folder.delete("id1")
        #expect(box.files == ["2026-11-30_from_b_id2.json", "2026-11-30_from_b_id2.wav"])
    }

    @Test("A name that no message has is refused, also one that looks like a path")
    func unknown() throws {
        let box = try Box()
        defer { box.remove() }
        try box.addSound("2026-11-29_from_a_id1.wav", seconds: 2)
        for id in ["id2", "", "../id1", "2026-11-29_from_a_id1", "*"] {
            let error = #expect(throws: VoicemailError.self) { try box.folder.delete(id) }
            #expect(error?.code == .unknownMessage)
        }
        #expect(box.files.count == 1)
    }

    @Test("A sound without details is a message of an unknown caller, and details that are damaged are left out")
    func withoutDetails() throws {
        let box = try Box()
        defer { box.remove() }
        try box.addSound("2026-11-29_from_a_id1.wav", seconds: 1.5)
        try "{\"caller\":".write(toFile: "\(box.path)/2026-11-29_from_a_id1.json", atomically: true, encoding: .utf8)
        let message = try #require(try box.folder.messages().first?.message)
        #expect(message.caller == "unknown" && message.seconds == 1.5 && !message.isHeard)
        try box.folder.mark("id1", isHeard: true)
        #expect(try box.folder.messages().first?.message.isHeard == true)
    }

    @Test("What a killed process has left is a message that is cut off, unless it is shorter than a second")
    func recovers() throws {
        let box = try Box()
        defer { box.remove() }
        try box.addSound("2026-11-29_from_a_id1.part.wav", seconds: 1)
        try box.addDetails("2026-11-29_from_a_id1.json", caller: "ann")
        try box.addSound("2026-11-29_from_b_id2.part.wav", seconds: 0.99)
        try box.addDetails("2026-11-29_from_b_id2.json", caller: "ben")
        try box.addDetails("2026-11-29_from_c_id3.json", caller: "cem")
        #expect(try box.folder.messages().isEmpty)
        let kept = try box.folder.recover()
        #expect(kept.map(\.message.caller) == ["ann"] && kept.first?.message.isCut == true)
        #expect(try box.folder.messages() == kept)
        #expect(box.files == ["2026-11-29_from_a_id1.json", "2026-11-29_from_a_id1.wav"])
        #expect(try box.folder.recover().isEmpty)
    }

    @Test("What another process writes now is left to it")
    func sparesLive() throws {
        let box = try Box()
        defer { box.remove() }
        var writer = try WAVWriter(path: "\(box.path)/2026-11-29_from_a_id1.part.wav", sampleRate: VoicemailBounds.rate)
        try writer.append([Int16](repeating: 1_000, count: 32_000).span)
        #expect(try box.folder.recover().isEmpty)
        #expect(box.files == ["2026-11-29_from_a_id1.part.wav"])
        try writer.finish()
    }

    @Test("Messages that are too old are removed with their details, and others stay")
    func expires() throws {
        let box = try Box()
        defer { box.remove() }
        for id in ["old", "new"] {
            try box.addSound("2026-11-29_from_a_\(id).wav", seconds: 2)
            try box.addDetails("2026-11-29_from_a_\(id).json", caller: "ann")
        }
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3 * 86_400)],
            ofItemAtPath: "\(box.path)/2026-11-29_from_a_old.wav")
        var bounds = VoicemailBounds()
        #expect(try box.folder.removeExpired(bounds) == 0)
        bounds.days = 2
        #expect(try box.folder.removeExpired(bounds) == 1)
        #expect(try box.folder.messages().map(\.message.id) == ["new"] && box.files.count == 2)
    }

    @Test("A folder that is not there has no messages, and nothing is made by looking")
    func missing() throws {
        let folder = VoicemailFolder(path: "/nowhere/handset-box")
        #expect(try folder.messages().isEmpty && folder.recover().isEmpty)
        #expect(throws: VoicemailError.self) { try folder.mark("id1", isHeard: true) }
    }
}
