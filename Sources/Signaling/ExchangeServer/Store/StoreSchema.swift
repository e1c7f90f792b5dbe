internal import ExchangeCore

/// The tables, as docs/exchange-database.md describes them, and how each version came from the one before.
///
/// A migration that has been released is never changed; what is new gets one of its own.
enum StoreSchema {
    static var migrations: SQLiteMigrations {
        var migrations = SQLiteMigrations()
        migrations.add("1 exchange", first)
        migrations.add("2 pushes", second)
        migrations.add("3 logins", third)
        migrations.add("4 call records", fourth)
        migrations.add("5 identifiers") { try IdentifierMigration(connection: $0).run() }
        migrations.add("6 event bodies", sixth)
        migrations.add("7 acquaintances", seventh)
        migrations.add("8 outdated events", eighth)
        migrations.add("9 events for all", ninth)
        migrations.add("10 missed sessions", tenth)
        migrations.add("11 users", eleventh)
        migrations.add("12 users file", twelfth)
        migrations.add("13 letters", thirteenth)
        return migrations
    }

    private static let first = """
        CREATE TABLE exchange (
            id INTEGER PRIMARY KEY CHECK (id = 1), runs INTEGER NOT NULL, boot TEXT NOT NULL,
            clock_offset_ms INTEGER NOT NULL, probed INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE tokens (
            digest TEXT PRIMARY KEY, login TEXT NOT NULL, refresh INTEGER NOT NULL, user TEXT NOT NULL,
            anonymous INTEGER NOT NULL, application TEXT, scope TEXT, parent TEXT, superseded_ms INTEGER,
            revoked INTEGER NOT NULL, expires_ms INTEGER NOT NULL, forgotten_ms INTEGER NOT NULL, epoch INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE sessions (
            id TEXT PRIMARY KEY, user TEXT NOT NULL, device TEXT NOT NULL, anonymous INTEGER NOT NULL,
            registered INTEGER NOT NULL, connection TEXT NOT NULL, scope TEXT, login TEXT, places TEXT NOT NULL,
            resumable_until_ms INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE groups (id TEXT PRIMARY KEY, name TEXT, owner TEXT NOT NULL, members TEXT NOT NULL) STRICT;
        CREATE TABLE push_targets (
            user TEXT NOT NULL, device TEXT NOT NULL, targets TEXT NOT NULL, PRIMARY KEY (user, device)
        ) STRICT;
        CREATE TABLE invites (
            id TEXT PRIMARY KEY, inviter TEXT NOT NULL, inviter_device TEXT NOT NULL, group_id TEXT,
            invitees TEXT NOT NULL, data TEXT, payload TEXT, timeout_payload TEXT, idempotency_key TEXT,
            ttl_s REAL NOT NULL, sent_ms INTEGER NOT NULL, deadline_ms INTEGER, forgotten_ms INTEGER
        ) STRICT;
        CREATE TABLE calls (
            invite TEXT NOT NULL, invitee TEXT NOT NULL, invitee_device TEXT NOT NULL, inviter TEXT NOT NULL,
            inviter_device TEXT NOT NULL, accepted_ms INTEGER NOT NULL, PRIMARY KEY (invite, invitee)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE streams (
            user TEXT PRIMARY KEY, reserved INTEGER NOT NULL DEFAULT 0, forgotten INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE events (
            user TEXT NOT NULL, sequence INTEGER NOT NULL, body TEXT NOT NULL, device TEXT, except_device TEXT,
            at_ms INTEGER NOT NULL, PRIMARY KEY (user, sequence)
        ) STRICT;
        CREATE INDEX events_by_time ON events (at_ms);
        CREATE TABLE call_records (
            invite TEXT NOT NULL, invitee TEXT NOT NULL, invitee_device TEXT, inviter TEXT NOT NULL,
            inviter_device TEXT NOT NULL, group_id TEXT, sent_ms INTEGER NOT NULL, answered_ms INTEGER,
            ended_ms INTEGER, reason TEXT, duration_ms INTEGER, PRIMARY KEY (invite, invitee)
        ) STRICT;
        CREATE INDEX call_records_by_time ON call_records (sent_ms);
        """

    private static let second = """
        ALTER TABLE invites ADD COLUMN online_only INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE pushes (
            id TEXT PRIMARY KEY, invite TEXT NOT NULL, user TEXT NOT NULL, device TEXT NOT NULL, target TEXT NOT NULL,
            message TEXT NOT NULL, inviter TEXT NOT NULL, group_id TEXT, payload TEXT, reason TEXT, deadline_ms INTEGER,
            expires_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, attempts INTEGER NOT NULL, settled INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE dead_pushes (
            id TEXT NOT NULL, invite TEXT NOT NULL, user TEXT NOT NULL, device TEXT NOT NULL, kind TEXT NOT NULL,
            message TEXT NOT NULL, reason TEXT NOT NULL, detail TEXT, attempts INTEGER NOT NULL,
            died_ms INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX dead_pushes_by_time ON dead_pushes (died_ms);
        """

    /// Tokens from before are numbered in the order of their making, which is that of their ends; a login had 16 of a
    /// kind at most. Of those that were taken back it is not known any more who signed them.
    private static let third = """
        ALTER TABLE tokens ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE logins (
            id TEXT PRIMARY KEY, issuer TEXT, family TEXT, newest INTEGER NOT NULL, reached INTEGER NOT NULL,
            used_ms INTEGER
        ) STRICT, WITHOUT ROWID;
        UPDATE tokens SET generation = numbered.generation FROM (
            SELECT digest, 17 - row_number() OVER (PARTITION BY login, refresh ORDER BY expires_ms DESC) AS generation
            FROM tokens
        ) AS numbered WHERE numbered.digest = tokens.digest;
        INSERT INTO logins (id, issuer, newest, reached)
        SELECT login, CASE WHEN max(refresh) = 0 AND max(anonymous) = 0 THEN coalesce(max(application), '') END,
            max(generation), max(CASE WHEN parent IS NULL THEN generation ELSE 0 END)
        FROM tokens GROUP BY login;
        """

    /// Counts records as they are added and removed, so that no query has to count them.
    private static let fourth = """
        CREATE INDEX call_records_by_inviter ON call_records (inviter);
        ALTER TABLE exchange ADD COLUMN call_records INTEGER NOT NULL DEFAULT 0;
        UPDATE exchange SET call_records = (SELECT count(*) FROM call_records);
        CREATE TABLE call_record_counts (inviter TEXT PRIMARY KEY, records INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        INSERT INTO call_record_counts SELECT inviter, count(*) FROM call_records GROUP BY inviter;
        CREATE TRIGGER call_record_added AFTER INSERT ON call_records BEGIN
            INSERT OR IGNORE INTO call_record_counts VALUES (NEW.inviter, 0);
            UPDATE call_record_counts SET records = records + 1 WHERE inviter = NEW.inviter;
            UPDATE exchange SET call_records = call_records + 1;
        END;
        CREATE TRIGGER call_record_removed AFTER DELETE ON call_records BEGIN
            UPDATE call_record_counts SET records = records - 1 WHERE inviter = OLD.inviter;
            DELETE FROM call_record_counts WHERE inviter = OLD.inviter AND records <= 0;
            UPDATE exchange SET call_records = call_records - 1;
        END;
        """

    /// A body with several receivers is stored once, in a row that is deleted with its last event. Bodies lose their
    /// numbers, which events have in a column; a damaged body stays as it is.
    private static let sixth = """
        UPDATE events SET body = json_remove(body, '$.sequence') WHERE json_valid(body);
        CREATE TABLE event_bodies (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
        ALTER TABLE events ADD COLUMN shared INTEGER;
        CREATE TABLE outdated_events (
            user TEXT NOT NULL, guest TEXT NOT NULL, room TEXT NOT NULL, device TEXT NOT NULL, sequence INTEGER NOT NULL,
            PRIMARY KEY (user, guest, room, device)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX events_by_body ON events (shared) WHERE shared IS NOT NULL;
        CREATE TRIGGER event_removed AFTER DELETE ON events WHEN OLD.shared IS NOT NULL BEGIN
            DELETE FROM event_bodies
            WHERE id = OLD.shared AND NOT EXISTS (SELECT 1 FROM events WHERE shared = OLD.shared);
        END;
        CREATE TRIGGER event_rewritten AFTER UPDATE OF shared ON events WHEN OLD.shared IS NOT NULL BEGIN
            DELETE FROM event_bodies
            WHERE id = OLD.shared AND NOT EXISTS (SELECT 1 FROM events WHERE shared = OLD.shared);
        END;
        """

    /// Derives acquaintances from the records of calls: a user knows the callers whose calls it accepted, and the users
    /// that it called.
    private static let seventh = """
        CREATE TABLE acquaintances (
            owner TEXT NOT NULL, user TEXT NOT NULL, used_ms INTEGER NOT NULL, PRIMARY KEY (owner, user)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX acquaintances_by_user ON acquaintances (user);
        INSERT INTO acquaintances (owner, user, used_ms)
        SELECT owner, user, max(at_ms) FROM (
            SELECT invitee AS owner, inviter AS user, answered_ms AS at_ms FROM call_records
            WHERE answered_ms IS NOT NULL
            UNION ALL SELECT inviter, invitee, sent_ms FROM call_records
        ) WHERE owner <> user GROUP BY owner, user;
        """

    /// Tracks expired events to all registered devices except one separately for each excepted device.
    private static let eighth = """
        ALTER TABLE outdated_events RENAME TO outdated_events_before;
        CREATE TABLE outdated_events (
            user TEXT NOT NULL, guest TEXT NOT NULL, room TEXT NOT NULL, device TEXT NOT NULL, except_device TEXT NOT NULL,
            sequence INTEGER NOT NULL, PRIMARY KEY (user, guest, room, device, except_device)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO outdated_events SELECT user, guest, room, device, '', sequence FROM outdated_events_before;
        DROP TABLE outdated_events_before;
        """

    /// Some events are sent to all devices of a user, registered or not; before, none was.
    private static let ninth = "ALTER TABLE events ADD COLUMN for_all INTEGER NOT NULL DEFAULT 0"

    /// A session without a connection may be one whose peers were not notified of that; before, a session on disk had
    /// an end only if they were.
    private static let tenth = """
        ALTER TABLE sessions ADD COLUMN missed INTEGER NOT NULL DEFAULT 0;
        UPDATE sessions SET missed = 1 WHERE resumable_until_ms IS NOT NULL;
        """

    /// When users were added: a name may be given to another user while the exchange is down.
    private static let eleventh = """
        CREATE TABLE users (id TEXT PRIMARY KEY, added INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        """

    /// Which users came from the users file: without it they count as removed, so that it must not be missing by accident.
    private static let twelfth = """
        CREATE TABLE file_users (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
        ALTER TABLE exchange ADD COLUMN file_users_known INTEGER NOT NULL DEFAULT 0;
        """

    /// What shards write to each other; an exchange with one core for all users writes nothing there.
    private static let thirteenth = """
        CREATE TABLE letters (
            sender INTEGER NOT NULL, receiver INTEGER NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY (sender, receiver, number)
        ) STRICT;
        CREATE TABLE letter_marks (
            shard INTEGER NOT NULL, peer INTEGER NOT NULL, acknowledged INTEGER NOT NULL, consumed INTEGER NOT NULL,
            peer_epoch TEXT, PRIMARY KEY (shard, peer)
        ) STRICT, WITHOUT ROWID;
        """

    /// Every column that holds a deadline or a moment of the exchange's own, which move when the clock was set.
    static let timed = [
        ("tokens", "expires_ms"), ("tokens", "superseded_ms"), ("tokens", "forgotten_ms"),
        ("logins", "used_ms"),
        ("sessions", "resumable_until_ms"), ("invites", "sent_ms"),
        ("invites", "deadline_ms"), ("invites", "forgotten_ms"), ("calls", "accepted_ms"), ("events", "at_ms"),
        ("acquaintances", "used_ms"), ("pushes", "deadline_ms"), ("pushes", "expires_ms"), ("pushes", "due_ms"),
    ]
}
