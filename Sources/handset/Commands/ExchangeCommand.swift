internal import ArgumentParser
internal import Core
internal import ExchangeCore
internal import ExchangeServer

/// Where an exchange keeps its state.
struct StatePlace: ParsableArguments {
    @Option(help: "The exchange's configuration file, which names its database.", completion: .file())
    var config: String?

    @Option(help: "The exchange's database of SQLite itself.", completion: .file())
    var database: String?

    func validate() throws {
        guard (config == nil) != (database == nil) else {
            throw ValidationError("Give either --config or --database.")
        }
    }

    func resolve() throws -> StateLocation {
        if let database { return .file(database) }
        guard let config else { throw CommandFailure(.usage, "give --config or --database") }
        return try ExchangeCommand.state(of: config)
    }
}

/// `handset exchange`: an exchange that runs, and its state, whichever database that is in.
struct ExchangeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exchange", abstract: "Look after an exchange that runs, and after its database.",
        discussion: """
            The commands from `users` to `events` act on an exchange that runs, if its configuration has `control: socket:`. \
            docs/exchange-control.md says more.
            """,
        subcommands: [
            Status.self, Migrate.self, Users.self, Invites.self, Calls.self, Rooms.self, Groups.self, Logout.self,
            Cancel.self, HangUp.self, Remove.self, Move.self, Events.self,
        ])

    /// Where the exchange of a configuration keeps its state.
    fileprivate static func state(of config: String) throws -> StateLocation {
        guard let location = try read(config).stateLocation else {
            throw CommandFailure(
                .configuration, "\(config) has neither database nor store, so this exchange keeps nothing")
        }
        return location
    }

    private static func read(_ config: String) throws -> ExchangeConfiguration {
        try ConfigurationCheck.expect("serve", path: config)
        return try ExchangeConfiguration.read(path: config)
    }

    /// `handset exchange status`: who owns the database.
    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status", abstract: "Print which database an exchange has, and who owns it.",
            discussion: """
                Of several exchanges on one database of PostgreSQL one owns it, and the others are standbys. The database is \
                asked, so that this can run on any machine that reaches it.
                """)

        @OptionGroup var state: StatePlace

        @Flag(help: "Print a JSON object.")
        var json = false

        func run() throws {
            let found = try StateOwnership(of: try state.resolve())
            Terminal.print(json ? Self.object(found) : Self.text(found))
        }

        private static func text(_ found: StateOwnership) -> String {
            switch found.database {
            case .file(let path, let isOpen):
                "SQLite, \(path)\n" + (isOpen ? "An exchange has it open." : "No exchange has it open.")
            case .postgres(let address, let version, let isSynchronous, let owner):
                """
                PostgreSQL \(version), \(address)
                \(isSynchronous ? "Commits wait for a synchronous standby." : "There is no synchronous standby.")
                \(owner.map(text) ?? "No exchange owns it.")
                """
            }
        }

        private static func text(_ owner: StateOwnership.Owner) -> String {
            "Owner: \(owner.name)\(owner.url.map { " at \($0)" } ?? ""), who confirmed it \(owner.sinceConfirmed.text) ago "
                + "(epoch \(owner.epoch), timeline \(owner.generation))."
        }

        private static func object(_ found: StateOwnership) -> String {
            var object = JSONObjectText()
            switch found.database {
            case .file(let path, let isOpen):
                object.add("database", "sqlite")
                object.add("path", path)
                object.add("open", isOpen)
            case .postgres(let address, let version, let isSynchronous, let owner):
                object.add("database", "postgresql")
                object.add("path", address)
                object.add("version", version)
                object.add("synchronous", isSynchronous)
                object.add("owner", owner?.name)
                object.add("url", owner?.url)
                object.add("epoch", owner.map { Double($0.epoch) })
                object.add("timeline", owner?.generation)
                object.add("confirmed_s_ago", owner.map { $0.sinceConfirmed / .seconds(1) })
            }
            return object.text
        }
    }

    /// `handset exchange migrate`: from SQLite to PostgreSQL.
    struct Migrate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "migrate", abstract: "Bring an exchange's state from SQLite into PostgreSQL.",
            discussion: """
                Everything goes into the empty database that `store` names, in one transaction, and the rows of each table \
                are counted on both sides. Stop the exchange first. The file stays as it is.
                """)

        @Option(help: "The exchange's configuration file, with `store`.", completion: .file())
        var config: String

        @Option(help: "The database of SQLite.", completion: .file())
        var from: String

        @Flag(help: "Only count, and check that the database of PostgreSQL can be used.")
        var dryRun = false

        func run() throws {
            guard let postgres = try ExchangeCommand.read(config).postgres else {
                throw CommandFailure(.configuration, "\(config) has no store, which is where the state is to go")
            }
            let task = StateImport(from: from, into: postgres)
            let counts = try dryRun ? task.rehearse() : task.run()
            for count in counts where count.rows > 0 { Terminal.print("\(count.table): \(count.rows)") }
            let rows = counts.reduce(0) { $0 + $1.rows }
            Terminal.print(
                dryRun
                    ? "\(rows) rows would be brought into \(postgres.address)."
                    : "\(rows) rows are in \(postgres.address). Start the exchange with this configuration.")
        }
    }
}
