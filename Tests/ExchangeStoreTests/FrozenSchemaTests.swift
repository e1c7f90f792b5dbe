@testable import ExchangeServer
import TestSupport
import Testing

/// What an exchange's database is made of, which later versions have to read: Tests/Frozen/database.txt.
struct FrozenSchemaTests {
    @Test("Migrations, tables, columns and indices keep their names")
    func schema() throws {
        let folder = try Folder()
        try ExchangeStore.open(path: folder.database, clock: ScriptedClock().clock).close()
        let database = try SQLiteDatabase(path: folder.database)
        defer { database.close() }
        var present: Set<String> = []
        try database.read { connection in
            for migration in try connection.allRows(of: "SELECT identifier FROM grdb_migrations") {
                present.insert("migration \(try migration.decode(String.self, forColumn: "identifier"))")
            }
            let rows = try connection.allRows(
                of: "SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
            for row in rows {
                let kind = try row.decode(String.self, forColumn: "type")
                let name = try row.decode(String.self, forColumn: "name")
                let table = try row.decode(String.self, forColumn: "tbl_name")
                guard kind == "table" else {
                    present.insert("\(kind) \(name) of \(table)")
                    continue
                }
                for column in try connection.allRows(of: "SELECT * FROM pragma_table_info(?)", [name]) {
                    let isNotNull = try column.decode(Bool.self, forColumn: "notnull")
                    let isKey = try column.decode(Bool.self, forColumn: "pk")
                    let bounds = (isNotNull ? " not null" : "") + (isKey ? " key" : "")
                    let title = try column.decode(String.self, forColumn: "name")
                    present.insert(
                        "table \(name): \(title) \(try column.decode(String.self, forColumn: "type"))\(bounds)")
                }
            }
        }
        let differences = try FrozenList("database").differences(from: present)
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }
}
