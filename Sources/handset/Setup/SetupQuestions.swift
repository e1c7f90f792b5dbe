internal import Glibc

/// Asks for what the options of `handset setup` leave open.
struct SetupQuestions {
    /// Puts a line before the user, and returns the answer; nil if there is none to be had.
    let ask: (String) -> String?
    /// The same for a secret, which the terminal does not show.
    var askInSecret: (String) -> String? = { _ in nil }

    /// Those of a person at the terminal; nil if standard input is none.
    static var atTerminal: SetupQuestions? {
        guard isatty(STDIN_FILENO) == 1 else { return nil }
        return SetupQuestions { question in
            Terminal.write(question, to: STDERR_FILENO)
            return readLine(strippingNewline: true)
        } askInSecret: { question in
            Terminal.readUnseen(question)
        }
    }

    /// A secret; an empty line is asked for again.
    func secret(_ question: String) -> String? {
        while true {
            guard let line = askInSecret("\(question) (not shown): ") else { return nil }
            let answer = line.split(separator: " ").joined(separator: " ")
            if !answer.isEmpty { return answer }
        }
    }

    /// An answer that `check` has no complaint about, or `usual` for an empty one.
    ///
    /// - Returns: Nil at the end of input.
    func answer(_ question: String, usual: String, check: (String) -> String? = { _ in nil }) -> String? {
        var complaint = ""
        while true {
            let offer = usual.isEmpty ? "" : " [\(usual)]"
            guard let line = ask("\(complaint)\(question)\(offer): ") else { return nil }
            let words = line.split(separator: " ").joined(separator: " ")
            let answer = words.isEmpty ? usual : words
            guard let problem = check(answer) else { return answer }
            complaint = problem + "\n"
        }
    }

    /// One of several words.
    func choice(_ question: String, of words: [String], usual: String) -> String? {
        let list = words.joined(separator: ", ")
        return answer("\(question) (\(list))", usual: usual) { answer in
            words.contains(answer) ? nil : "\"\(answer)\" is none of \(list)."
        }
    }
}
