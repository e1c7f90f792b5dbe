import Foundation
import Testing

/// Tests wait for real sockets, threads and processes only, and never without an end. Read from the sources.
@Suite("Waits of tests")
struct WaitTests {
    private static func sources() throws -> [(name: String, text: String)] {
        let tests = ContractTests.root.appending(path: "Tests")
        let files = FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)
        return try (files?.compactMap { $0 as? URL } ?? [])
            .filter { $0.pathExtension == "swift" && $0.lastPathComponent != "WaitTests.swift" }
            .filter { !$0.path.contains("/Sanitized/Sources") }
            .map { ($0.path, try String(contentsOf: $0, encoding: .utf8)) }
    }

    /// Suites whose tests run in virtual time: nothing of theirs may sleep.
    private static let virtual = [
        "BytesTests", "CallControlTests", "ConfigReaderTests", "ControlWireTests", "ExchangeStoreTests",
        "ExchangeTests",
        "ICETests", "JSONTests", "LoopbackAnalysisTests", "LoopbackReportTests", "MulticastDNSTests", "OpusCodecTests",
        "PeeringTests", "PlayoutTests", "RTPTests", "SDPTests", "STUNTests", "SignalWireTests", "SignedTokensTests",
        "SpeakerphoneTests", "TimekeepingTests",
    ]

    private static let sleeps = ["Task.sleep(", "usleep(", "Thread.sleep(", "nanosleep("]

    @Test("No test spins until something happens: a wait gives up its thread, and ends with the test's time limit")
    func noSpinning() throws {
        let files = try Self.sources()
        #expect(files.count > 200)
        for file in files { #expect(!file.text.contains("Task.yield()"), "\(file.name)") }
    }

    @Test("Suites in virtual time do not sleep")
    func virtualTime() throws {
        for file in try Self.sources() where Self.virtual.contains(where: { file.name.contains("/\($0)/") }) {
            for sleep in Self.sleeps { #expect(!file.text.contains(sleep), "\(sleep)…) in \(file.name)") }
        }
    }

    @Test("A file whose tests sleep has a time limit, or bounds each wait by a count or a deadline")
    func bounded() throws {
        for file in try Self.sources() where Self.sleeps.contains(where: file.text.contains) {
            if file.text.contains(".timeLimit(") || file.name.hasSuffix("/Support/Until.swift") { continue }
            let lines = file.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            for (index, line) in lines.enumerated() where Self.sleeps.contains(where: line.contains) {
                // The loop that the sleep is in, or the line itself.
                let before = lines[max(0, index - 22)...index].joined(separator: "\n")
                let isBounded = [
                    "for _ in 0..<", "TIMER_ABSTIME", "MonotonicClock.now < end", "ContinuousClock.now < end",
                    "ContinuousClock.now < deadline", "ContinuousClock.now > deadline",
                ].contains(where: before.contains)
                #expect(isBounded, "\(file.name):\(index + 1): \(line)")
            }
        }
    }
}
