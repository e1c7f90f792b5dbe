/// The version of this program and of what it is made with.
enum HandsetVersion {
    /// Semantic version (semver.org), without a leading letter. This is its only place: `scripts/lint` compares
    /// CHANGELOG.md with it, and RELEASING.md says when it changes.
    static let current = "0.1.0"
}
