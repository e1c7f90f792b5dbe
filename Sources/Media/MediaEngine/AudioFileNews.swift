internal import AudioKit
internal import Realtime
internal import Synchronization

/// Handlers for the file threads' reports of a call's files.
struct FileReports: Sendable {
    /// A file failed, could not be opened, or does not answer.
    var onFailure: @Sendable (AudioFileError) -> Void
    /// A recording has ended.
    var onRecordingEnd: @Sendable (RecordingEnd) -> Void = { _ in }
}

/// What becomes of one file, for those who wait for it, and for its reports.
///
/// It never waits for a disk, so that any thread may ask it while the file's own thread hangs.
final class AudioFileNews: Sendable {
    /// The file's name, or why it is not open.
    typealias Outcome = Result<String, AudioFileError>

    private enum Opening {
        case pending
        /// A thread waits, and is woken by this.
        case awaited(WakeupHolder)
        /// A task waits.
        case expected(CheckedContinuation<Outcome?, Never>)
        case settled(Outcome)
        /// The wait has ended.
        case left
    }

    private struct State {
        var opening = Opening.pending
        var stall: AudioFileError?
        var isOver = false
    }

    let path: String
    let purpose: AudioFileError.Purpose
    private let reports: FileReports
    private let state = Mutex(State())

    init(_ path: String, _ purpose: AudioFileError.Purpose, _ reports: FileReports) {
        self.path = path
        self.purpose = purpose
        self.reports = reports
    }

    /// That the file's disk did not answer in time, once it has been reported.
    var stall: AudioFileError? { state.withLock { $0.stall } }

    // MARK: On the file thread

    /// The file is open, or cannot be opened. If the wait has ended, a failure is reported.
    func settle(_ outcome: Outcome) {
        let former = state.withLock { state in
            let former = state.opening
            if case .left = former { return former }
            state.opening = .settled(outcome)
            return former
        }
        switch former {
        case .pending, .settled: break
        case .awaited(let holder): holder.wakeup.signal()
        case .expected(let waiter): waiter.resume(returning: outcome)
        case .left: if case .failure(let error) = outcome { fail(error) }
        }
    }

    func fail(_ error: AudioFileError) {
        if state.withLock({ !$0.isOver }) { reports.onFailure(error) }
    }

    /// The recording has ended; reported once.
    func end(_ end: RecordingEnd) {
        if finish() { reports.onRecordingEnd(end) }
    }

    /// Reports nothing more.
    ///
    /// - Returns: False if it was so already.
    @discardableResult
    func finish() -> Bool {
        state.withLock { state in
            defer { state.isOver = true }
            return !state.isOver
        }
    }

    // MARK: On other threads

    /// Blocks until the file is open or cannot be opened.
    ///
    /// - Returns: Nil if that takes longer: then a later failure is reported.
    func outcome(withinMilliseconds limit: Int32) -> Outcome? {
        if limit > 0, let holder = try? WakeupHolder() {
            let waits = state.withLock { state in
                guard case .pending = state.opening else { return false }
                state.opening = .awaited(holder)
                return true
            }
            if waits { holder.wakeup.wait(timeoutMilliseconds: limit) }
        }
        return state.withLock { state in
            if case .settled(let outcome) = state.opening { return outcome }
            state.opening = .left
            return nil
        }
    }

    /// The same for a task, which waits until the disk counts as stalled.
    func outcome() async -> Outcome? {
        await withCheckedContinuation { waiter in
            let (isKnown, outcome) = state.withLock { state -> (Bool, Outcome?) in
                if case .settled(let outcome) = state.opening { return (true, outcome) }
                let isStalled = state.stall != nil
                state.opening = isStalled ? .left : .expected(waiter)
                return (isStalled, nil)
            }
            if isKnown { waiter.resume(returning: outcome) }
        }
    }

    /// The file's disk does not answer: reported once, to who waits for the file or else as a failure of it.
    func noteStall(_ reason: String) {
        let error = AudioFileError(stalled: path, purpose, reason: reason)
        let (isNew, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Outcome?, Never>?) in
            let isNew = state.stall == nil && !state.isOver
            state.stall = state.stall ?? error
            guard case .expected(let waiter) = state.opening else { return (isNew, nil) }
            state.opening = .left
            return (isNew, waiter)
        }
        if let waiter { return waiter.resume(returning: nil) }
        if isNew { reports.onFailure(error) }
    }
}

/// A wake-up with several owners.
final class WakeupHolder: Sendable {
    let wakeup: Wakeup
    init() throws(RealtimeError) { wakeup = try Wakeup() }
}
