internal import CallDiagnosis

/// Judges this machine: ports, card, rights, disk and descriptors.
enum MachineRules {
    // MARK: - Ports

    static func ports(_ facts: [PortFacts]) -> DeviceStep {
        guard !facts.isEmpty else { return DeviceStep(.ports, ["every port is of the system's choice"]) }
        return DeviceStep(.ports, facts.map(line), facts.compactMap(port))
    }

    private static func line(_ facts: PortFacts) -> String {
        if let fault = facts.fault { return "\(facts.what): \(fault)" }
        if facts.count == 1 { return "\(facts.what): \(facts.countInUse == 0 ? "free" : "in use")" }
        return "\(facts.what): \(facts.count - facts.countInUse) of \(facts.count) free"
    }

    private static func port(_ facts: PortFacts) -> DeviceFinding? {
        if let fault = facts.fault {
            return DeviceFinding(
                .portUnusable, .ours, "The device cannot listen where the configuration says.",
                because: "\(facts.what): \(fault)", advice: "Choose an address and a port that this machine may use.")
        }
        guard facts.count - facts.countInUse < facts.needed else { return nil }
        let list = facts.inUse.map(String.init).joined(separator: ", ")
        let more = facts.countInUse > facts.inUse.count ? " and more" : ""
        return DeviceFinding(
            .portInUse, .ours,
            facts.count == 1
                ? "Another program has a port of the configuration."
                : "Other programs have more ports of the range than calls can do without.",
            because: "\(line(facts)): \(list)\(more) in use, \(facts.needed) needed",
            advice: "`ss -lntup` shows which program has it; stop that one, or choose another port.")
    }

    // MARK: - The card

    static func card(_ facts: SoundCardFacts) -> DeviceStep {
        if let failure = facts.failure {
            return DeviceStep(
                .card, [facts.what],
                [
                    DeviceFinding(
                        .cardUnusable, .ours, "The sound card cannot be opened.", because: failure,
                        advice:
                            "`handset devices` lists the cards; a card that another program has is free once that ends."
                    )
                ])
        }
        if let stalled = facts.stalled {
            return DeviceStep(
                .card, [facts.what],
                [
                    DeviceFinding(
                        .cardStalled, .ours, "The sound card was opened and moves nothing.",
                        because: "\(stalled) stalled",
                        advice:
                            "Unplug it and plug it in again, or choose another device of it; some are wired to nothing."
                    )
                ])
        }
        guard let peak = facts.peakDBFS else { return DeviceStep(.card, ["\(facts.what): opens"]) }
        let evidence = ["\(facts.what): opens; the loudest sample captured is \(Int(peak.rounded())) dBFS"]
        guard peak <= -100 else { return DeviceStep(.card, evidence) }
        return DeviceStep(
            .card, evidence,
            [
                DeviceFinding(
                    .microphoneSilent, .ours, "The microphone gives nothing but zeros.",
                    because: "every captured sample was 0",
                    advice:
                        "It is muted or not chosen: look at the capture controls of `alsamixer` (F4), and at a switch on it."
                )
            ])
    }

    // MARK: - Rights

    static func rights(_ facts: RightsFacts) -> DeviceStep {
        guard let priority = facts.priority else {
            return DeviceStep(.rights, ["media.realtime_priority is 0: no right is needed"])
        }
        let trial = "tried as user \(facts.user), whose rights may differ from those of the unit"
        var findings: [DeviceFinding] = []
        if let refusal = facts.priorityRefusal {
            findings.append(
                DeviceFinding(
                    .realtimeRefused, .ours, "Media threads do not get the real-time priority that is configured.",
                    because: "\(refusal) (\(trial))",
                    advice:
                        "Grant the right to the device's user (LimitRTPRIO=, as the package's unit does), or expect gaps "
                        + "when the machine is busy."))
        }
        if let refusal = facts.lockRefusal {
            findings.append(
                DeviceFinding(
                    .memoryLockRefused, .ours, "Memory cannot be locked, so media threads may wait for the disk.",
                    because: "\(refusal) (\(trial))",
                    advice: "Set LimitMEMLOCK=infinity in the unit, as the package's does, or memlock in limits.conf."))
        }
        return DeviceStep(.rights, ["SCHED_FIFO \(priority), and locked memory: \(trial)"], findings)
    }

    // MARK: - The disk

    /// Below this, a disk is as good as full.
    private static let least = 100_000_000

    static func folders(_ facts: [FolderFacts]) -> DeviceStep {
        guard !facts.isEmpty else { return DeviceStep(.disk, ["the configuration has nothing written"]) }
        return DeviceStep(.disk, facts.map(line), facts.compactMap(folder))
    }

    private static func line(_ facts: FolderFacts) -> String {
        if let fault = facts.fault { return "\(facts.key): \(facts.path): \(fault)" }
        let free = facts.freeBytes.map { "\(megabytes($0)) free" } ?? "free space unknown"
        guard let hour = facts.hourBytes, hour > 0, let bytes = facts.freeBytes else {
            return "\(facts.key): \(facts.path): \(free)"
        }
        return "\(facts.key): \(facts.path): \(free), some \(bytes / hour) hours of recordings"
    }

    private static func folder(_ facts: FolderFacts) -> DeviceFinding? {
        if let fault = facts.fault {
            return DeviceFinding(
                .folderUnusable, .ours, "The device cannot write into \(facts.path).",
                because: "\(facts.key): \(fault)",
                advice: "Make the folder, and give it to the device's user.")
        }
        guard let free = facts.freeBytes else { return nil }
        if free < least {
            return DeviceFinding(
                .diskFull, .ours, "The disk of \(facts.path) is full.",
                because: "\(megabytes(free)) free, and \(megabytes(least)) is the least that is not judged as full",
                advice: "Free some space; behaviour.record_megabytes and record_days bound what recordings take up.")
        }
        guard let limit = facts.limitBytes, facts.heldBytes + free < limit else { return nil }
        return DeviceFinding(
            .diskSmall, .ours, "The disk is full before recordings reach their limit.",
            because: "\(megabytes(free)) free and \(megabytes(facts.heldBytes)) of recordings, with a limit of "
                + megabytes(limit),
            advice: "Lower behaviour.record_megabytes below what fits, so that old recordings are removed in time.")
    }

    private static func megabytes(_ bytes: Int) -> String { "\(bytes / 1_000_000) MB" }

    // MARK: - Descriptors

    /// Descriptors of a device without a call, rounded up.
    private static let ofDevice = 64
    /// Descriptors of a call at most: sockets, recordings, and pipes of a program.
    private static let ofCall = 16
    /// Calls for which there must be room where the configuration gives no number.
    private static let usualCalls = 8

    static func descriptors(_ facts: DescriptorFacts) -> DeviceStep {
        let calls = facts.calls ?? usualCalls
        let needed = ofDevice + ofCall * calls
        let evidence = ["\(facts.limit) files may be open; \(calls) calls may need \(needed)"]
        guard facts.limit < needed else { return DeviceStep(.descriptors, evidence) }
        return DeviceStep(
            .descriptors, evidence,
            [
                DeviceFinding(
                    .descriptorsFew, .ours, "The limit on open files is too low for the calls that are configured.",
                    because:
                        "\(facts.limit) files, and \(calls) calls may need \(needed): \(ofDevice) and \(ofCall) for each call",
                    advice: "Raise it: `ulimit -n`, or LimitNOFILE= of the unit; or lower answer.max_calls.")
            ])
    }
}
