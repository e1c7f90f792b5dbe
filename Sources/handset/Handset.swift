// handset: the command line. Parsing and printing only; what is done is done by the modules below.

internal import ArgumentParser

/// The command `handset`, of which all others are parts.
struct Handset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "handset",
        abstract: "A call device without a screen: logs in, answers calls, places them, and serves them.",
        discussion: "Exit codes are listed in docs/exit-codes.md.",
        version: HandsetVersion.current,
        subcommands: [
            ServeCommand.self, RunCommand.self, CallCommand.self, ReplayCommand.self, CheckCommand.self, UserCommand.self,
            VersionCommand.self,
        ])
}

/// Where the process begins.
@main
enum Main {
    static func main() async {
        Shutdown.start()
        do {
            var command = try Handset.parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            ExitStatus.end(with: error)
        }
    }
}
