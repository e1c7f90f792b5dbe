internal import CallFlow
internal import CallFlows
internal import ConfigReader

/// The section `behaviour.flow`.
enum FlowConfiguration {
    /// The keys of the section.
    struct Keys: ConfigKeys {
        let file = ConfigKey.path(
            "file", "the flow's first document; all others, and its sounds, are in the same folder and below"
        ).required
        let say = ConfigKey.command(
            "say",
            "the command that speaks the texts of `Say`: it reads a text on standard input, and writes a WAV to standard output within 15 s"
        ).unset("no voice: a flow with `Say` is refused")
        let recordFolder = ConfigKey.outputFolder(
            "record_folder", "where `Record` writes its WAV files (mode 0600); made if it is missing"
        ).unset("nowhere: a flow with `Record` is refused")
    }

    /// Judges who is called by the Dial of a behaviour's flow, if there is one.
    static func judgeCallees(
        of behaviour: BehaviourConfiguration, by account: AccountConfiguration, _ problems: inout [ConfigProblem]
    ) {
        guard let plan = behaviour.source.flow, let folder = try? FlowFolder(file: plan.file) else { return }
        problems += FlowCheck.problems(ofCalleesIn: folder) { account.mayCall($0) != nil }
    }

    /// The plan of a section, whose flow is checked with all that it names if calls follow it.
    static func plan(
        _ section: KeyedSection<Keys>, isUsed: Bool, _ problems: inout [ConfigProblem]
    ) -> FlowPlan? {
        let file = section.value(\.file, &problems)
        let voice = section.value(\.say, &problems)
        let recordFolder = section.value(\.recordFolder, &problems)
        guard let file else { return nil }
        var plan = FlowPlan(file: file)
        plan.voice = voice ?? []
        plan.recordFolder = recordFolder
        do throws(FlowUnusable) {
            let folder = try FlowFolder(file: file)
            guard isUsed, section.fileChecks != .none else { return plan }
            problems += FlowCheck.problems(
                of: folder, hasVoice: section.has(\.say), hasRecordings: section.has(\.recordFolder))
        } catch {
            problems.append(section.problem(\.file, error.message))
        }
        return plan
    }
}
