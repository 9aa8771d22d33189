// The blocking path: one acquisition or release on a connection of its own.
#pragma once
#include "blocking_link.hpp"
#include "protocol.hpp"

namespace holdfast::redis {

/// The default mode: the scripts.
class Lane final : public spi::Lane {
public:
    explicit Lane(std::shared_ptr<Shared>);
    void attempt(spi::Attempt&) noexcept override;
    void release(spi::Held&) noexcept override;

private:
    void use(std::string_view name);

    std::shared_ptr<Shared> shared_;
    BlockingLink link_;
    Command command_;
    LeaveTexts texts_;
    std::string name_;  // whose keys these are: the same name mostly comes again
    Keys keys_;
};

/// mode=plain: the two commands of the documents.
class PlainLane final : public spi::Lane {
public:
    explicit PlainLane(std::shared_ptr<Shared>);
    void attempt(spi::Attempt&) noexcept override;
    void release(spi::Held&) noexcept override;

private:
    const std::string& key(std::string_view name);

    std::shared_ptr<Shared> shared_;
    BlockingLink link_;
    Command command_;
    std::string key_;
};

}  // namespace holdfast::redis
