internal import ExchangeCore
internal import GRDB
import SignalWire
import Core

extension ChangeWriter {
    func write(_ entry: StoredAcquaintance) throws {
        try run(
            """
            INSERT INTO acquaintances (owner, user, used_ms) VALUES (?1, ?2, ?3)
            ON CONFLICT DO UPDATE SET used_ms = ?3
            """, [entry.owner.text, entry.user.text, times.milliseconds(entry.used)])
    }
}
