internal import FoundationEssentials
internal import Glibc
internal import Core
internal import Files

/// Runs a program that prints an access token.
enum TokenCommand {
    /// Why there is no token, to be read after a colon. What the program printed is not in it.
    struct Failure: Error {
        let text: String
    }

    /// Bytes of output that are read at most.
    private static let limit = 65_536

    /// Runs the program and gives what it printed. Blocks the calling thread.
    ///
    /// - Parameter timeout: After this the program is killed.
    static func run(_ words: [String], within timeout: Duration) -> Result<String, Failure> {
        guard let program = words.first, !program.isEmpty else { return .failure(Failure(text: "it is empty")) }
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return .failure(.system("make a pipe", errno)) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        let started = start(program, words, output: ends[1])
        close(ends[1])
        let process: pid_t
        switch started {
        case .success(let id): process = id
        case .failure(let failure): return .failure(failure)
        }
        let deadline = ContinuousClock.now.advanced(by: timeout)
        guard let printed = read(ends[0], until: deadline), let status = end(of: process, until: deadline) else {
            kill(process, SIGKILL)
            var status: Int32 = 0
            while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
            return .failure(Failure(text: "it did not end within \(timeout.text), or printed more than \(limit) bytes"))
        }
        // The exit code is in the second byte, and the signal that ended it in the first seven bits (wait(2)).
        guard status == 0 else {
            let how = status & 0x7F == 0 ? "exit code \(status >> 8 & 0xFF)" : "signal \(status & 0x7F)"
            return .failure(Failure(text: "it ended with \(how)"))
        }
        return .success(String(decoding: printed, as: UTF8.self))
    }

    private static func start(_ program: String, _ words: [String], output: Int32) -> Result<pid_t, Failure> {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, 1)
        // The service manager speaks to this process alone. The credentials are what such a command reads.
        let environment = ProcessInfo.processInfo.environment.filter { name, _ in
            name != "NOTIFY_SOCKET" && !name.hasPrefix("WATCHDOG_") && !name.hasPrefix("LISTEN_")
        }.map { "\($0.key)=\($0.value)" }
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        var variables = unsafe environment.map { unsafe strdup($0) } + [nil]
        defer { unsafe (arguments + variables).forEach { unsafe free($0) } }
        var process = pid_t()
        let code = unsafe posix_spawnp(&process, program, &actions, nil, &arguments, &variables)
        return code == 0 ? .success(process) : .failure(.system("start it", code))
    }

    /// The exit status of a program that has closed its output; `nil` if it does not end in time.
    private static func end(of process: pid_t, until deadline: ContinuousClock.Instant) -> Int32? {
        var status: Int32 = 0
        var pause: Int32 = 1
        while true {
            let ended = unsafe waitpid(process, &status, WNOHANG)
            if ended == process || (ended < 0 && errno != EINTR) { return status }
            guard ContinuousClock.now < deadline else { return nil }
            poll(nil, 0, pause)
            pause = min(pause * 2, 100)
        }
    }

    /// Reads until the end; `nil` if that does not come in time or there is too much.
    private static func read(_ descriptor: Int32, until deadline: ContinuousClock.Instant) -> [UInt8]? {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 4_096)
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { return nil }
            var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let milliseconds = left.components.seconds * 1_000 + 1
            let ready = unsafe poll(&watched, 1, Int32(clamping: milliseconds))
            guard ready > 0 else { continue }
            let count = unsafe block.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return bytes }
            bytes.append(contentsOf: block.prefix(count))
            guard bytes.count <= limit else { return nil }
        }
    }
}

extension TokenCommand.Failure {
    fileprivate static func system(_ activity: String, _ code: Int32) -> Self {
        Self(text: "cannot \(activity): \(SystemError(code))")
    }
}
