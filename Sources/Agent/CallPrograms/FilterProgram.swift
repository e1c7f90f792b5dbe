internal import Core
internal import Glibc
internal import Realtime

/// Runs a program to its end, such as a speech synthesiser: a text on its standard input, its result on its standard output.
///
/// There is no shell. The program leads a process group, which is killed at the end.
public enum FilterProgram {
    /// Why there is no result.
    public enum Failure: Error, Equatable, Sendable {
        /// It cannot be started; what the system said, and what to try.
        case notStarted(String)
        /// How it ended: an exit code, or a signal.
        case failed(String)
        /// It did not end in time, and was killed.
        case tooSlow
        /// It wrote more than it may, and was killed.
        case tooMuch
    }

    /// What is kept of the standard output.
    public enum Output: Equatable, Sendable {
        /// All of it, up to this number of bytes.
        case kept(maximumBytes: Int)
        /// Nothing, however much there is.
        case dropped
    }

    private static let readBytes = 65_536
    /// Milliseconds for which a wait lasts at most: a program may end without anything becoming readable.
    private static let longestWait: Int32 = 10

    /// Runs a program. Blocks the calling thread.
    ///
    /// - Parameters:
    ///   - words: The program, which is looked for in PATH, and its arguments.
    ///   - input: What it reads. A program that does not read it is not at fault.
    ///   - output: What is kept of what it writes. What it writes to standard error is dropped.
    ///   - timeout: After this it is killed.
    ///   - withheld: Variables of this process that it does not inherit.
    ///   - isCancelled: Is asked every 10 ms or more often. When it says yes, the program is killed as if its time were over.
    /// - Returns: What it has written.
    public static func run(
        _ words: [String], input: [UInt8] = [], output: Output, within timeout: Duration,
        withholding withheld: Set<String> = [], cancelledIf isCancelled: () -> Bool = { false }
    ) throws(Failure) -> [UInt8] {
        ProgramProcess.blockPipeSignals()
        var process: ProgramProcess
        do throws(ProgramStartError) {
            process = try ProgramProcess(
                words, inputBytes: Int32(clamping: max(4_096, input.count)),
                withholding: ProgramProcess.ownVariables + withheld.sorted())
        } catch {
            throw .notStarted(error.description)
        }
        var written: [UInt8] = []
        var end: ProgramExit?
        let deadline = MonotonicClock.now.advanced(by: timeout)
        let failure = follow(&process, input[...], output, until: deadline, isCancelled, &written, &end)
        if end == nil {
            process.signal(SIGKILL)
            while process.reap() == nil { usleep(1_000) }
        }
        if let failure { throw failure }
        return written
    }

    /// - Parameter end: How the process has ended, once it has.
    /// - Returns: Why there is no result; nil if there is one.
    private static func follow(
        _ process: inout ProgramProcess, _ input: ArraySlice<UInt8>, _ output: Output, until deadline: Instant,
        _ isCancelled: () -> Bool, _ written: inout [UInt8], _ end: inout ProgramExit?
    ) -> Failure? {
        var unsent = input
        while true {
            if !unsent.isEmpty { unsent = unsent.dropFirst(process.writeInput(unsent) ?? unsent.count) }
            if unsent.isEmpty { process.closeInput() }
            var isMore = false
            if case .bytes(let bytes) = process.readOutput(readBytes) {
                isMore = true
                if case .kept(let most) = output {
                    guard written.count + bytes.count <= most else { return .tooMuch }
                    written += bytes
                }
            }
            if case .bytes = process.readErrors(readBytes) { isMore = true }
            if case .bytes = process.readCommands(readBytes) { isMore = true }
            guard MonotonicClock.now < deadline, !isCancelled() else { return .tooSlow }
            if isMore { continue }
            // What it wrote before its end has been read.
            switch end {
            case .finished?: return nil
            case .failed(let how)?: return .failed(how)
            case nil: end = process.reap()
            }
            if end == nil { process.waitForOutput(milliseconds: longestWait) }
        }
    }
}
