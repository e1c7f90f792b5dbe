internal import Glibc

/// The kernel's files about this process.
public enum ProcessFiles {
    /// Whether `/proc` belongs to the namespace of processes that this process is in, which Swift's tasks need.
    ///
    /// While a task waits for a thread, libdispatch opens `/proc/ID/stat` of each of its threads once a second, and ends the process
    /// with SIGILL if there is no such file: in a container without `/proc`, or after `unshare --pid` without `--mount-proc`, where
    /// `/proc` has the ids of another namespace.
    public static var areOwn: Bool { areOwn(KernelFile.text(of: "/proc/self/stat"), process: getpid()) }

    /// - Parameter stat: The contents of `/proc/self/stat`, which begin with the process's id; nil if there is no such file.
    static func areOwn(_ stat: String?, process: pid_t) -> Bool { stat?.split(separator: " ").first == "\(process)" }
}
