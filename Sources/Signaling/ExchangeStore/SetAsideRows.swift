internal import GRDB

/// Rows of one table that an earlier version wrote and that this one cannot go on with.
///
/// They stand in the table `set_aside` as they were, for people to look at; nothing reads them.
public struct SetAsideRows: Hashable, Sendable {
    /// The table that they were in.
    public let table: String
    /// How many there are.
    public let count: Int
    /// What is wrong with the first of them.
    public let reason: String

    /// Those that are there, by their tables.
    static func all(_ database: Database) throws -> [SetAsideRows] {
        guard try database.tableExists("set_aside") else { return [] }
        let sql = "SELECT table_name, count(*) AS count, min(id), reason FROM set_aside GROUP BY table_name ORDER BY 1"
        return try Row.fetchAll(database, sql: sql).map { row in
            SetAsideRows(
                table: try row.decode(forColumn: "table_name"), count: try row.decode(forColumn: "count"),
                reason: try row.decode(forColumn: "reason"))
        }
    }
}
