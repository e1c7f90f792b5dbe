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
}
