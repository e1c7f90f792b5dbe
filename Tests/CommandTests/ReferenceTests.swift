import Foundation
import Testing

/// docs/reference is written by scripts/reference from the command line, the code's comments and Tests/Frozen.
@Suite("The reference")
struct ReferenceTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("docs/reference is what the program and the code say")
    func pages() async throws {
        let script = Self.root.appending(path: "scripts/reference").path
        let handset = try HandsetProcess.executable().path
        let check = try HandsetProcess(
            ["python3", script, "--check", "--handset", handset], executable: "/usr/bin/env")
        #expect(await check.ending() == 0, "\(check.errorText)")
    }

    @Test(
        "A shell completes the names of files where a command takes a file",
        arguments: [
            ("bash", "'--config')\n        __handset_add_completions -f\n"),
            ("zsh", "which names the socket.]:config:_files"), ("fish", "which names the socket.' -rF"),
        ])
    func completions(shell: String, form: String) async throws {
        let command = try HandsetProcess(["--generate-completion-script", shell])
        #expect(await command.ending() == 0, "\(command.errorText)")
        let completes = command.outputText.contains(form)
        #expect(completes, "the completions for \(shell) lack: \(form)")
    }
}
