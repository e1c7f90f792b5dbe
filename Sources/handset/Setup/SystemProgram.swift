internal import Glibc

/// Programs of the system that a command runs.
enum SystemProgram {
    /// What a shell prints that runs these commands, on standard output and standard error; at most 4 MB. A command that there is
    /// not says so there.
    ///
    /// - Parameter commands: Never words from outside.
    static func output(of commands: String) -> String {
        guard let stream = unsafe popen("exec 2>&1; export LC_ALL=C; \(commands)", "r") else {
            return "cannot run a shell\n"
        }
        defer { unsafe pclose(stream) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < 4_000_000 {
            let count = unsafe fread(&block, 1, block.count, stream)
            guard count > 0 else { break }
            bytes += block.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Runs commands by a shell, with this process's input and outputs.
    ///
    /// - Parameter commands: Never words from outside.
    /// - Returns: Whether they succeeded.
    static func run(_ commands: String) -> Bool { unsafe system(commands) == 0 }
}
