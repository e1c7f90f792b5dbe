internal import ArgumentParser
internal import FoundationEssentials
internal import Files
internal import Realtime
internal import Core

/// `handset support-bundle`.
struct SupportBundleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "support-bundle",
        abstract: "Collect what a report of a fault needs into one file, without secrets.",
        discussion: """
            A tar archive (mode 0600) of text files: versions, the machine, sound cards, network, and of each configuration \
            its problems, its keys and values, the unit's state and the end of its journal, the device's status and its \
            last calls. It leaves out secrets, the arguments of programs, the parties of calls and what they say; \
            the journal has the names of callers, so read the archive before you pass it on.
            """)

    @Option(
        help: "A configuration of `handset run` or `serve`; may be repeated. Those in /etc/handset unless given.",
        completion: .file())
    var config: [String] = []

    @Option(help: "The archive; handset-support-TIME.tar in this folder unless given.", completion: .file())
    var output: String?

    func run() async throws {
        let time = MonotonicClock.wallTime
        let configurations = config.isEmpty ? Self.installed : config.map(RegularFile.absolute)
        var archive = TarArchive()
        for (name, text) in await SupportBundle(configurations: configurations).files() {
            archive.add("handset-support/\(name)", text, at: time)
        }
        archive.finish()
        let stamp = time.rfc3339.prefix { $0 != "." }.filter { $0.isNumber || $0 == "T" }
        let path = output ?? "handset-support-\(stamp).tar"
        do throws(PrivateFileError) {
            try PrivateFile.replace(RegularFile.absolute(path), with: archive.bytes)
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
        Terminal.print(path)
    }

    /// The configurations that units run.
    private static var installed: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/etc/handset")) ?? []
        return names.filter { $0.hasSuffix(".yaml") }.sorted().map { "/etc/handset/\($0)" }
    }
}
