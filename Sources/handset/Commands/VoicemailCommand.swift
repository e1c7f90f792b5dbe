internal import ArgumentParser
internal import CallAgent
internal import CallVoicemail
internal import ConfigReader
internal import Files
internal import Glibc
internal import Voicemail

/// `handset voicemail`: the messages of a mailbox, whether its device runs or not.
struct VoicemailCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "voicemail", abstract: "List, play, mark and delete the messages of a mailbox.",
        discussion: "The device may be running. docs/voicemail.md says more.",
        subcommands: [ListMessages.self, PlayMessage.self, MarkMessages.self, DeleteMessages.self])
}

/// Which mailbox.
struct MailboxOptions: ParsableArguments {
    @Option(help: "The device's configuration file, which names the mailbox.", completion: .file())
    var config: String?

    @Option(help: "Which of several accounts in it.", completion: Completions.accounts)
    var account: String?

    @Option(help: "Which of several behaviours of the account, by its name.")
    var behaviour: String?

    @Option(help: "The mailbox's folder, without a configuration file.", completion: .directory)
    var folder: String?

    func validate() throws {
        guard (config == nil) != (folder == nil) else {
            throw ValidationError("Name the mailbox with --config or with --folder.")
        }
        guard folder == nil || (account == nil && behaviour == nil) else {
            throw ValidationError("--account and --behaviour are for --config.")
        }
    }

    /// The mailbox that is meant.
    func mailbox() throws -> VoicemailFolder {
        guard let config else { return try existing(folder ?? "") }
        try ConfigurationCheck.expect("run", path: config)
        let accounts = try AccountsConfiguration.read(path: config, fileChecks: .none).accounts
        let chosen = accounts.filter { account == nil || $0.name == account }
        guard !chosen.isEmpty else {
            throw CommandFailure(
                .configuration,
                "\(config) has no account \"\(account ?? "")\"; it has \(Self.list(accounts.map(\.name)))")
        }
        let boxes = chosen.flatMap { account in
            account.configuration.mailboxes.filter { behaviour == nil || $0.behaviour == behaviour }
                .map { (account: account.name, $0.behaviour, $0.plan.folder) }
        }
        guard let first = boxes.first else {
            throw CommandFailure(
                .configuration, "\(config) has no such mailbox: a behaviour with source: voicemail has one")
        }
        guard Set(boxes.map(\.2)).count == 1 else {
            let names = boxes.map { box in
                [box.account.map { "--account \($0)" }, box.1.isEmpty ? nil : "--behaviour \(box.1)"]
                    .compactMap(\.self).joined(separator: " ")
            }
            throw CommandFailure(.usage, "\(config) has several mailboxes; name one: \(Self.list(names))")
        }
        return VoicemailFolder(path: first.2)
    }

    private func existing(_ folder: String) throws -> VoicemailFolder {
        guard RegularFile.isFolder(folder) else {
            throw CommandFailure(.failed, "there is no folder \"\(folder)\"; --folder names the folder of a mailbox")
        }
        return VoicemailFolder(path: folder)
    }

    private static func list(_ names: [String?]) -> String {
        names.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: ", ")
    }
}

/// `handset voicemail list`.
private struct ListMessages: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print the messages, the oldest first.",
        discussion:
            "One line for each: its name, when the call came, whether it is new, its length, and who has called.")

    @OptionGroup var options: MailboxOptions

    @Flag(help: "Only messages that were not heard.")
    var new = false

    @Flag(help: "Print a JSON object on each line.")
    var json = false

    func run() throws {
        for entry in try options.mailbox().messages() where !new || !entry.message.isHeard {
            Terminal.print(json ? entry.json : Self.line(entry.message))
        }
    }

    private static func line(_ message: VoicemailMessage) -> String {
        let name = message.name.map { " (\($0))" } ?? ""
        let seconds = "\(message.seconds) s"
        let text =
            "\(message.id)  \(message.received)  \(message.isHeard ? "heard" : "new  ")  "
            + String(repeating: " ", count: max(0, 8 - seconds.count)) + "\(seconds)  \(message.caller)\(name)"
            + (message.isCut ? ", cut off" : "")
        return ControlText.printable(text)
    }
}

/// `handset voicemail play`.
private struct PlayMessage: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play", abstract: "Write the sound of a message, a WAV, and mark it as heard.",
        discussion: "Without --output it goes to standard output: `handset voicemail play … | aplay`.")

    @OptionGroup var options: MailboxOptions

    @Option(help: "The file to write; - is standard output.", completion: .file())
    var output = "-"

    @Flag(help: "Leave the message as it is marked.")
    var keep = false

    @Argument(help: ArgumentHelp("The message, as list names it.", valueName: "message"))
    var id: String

    func run() throws {
        let mailbox = try options.mailbox()
        let entry = try mailbox.message(id)
        if output == "-", isatty(STDOUT_FILENO) == 1 {
            throw CommandFailure(
                .usage,
                "a terminal does not show sound: write it to a file with --output, or pipe it to a player, as | aplay")
        }
        do throws(RegularFileError) {
            try copy(entry.file)
        } catch {
            throw CommandFailure(
                .failed, "cannot copy \"\(entry.file)\" to \"\(output)\": \(error.message)")
        }
        if !keep { try mailbox.mark(id, isHeard: true) }
    }

    private static let pieceBytes = 1 << 16

    private func copy(_ file: String) throws(RegularFileError) {
        let sound = try RegularFile.open(file, O_RDONLY | O_NOFOLLOW)
        let copy = try opened(unlike: FileIdentity(descriptor: sound.number))
        var piece = [UInt8](repeating: 0, count: Self.pieceBytes)
        do throws(SystemError) {
            while true {
                let count = try sound.read(into: &piece)
                guard count > 0 else { return }
                try copy.write(Array(piece[..<count]))
            }
        } catch {
            // A player that is gone wants no more.
            guard output != "-" || error.code != EPIPE else { return }
            throw RegularFileError(error)
        }
    }

    private func opened(unlike sound: FileIdentity?) throws(RegularFileError) -> OpenFile {
        if output == "-" { return OpenFile(adopting: dup(STDOUT_FILENO)) }
        let file = try RegularFile.open(output, O_WRONLY | O_CREAT)
        guard FileIdentity(descriptor: file.number) != sound else {
            throw RegularFileError("it is the message itself")
        }
        _ = ftruncate(file.number, 0)
        return file
    }
}

/// `handset voicemail mark`.
private struct MarkMessages: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mark", abstract: "Mark messages as heard, or as new.")

    @OptionGroup var options: MailboxOptions

    @Flag(help: "Mark them as new.")
    var new = false

    @Argument(help: ArgumentHelp("The messages, as list names them, or: all.", valueName: "message"))
    var ids: [String]

    func run() throws {
        let mailbox = try options.mailbox()
        for id in try mailbox.ids(ids) { try mailbox.mark(id, isHeard: !new) }
    }
}

/// `handset voicemail delete`.
private struct DeleteMessages: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete messages.")

    @OptionGroup var options: MailboxOptions

    @Argument(help: ArgumentHelp("The messages, as list names them, or: all.", valueName: "message"))
    var ids: [String]

    func run() throws {
        let mailbox = try options.mailbox()
        for id in try mailbox.ids(ids) { try mailbox.delete(id) }
    }
}

extension VoicemailFolder {
    /// The messages that a user names, each of which exists: none is touched if one does not.
    fileprivate func ids(_ words: [String]) throws -> [String] {
        let known = try messages().map(\.message.id)
        guard words != ["all"] else { return known }
        for word in words where !known.contains(word) { _ = try message(word) }
        return words
    }
}
