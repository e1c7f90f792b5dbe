internal import CallDiagnosis
internal import Core

/// What is wrong with a device that has no call.
///
/// Each rule looks at the facts of one step, and says "not clear" where they leave open whose fault it is. A step whose facts are missing
/// says why.
public struct DeviceDiagnosis: Hashable, Sendable {
    /// All steps, in their order.
    public let steps: [DeviceStep]

    /// Judges a device.
    public init(_ facts: DeviceFacts) {
        steps = [
            Self.configuration(facts.configuration),
            Self.step(.device, facts.device) { DeviceStep(.device, $0.evidence) },
            Self.step(.names, facts.names, NetworkRules.names),
            Self.step(.connections, facts.servers, NetworkRules.connections),
            Self.step(.certificates, facts.servers) { NetworkRules.certificates($0, at: facts.time) },
            Self.clock(facts),
            Self.step(.login, facts.login, Self.login),
            Self.step(.ports, facts.ports, MachineRules.ports),
            Self.step(.nat, facts.nat, NetworkRules.nat),
            Self.step(.relays, facts.relays, NetworkRules.relays),
            Self.step(.card, facts.card, MachineRules.card),
            Self.step(.rights, facts.rights, MachineRules.rights),
            Self.step(.disk, facts.folders, MachineRules.folders),
            Self.step(.descriptors, facts.descriptors, MachineRules.descriptors),
            Self.step(.call, facts.call, Self.call),
        ]
    }

    /// What was found, in the order of the steps.
    public var findings: [DeviceFinding] { steps.flatMap(\.findings) }

    private static func step<Facts>(
        _ name: DeviceStep.Name, _ facts: Gathered<Facts>, _ judge: (Facts) -> DeviceStep
    ) -> DeviceStep {
        switch facts {
        case .facts(let facts): judge(facts)
        case .skipped(let reason): DeviceStep(name, skipped: reason)
        }
    }

    private static func configuration(_ facts: ConfigurationFacts) -> DeviceStep {
        let findings = facts.errors.map { error in
            DeviceFinding(
                .configurationWrong, .ours, "`handset run` refuses the configuration.", because: error,
                advice: "Correct that key; `handset check` lists every problem, and docs/configuration.md every key.")
        }
        let verdict = facts.errors.isEmpty ? ["\(facts.path): good for `handset run`"] : [facts.path]
        return DeviceStep(.configuration, verdict + facts.warnings, findings)
    }

    private static func clock(_ facts: DeviceFacts) -> DeviceStep {
        guard facts.isTimePlausible else {
            let finding = DeviceFinding(
                .clockImplausible, .ours,
                "This machine's clock is wrong: no certificate and no token is good at that time.",
                because: "it is \(facts.time.rfc3339) here, which no time in this version's life is",
                advice:
                    "Set it: `timedatectl set-ntp true`, or `date -s`. A board without a battery needs a time server.")
            return DeviceStep(.clock, ["\(facts.time.rfc3339) here"], [finding])
        }
        return step(.clock, facts.servers) { NetworkRules.clock($0, at: facts.time) }
    }

    private static func login(_ facts: LoginFacts) -> DeviceStep {
        switch facts {
        case .granted(let user): DeviceStep(.login, ["logged in as \(user), and out again"])
        case .confirmed(let address):
            DeviceStep(.login, ["the server takes the login of \(address); no registration was made or changed"])
        case .unknownUser(let cause):
            failedLogin(
                .userUnknown, .ours, "The SIP server does not know the account's address.", cause,
                "Compare account.sip.address with what the server's operator has given, also its domain.")
        case .untrusted(let cause):
            failedLogin(
                .certificateUntrusted, .unclear, "The SIP server's certificate is not trusted.", cause,
                "It must be for the host in account.sip.server, or for the domain; account.trust_roots names an authority of your own."
            )
        case .unanswered(let seconds):
            failedLogin(
                .registrarSilent, .unclear, "The SIP server does not answer a REGISTER.", "no answer in \(seconds) s",
                "Ask its operator whether it takes registrations, and whether it drops those of this machine, as after wrong passwords."
            )
        case .refused(let cause, let advice):
            failedLogin(.loginRefused, .ours, "The server refuses the account's login.", cause, advice)
        case .expired(let cause):
            failedLogin(
                .tokenExpired, .ours, "The account's token has expired.", cause,
                "Make a new token. If it is new, compare the clocks of this machine and of the server.")
        case .failed(let cause, let advice):
            failedLogin(.loginFailed, .unclear, "The login failed.", cause, advice)
        case .late(let seconds):
            failedLogin(
                .loginFailed, .unclear, "The login had no result.", "no result in \(seconds) s",
                "Look at the server's load and log; the connection to it was made.")
        }
    }

    private static func failedLogin(
        _ code: DeviceFinding.Code, _ side: Finding.Side, _ text: String, _ cause: String, _ advice: String
    ) -> DeviceStep {
        let usual = "Look into the log of the server."
        return DeviceStep(
            .login, ["tried a login"],
            [DeviceFinding(code, side, text, because: cause, advice: advice.isEmpty ? usual : advice)])
    }

    private static func call(_ facts: OwnCallFacts) -> DeviceStep {
        switch facts {
        case .flowed(let milliseconds): DeviceStep(.call, ["sound flowed both ways after \(milliseconds) ms"])
        case .failed(let cause):
            DeviceStep(
                .call, ["placed a call to itself"],
                [
                    DeviceFinding(
                        .callFailed, .unclear, "A call of the device to itself failed.", because: cause,
                        advice: "Look at the steps above first; if they are fine, place a call by `handset call` with "
                            + "`--log-level debug`.")
                ])
        }
    }
}
