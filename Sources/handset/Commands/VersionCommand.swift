internal import ArgumentParser
internal import OpusCodec
internal import SecureTransport

/// The version of this program and of what it is made with.
enum HandsetVersion {
    /// Semantic version (semver.org), without a leading letter.
    static let current = "0.1.0"

    /// The compiler that this was built with, as far as it tells.
    static var swift: String {
        #if compiler(>=6.4)
        "6.4 or later"
        #elseif compiler(>=6.3)
        "6.3"
        #else
        "6.2"
        #endif
    }

    /// Everything that a report of a fault should name, a line each.
    static var report: [String] {
        [
            "handset \(current)",
            "Swift \(swift)",
            OpusLibrary.version,
            SRTPLibrary.version,
        ]
    }
}

/// `handset version`.
struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "version", abstract: "Print the versions of handset and of the libraries it uses.")

    func run() {
        for line in HandsetVersion.report { Terminal.print(line) }
    }
}
