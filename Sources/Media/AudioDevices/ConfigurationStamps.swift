internal import Glibc

/// Modification times of the files of libasound's configuration, so that it is read again only after a change.
/// libasound itself watches the first of them, but not those that they include.
///
/// This watches libasound's first file, the machine's and the user's files, and the machine's folders with each file in
/// them. It does not watch files that these include by name, files of single cards, a user's files without `HOME`, and
/// conditions such as whether PulseAudio runs. Therefore ``ALSACard`` reads everything at each fifth opening.
struct ConfigurationStamps: Equatable, Sendable {
    private struct Stamp: Equatable {
        // Of the last change of any kind: a file may keep the time of its contents, as `cp -p` does.
        var seconds, nanoseconds, size: Int
        var node: UInt
    }

    /// The most files of a folder that are checked; the folders of distributions have some 20.
    private static let filesPerFolder = 256

    private var stamps: [Stamp?]

    /// Looks at the files.
    ///
    /// - Parameters:
    ///   - root: Where the machine's folders are; empty except in tests.
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
        // Editing a file in place changes nothing in its folder.
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
