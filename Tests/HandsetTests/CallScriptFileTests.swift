import CallControl
import ConfigReader
import Foundation
import Testing

@testable import handset

@Suite("Files of call scripts")
struct CallScriptFileTests {
    @Test(
        "Lines that cannot be understood and files that cannot be read are reported together, in the order of the file")
    func allProblems() throws {
        let path = NSTemporaryDirectory() + "handset-\(UUID()).call"
        try "press 1x\nplay no-such-file.wav\nwiat 2 s\n".write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let error = try #require(throws: ConfigError.self) { try CallScriptFile(path) }
        #expect(error.problems.map(\.line) == [1, 2, 3], "\(error)")
        #expect(error.problems[1].key == "no-such-file.wav", "\(error)")
    }

    @Test("The advice after a call that was not connected fits its cause")
    func advice() {
        #expect(MeasuredCall.advice(.deviceFault).contains("log of the device"))
        #expect(
            MeasuredCall.advice(nil).contains("source: echo") && MeasuredCall.advice(.noPath).contains("source: echo"))
    }
}
