// What the bare clients of etcd read.
#pragma once
#include <holdfast/lab/grpc_client.hpp>
#include <string>

#include "bench.hpp"

namespace holdfast::bench {

/// Errors: SelfCheck when it cannot be read.
template <class Message>
Message read(const std::string& bytes) {
    Message out;
    if (!out.ParseFromString(bytes)) throw SelfCheck("bare gRPC: an answer cannot be read");
    return out;
}

/// The answer's message. Errors: SelfCheck when it is no success, or has not one.
template <class Message>
Message read(const lab::GrpcAnswer& answer) {
    if (answer.status != 0 || answer.messages.size() != 1)
        throw SelfCheck("bare gRPC: " + std::to_string(answer.status) + ": " + answer.text);
    return read<Message>(answer.messages.front());
}

}  // namespace holdfast::bench
