internal import ArgumentParser
internal import AudioKit
internal import SecureTransport

extension HandsetVersion {
    /// The version of the compiler that built this, as exactly as `#if` can show it.
    static var swift: String {
        #if compiler(>=6.4)
        "6.4 or later"
        #elseif compiler(>=6.3)
        "6.3"
        #else
        "6.2"
        #endif
    }

    /// Everything that a report of a fault should name: a line each, the name before the version.
    static var report: [String] {
        [
            "handset \(current)",
            "Swift \(swift)",
            OpusLibrary.version,
            SRTPLibrary.version,
        ]
    }

    /// The same as a JSON object, with the names as keys.
    static var object: String {
        var object = JSONObjectText()
        for line in report {
            let words = line.split(separator: " ", maxSplits: 1)
            object.add(words[0].lowercased(), words.count > 1 ? String(words[1]) : "")
        }
        return object.text
    }
}

/// `handset version`.
struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "version", abstract: "Print the versions of handset and of the libraries it uses.")

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() {
        for line in json ? [HandsetVersion.object] : HandsetVersion.report { Terminal.print(line) }
    }
}
