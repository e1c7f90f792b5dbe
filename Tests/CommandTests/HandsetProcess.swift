import Foundation
import Synchronization
import Testing

/// A `handset` of this build, started as a user would start it, with its log lines to wait for.
///
/// Ended with SIGKILL when the test lets go of it, so that a failed test leaves nothing behind.
final class HandsetProcess: Sendable {
    private let process: Process
    private let log: LineLog
    private let output: LineLog

    /// Starts `handset` with these arguments, and `input` on its standard input.
    ///
    /// - Parameter executable: Another program, which starts `handset` in turn.
    init(
        _ arguments: [String], environment: [String: String] = [:], input: String = "", executable: String? = nil
    ) throws {
        process = Process()
        process.executableURL = try executable.map { URL(fileURLWithPath: $0) } ?? Self.executable()
        process.arguments = arguments
        var inherited = ProcessInfo.processInfo.environment
        // A scripted card of an earlier suite leaves its configuration of libasound to this process.
        inherited["ALSA_CONFIG_PATH"] = nil
        process.environment = inherited.merging(environment) { $1 }
        let inputPipe = input.isEmpty ? nil : Pipe()
        process.standardInput = inputPipe ?? FileHandle.nullDevice
        let (outputPipe, logPipe) = (Pipe(), Pipe())
        process.standardOutput = outputPipe
        process.standardError = logPipe
        output = LineLog(outputPipe.fileHandleForReading)
        log = LineLog(logPipe.fileHandleForReading)
        try process.run()
        guard let inputPipe else { return }
        // A pipe holds this much without a reader.
        try inputPipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try inputPipe.fileHandleForWriting.close()
        try inputPipe.fileHandleForReading.close()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    /// Waits for a line on standard error that holds `text`, among those that have not been waited for.
    @discardableResult
    func line(containing text: String, sourceLocation: SourceLocation = #_sourceLocation) async throws -> String {
        let line = await log.line(containing: text)
        return try #require(
            line, "no line with \"\(text)\"; it said:\n\(log.text)", sourceLocation: sourceLocation)
    }

    /// Sends a signal.
    func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

    /// Waits for the end. Returns the exit code, or the negative number of the signal that ended it.
    ///
    /// A process that goes on for three minutes, or past the test's time limit, fails the test and is ended with SIGKILL.
    func ending() async -> Int32 {
        let deadline = ContinuousClock.now + .seconds(180)
        while !log.isOver || !output.isOver || process.isRunning {
            guard ContinuousClock.now < deadline, (try? await Task.sleep(for: .milliseconds(1))) != nil else {
                Issue.record("handset goes on; it said:\n\(log.text)")
                send(SIGKILL)
                return -SIGKILL
            }
        }
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// The process's id.
    var identifier: Int32 { process.processIdentifier }

    /// All that came on standard error so far.
    var errorText: String { log.text }

    /// All that came on standard output so far.
    var outputText: String { output.text }

    /// The command that this build made, beside the tests.
    static func executable() throws -> URL {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        var folder = URL(fileURLWithPath: tests).deletingLastPathComponent()
        // `swift test` may run the tests from a helper of its own; then the bundle's path is an argument.
        if let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) {
            folder = URL(fileURLWithPath: bundle).deletingLastPathComponent()
        }
        return folder.appendingPathComponent("handset")
    }
}

/// The lines that come through a pipe, read by a thread of its own.
final class LineLog: Sendable {
    private struct State {
        var lines: [String] = []
        /// Lines before this one have been waited for.
        var next = 0
        var isOver = false
    }

    private let state = Mutex(State())

    init(_ handle: FileHandle) {
        Thread.detachNewThread { [self] in
            var rest = Data()
            while case let data = handle.availableData, !data.isEmpty {
                rest.append(data)
                while let end = rest.firstIndex(of: 0x0A) {
                    let line = String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
                    rest.removeSubrange(rest.startIndex...end)
                    state.withLock { $0.lines.append(line) }
                }
            }
            // A thread's block is never freed, and the handle with it. With a thousand descriptors Foundation's `Process` crashes at
            // its next start, now and then: it reads their list past the end.
            try? handle.close()
            state.withLock { $0.isOver = true }
        }
    }

    var text: String { state.withLock { $0.lines.joined(separator: "\n") } }

    /// The next line that holds `text`; nil if the pipe ends without one, or none comes within a minute.
    func line(containing text: String) async -> String? {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            let (found, isOver) = state.withLock { state -> (String?, Bool) in
                guard let index = state.lines[state.next...].firstIndex(where: { $0.contains(text) }) else {
                    return (nil, state.isOver)
                }
                state.next = index + 1
                return (state.lines[index], state.isOver)
            }
            if found != nil || isOver || ContinuousClock.now > deadline { return found }
            guard (try? await Task.sleep(for: .milliseconds(1))) != nil else { return nil }
        }
    }

    /// Whether the pipe is closed.
    var isOver: Bool { state.withLock { $0.isOver } }
}
