internal import ConfigReader
internal import SecureTransport

extension ConfigSection {
    /// The path of a file of PEM with authorities to trust.
    func certificates(_ key: String, _ problems: inout [ConfigProblem]) -> String? {
        guard let path = path(key, readable: true, &problems) else { return nil }
        guard fileChecks == .all else { return path }
        do throws(TLSError) {
            try TLSTrust.file(path).check()
            return path
        } catch {
            problems.append(problem(key, "\(error)"))
            return nil
        }
    }
}
