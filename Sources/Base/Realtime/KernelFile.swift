internal import Files
internal import Glibc

/// Files that the kernel makes when they are read, such as those of `/proc`: some kilobytes, which are there at once.
package enum KernelFile {
    /// A file as text; nil if there is none, or it is longer than 64 KB.
    package static func text(of path: String) -> String? {
        guard let file = try? OpenFile(path, O_RDONLY), let bytes = try? file.readAll(maximumBytes: 65_536) else {
            return nil
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

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
