internal import FoundationEssentials

/// The control sockets of the package's units, each in a folder with the name of its device.
struct UnitSockets {
    /// Their paths, in the order of their names.
    let paths: [String]

    /// Looks for them in the folder that systemd makes for the units.
    init(in folder: String = "/run/handset") {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        paths = names.sorted().map { "\(folder)/\($0)/control.sock" }
            .filter { FileManager.default.fileExists(atPath: $0) }
    }

    /// The socket when the user names none: the usual one, if it is there, or that of the only unit.
    ///
    /// - Throws: If there are several.
    func choose(usual: String) throws(CommandFailure) -> String {
        guard !FileManager.default.fileExists(atPath: usual), let first = paths.first else { return usual }
        guard paths.count == 1 else {
            throw CommandFailure(
                .usage, "\(paths.count) devices run here; name one: --socket \(paths.joined(separator: ", --socket "))")
        }
        return first
    }
}
