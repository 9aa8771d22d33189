// The table says in its comment that it is ours, and in which format.
#pragma once
#include <cstdlib>
#include <string>
#include <string_view>

#include "holdfast/spi/failure.hpp"
#include "server_error.hpp"

namespace holdfast::sql {

struct TableFormat {
    const char* engine;  ///< the argument of `holdfast schema`
    int number;

    std::string comment() const { return std::string(before_number) + std::to_string(number); }

    spi::Failure judge(const Errors& errors, std::string_view found) const {
        if (!found.starts_with(before_number))
            return {
                errors.make(Error::foreign_table),
                "its comment is not \"" + comment() + "\": see `holdfast schema " + engine + "`"};
        const std::string rest(found.substr(before_number.size()));
        const long its = std::strtol(rest.c_str(), nullptr, 10);
        if (its > number) return errors.make(Error::newer_format);
        if (its < number)
            return {errors.make(Error::older_format),
                    "when nothing is held any more, drop it: it is made again"};
        return {};
    }

private:
    static constexpr std::string_view before_number = "Holdfast leases, format ";
};

}  // namespace holdfast::sql
