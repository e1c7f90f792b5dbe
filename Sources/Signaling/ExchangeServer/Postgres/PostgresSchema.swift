/// The tables in PostgreSQL, in a schema of their own; docs/exchange-database.md describes those of SQLite, whose names they have.
///
/// A version that has been released is never changed; what is new becomes a step of its own.
enum PostgresSchema {
    /// What brings the schema from each version to the next; the first from nothing.
    static let steps = [first, second, third, fourth]
    static var version: Int64 { Int64(steps.count) }

    /// The SQLSTATE of ``first``'s function `confirm` when another process owns the database.
    static let fenced = "HS001"

    /// Every column that contains a time of the exchange's own, which move when the database's clock was set.
    static let timed = StoreSchema.timed

    /// Where clients find the owner. It may be repeated: two processes that start at once both take the step.
    private static let second = """
        ALTER TABLE handset.lease ADD COLUMN IF NOT EXISTS url text;
        UPDATE handset.exchange SET version = 2;
        """

    /// How an owner that ends in order and its standby find each other. It may be repeated, like the second.
    private static let third = """
        ALTER TABLE handset.lease ADD COLUMN IF NOT EXISTS leaving boolean NOT NULL DEFAULT false;
        ALTER TABLE handset.lease ADD COLUMN IF NOT EXISTS successor integer;
        ALTER TABLE handset.lease ADD COLUMN IF NOT EXISTS serves boolean NOT NULL DEFAULT false;
        CREATE TABLE IF NOT EXISTS handset.standbys (
            backend integer PRIMARY KEY, began timestamptz NOT NULL, name text NOT NULL, url text, ready boolean NOT NULL
        );
        UPDATE handset.exchange SET version = 3;
        """

    /// What shards write to each other. It may be repeated, like the second.
    private static let fourth = """
        CREATE TABLE IF NOT EXISTS handset.letters (
            sender bigint NOT NULL, receiver bigint NOT NULL, number bigint NOT NULL, body text NOT NULL,
            PRIMARY KEY (sender, receiver, number)
        );
        CREATE TABLE IF NOT EXISTS handset.letter_marks (
            shard bigint NOT NULL, peer bigint NOT NULL, acknowledged bigint NOT NULL, consumed bigint NOT NULL,
            peer_epoch text, PRIMARY KEY (shard, peer)
        );
        UPDATE handset.exchange SET version = 4;
        """

    /// Names are compared by their bytes, in any language of the database. `rowid` is the order of writing, as in SQLite.
    private static let first = """
        CREATE SCHEMA handset;
        SET LOCAL search_path = handset, pg_catalog;
        CREATE TABLE exchange (
            id integer PRIMARY KEY CHECK (id = 1), version bigint NOT NULL, runs bigint NOT NULL,
            file_users_known boolean NOT NULL DEFAULT false
        );
        INSERT INTO exchange (id, version, runs) VALUES (1, 1, 0);
        CREATE TABLE lease (
            id integer PRIMARY KEY CHECK (id = 1), generation text NOT NULL, epoch bigint NOT NULL,
            renewal bigint NOT NULL, owner text, backend integer NOT NULL, lease_ms bigint NOT NULL,
            until timestamptz NOT NULL
        ) WITH (fillfactor = 10);
        INSERT INTO lease VALUES (1, '', 0, 0, NULL, 0, 0, clock_timestamp());
        CREATE TABLE tokens (
            digest text COLLATE "C" PRIMARY KEY, login text NOT NULL, refresh boolean NOT NULL, "user" text NOT NULL,
            anonymous boolean NOT NULL, application text, scope text, generation bigint NOT NULL, superseded_ms bigint,
            revoked boolean NOT NULL, expires_ms bigint NOT NULL, forgotten_ms bigint NOT NULL, epoch bigint
        );
        CREATE TABLE logins (
            id text COLLATE "C" PRIMARY KEY, issuer text, family text, newest bigint NOT NULL, reached bigint NOT NULL,
            used_ms bigint
        );
        CREATE TABLE sessions (
            rowid bigint GENERATED ALWAYS AS IDENTITY, id text COLLATE "C" PRIMARY KEY, "user" text NOT NULL,
            guest text NOT NULL, room text NOT NULL, device text NOT NULL, registered boolean NOT NULL,
            connection text NOT NULL, scope text, login text, places text NOT NULL, resumable_until_ms bigint,
            missed boolean NOT NULL
        );
        CREATE TABLE groups (
            rowid bigint GENERATED ALWAYS AS IDENTITY, id text COLLATE "C" PRIMARY KEY, name text, owner text NOT NULL,
            members text NOT NULL
        );
        CREATE TABLE push_targets (
            rowid bigserial, "user" text COLLATE "C" NOT NULL, device text COLLATE "C" NOT NULL, targets text NOT NULL,
            PRIMARY KEY ("user", device)
        );
        CREATE TABLE invites (
            rowid bigint GENERATED ALWAYS AS IDENTITY, id text COLLATE "C" PRIMARY KEY, inviter text NOT NULL,
            inviter_device text NOT NULL, group_id text, invitees text NOT NULL, data text, payload text,
            timeout_payload text, idempotency_key text, ttl_s double precision NOT NULL, sent_ms bigint NOT NULL,
            deadline_ms bigint, forgotten_ms bigint, online_only boolean NOT NULL
        );
        CREATE TABLE calls (
            invite text COLLATE "C" NOT NULL, invitee text COLLATE "C" NOT NULL, invitee_device text NOT NULL,
            inviter text NOT NULL, inviter_device text NOT NULL, accepted_ms bigint NOT NULL,
            PRIMARY KEY (invite, invitee)
        );
        CREATE TABLE streams (
            "user" text COLLATE "C" NOT NULL, guest text COLLATE "C" NOT NULL, room text COLLATE "C" NOT NULL,
            reserved bigint NOT NULL DEFAULT 0, forgotten bigint NOT NULL DEFAULT 0, PRIMARY KEY ("user", guest, room)
        );
        CREATE TABLE event_bodies (id bigint PRIMARY KEY, text text NOT NULL);
        CREATE TABLE events (
            "user" text COLLATE "C" NOT NULL, guest text COLLATE "C" NOT NULL, room text COLLATE "C" NOT NULL,
            sequence bigint NOT NULL, body text NOT NULL, shared bigint, device text, except_device text,
            for_all boolean NOT NULL, at_ms bigint NOT NULL, PRIMARY KEY ("user", guest, room, sequence)
        );
        CREATE INDEX events_by_time ON events (at_ms);
        CREATE INDEX events_by_body ON events (shared) WHERE shared IS NOT NULL;
        CREATE TABLE outdated_events (
            "user" text COLLATE "C" NOT NULL, guest text COLLATE "C" NOT NULL, room text COLLATE "C" NOT NULL,
            device text COLLATE "C" NOT NULL, except_device text COLLATE "C" NOT NULL, sequence bigint NOT NULL,
            PRIMARY KEY ("user", guest, room, device, except_device)
        );
        CREATE TABLE users (id text COLLATE "C" PRIMARY KEY, added bigint NOT NULL);
        CREATE TABLE file_users (id text COLLATE "C" PRIMARY KEY);
        CREATE TABLE acquaintances (
            owner text COLLATE "C" NOT NULL, "user" text COLLATE "C" NOT NULL, used_ms bigint NOT NULL,
            PRIMARY KEY (owner, "user")
        );
        CREATE INDEX acquaintances_by_user ON acquaintances ("user");
        CREATE TABLE pushes (
            rowid bigint GENERATED ALWAYS AS IDENTITY, id text COLLATE "C" PRIMARY KEY, invite text NOT NULL,
            "user" text NOT NULL, device text NOT NULL, target text NOT NULL, message text NOT NULL,
            inviter text NOT NULL, group_id text, payload text, reason text, deadline_ms bigint,
            expires_ms bigint NOT NULL, due_ms bigint NOT NULL, attempts bigint NOT NULL, settled boolean NOT NULL
        );
        CREATE TABLE dead_pushes (
            rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE, id text COLLATE "C" NOT NULL, invite text NOT NULL,
            "user" text COLLATE "C" NOT NULL, device text NOT NULL, kind text NOT NULL, message text COLLATE "C" NOT NULL,
            reason text NOT NULL, detail text, attempts bigint NOT NULL, died_ms bigint NOT NULL,
            PRIMARY KEY (id, message)
        );
        CREATE INDEX dead_pushes_by_time ON dead_pushes (died_ms);
        CREATE TABLE call_records (
            rowid bigint GENERATED ALWAYS AS IDENTITY UNIQUE, invite text COLLATE "C" NOT NULL,
            invitee text COLLATE "C" NOT NULL, invitee_device text, inviter text COLLATE "C" NOT NULL,
            inviter_device text NOT NULL, group_id text, sent_ms bigint NOT NULL, answered_ms bigint, ended_ms bigint,
            reason text, duration_ms bigint, PRIMARY KEY (invite, invitee)
        );
        CREATE INDEX call_records_by_time ON call_records (sent_ms);
        CREATE INDEX call_records_by_inviter ON call_records (inviter, rowid);
        -- How many records each caller has; in all: under the empty name.
        CREATE TABLE call_record_counts (inviter text COLLATE "C" PRIMARY KEY, records bigint NOT NULL);
        INSERT INTO call_record_counts VALUES ('', 0);

        -- The timeline that the server writes: each promotion of a standby begins another.
        CREATE FUNCTION timeline() RETURNS text LANGUAGE sql VOLATILE AS
        $$ SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) $$;

        -- Begins every transaction of the owner: confirms its lease, whose row no other process can take until this
        -- transaction has ended. The database's time, in milliseconds since 1970.
        CREATE FUNCTION confirm(owned_generation text, owned_epoch bigint, duration_ms bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE handset.lease
            SET renewal = renewal + 1, lease_ms = duration_ms,
                until = clock_timestamp() + duration_ms * interval '1 millisecond'
            WHERE generation = owned_generation AND epoch = owned_epoch AND owned_generation = handset.timeline();
            IF NOT FOUND THEN
                RAISE EXCEPTION 'another process has taken the database over' USING ERRCODE = '\(fenced)';
            END IF;
            RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
        END $$;

        CREATE FUNCTION drop_records(rows bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE dropped bigint;
        BEGIN
            WITH gone AS (DELETE FROM handset.call_records WHERE rowid = ANY (rows) RETURNING inviter),
            counted AS (
                SELECT inviter, count(*) AS n FROM gone GROUP BY inviter
                UNION ALL SELECT '', count(*) FROM gone
            ),
            lowered AS (
                UPDATE handset.call_record_counts c SET records = c.records - counted.n FROM counted
                WHERE c.inviter = counted.inviter
            )
            SELECT count(*) INTO dropped FROM gone;
            DELETE FROM handset.call_record_counts WHERE records <= 0 AND inviter <> '';
            RETURN dropped;
        END $$;

        -- Begins a record, and drops the caller's oldest past its limit, then the oldest of all: at most `most` of each.
        CREATE FUNCTION begin_record(
            of_invite text, of_invitee text, of_inviter text, of_device text, of_group text, at_ms bigint,
            per_caller bigint, in_all bigint, most bigint
        ) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE own bigint; every bigint;
        BEGIN
            INSERT INTO handset.call_records (invite, invitee, inviter, inviter_device, group_id, sent_ms)
            VALUES (of_invite, of_invitee, of_inviter, of_device, of_group, at_ms) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN RETURN; END IF;
            INSERT INTO handset.call_record_counts AS c VALUES (of_inviter, 1)
            ON CONFLICT (inviter) DO UPDATE SET records = c.records + 1 RETURNING records INTO own;
            UPDATE handset.call_record_counts SET records = records + 1 WHERE inviter = '' RETURNING records INTO every;
            IF own > per_caller THEN
                every := every - handset.drop_records(ARRAY(
                    SELECT rowid FROM handset.call_records WHERE inviter = of_inviter ORDER BY rowid
                    LIMIT least(own - per_caller, most)));
            END IF;
            IF every > in_all THEN
                PERFORM handset.drop_records(ARRAY(
                    SELECT rowid FROM handset.call_records ORDER BY rowid LIMIT least(every - in_all, most)));
            END IF;
        END $$;
        """
}
