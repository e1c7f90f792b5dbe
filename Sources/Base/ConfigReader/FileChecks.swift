/// Selects the files that are checked while a configuration that names them is read.
public enum FileChecks: Sendable, Equatable {
    /// None: they are on another machine. Secrets have no value then.
    case none
    /// Files that the configuration's reader needs, such as secrets: for commands that use a part of it.
    case inputs
    /// All that `handset run` and `handset serve` will open, write to or listen at. They and `handset check` read so.
    case all
}
