internal import CallFlow
internal import CallFlows
internal import CallSounds
internal import Files
internal import Synchronization
public import CallControl
public import Core
internal import Voicemail

/// How the owners of a mailbox hear its messages by telephone.
public struct MenuPlan: Sendable, Equatable {
    /// The callers who hear the messages, in place of leaving one.
    public var owners: [CalleePattern]
    /// What each of them must enter; nil if the name of the caller is enough.
    public var pin: WipedBytes?
    /// The command that says prompts, and its arguments; empty without one.
    public var say: [String] = []
    /// A folder with prompts as WAV files, which are played in place of those of the command.
    public var prompts: String?

    /// Makes a plan.
    public init(owners: [CalleePattern]) { self.owners = owners }
}

/// Gets the prompts of menus: from files, or from a voice, of which the last ones are kept.
final class MenuVoice: Sendable {
    /// More than a menu without numbers has.
    private static let mostKept = 32
    private let kept = Mutex<(order: [String], texts: [String: SpokenText])>(([], [:]))

    /// Opens a prompt. It blocks on the disk, or until the voice has spoken.
    func open(
        _ prompt: MailboxPrompt, _ plan: MenuPlan, withholding withheld: Set<String>
    ) throws(SoundFault) -> SoundFile {
        if let folder = plan.prompts {
            let path = "\(folder)/\(prompt.name).wav"
            if plan.say.isEmpty || RegularFile.isThere(path) { return try SoundFile(path: path) }
        }
        let key = "\(plan.say) \(prompt.text)"
        if let spoken = kept.withLock({ $0.texts[key] }) { return try SoundFile(path: spoken.path) }
        switch SpokenText.speak(prompt.text, by: plan.say, withholding: withheld) {
        case .failure(let fault): throw SoundFault(fault.message)
        case .success(let spoken):
            let file = try SoundFile(path: spoken.path)
            keep(spoken, key)
            return file
        }
    }

    private func keep(_ spoken: SpokenText, _ key: String) {
        kept.withLock { kept in
            guard kept.texts.updateValue(spoken, forKey: key) == nil else { return }
            kept.order.append(key)
            if kept.order.count > Self.mostKept { kept.texts[kept.order.removeFirst()] = nil }
        }
    }
}

/// The wrong PINs of all calls of a mailbox since the device has started.
final class PINAttemptsKeeper: Sendable {
    private let attempts = Mutex(PINAttempts())

    /// Counts a PIN that a caller has entered.
    ///
    /// - Returns: Whether it may be tried.
    func admit(_ caller: String, isRight: Bool, at now: Instant) -> Bool {
        attempts.withLock { attempts in
            guard attempts.admit(caller, at: now) else { return false }
            if isRight { attempts.accept(caller) }
            return true
        }
    }
}
