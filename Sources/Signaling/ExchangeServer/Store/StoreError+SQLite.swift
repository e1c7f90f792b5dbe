internal import CSQLite
internal import ExchangeCore
internal import Files
internal import Glibc

extension StoreError {
    /// Says in our words what SQLite said.
    ///
    /// - Parameter doing: What was being done, such as `open`.
    init(_ error: any Error, _ doing: String, _ path: String) {
        if let error = error as? StoreError {
            self = error
            return
        }
        let task = "cannot \(doing) the database \(path)"
        guard let error = error as? SQLiteFailure else {
            // What decoding says would quote what is stored.
            self.init(.corrupt, "\(task): it contains data that no exchange writes. \(Self.corruptRemedy)")
            return
        }
        let said = error.message
        switch error.code {
        case SQLITE_FULL:
            self.init(.full, "\(task): the disk is full (\(said)). Make room on it; nothing need be restarted.")
        case SQLITE_READONLY where error.isMoved:
            self.init(gone: path, path)
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
            self.init(readOnly: said, task)
        case SQLITE_IOERR where StoreFiles.isOnReadOnlyDisk(path):
            // To SQLite, which has the file open, a disk that turns read-only is any other error of it.
            self.init(readOnly: SystemError(EROFS).description, task)
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            self.init(.corrupt, "\(task): it is damaged, or not a database (\(said)). \(Self.corruptRemedy)")
        case SQLITE_CANTOPEN:
            self.init(
                .notReachable,
                "\(task): \(said). The folder must exist, and the user that runs the exchange must be able to write to it."
            )
        case SQLITE_BUSY, SQLITE_LOCKED:
            self.init(
                .inUse, "\(task): another program has locked it for longer than 5 s (\(said)). Stop that program.")
        default:
            self.init(.failed, "\(task): \(said). The system's log may say what is wrong with the disk.")
        }
    }

    /// A file of the database is not where it was when the database was opened.
    init(gone file: String, _ path: String) {
        self.init(
            .gone,
            "cannot write the database \(path): \(file) was deleted, moved or replaced while the exchange was running, so that "
                + "what it writes would be lost. Put the file back, with those that end in -wal and -shm, and the exchange "
                + "continues; or restart the exchange, which starts with what is at that path, or with an empty database."
        )
    }

    /// Another program has written to a file of the database since it was opened.
    init(spoiled file: String, _ path: String) {
        self.init(
            .spoiled,
            "cannot write the database \(path): another program has cut \(file), or has written to it, while the exchange was running, "
                + "so that what the exchange writes might be lost. Stop that program, and restart the exchange, which starts with what "
                + "the files contain. If they are damaged, put a backup in their place."
        )
    }

    private init(readOnly said: String, _ task: String) {
        self.init(
            .readOnly,
            "\(task): it is not writable (\(said)). \(Self.writingAdvice)")
    }

    static let corruptRemedy =
        "Put a backup in its place, or move it away, with the files that end in -wal and -shm, and start with an empty "
        + "one; database_if_corrupt: set_aside does that by itself."
}
