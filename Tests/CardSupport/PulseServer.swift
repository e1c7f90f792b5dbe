import Foundation
import Realtime
import Testing
import Core

/// A PulseAudio of the test's own, with a null sink in place of a card.
public final class PulseServer {
    private let identifier: pid_t
    private let folder: String

    /// Starts it, and waits until it answers.
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
        identifier = try Self.spawn(
            [
                "pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--disallow-exit", "--use-pid-file=no",
                "--realtime=no", "--high-priority=no", "--log-target=null", "--file=\(folder)/pulse.pa",
            ],
            [
                "HOME=" + folder + "/home", "XDG_RUNTIME_DIR=" + folder + "/run",
                "PULSE_RUNTIME_PATH=" + folder + "/run/pulse",
            ])
        let end = MonotonicClock.now.advanced(by: .seconds(20))
        while !FileManager.default.fileExists(atPath: folder + "/native"), MonotonicClock.now < end { usleep(20_000) }
        try #require(
            FileManager.default.fileExists(atPath: folder + "/native"),
            "PulseAudio does not start; packages pulseaudio and libasound2-plugins")
    }

    deinit {
        kill(identifier, SIGTERM)
        var status: Int32 = 0
        waitpid(identifier, &status, 0)
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Starts a program. Not as a `Process`: PulseAudio closes all descriptors that it inherits, which Foundation takes for
    /// its end, and then it waits for it alone, before any other process of the test.
    private static func spawn(_ arguments: [String], _ environment: [String]) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor: Int32 in 0...2 {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        let inherited = ProcessInfo.processInfo.environment.filter { $0.key != "HOME" }.map { "\($0.key)=\($0.value)" }
        var texts = [arguments, environment + inherited].map { $0.map { strdup($0) } + [nil] }
        defer { for text in texts.joined() { free(text) } }
        var identifier: pid_t = 0
        let result = posix_spawnp(&identifier, arguments[0], &actions, nil, &texts[0], &texts[1])
        try #require(result == 0, "cannot start \(arguments[0]): \(String(cString: strerror(result)))")
        return identifier
    }

    /// Its sink and that sink's monitor, for libasound's configuration.
    public var pcms: String {
        """
        pcm.spk { type pulse device spk server "unix:\(folder)/native" }
        pcm.spkmon { type pulse device spk.monitor server "unix:\(folder)/native" }
        """
    }
}
