public import Core

/// What the owner of a mailbox hears in its menu, besides the messages: said by a voice, or played from files.
public enum MailboxPrompt: Hashable, Sendable {
    /// Asks for the PIN.
    case pin
    /// The PIN was wrong.
    case wrong
    /// How many messages there are.
    case counts(new: Int, old: Int)
    /// Which keys there are.
    case keys
    /// The message is deleted.
    case deleted
    /// The message is marked as heard.
    case heard
    /// The message is marked as new.
    case kept
    /// There is no further message.
    case last
    /// The call ends.
    case goodbye

    /// The name of its file, without an ending.
    public var name: String {
        switch self {
        case .pin: "pin"
        case .wrong: "wrong"
        case .counts(0, 0): "none"
        case .counts(0, _): "old"
        case .counts: "new"
        case .keys: "keys"
        case .deleted: "deleted"
        case .heard: "heard"
        case .kept: "kept"
        case .last: "last"
        case .goodbye: "goodbye"
        }
    }

    /// The names of all files.
    public static let names = [
        "pin", "wrong", "none", "old", "new", "keys", "deleted", "heard", "kept", "last", "goodbye",
    ]

    /// What a voice says.
    public var text: String {
        switch self {
        case .pin: "Please enter your PIN, and press the hash key."
        case .wrong: "That was not the PIN."
        case .counts(0, 0): "You have no messages."
        case .counts(let new, 0): "You have \(Self.count(new, "new message"))."
        case .counts(0, let old): "You have no new messages, and \(Self.count(old, "old message"))."
        case .counts(let new, let old):
            "You have \(Self.count(new, "new message")), and \(Self.count(old, "old message"))."
        case .keys:
            "Press 1 to repeat, 2 for the next message, 3 to delete it, 4 to mark it as heard, 5 to mark it as new, or 0 to end."
        case .deleted: "The message is deleted."
        case .heard: "The message is marked as heard."
        case .kept: "The message is marked as new."
        case .last: "There are no more messages."
        case .goodbye: "Goodbye."
        }
    }

    private static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}

/// A sound of a mailbox's menu.
public enum MailboxSound: Hashable, Sendable {
    /// A prompt.
    case prompt(MailboxPrompt)
    /// The message of this name.
    case message(String)
}

/// The course of a call in which the owner of a mailbox hears its messages.
///
/// The driver plays, checks the PIN, lists, marks and deletes, and reports what became of it. Every wait has an end but that for a sound,
/// whose length the driver limits.
public struct MailboxMenu: ProtocolCore, Sendable {
    /// A message in the mailbox.
    public struct Message: Hashable, Sendable {
        /// Its name.
        public let id: String
        /// Whether it was heard.
        public let isHeard: Bool

        /// Takes both.
        public init(id: String, isHeard: Bool) {
            self.id = id
            self.isHeard = isHeard
        }
    }

    /// What happened.
    public enum Input: Equatable, Sendable {
        /// The caller hears what is played.
        case begin
        /// The PIN that was to be checked is right.
        case pinAccepted
        /// It is wrong, or may not be tried any more.
        case pinRefused(mayRetry: Bool)
        /// The messages, the oldest first.
        case listed([Message])
        /// They cannot be listed, for the reason in the text.
        case listFailed(String)
        /// The sounds of this number have been played to their end, or could not be. Ends of stopped sounds are ignored.
        case soundEnded(Int)
        /// The caller has pressed a key.
        case key(Character)
        /// ``MailboxMenu/nextDeadline`` has come.
        case timerFired
    }

    /// What is to be done.
    public enum Output: Equatable, Sendable {
        /// Check a PIN, of which there is no other copy here.
        case check(String)
        /// List the messages.
        case list
        /// Play sounds, one after another; the number comes back with their end.
        case play([MailboxSound], number: Int)
        /// Stop what is played.
        case stopSound
        /// Mark a message as heard, or as new.
        case mark(String, isHeard: Bool)
        /// Delete a message.
        case delete(String)
        /// Hang up.
        case hangUp
        /// End the call, which cannot continue: nothing follows.
        case fail(String)
    }

    /// How long a caller may wait with the next key.
    public static let patience = Duration.seconds(10)
    /// How often the keys are said to a caller who presses none.
    public static let reminders = 2
    /// How long the disk has.
    public static let listTime = Duration.seconds(5)
    /// Wrong PINs of one call.
    public static let pinTries = 3
    /// Digits of a PIN.
    public static let pinDigits = 6...12

    private enum State: Equatable {
        case idle
        /// The PIN is asked for; nil while the prompt is played.
        case entering(digits: String, until: Instant?)
        case checking
        case listing(until: Instant)
        /// The message of this index is played.
        case hearing(Int)
        /// What follows on it is to be chosen; nil while a prompt is played.
        case choosing(Int, until: Instant?, reminders: Int)
        case leaving
        case over
    }

    private let asksForPIN: Bool
    private var state = State.idle
    private var tries = 0
    private var messages: [Message] = []
    /// Of the last sounds.
    private var sound = 0

    /// Makes the course of a call.
    public init(asksForPIN: Bool) { self.asksForPIN = asksForPIN }

    /// When ``Input/timerFired`` is due; nil if never.
    public var nextDeadline: Instant? {
        switch state {
        case .idle, .checking, .hearing, .leaving, .over: nil
        case .entering(_, let until), .choosing(_, let until, _): until
        case .listing(let until): until
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch input {
        case .begin: if state == .idle { begin(at: now, into: &outbox) }
        case .pinAccepted: if state == .checking { list(at: now, into: &outbox) }
        case .pinRefused(let mayRetry): if state == .checking { refuse(mayRetry: mayRetry, into: &outbox) }
        case .listed(let messages): if case .listing = state { take(messages, into: &outbox) }
        case .listFailed(let why): if case .listing = state { fail(why, into: &outbox) }
        case .soundEnded(let number): if number == sound { endSound(at: now, into: &outbox) }
        case .key(let key): press(key, at: now, into: &outbox)
        case .timerFired: fire(at: now, into: &outbox)
        }
    }

    private mutating func begin(at now: Instant, into outbox: inout [Output]) {
        guard asksForPIN else { return list(at: now, into: &outbox) }
        state = .entering(digits: "", until: nil)
        play([.prompt(.pin)], into: &outbox)
    }

    private mutating func list(at now: Instant, into outbox: inout [Output]) {
        state = .listing(until: now.advanced(by: Self.listTime))
        outbox.append(.list)
    }

    private mutating func play(_ sounds: [MailboxSound], into outbox: inout [Output]) {
        sound += 1
        outbox.append(.play(sounds, number: sound))
    }

    private mutating func fail(_ why: String, into outbox: inout [Output]) {
        state = .over
        outbox.append(.fail(why))
    }

    private mutating func leave(_ first: MailboxPrompt?, into outbox: inout [Output]) {
        state = .leaving
        play((first.map { [.prompt($0)] } ?? []) + [.prompt(.goodbye)], into: &outbox)
    }

    // MARK: The PIN

    private mutating func refuse(mayRetry: Bool, into outbox: inout [Output]) {
        tries += 1
        guard mayRetry, tries < Self.pinTries else { return leave(.wrong, into: &outbox) }
        state = .entering(digits: "", until: nil)
        play([.prompt(.wrong), .prompt(.pin)], into: &outbox)
    }

    private mutating func enter(
        _ key: Character, _ digits: String, at now: Instant, into outbox: inout [Output]
    ) {
        outbox.append(.stopSound)
        sound += 1
        if key == "#" {
            state = .checking
            return outbox.append(.check(digits))
        }
        // A star begins again; what is too long cannot be right, and only its end is forgotten.
        let next = key == "*" ? "" : digits.count <= Self.pinDigits.upperBound ? digits + String(key) : digits
        state = .entering(digits: next, until: now.advanced(by: Self.patience))
    }

    // MARK: Messages

    private mutating func take(_ all: [Message], into outbox: inout [Output]) {
        let new = all.filter { !$0.isHeard }
        let old = all.filter(\.isHeard)
        messages = new + old
        let counts = MailboxPrompt.counts(new: new.count, old: old.count)
        guard let first = messages.first else { return leave(counts, into: &outbox) }
        state = .hearing(0)
        play([.prompt(counts), .message(first.id)], into: &outbox)
    }

    private mutating func hear(_ index: Int, after prompt: MailboxPrompt? = nil, into outbox: inout [Output]) {
        let before = prompt.map { [MailboxSound.prompt($0)] } ?? []
        guard index < messages.count else {
            state = .leaving
            return play(before + [.prompt(.last), .prompt(.goodbye)], into: &outbox)
        }
        state = .hearing(index)
        play(before + [.message(messages[index].id)], into: &outbox)
    }

    private mutating func endSound(at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .entering(let digits, nil): state = .entering(digits: digits, until: now.advanced(by: Self.patience))
        case .hearing(let index):
            outbox.append(.mark(messages[index].id, isHeard: true))
            state = .choosing(index, until: nil, reminders: 0)
            play([.prompt(.keys)], into: &outbox)
        case .choosing(let index, nil, let reminders):
            state = .choosing(index, until: now.advanced(by: Self.patience), reminders: reminders)
        case .leaving:
            state = .over
            outbox.append(.hangUp)
        case .idle, .entering, .checking, .listing, .choosing, .over: return
        }
    }

    private mutating func press(_ key: Character, at now: Instant, into outbox: inout [Output]) {
        switch state {
        case .entering(let digits, _):
            guard key == "#" || key == "*" || key.isASCII && key.isNumber else { return }
            enter(key, digits, at: now, into: &outbox)
        case .hearing(let index), .choosing(let index, _, _): choose(key, index, into: &outbox)
        case .idle, .checking, .listing, .leaving, .over: return
        }
    }

    private mutating func choose(_ key: Character, _ index: Int, into outbox: inout [Output]) {
        guard "0123457*#".contains(key) else { return }
        outbox.append(.stopSound)
        let id = messages[index].id
        switch key {
        case "1": hear(index, into: &outbox)
        case "2", "#": hear(index + 1, into: &outbox)
        case "3", "7":
            outbox.append(.delete(id))
            hear(index + 1, after: .deleted, into: &outbox)
        case "4":
            outbox.append(.mark(id, isHeard: true))
            hear(index + 1, after: .heard, into: &outbox)
        case "5":
            outbox.append(.mark(id, isHeard: false))
            hear(index + 1, after: .kept, into: &outbox)
        case "0": leave(nil, into: &outbox)
        default:
            state = .choosing(index, until: nil, reminders: 0)
            play([.prompt(.keys)], into: &outbox)
        }
    }

    private mutating func fire(at now: Instant, into outbox: inout [Output]) {
        guard let deadline = nextDeadline, deadline <= now else { return }
        switch state {
        case .entering: leave(nil, into: &outbox)
        case .listing: fail("the mailbox's disk did not answer within \(Self.listTime.text)", into: &outbox)
        case .choosing(let index, _, let reminders):
            guard reminders < Self.reminders else { return leave(nil, into: &outbox) }
            state = .choosing(index, until: nil, reminders: reminders + 1)
            play([.prompt(.keys)], into: &outbox)
        case .idle, .checking, .hearing, .leaving, .over: return
        }
    }
}
