import Foundation
import Testing

/// What bash offers, by the script that the command writes.
@Suite("Completions", .timeLimit(.minutes(1)))
struct CompletionTests {
    /// What bash offers for the last of these words.
    private func offers(_ words: [String]) throws -> Set<String> {
        let line = words.joined(separator: " ")
        let script = """
            PATH="$1:$PATH"
            source <(handset --generate-completion-script bash)
            COMP_LINE=\(quoted(line)); COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMP_KEY=9
            COMP_WORDS=(\(words.map(quoted).joined(separator: " "))); COMP_CWORD=\(words.count - 1)
            _handset handset \(quoted(words.last ?? "")) \(quoted(words.dropLast().last ?? "")) 2>/dev/null
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        process.arguments = ["-c", script, "bash", try HandsetProcess.executable().deletingLastPathComponent().path]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Set(
            String(decoding: data, as: UTF8.self).split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        )
    }

    private func quoted(_ word: String) -> String { "'\(word)'" }

    @Test("Bash offers levels, sources, requests, users of the exchange and sound cards")
    func values() throws {
        let site = try Site()
        defer { site.remove() }
        try "users_file: users.yaml\n".appended(to: site.exchangeConfiguration)
        let users = ["handset", "user", "remove", "--config", site.exchangeConfiguration, ""]
        #expect(try offers(users).isSuperset(of: ["echo", "caller"]))
        #expect(try offers(["handset", "run", "--log-level", "d"]) == ["debug"])
        #expect(try offers(["handset", "setup", "front", "--source", ""]) == ["card", "echo", "tone", "silence"])
        #expect(try offers(["handset", "setup", "front", "--sip-transport", "t"]) == ["tcp", "tls"])
        #expect(try offers(["handset", "control", "han"]).contains("hangup"))
        #expect(try offers(["handset", "devices", "--device", "d"]) == ["default"])
        #expect(try offers(["handset", "token", "mint", "--role", "m"]) == ["moderator"])
    }
}

extension String {
    fileprivate func appended(to path: String) throws {
        try (String(contentsOfFile: path, encoding: .utf8) + "\n" + self).write(
            toFile: path, atomically: true, encoding: .utf8)
    }
}
