internal import AudioKit
internal import BlockingWork
internal import CallAgent
internal import ControlWire
internal import Core
internal import DeviceControl
internal import Files
internal import FoundationEssentials
internal import Glibc
internal import Logging
internal import Realtime
internal import Synchronization

/// Carries out what an agent's door decides: standard input and output, the device, programs, files and time.
actor MCPDriver {
    /// Calls whose other side is kept after their end, until it was heard or others have ended.
    private static let endedEars = 8
    /// How often old sound is left out.
    private static let trimming = Duration.seconds(30)

    /// For how long, and with what pause, the record of a call that has just ended is looked for.
    private static let recordPatience = Duration.seconds(2)
    private static let recordPause = Duration.milliseconds(200)

    /// One tool's sound.
    private final class SoundJob: Sendable {
        let isCancelled = Atomic<Bool>(false)
        private let kept = Mutex<String?>(nil)

        /// What it plays.
        var file: String? {
            get { kept.withLock { $0 } }
            set { kept.withLock { $0 = newValue } }
        }
    }

    private var door: MCPDoor
    private let sound: MCPSound
    private let explains: @Sendable (String?, String?) async throws -> (text: String, object: String)
    private let logger: Logger
    private let path: String
    private lazy var link = MCPDeviceLink(path: path) { [weak self] event in
        switch event {
        case .line(let line): await self?.take(.event(Array(line.utf8)))
        case .lost(let why): await self?.lose(why)
        }
    }
    private var jobs: [Int: SoundJob] = [:]
    /// What listens to each call, or why nothing does.
    private var ears: [UInt64: Task<Result<CallEar, CommandFailure>, Never>] = [:]
    private var endedCalls: [UInt64] = []
    private var timer: (at: Instant, task: Task<Void, Never>)?
    private var end: CheckedContinuation<Void, Never>?
    private var hasEnded = false

    /// - Parameters:
    ///   - path: The device's socket for HTTP.
    ///   - explains: Looks for a call in the records of an account, by a part of its id or of the other side's name.
    init(
        _ door: MCPDoor, path: String, sound: MCPSound, logger: Logger,
        explains:
            @escaping @Sendable (_ search: String?, _ account: String?) async throws -> (text: String, object: String)
    ) {
        self.door = door
        self.path = path
        self.sound = sound
        self.logger = logger
        self.explains = explains
    }

    /// Returns when the door has closed.
    func run() async {
        let reading = Task { await readInput() }
        // So that events are known from the beginning. Without a device, a tool says so.
        _ = try? await link.ask(ControlRequest(.status))
        await withCheckedContinuation { continuation in
            if hasEnded { continuation.resume() } else { end = continuation }
        }
        reading.cancel()
        timer?.task.cancel()
        for job in jobs.values { job.isCancelled.store(true, ordering: .relaxed) }
        await stopListening()
        sound.remove()
    }

    /// Ends the recordings of calls that continue without the agent: the device would write on to files that are removed.
    private func stopListening() async {
        let numbers = ears.keys.filter { !endedCalls.contains($0) }
        guard !numbers.isEmpty else { return }
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        Task { [link] in
            for number in numbers { _ = try? await link.ask(ControlRequest(.record(.stop, number))) }
            end.finish()
        }
        let patience = Task<Void, Never> {
            try? await Task<Never, Never>.sleep(for: .milliseconds(500))
            end.finish()
        }
        for await _ in ends {}
        patience.cancel()
    }

    /// Takes what has happened, and does what follows from it.
    func take(_ input: MCPDoor.Input) {
        var outbox: [MCPDoor.Output] = []
        door.handle(input, at: MonotonicClock.now, into: &outbox)
        for output in outbox { carryOut(output) }
        setTimer()
    }

    private func lose(_ why: String) {
        for task in ears.values { task.cancel() }
        ears = [:]
        endedCalls = []
        logger.warning("The device has gone", metadata: ["error": "\(why)"])
        take(.deviceLost(why))
    }

    // MARK: - The client

    private nonisolated func readInput() async {
        let threads = BlockingThreads(name: "mcp-input", most: 1)
        let input = MCPInput()
        var cutter = LineCutter(maximumBytes: MCPLimits.lineBytes)
        while true {
            let bytes = await threads.run { input.read() }
            var lines: [LineCutter.Line] = []
            if bytes.isEmpty { cutter.finish(into: &lines) } else { cutter.take(bytes, into: &lines) }
            // One after the other, so that a client cannot send faster than its messages are taken.
            for line in lines { await take(.line(line)) }
            if bytes.isEmpty { return await take(.inputEnded) }
        }
    }

    // MARK: - Outputs

    private func carryOut(_ output: MCPDoor.Output) {
        switch output {
        case .send(let line):
            // A client that has gone reads nothing.
            _ = Terminal.write(String(decoding: line, as: UTF8.self), to: STDOUT_FILENO)
        case .ask(let call, let request):
            Task {
                do {
                    take(.reply(call, try await link.ask(request)))
                } catch {
                    take(.noDevice(call, "\(error)"))
                }
            }
        case .sound(let call, let order): carryOut(order, of: call)
        case .listen(let number): if sound.hears { _ = ear(of: number) }
        case .callEnded(let number): forget(number)
        case .explain(let call, let search, let account, let waits): explain(call, search, account, waits: waits)
        case .ended(let call, let tool, let isError):
            if let job = jobs.removeValue(forKey: call) {
                job.isCancelled.store(true, ordering: .relaxed)
                if let file = job.file { Self.remove(file) }
            }
            guard let tool else { break }
            logger.info("Tool called", metadata: ["tool": "\(tool.rawValue)", "failed": "\(isError)"])
        case .end:
            hasEnded = true
            end?.resume()
            end = nil
        }
    }

    private func setTimer() {
        let next = door.nextDeadline
        guard next != timer?.at else { return }
        timer?.task.cancel()
        timer = next.map { at in
            let task = Task {
                let wait = MonotonicClock.now.duration(to: at)
                if wait > .zero { try? await Task.sleep(for: wait) }
                guard !Task.isCancelled else { return }
                timer = nil
                take(.timerFired)
            }
            return (at, task)
        }
    }

    private func explain(_ call: Int, _ search: String?, _ account: String?, waits: Bool) {
        let deadline = MonotonicClock.now.advanced(by: waits ? Self.recordPatience : .zero)
        Task { [explains] in
            do {
                let (text, object) = try await Self.find(search, account, until: deadline, explains)
                take(.explained(call, text: text, object: object))
            } catch {
                take(.notExplained(call, "\(error)"))
            }
        }
    }

    /// Looks for the record of a call, which is written after the call's end.
    private static func find(
        _ search: String?, _ account: String?, until deadline: Instant,
        _ explains: @escaping @Sendable (String?, String?) async throws -> (text: String, object: String)
    ) async throws -> (text: String, object: String) {
        while true {
            do {
                return try await explains(search, account)
            } catch {
                guard MonotonicClock.now < deadline else { throw error }
            }
            try await Task.sleep(for: Self.recordPause)
        }
    }

    // MARK: - Sound

    private func carryOut(_ order: MCPSoundOrder, of call: Int) {
        switch order {
        case .speak(let text):
            guard sound.speaks else { return take(.sound(call, MCPSound.noVoice)) }
            let job = begin(call)
            Task { [sound] in
                let end = await BlockingThreads.programs.run {
                    sound.speak(text, cancelledIf: { job.isCancelled.load(ordering: .relaxed) })
                }
                if case .spoken(let path, _) = end { keep(path, of: job, call) }
                take(.sound(call, end))
            }
        case .hear(let number, let most, let pause):
            guard sound.hears else { return take(.sound(call, MCPSound.noRecogniser)) }
            let job = begin(call)
            let ear = ear(of: number)
            Task { [sound] in
                let end: MCPSoundEnd
                switch await ear.value {
                case .success(let ear):
                    end = await sound.hear(
                        ear, most: most, pause: pause, cancelledIf: { job.isCancelled.load(ordering: .relaxed) })
                case .failure(let failure):
                    end = .failed(failure.description)
                }
                take(.sound(call, end))
            }
        case .stop: jobs[call]?.isCancelled.store(true, ordering: .relaxed)
        }
    }

    private static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

    /// Keeps a file until its tool's call ends, which it may have meanwhile.
    private func keep(_ path: String, of job: SoundJob, _ call: Int) {
        if jobs[call] === job { job.file = path } else { Self.remove(path) }
    }

    private func begin(_ call: Int) -> SoundJob {
        let job = SoundJob()
        jobs[call] = job
        return job
    }

    /// What listens to a call, which begins now unless it did before.
    private func ear(of number: UInt64) -> Task<Result<CallEar, CommandFailure>, Never> {
        if let ear = ears[number] { return ear }
        let task = Task { [sound, link] () -> Result<CallEar, CommandFailure> in
            do {
                let path = try sound.newPath("call-\(number)")
                let reply = try await link.ask(ControlRequest(.record(.start(file: path), number)))
                if let fault = reply.error { throw fault }
                let ear = try CallEar(path: path)
                Task { await self.trim(ear) }
                return .success(ear)
            } catch {
                // The next attempt may succeed.
                self.ears[number] = nil
                return .failure(CommandFailure(.failed, "call \(number) cannot be listened to: \(error)"))
            }
        }
        ears[number] = task
        return task
    }

    /// Leaves old sound out, as long as the call continues.
    private nonisolated func trim(_ ear: CallEar) async {
        while !ear.hasEnded {
            try? await Task.sleep(for: Self.trimming)
            _ = await BlockingThreads.files.run { try? ear.trim(toSeconds: HeardTurn.mostSeconds) }
        }
    }

    private func forget(_ number: UInt64) {
        guard let ear = ears[number] else { return }
        Task { if case .success(let ear) = await ear.value { ear.callEnded() } }
        endedCalls.append(number)
        guard endedCalls.count > Self.endedEars else { return }
        let oldest = endedCalls.removeFirst()
        guard let old = ears.removeValue(forKey: oldest) else { return }
        Task { if case .success(let ear) = await old.value { Self.remove(ear.path) } }
    }
}

/// Standard input, which one thread reads.
private final class MCPInput: Sendable {
    private let file = OpenFile(adopting: dup(STDIN_FILENO))

    /// The next bytes; none at the end.
    func read() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16_384)
        while true {
            do throws(SystemError) {
                let count = try file.read(into: &bytes)
                return Array(bytes.prefix(count))
            } catch {
                guard error.code == EAGAIN else { return [] }
                var readable = pollfd(fd: file.number, events: Int16(POLLIN), revents: 0)
                // Waits for one descriptor.
                _ = unsafe poll(&readable, 1, -1)
            }
        }
    }
}
