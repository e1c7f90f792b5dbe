internal import Glibc

/// A lock on a file's name in its folder. It stays when the file is replaced by another one, as editors do, and needs no right to
/// write in the folder.
///
/// It is an abstract Unix socket, whose name is made of the folder's device and inode and of the file's name: one for all paths
/// that lead to the folder, also in containers that share the folder and the host's network. It ends with its process.
enum NameLock: ~Copyable {
    /// The lock was taken, and stays until the descriptor is closed.
    case taken(OpenFile)
    /// Another process has it; its id is nil in a container from which it cannot be seen.
    case held(by: pid_t?)
    /// There can be no lock: the system has no such sockets for this process, or a user who has no say about the file has taken the
    /// name, which any user can.
    case none

    init(of path: String) {
        self = .none
        guard let folder = Folder(of: path), var address = Self.address(folder, path) else { return }
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC | O_NONBLOCK, 0)
        guard number >= 0 else { return }
        let descriptor = OpenFile(adopting: number)
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(number, $0, length) }
        }
        if isBound == 0 {
            if listen(number, Self.mostTries) == 0 { self = .taken(consume descriptor) }
            return
        }
        guard errno == EADDRINUSE else { return }
        let isConnected = unsafe withUnsafeMutablePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe connect(number, $0, length) }
        }
        guard isConnected == 0, let peer = Self.peer(of: number) else { return }
        guard peer.user == 0 || peer.user == geteuid() || folder.owners.contains(peer.user) else { return }
        self = .held(by: peer.process > 0 ? peer.process : nil)
    }

    /// Connections that wait at the socket, each of a process that has found the name locked: none is accepted, because a
    /// connection alone shows whose socket it is. The system may allow fewer. Past them only the file itself is locked, so that
    /// another user who has taken the name and fills this queue hinders no device.
    private static let mostTries: Int32 = 4_096

    /// Process, user and group of who made the socket listen (unix(7), SO_PEERCRED).
    private static func peer(of number: Int32) -> (process: pid_t, user: uid_t)? {
        var credentials: [UInt32] = [0, 0, 0]
        var length = socklen_t(12)
        let code = unsafe credentials.withUnsafeMutableBytes {
            unsafe getsockopt(number, SOL_SOCKET, SO_PEERCRED, $0.baseAddress, &length)
        }
        return code == 0 && length == 12 ? (pid_t(bitPattern: credentials[0]), credentials[1]) : nil
    }

    /// The folder of a file, by the path as it is given: what a link leads to may be replaced, too.
    private struct Folder {
        let device: UInt64
        let inode: UInt64
        /// Users who decide what is in the file: its own, and the folder's.
        var owners: [uid_t]

        init?(of path: String) {
            let end = path.lastIndex(of: "/")
            let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
            var status = stat()
            guard unsafe stat(folder, &status) == 0 else { return nil }
            (device, inode, owners) = (UInt64(status.st_dev), UInt64(status.st_ino), [status.st_uid])
            if unsafe stat(path, &status) == 0 { owners.append(status.st_uid) }
        }
    }

    /// - Returns: Nil if the name does not fit.
    private static func address(_ folder: Folder, _ path: String) -> sockaddr_un? {
        let file = path.split(separator: "/").last.map(String.init) ?? ""
        let device = String(folder.device, radix: 16)
        let name = Array("handset/\(device):\(String(folder.inode, radix: 16))/\(file)".utf8)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isTaken = unsafe withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            // The first byte is 0: the name is no path. The rest of the field, all 0, is part of the name.
            guard name.count < bytes.count else { return false }
            unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[1...]).copyBytes(from: name)
            return true
        }
        return isTaken ? address : nil
    }
}
