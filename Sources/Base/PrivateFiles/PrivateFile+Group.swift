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

    /// Gives a folder that root has made to a user and its group, as the service of that user needs it. Nothing changes if
    /// there is no such user, the folder is somebody else's already, or this process is not root's.
    public static func hand(_ folder: String, toUser name: String) throws(PrivateFileError) {
        var status = stat()
        guard geteuid() == 0, let user = unsafe getpwnam(name)?.pointee, unsafe stat(folder, &status) == 0,
            status.st_uid == 0
        else { return }
        guard unsafe chown(folder, user.pw_uid, user.pw_gid) == 0 else {
            throw PrivateFileError(doing: "give away", folder, errno)
        }
    }
}
