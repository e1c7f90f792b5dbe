@testable import ExchangeServer

/// A database as version 2 left it.
enum OldDatabase {
    static let alicesLogin = String(repeating: "a1", count: 32)
    static let guestsLogin = String(repeating: "b2", count: 32)
    static let visitorsLogin = String(repeating: "c3", count: 32)
    /// The clock of version 2: the time of day of an instant.
    static let now: Int64 = 1_700_000_000_000

    /// Makes one, with rows that are to live on and rows that cannot.
    static func make(at path: String) throws {
        let database = try SQLiteDatabase(path: path)
        defer { database.close() }
        try database.write { connection in
            try connection.execute(schema)
            try connection.run(
                "INSERT INTO exchange (id, runs, boot, clock_offset_ms) VALUES (1, 7, 'first', ?)", [now - 5_000])
            try connection.execute(good)
            try connection.execute(bad)
        }
    }

    private static let good = """
        INSERT INTO groups VALUES ('class-7', 'Class 7', 'alice', '["alice","bob"]');
        INSERT INTO invites VALUES ('invite-1', 'alice', 'a', 'class-7', '[{"user":"bob","state":"pending"}]',
            NULL, NULL, NULL, 'key', 30, \(now), NULL, NULL, 0);
        INSERT INTO calls VALUES ('invite-0', 'bob', 'b', 'alice', 'a', \(now));
        INSERT INTO call_records VALUES
            ('invite-0', 'bob', 'b', 'alice', 'a', NULL, \(now), \(now), NULL, NULL, NULL);
        INSERT INTO push_targets VALUES ('bob', 'b', '[{"kind":"apns","token":"t"}]');
        INSERT INTO pushes VALUES ('push-1', 'invite-1', 'bob', 'b', '{"kind":"apns","token":"t"}', 'invite',
            'alice', 'class-7', NULL, NULL, NULL, \(now), \(now), 0, 0);
        INSERT INTO dead_pushes VALUES ('push-0', 'invite-0', 'bob', 'b', 'apns', 'invite', 'gone', NULL, 1, \(now));
        INSERT INTO tokens VALUES ('\(alicesLogin)', '\(alicesLogin)', 0, 'alice', 0, 'app', NULL, NULL, NULL, 0, \(now + 600_000), \(now + 600_000), NULL);
        INSERT INTO tokens VALUES ('\(guestsLogin)', '\(guestsLogin)', 0, 'guest', 1, 'app', NULL, NULL, NULL, 0, \(now + 600_000), \(now + 600_000), NULL);
        INSERT INTO tokens VALUES ('\(visitorsLogin)', '\(visitorsLogin)', 0, 'alice', 0, 'key',
            '{"room":"lobby","role":"publisher"}', NULL, NULL, 0, \(now + 600_000), \(now + 600_000), NULL);
        INSERT INTO tokens VALUES ('dead', 'dead', 0, '', 0, NULL, NULL, NULL, NULL, 1, \(now + 600_000), \(now + 600_000), NULL);
        INSERT INTO sessions VALUES ('session-1', 'alice', 'a', 0, 1, 'connection-1', NULL, '\(alicesLogin)', '[]', NULL);
        INSERT INTO sessions VALUES ('session-2', 'guest', 'g', 1, 0, 'connection-2', NULL, '\(guestsLogin)',
            '[{"room":"lobby"}]', NULL);
        INSERT INTO sessions VALUES ('session-3', 'alice', 'lobby' || char(0) || 'a', 0, 0, 'connection-3',
            '{"room":"lobby","role":"publisher"}', '\(visitorsLogin)', '[{"room":"lobby","role":"publisher"}]', NULL);
        INSERT INTO streams VALUES ('alice', 1040, 3);
        INSERT INTO events VALUES ('alice', 4, '{"sequence":4,"type":"notification","data":{"payload":1}}',
            'a', NULL, \(now));
        INSERT INTO events VALUES ('alice', 5, '{"sequence":5,"type":"notification","data":{"payload":2}}',
            'lobby' || char(0) || 'a', NULL, \(now));
        INSERT INTO events VALUES ('guest', 9, '{"sequence":9,"type":"notification","data":{"payload":3}}',
            'g', NULL, \(now));
        INSERT INTO events VALUES ('bob', 2, '{"sequence":2,"type":"notification","data":{"payload":4}}',
            NULL, 'b', \(now));
        """

    /// Each of these is one row that has no place any more: one in each table and for each way.
    private static let bad = """
        INSERT INTO groups VALUES ('class-7' || char(0) || 'x', NULL, 'mallory', '["mallory"]');
        INSERT INTO groups VALUES ('class' || char(8238) || '7', NULL, 'mallory', '["mallory"]');
        INSERT INTO groups VALUES ('mixed', NULL, 'bob', '["bob","ma\\u0000llory"]');
        INSERT INTO groups VALUES (CAST(x'66FF67' AS TEXT), NULL, 'mallory', '["mallory"]');
        INSERT INTO invites VALUES ('invite-2', 'bob', 'b', NULL, '[{"user":"alice","state":"pending"}]',
            NULL, NULL, NULL, 'key' || char(7), 30, \(now), NULL, NULL, 0);
        INSERT INTO invites VALUES ('invite-3', 'bob', 'e' || char(769), NULL,
            '[{"user":"alice","state":"pending"}]', NULL, NULL, NULL, 'key', 30, \(now), NULL, NULL, 0);
        INSERT INTO push_targets VALUES ('bob', 'ph' || char(8203) || 'one', '[{"kind":"apns","token":"t"}]');
        INSERT INTO push_targets VALUES ('bob', 'phone', '[{"kind":"ap\\u0000ns","token":"t"}]');
        INSERT INTO sessions VALUES ('session-4', 'alice', 'lobby', 0, 0, 'connection-4',
            '{"room":"lobby","role":"publisher"}', '\(visitorsLogin)', '[]', NULL);
        INSERT INTO sessions VALUES ('session-5', 'gu' || char(10) || 'est', 'g', 1, 0, 'connection-5', NULL,
            '\(guestsLogin)', '[]', NULL);
        INSERT INTO sessions VALUES ('session-6', 'guest', 'h', 1, 0, 'connection-6', NULL, NULL, '[]', NULL);
        INSERT INTO tokens VALUES ('f00d', 'f00d', 0, 'gu' || char(10) || 'est', 1, 'app', NULL, NULL, NULL, 0,
            \(now + 600_000), \(now + 600_000), NULL);
        INSERT INTO events VALUES ('bob', 3,
            '{"sequence":3,"type":"groupChanged","data":{"group":"g\\u0000","change":"left","user":"mallory"}}',
            NULL, NULL, \(now));
        INSERT INTO call_records VALUES
            ('invite-9', 'bob', NULL, 'alice', '\(String(repeating: "x", count: 300))', NULL, \(now), NULL, NULL, NULL, NULL);
        """

    private static let schema = """
        CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
        INSERT INTO grdb_migrations VALUES ('1 exchange'), ('2 pushes');
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
}
