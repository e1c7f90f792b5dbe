internal import CallControl
internal import CallPrograms
internal import Logging

// The programs that take part in calls.
extension Device {
    /// Handles what a program says.
    func handle(_ news: ProgramNews) {
        switch news {
        case .said(let call, let text, let leftOut):
            var metadata: Logger.Metadata = ["call": "call \(call)", "text": "\(text)"]
            if leftOut > 0 { metadata["left_out"] = "\(leftOut)" }
            logger.info("A program says", metadata: metadata)
        case .failed(let call, let how, let isRestarted):
            logger.error(
                isRestarted ? "A program has failed and is started again" : "A program has failed too often",
                metadata: ["call": "call \(call)", "error": "\(how)"])
        case .misunderstood(let call, let what):
            logger.warning(
                "A program's command cannot be followed", metadata: ["call": "call \(call)", "error": "\(what)"])
        case .behind(let call, let events):
            logger.warning(
                events ? "A program does not read its events" : "A program does not read what the caller says",
                metadata: ["call": "call \(call)"])
        case .press(let call, let keys):
            do throws(DigitError) {
                try press(keys, on: CallID(number: call))
            } catch {
                refuseProgram(of: CallID(number: call), "\(error)")
            }
        case .hangUp(let call, nil): feed(.user(.hangUp), to: CallID(number: call))
        case .hangUp(let call, let failure?):
            feed(
                .media(.failed(MediaFailure(.deviceFault, "the call's program: \(failure)"))), to: CallID(number: call))
        }
    }
}

extension DeviceConfiguration {
    /// The program that calls have; nil if they do something else.
    var program: ProgramPlan? {
        guard case .exec(let plan) = behaviour.source else { return nil }
        return plan
    }
}
