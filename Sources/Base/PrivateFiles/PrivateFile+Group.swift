internal import Glibc

extension PrivateFile {
    /// Lets a group read a file (mode 0640), as the group of a service may read what its administrator wrote. Nothing changes if
    /// there is no such group, or this process is not root's.
    public static func share(_ path: String, withGroup name: String) throws(PrivateFileError) {
        guard geteuid() == 0, let group = unsafe getgrnam(name)?.pointee.gr_gid else { return }
        // The owner stays.
        guard unsafe chown(path, uid_t.max, group) == 0, unsafe chmod(path, 0o640) == 0 else {
            throw PrivateFileError(doing: "share", path, errno)
        }
    }
}
