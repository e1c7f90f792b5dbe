internal import ExchangeCore
internal import GRDB
internal import Files

/// The files of an open database, as they were when it was opened: what SQLite writes to.
///
/// The system allows a file to be deleted or moved while a process has it open, and SQLite does not check for that.
/// Writes then still succeed, and their data is lost at the next restart.
struct OpenFiles: Sendable {
    private let path: String
    private let identities: [String: FileIdentity]

    /// Notes the files of an open database: itself, and its write-ahead log if it has one.
    ///
    /// - Parameter path: That by which it was opened.
    init(of database: Database, path: String) throws {
        self.path = path
        // SQLite has followed links, and keeps the log beside the file itself.
        let own = try String.fetchOne(database, sql: "SELECT file FROM pragma_database_list WHERE name = 'main'")
        let files = [path, (own ?? path) + "-wal"]
        identities = Dictionary(
            files.compactMap { file in FileIdentity(path: file).map { (file, $0) } }, uniquingKeysWith: { $1 })
    }

    /// Finds out whether the files are where they were. It takes some microseconds.
    ///
    /// - Throws: ``StoreError`` with the code `gone` if one is not.
    func check() throws(StoreError) {
        for (file, identity) in identities where FileIdentity(path: file) != identity {
            throw StoreError(gone: file, path)
        }
    }
}
