#include "floors/contenders.hpp"

#include "floors/redis_floor.hpp"

namespace holdfast::bench {

Contender replay(const std::vector<std::uint16_t>& ports, Trace trace,
                 const std::filesystem::path& ca_file) {
    auto floor = std::make_shared<RedisFloor>(ports, std::move(trace), ca_file);
    return {{}, {}, [floor] {
                floor->pass();
                return floor->cycles();
            }};
}

Contender plain_pairs(const std::vector<std::uint16_t>& ports, std::size_t names,
                      const std::filesystem::path& ca_file) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < names; ++i)
        all.push_back("bench/floor/" + std::to_string(i));
    return replay(ports, plain_pair(all, load_compare_and_delete(ports, ca_file)), ca_file);
}

}  // namespace holdfast::bench
