/// Lines that say what a command is doing, on standard error, so that standard output has its result alone.
struct ProgressLines {
    private let style = TerminalStyle.standardError

    /// What is being done, or has been.
    func say(_ line: String) { Terminal.printError(style.dim("·") + " " + line) }

    /// Something that did not go as it should.
    func warn(_ line: String) { Terminal.printError(style.yellow("!") + " " + line) }
}
