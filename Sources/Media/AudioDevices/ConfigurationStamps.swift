internal import Glibc

/// When each file changed that libasound's configuration is read from, to read it again only then. libasound looks after the
/// first of them by itself, but not after those that they name.
///
/// Watched are the file that libasound begins with, the machine's and the user's files, and the folders of the machine's with
/// each file in them. Not watched are files that these include by name, those of single cards, a user's files without `HOME`,
/// and what they ask of the system, such as whether PulseAudio runs: ``ALSACard`` has each fifth opening read everything.
struct ConfigurationStamps: Equatable, Sendable {
    private struct Stamp: Equatable {
        // Of the last change of any kind: a file may keep the time of its contents, as `cp -p` does.
        var seconds, nanoseconds, size: Int
        var node: UInt
    }

    /// Files of a folder that are looked at; the folders that distributions have hold some 20.
    private static let filesPerFolder = 256

    private var stamps: [Stamp?]

    /// Looks at the files.
    ///
    /// - Parameters:
    ///   - root: Where the machine's folders are found; empty but for tests.
    ///   - variable: A variable of the environment.
    init(root: String, variable: (String) -> String? = Self.variable) {
        let data = variable("ALSA_CONFIG_DIR") ?? root + "/usr/share/alsa"
        var files = ["\(data)/alsa.conf"] + ["/etc/asound.conf", "/usr/etc/asound.conf"].map { root + $0 }
        if let named = variable("ALSA_CONFIG_PATH") { files += named.split(separator: ":").map(String.init) }
        let home = variable("HOME")
        if let home { files.append("\(home)/.asoundrc") }
        if let folder = variable("XDG_CONFIG_HOME") ?? home.map({ $0 + "/.config" }) {
            files.append("\(folder)/alsa/asoundrc")
        }
        var folders = ["/var/lib/alsa/conf.d", "/usr/etc/alsa/conf.d", "/etc/alsa/conf.d"].map { root + $0 }
        folders.append("\(data)/alsa.conf.d")
        stamps = (files + folders).map(Self.stamp)
        // Whoever edits a file in place changes nothing in its folder.
        for folder in folders {
            for name in CardDirectory.entries(of: folder).prefix(Self.filesPerFolder) {
                stamps.append(Self.stamp(of: "\(folder)/\(name)"))
            }
        }
    }

    private static func stamp(of path: String) -> Stamp? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        return Stamp(
            seconds: status.st_ctim.tv_sec, nanoseconds: status.st_ctim.tv_nsec, size: Int(status.st_size),
            node: UInt(status.st_ino))
    }

    private static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}
