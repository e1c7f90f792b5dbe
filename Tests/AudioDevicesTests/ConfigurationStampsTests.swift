@testable import AudioDevices
import Foundation
import Testing

@Suite("What libasound's configuration is read from")
struct ConfigurationStampsTests {
    /// A machine's folders, and a user's.
    private final class Machine {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("machine-\(UUID().uuidString)").path
        lazy var variables = ["HOME": root + "/home"]

        deinit { try? FileManager.default.removeItem(atPath: root) }

        func write(_ text: String, to file: String) throws {
            let folder = (root + file as NSString).deletingLastPathComponent
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            guard let handle = FileHandle(forWritingAtPath: root + file) else {
                try text.write(toFile: root + file, atomically: false, encoding: .utf8)
                return
            }
            // In place, so that the folder does not change.
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: Data(text.utf8))
            try handle.close()
        }

        var stamps: ConfigurationStamps {
            ConfigurationStamps(root: root, variable: { variables[$0] })
        }
    }

    @Test(
        "A file that appears, and one that is edited in place, is noticed",
        arguments: [
            "/usr/share/alsa/alsa.conf", "/usr/share/alsa/alsa.conf.d/50-a.conf", "/var/lib/alsa/conf.d/a.conf",
            "/usr/etc/alsa/conf.d/a.conf", "/etc/alsa/conf.d/a.conf", "/etc/asound.conf", "/usr/etc/asound.conf",
            "/home/.asoundrc", "/home/.config/alsa/asoundrc",
        ])
    func edited(file: String) throws {
        let machine = Machine()
        let without = machine.stamps
        try machine.write("# one\n", to: file)
        let before = machine.stamps
        #expect(before != without)
        #expect(machine.stamps == before)
        try machine.write("# another\n", to: file)
        #expect(machine.stamps != before)
    }

    @Test("The files that the environment names are looked at in place of the usual ones")
    func environment() throws {
        let machine = Machine()
        machine.variables = [
            "HOME": machine.root + "/other", "XDG_CONFIG_HOME": machine.root + "/xdg",
            "ALSA_CONFIG_DIR": machine.root + "/data", "ALSA_CONFIG_PATH": "\(machine.root)/one:\(machine.root)/two",
        ]
        let named = [
            "/other/.asoundrc", "/xdg/alsa/asoundrc", "/data/alsa.conf", "/data/alsa.conf.d/a", "/one", "/two",
        ]
        for file in named {
            let before = machine.stamps
            try machine.write("# new\n", to: file)
            #expect(machine.stamps != before, "\(file)")
        }
        let before = machine.stamps
        try machine.write("# new\n", to: "/home/.asoundrc")
        #expect(machine.stamps == before)
    }

    @Test("A changed file that keeps its time and its size is noticed")
    func keptTime() throws {
        let machine = Machine()
        func write(_ text: String) throws {
            try machine.write(text, to: "/etc/asound.conf")
            var times = [timeval(tv_sec: 1_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000, tv_usec: 0)]
            #expect(utimes(machine.root + "/etc/asound.conf", &times) == 0)
        }
        try write("# one\n")
        let before = machine.stamps
        // Older kernels count time in steps of some milliseconds.
        for _ in 0..<10_000 where machine.stamps == before { try write("# two\n") }
        #expect(machine.stamps != before)
    }
}
