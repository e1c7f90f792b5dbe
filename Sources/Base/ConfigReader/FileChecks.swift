/// Which of the files that a configuration names are looked at while it is read.
public enum FileChecks: Sendable, Equatable {
    /// None: they are on another machine. Secrets have no value then.
    case none
    /// Those that the configuration's reader cannot do without, such as secrets.
    case inputs
    /// All that the program will open or write to.
    case all
}
