import Foundation
import Testing
import Core

@testable import handset

@Suite("The archive for support")
struct SupportTests {
    @Test("tar reads the archive: names, modes, and contents of any length")
    func archive() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let texts = ["", "é", String(repeating: "x", count: 511), String(repeating: "y", count: 512), "last\n"]
        var archive = TarArchive()
        for (number, text) in texts.enumerated() {
            archive.add("a/\(number).txt", text, at: WallClock(unixMilliseconds: 1_800_000_000_000))
        }
        archive.add(String(repeating: "n", count: 300), "long name", at: WallClock(unixMilliseconds: -1))
        archive.finish()
        #expect(archive.bytes.count % 512 == 0)
        try Data(archive.bytes).write(to: URL(fileURLWithPath: folder + "/x.tar"))
        let tar = Process()
        tar.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        tar.arguments = ["tar", "-xf", folder + "/x.tar", "-C", folder]
        try tar.run()
        tar.waitUntilExit()
        #expect(tar.terminationStatus == 0)
        for (number, text) in texts.enumerated() {
            let path = "\(folder)/a/\(number).txt"
            #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        }
        #expect(FileManager.default.fileExists(atPath: folder + "/" + String(repeating: "n", count: 99)))
    }

    @Test("Configurations of one file name have names of their own in the archive")
    func names() {
        #expect(
            SupportBundle.names(of: ["/a/x.yaml", "/b/x.yaml", "/b/x.yaml-2", "/c/x.yaml", "/d/y.yaml"]) == [
                "x.yaml", "x.yaml-2", "x.yaml-2-2", "x.yaml-3", "y.yaml",
            ])
        #expect(SupportBundle.names(of: []).isEmpty)
    }

    @Test("The journal in the archive has no word that a program has said, in either form of the log")
    func words() {
        let journal = """
            Nov 24 10:00:00 host handset[1]: 2026-11-24T10:00:00.000Z info [handset] A program says call="call 1" text="key=hunter2"
            Nov 24 10:00:01 host handset[1]: {"level":"info","message":"A program says","metadata":{"text":"hunter2"}}
            Nov 24 10:00:02 host handset[1]: A call has ended call="call 1"

            """
        let shown = SupportBundle.withoutWords(journal)
        #expect(!shown.contains("hunter2"))
        #expect(shown.contains("A program says (left out)") && shown.hasSuffix("A call has ended call=\"call 1\"\n"))
    }

    @Test("Only the configurations of units have a unit")
    func units() {
        #expect(SupportBundle.unit(of: "/etc/handset/front.yaml") == "handset@front")
        #expect(SupportBundle.unit(of: "/etc/handset/exchange.yaml") == "handset-exchange")
        for path in [
            "/home/me/front.yaml", "/etc/handset/x;reboot.yaml", "/etc/handset/'.yaml", "/etc/handset/a/b.yaml",
        ] {
            #expect(SupportBundle.unit(of: path) == nil, "\(path)")
        }
    }
}
