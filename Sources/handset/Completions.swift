internal import ArgumentParser
internal import AudioDevices
internal import CallAgent
internal import ConfigReader
internal import ExchangeCore
internal import ExchangeServer
internal import Logging

/// What shells offer for the values of options. Each is looked up on completion; a source that cannot be read offers nothing.
enum Completions {
    /// Names of sound cards that stay theirs, and of ALSA's default.
    static let cards = CompletionKind.custom { _, _, _ in
        ["default"] + CardDirectory().cards.flatMap(\.identities)
    }

    /// Ids of the exchange's users.
    static let users = CompletionKind.custom { words, _, _ in
        var place = UsersPlace()
        place.usersFile = value(of: "--users-file", in: words)
        place.config = place.usersFile == nil ? value(of: "--config", in: words) : nil
        guard place.usersFile != nil || place.config != nil,
            let (file, configured) = try? place.resolve(makesFile: true)
        else {
            return []
        }
        let users = (try? file.read()) ?? []
        return (configured + users).map(\.id.text).sorted()
    }

    /// Names of the accounts of a device's configuration.
    static let accounts = CompletionKind.custom { words, _, _ in
        guard let path = value(of: "--config", in: words) else { return [] }
        return ((try? AccountsConfiguration.read(path: path, fileChecks: .none))?.accounts ?? []).compactMap(\.name)
    }

    static let controlWords = CompletionKind.list(
        ControlWords.forms.reduce(into: []) { words, form in
            let word = String(form.prefix { $0 != " " })
            if !words.contains(word) { words.append(word) }
        })
    static let logLevels = CompletionKind.list(Logger.Level.allCases.map(\.rawValue))
    static let sources = CompletionKind.list(SetupPlan.Source.allCases.map(\.rawValue))
    static let transports = CompletionKind.list(SIPTransportWord.allCases.map(\.rawValue))
    static let profiles = CompletionKind.list(MachineProfile.allCases.map(\.rawValue))
    static let roles = CompletionKind.list(SignedToken.Role.allCases.map(\.rawValue))

    /// The value of an option among the words of a command line.
    private static func value(of option: String, in words: [String]) -> String? {
        if let joined = words.first(where: { $0.hasPrefix("\(option)=") }) {
            return String(joined.dropFirst(option.count + 1))
        }
        guard let index = words.firstIndex(of: option), index + 1 < words.count else { return nil }
        return words[index + 1]
    }
}
