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
