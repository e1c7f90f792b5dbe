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
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let inputPipe = Pipe()
        process.standardInput = input.isEmpty ? FileHandle.nullDevice : inputPipe
        let (outputPipe, logPipe) = (Pipe(), Pipe())
        process.standardOutput = outputPipe
        process.standardError = logPipe
        output = LineLog(outputPipe.fileHandleForReading)
        log = LineLog(logPipe.fileHandleForReading)
        try process.run()
        // A pipe holds this much without a reader.
        if !input.isEmpty { try inputPipe.fileHandleForWriting.write(contentsOf: Data(input.utf8)) }
        try inputPipe.fileHandleForWriting.close()
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
    func ending() async -> Int32 {
        await log.end()
        await output.end()
        // The pipes are closed, so there is next to nothing left to wait for.
        process.waitUntilExit()
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
        var waiting: [CheckedContinuation<Void, Never>] = []
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
                    change { $0.lines.append(line) }
                }
            }
            change { $0.isOver = true }
        }
    }

    var text: String { state.withLock { $0.lines.joined(separator: "\n") } }

    /// The next line that holds `text`; nil if the pipe ends without one, or none comes within a minute.
    func line(containing text: String) async -> String? {
        let deadline = ContinuousClock.now + .seconds(60)
        let alarm = Task {
            try? await Task.sleep(until: deadline)
            if !Task.isCancelled { change { _ in } }
        }
        defer { alarm.cancel() }
        while ContinuousClock.now < deadline {
            let (found, isOver) = state.withLock { state -> (String?, Bool) in
                guard let index = state.lines[state.next...].firstIndex(where: { $0.contains(text) }) else {
                    return (nil, state.isOver)
                }
                state.next = index + 1
                return (state.lines[index], state.isOver)
            }
            if found != nil || isOver { return found }
            await news(after: { state in state.lines[state.next...].contains { $0.contains(text) } })
        }
        return nil
    }

    /// Waits until the pipe is closed.
    func end() async {
        while !state.withLock({ $0.isOver }) { await news(after: { $0.isOver }) }
    }

    private func change(_ body: (inout sending State) -> Void) {
        let waiting = state.withLock { state in
            body(&state)
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits for something new, unless what is waited for, or the end, has come meanwhile.
    private func news(after isThere: (borrowing State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let waits = state.withLock { state in
                if state.isOver || isThere(state) { return false }
                state.waiting.append(continuation)
                return true
            }
            if !waits { continuation.resume() }
        }
    }
}
