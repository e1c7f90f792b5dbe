import CallPrograms
import TestSupport
import Testing

@Suite("Programs that are run to their end", .timeLimit(.minutes(1)))
struct FilterProgramTests {
    private func run(
        _ script: String, input: String = "", most: Int = 1_000_000, within timeout: Duration = .seconds(30)
    ) throws(FilterProgram.Failure) -> String {
        String(
            decoding: try FilterProgram.run(
                ["sh", "-c", script], input: Array(input.utf8), output: .kept(maximumBytes: most), within: timeout),
            as: UTF8.self)
    }

    @Test("A program reads its input to the end, and its output is returned, also if both are longer than a pipe")
    func filters() throws {
        #expect(try run("tr a-z A-Z", input: "hello") == "HELLO")
        let long = String(repeating: "abcdefg\n", count: 100_000)
        #expect(try run("cat; echo said >&2", input: long) == long)
        #expect(try run("echo done", input: long) == "done\n")
    }

    @Test("Its input is no command of a shell")
    func noShell() throws {
        let text = "$(touch /tmp/never); `id` \"quoted\" 'too'"
        let output = try FilterProgram.run(
            ["cat"], input: Array(text.utf8), output: .kept(maximumBytes: 1_000), within: .seconds(30))
        #expect(String(decoding: output, as: UTF8.self) == text)
    }

    @Test("A program that fails, hangs, floods or does not exist is reported as that")
    func failures() {
        #expect(throws: FilterProgram.Failure.failed("it ended with exit code 3")) { try run("exit 3") }
        #expect(throws: FilterProgram.Failure.tooSlow) { try run("sleep 600", within: .milliseconds(100)) }
        #expect(throws: FilterProgram.Failure.tooSlow) {
            try run("exec >&- 2>&-; sleep 600", within: .milliseconds(100))
        }
        #expect(throws: FilterProgram.Failure.tooMuch) { try run("yes", most: 100_000) }
        #expect(throws: FilterProgram.Failure.self) {
            try FilterProgram.run(["/nonexistent/voice"], output: .dropped, within: .seconds(1))
        }
    }

    @Test("Output up to the limit is returned, and one byte more is too much")
    func limit() throws {
        #expect(try run("head -c 1000 /dev/zero", most: 1_000).utf8.count == 1_000)
        #expect(throws: FilterProgram.Failure.tooMuch) { try run("head -c 1001 /dev/zero", most: 1_000) }
    }

    @Test("Variables that are withheld are not inherited")
    func variables() throws {
        let output = try FilterProgram.run(
            ["sh", "-c", "echo ${PATH:+has}${HOME:-none}"], output: .kept(maximumBytes: 100), within: .seconds(30),
            withholding: ["HOME"])
        #expect(String(decoding: output, as: UTF8.self) == "hasnone\n")
    }
}
