// Judges a history. Every rule concludes only what must have been so, whatever the processes'
// pauses and the servers' delays were; README.md says which order of grants is definite, and why.
#pragma once
#include "checker/history.hpp"

namespace holdfast::bench::history {

struct Limits {
    /// Longest time that somebody may wait while nobody holds; beyond it is `left_alone`.
    Nanos alone = never;
    /// An assumption, off by default: that long after it was invoked a request stands in the queue,
    /// as if somebody had seen it. Only explicit sightings are proof.
    Nanos in_line_after = never;
    /// Every acquisition of these names is in the files. False when others, which record nothing,
    /// use them too: what a grant says of its previous holder is then not judged, nor who was seen.
    bool everyone_recorded = true;
    /// The servers declare that they answer a release before it is synced, which it is so long
    /// afterwards: a kill in between takes it back. Zero: they sync it first.
    Nanos unsynced_release = 0;
};

/// Adds to the verdict that read() began. Time: n log n.
void check(const History&, const Limits&, Verdict&);

/// read() and check().
Verdict check_files(const std::vector<std::filesystem::path>&, const Limits& = {});

/// check_files() of all files `*.history` in that folder.
Verdict check_folder(const std::filesystem::path&, const Limits& = {});

}  // namespace holdfast::bench::history
