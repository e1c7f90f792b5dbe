internal import CPrograms

/// What programs leave behind when they end: processes in groups and sessions of their own.
///
/// Those that have inherited the variable `HANDSET_PROGRAM` are found in any process, a little after the end of their program.
public enum LeftProcesses {
    /// Has the system give orphans to this process, so that also those are found that have cleared their variables. For a process that
    /// starts no other children in process groups of their own, as an application that embeds the library may.
    ///
    /// - Returns: Whether it does: not for the first process of a container, which has the orphans of others as well.
    @discardableResult
    public static func adopt() -> Bool { handset_programs_adopt() == 0 }

    /// Waits, for a second at most, until those of programs that have ended were ended, too. Blocks the calling thread.
    public static func finish() { handset_programs_finish(1_000) }
}
