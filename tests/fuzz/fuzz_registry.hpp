// Backends that exist only as option tables: parsing needs no more.
#pragma once
#include "holdfast/spi/config.hpp"
#include "holdfast/spi/registry.hpp"

namespace holdfast::fuzz {

inline spi::Registry registry() {
    using spi::OptionType;
    spi::Registry all;
    spi::Descriptor net;
    net.name = "redis";
    net.schemes = {"redis", "rediss"};
    net.hosts = spi::Descriptor::Hosts::one;
    net.default_port = 6379;
    net.takes_credentials = true;
    net.path = spi::Descriptor::Path::optional;
    net.options = {
        {.name = "mode",
         .type = OptionType::choice,
         .fallback = "full",
         .meaning = "m",
         .choices = "full|plain"},
        {.name = "count",
         .type = OptionType::integer,
         .fallback = "3",
         .meaning = "m",
         .min = 1,
         .max = 9},
        {.name = "poll",
         .type = OptionType::duration,
         .fallback = "20ms",
         .meaning = "m",
         .min = 1,
         .max = 1000},
        {.name = "strict", .type = OptionType::boolean, .fallback = "true", .meaning = "m"}};
    all.add(net);
    spi::Descriptor many = net;
    many.name = "redlock";
    many.schemes = {"redlock"};
    many.hosts = spi::Descriptor::Hosts::many;
    all.add(many);
    spi::Descriptor file;
    file.name = "sqlite";
    file.schemes = {"sqlite"};
    file.hosts = spi::Descriptor::Hosts::none;
    file.path = spi::Descriptor::Path::required;
    all.add(file);
    return all;
}

}  // namespace holdfast::fuzz
