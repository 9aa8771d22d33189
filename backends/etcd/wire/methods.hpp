// The paths of etcd's calls.
#pragma once
#include <string_view>

namespace holdfast::etcd::method {

inline constexpr std::string_view range = "/etcdserverpb.KV/Range", txn = "/etcdserverpb.KV/Txn",
                                  watch = "/etcdserverpb.Watch/Watch",
                                  lease_grant = "/etcdserverpb.Lease/LeaseGrant",
                                  lease_revoke = "/etcdserverpb.Lease/LeaseRevoke",
                                  lease_keep_alive = "/etcdserverpb.Lease/LeaseKeepAlive",
                                  lease_time_to_live = "/etcdserverpb.Lease/LeaseTimeToLive",
                                  member_list = "/etcdserverpb.Cluster/MemberList",
                                  status = "/etcdserverpb.Maintenance/Status",
                                  alarm = "/etcdserverpb.Maintenance/Alarm",
                                  authenticate = "/etcdserverpb.Auth/Authenticate",
                                  user_get = "/etcdserverpb.Auth/UserGet",
                                  role_get = "/etcdserverpb.Auth/RoleGet";

}  // namespace holdfast::etcd::method
