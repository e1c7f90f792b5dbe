/// Asks for what the options of `handset setup` leave open.
struct SetupQuestions {
    /// Puts a line before the user, and returns the answer; nil if there is none to be had.
    let ask: (String) -> String?

    /// An answer that `check` has no complaint about, or `usual` for an empty one.
    ///
    /// - Returns: Nil if nobody answers any more.
    func answer(_ question: String, usual: String, check: (String) -> String? = { _ in nil }) -> String? {
        var complaint = ""
        while true {
            guard let line = ask("\(complaint)\(question) [\(usual)]: ") else { return nil }
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
