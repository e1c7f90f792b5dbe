internal import BlockingWork
internal import CallControl
internal import CallVoicemail
internal import Core
internal import Logging
internal import Realtime
internal import SignalingClient

/// The mailboxes of a device of which others are notified: the messages of all of them count together.
struct NotifiedMailboxes: Hashable, Sendable {
    /// Their folders.
    var folders: Set<VoicemailFolder>
    /// Who may ask to be notified.
    var subscribers: CalleeList
    /// Who is notified without asking.
    var targets: [UserID]

    /// How often their folders are looked at: messages are also heard and deleted by other processes.
    private static let interval = Duration.seconds(1)

    /// Has the service notify others whenever something changes in the mailboxes, until the task is cancelled.
    ///
    /// - Parameter mailboxes: Those that the device has, as it is configured at that moment; nil if no others are to be notified.
    static func keep(
        _ service: any MailboxSignaling, _ logger: Logger, _ mailboxes: @Sendable () async -> NotifiedMailboxes?
    ) async {
        var count = MailboxCount()
        var told: WaitingMessages?
        var faults = LogLimit(burst: 1, perSecond: 1.0 / 300)
        while !Task.isCancelled {
            var messages: WaitingMessages?
            if let mailboxes = await mailboxes() {
                let (next, fault) = await look(at: mailboxes.folders, after: count)
                count = next
                if let fault, faults.admit(at: MonotonicClock.now) != nil {
                    logger.warning("Messages of a mailbox cannot be counted", metadata: ["error": "\(fault)"])
                }
                messages = WaitingMessages(
                    new: count.new, old: count.old, subscribers: mailboxes.subscribers, targets: mailboxes.targets)
            }
            if messages != told {
                told = messages
                await service.notify(of: messages)
            }
            try? await Task.sleep(for: interval)
        }
    }

    private static func look(
        at folders: Set<VoicemailFolder>, after count: MailboxCount
    ) async -> (MailboxCount, VoicemailError?) {
        await BlockingThreads.files.run {
            var count = count
            do throws(VoicemailError) {
                try count.look(at: folders)
                return (count, nil)
            } catch {
                return (count, error)
            }
        }
    }
}

extension DeviceConfiguration {
    /// The mailboxes of which others are notified; nil if there are none.
    var notifiedMailboxes: NotifiedMailboxes? {
        let plans = mailboxes.map(\.plan).filter { !$0.notices.isEmpty }
        guard let notices = plans.first?.notices, account.sip != nil else { return nil }
        return NotifiedMailboxes(
            folders: Set(plans.map { VoicemailFolder(path: $0.folder) }),
            subscribers: account.callerList(notices.subscribers), targets: notices.targets)
    }
}
