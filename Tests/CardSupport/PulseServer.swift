import Foundation
import Realtime
import Testing
import Timekeeping

/// A PulseAudio of the test's own, with a null sink in place of a card.
public final class PulseServer {
    private let process = Process()
    private let folder: String

    public init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("pulse-\(UUID().uuidString)").path
        for part in ["", "/home", "/run"] {
            try FileManager.default.createDirectory(
                atPath: folder + part, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        let script = """
            load-module module-native-protocol-unix socket=\(folder)/native auth-anonymous=1
            load-module module-null-sink sink_name=spk rate=48000 channels=2
            """
        try script.write(toFile: folder + "/pulse.pa", atomically: true, encoding: .utf8)
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--disallow-exit", "--use-pid-file=no",
            "--realtime=no", "--high-priority=no", "--log-target=null", "--file=\(folder)/pulse.pa",
        ]
        process.environment = ProcessInfo.processInfo.environment.merging([
            "HOME": folder + "/home", "XDG_RUNTIME_DIR": folder + "/run", "PULSE_RUNTIME_PATH": folder + "/run/pulse",
        ]) { $1 }
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let end = MonotonicClock.now.advanced(by: .seconds(20))
        while !FileManager.default.fileExists(atPath: folder + "/native"), MonotonicClock.now < end { usleep(20_000) }
        try #require(
            FileManager.default.fileExists(atPath: folder + "/native"),
            "PulseAudio does not start; packages pulseaudio and libasound2-plugins")
    }

    deinit {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Its sink and that sink's monitor, for libasound's configuration.
    public var pcms: String {
        """
        pcm.spk { type pulse device spk server "unix:\(folder)/native" }
        pcm.spkmon { type pulse device spk.monitor server "unix:\(folder)/native" }
        """
    }
}
