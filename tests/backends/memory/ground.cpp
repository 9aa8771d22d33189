// The suite's ground on memory.
#include "ground.hpp"

namespace suite {
namespace {

class Memory final : public Harness {
public:
    Memory() : Harness("memory") {}
    bool shared_between_processes() const override { return false; }

protected:
    std::string base_url() const override { return "memory:suite"; }
};

const AddGround memory{"memory", [] { return std::make_unique<Memory>(); },
                       all_but({C::cross_process, C::cross_host}), break_traced};

}  // namespace
}  // namespace suite
