internal import CallAgent
internal import Realtime
internal import Core

/// Locks the process's memory while there are calls, and lets go of what an idle device does not need (``CallMemory``).
actor CallMemoryKeeper {
    private var memory = CallMemory()
    private let mayLock: Bool
    private var timer: Task<Void, Never>?

    /// - Parameter mayLock: Whether memory is locked at all.
    init(mayLock: Bool) { self.mayLock = mayLock }

    /// Takes note of what happens to calls.
    func hear(_ event: DeviceEvent) {
        switch event {
        case .incoming(let call, _), .answered(let call), .established(let call, _): handle(.began(call))
        case .ended(let call, _, _): handle(.ended(call))
        case .signaling, .invited, .invite, .identified, .flowing, .playbackEnded, .digit, .speech, .interrupted,
            .responded,
            .sendingStopped,
            .sendingResumed, .fileFailed,
            .card,
            .loadChanged, .realtimePriorityRefused, .playing, .playingEnded, .recording, .recordingEnded,
            .roomRecording, .roomRecordingEnded, .voicemail,
            .attached,
            .detached, .transferRequested, .transferProgress, .handover, .parking, .queued, .leftQueue:
            break
        }
    }

    /// The program has started; what only that needed is let go of soon.
    func becomeReady() { handle(.ready) }

    private func release() {
        ProcessMemory.releaseStartUpCode()
        ProcessMemory.releaseFreeMemory()
    }

    private func handle(_ input: CallMemory.Input) {
        var outputs: [CallMemory.Output] = []
        memory.handle(input, at: MonotonicClock.now, into: &outputs)
        for output in outputs {
            switch output {
            // A refusal was logged when the program was ready.
            case .lock: if mayLock { try? ProcessMemory.lock() }
            case .release:
                ProcessMemory.unlock()
                release()
            }
        }
        timer?.cancel()
        timer = memory.nextDeadline.map { deadline in
            let wait = MonotonicClock.now.duration(to: deadline)
            return Task {
                try? await Task.sleep(for: wait)
                if !Task.isCancelled { handle(.timerFired) }
            }
        }
    }
}
