internal import Glibc

/// Rights of users other than this process's to files.
public enum FolderRights {
    /// Whether a user may replace a file at `path`, by the owner and mode of its folder. Where a group may, the user may be of it,
    /// or be in an access list, of which the mode shows no more: the answer is yes.
    public static func mayReplace(_ path: String, user: UInt32) -> Bool {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        var status = stat()
        guard user != 0, unsafe stat(folder, &status) == 0 else { return true }
        let needed = mode_t(0o3)
        if status.st_uid == user { return status.st_mode >> 6 & needed == needed }
        return status.st_mode & needed == needed || status.st_mode >> 3 & needed == needed
    }

    /// The owner of a file; nil if no file there can be inspected.
    public static func owner(of path: String) -> UInt32? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status.st_uid : nil
    }

    /// The name of a user, or the number of one without.
    public static func name(of user: UInt32) -> String {
        unsafe getpwuid(user).map { unsafe String(cString: $0.pointee.pw_name) } ?? "\(user)"
    }
}
