// handset: the command line. Parsing and printing only; what is done is done by the modules below.

internal import ArgumentParser
internal import Glibc
internal import Realtime

/// The command `handset`, of which all others are parts.
struct Handset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "handset",
        abstract: "A call device without a screen: logs in, answers calls, places them, and serves them.",
        discussion: "Exit codes are listed in docs/exit-codes.md.",
        version: HandsetVersion.current,
        subcommands: [
            SetupCommand.self, EnrollCommand.self, ServeCommand.self, TrunkCommand.self, RunCommand.self,
            ControlCommand.self, TopCommand.self, CallCommand.self, FlowCommand.self, PolicyCommand.self,
            ConferenceCommand.self, MCPCommand.self, VoicemailCommand.self,
            LoopbackCommand.self,
            DevicesCommand.self,
            LogoutCommand.self, UserCommand.self, TokenCommand.self, ExchangeCommand.self, CallsCommand.self,
            PushCommand.self,
            ExplainCommand.self, DoctorCommand.self,
            ReplayCommand.self, CheckCommand.self, SupportBundleCommand.self,
            VersionCommand.self,
        ])
}

/// Where the process begins.
@main
enum Main {
    /// The first thread takes the signals and does nothing else; the command runs on Swift's own threads. So nothing
    /// here may need the main actor.
    static func main() {
        // Before anything secret is read. With the variable, debuggers of the same user and core dumps may have the memory.
        if unsafe getenv("HANDSET_DUMPABLE") == nil { ProcessMemory.forbidDumps() }
        Shutdown.blockSignals()
        let hasOwnProcessFiles = ProcessFiles.areOwn
        Task.detached { await run(hasOwnProcessFiles) }
        Shutdown.watchSignals()
    }

    private static func run(_ hasOwnProcessFiles: Bool) async {
        do {
            var command = try Handset.parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                guard hasOwnProcessFiles else { throw CommandFailure.foreignProcessFiles }
                try await command.run()
            } else {
                try command.run()
            }
            try Terminal.expectWholeResult()
            LogOptions.finish()
            exit(ExitStatus.ok.rawValue)
        } catch {
            ExitStatus.end(with: error)
        }
    }
}

extension CommandFailure {
    /// ``ProcessFiles/areOwn`` says why.
    fileprivate static var foreignProcessFiles: CommandFailure {
        CommandFailure(
            .failed,
            "the command cannot run here: /proc is missing, or belongs to another namespace of processes, and Swift's "
                + "runtime would end this process with SIGILL. Mount it, as `unshare --mount-proc` or "
                + "`mount -t proc proc /proc` does.")
    }
}
