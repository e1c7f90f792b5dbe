@testable import ExchangeServer
import GRDB
import TestSupport
import Testing

/// What an exchange's database is made of, which later versions have to read: Tests/Frozen/database.txt.
struct FrozenSchemaTests {
    @Test("Migrations, tables, columns and indices keep their names")
    func schema() throws {
        let folder = try Folder()
        try ExchangeStore.open(path: folder.database, clock: ScriptedClock().clock).close()
        let queue = try DatabaseQueue(path: folder.database)
        defer { try? queue.close() }
        var present: Set<String> = []
        try queue.read { database in
            for migration in try String.fetchAll(database, sql: "SELECT identifier FROM grdb_migrations") {
                present.insert("migration \(migration)")
            }
            let rows = try Row.fetchAll(
                database, sql: "SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
            for row in rows {
                let (kind, name, table): (String, String, String) = (row["type"], row["name"], row["tbl_name"])
                guard kind == "table" else {
                    present.insert("\(kind) \(name) of \(table)")
                    continue
                }
                for column in try database.columns(in: name) {
                    let bounds = (column.isNotNull ? " not null" : "") + (column.primaryKeyIndex > 0 ? " key" : "")
                    present.insert("table \(name): \(column.name) \(column.type)\(bounds)")
                }
            }
        }
        let differences = try FrozenList("database").differences(from: present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }
}
