import Foundation
import Testing
import Timekeeping

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
