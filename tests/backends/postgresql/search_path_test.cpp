// CVE-2018-1058: what others put into a schema of search_path does not run with our rights,
// neither code that would fit our statements better than the server's own, nor a table before ours.
#include <future>

#include "../sql/direct.hpp"

using namespace postgresql_tests;

namespace {

/// Operators between all types of our statements, and functions for the arguments that we have
/// where the server's own are made for others. Nobody may run them, which the server checks as it
/// begins a statement, whether or not it comes to a call.
constexpr const char* shadows = R"(

DO $do$
DECLARE l text; r text; op text; f text;
  types text[] := '{text,name,"\"char\"",smallint,integer,bigint,float8,numeric,boolean,jsonb,
    timestamptz,interval,oid,regclass,text[]}';
BEGIN
  FOREACH l IN ARRAY types LOOP FOREACH r IN ARRAY types LOOP
    EXECUTE format('CREATE FUNCTION public.shadow(%s, %s) RETURNS boolean LANGUAGE plpgsql AS '
      '$f$ BEGIN RAISE EXCEPTION ''shadow''; END $f$', l, r);
    EXECUTE format('REVOKE ALL ON FUNCTION public.shadow(%s, %s) FROM PUBLIC', l, r);
    FOREACH op IN ARRAY '{=,<>,<,>,<=,>=,+,-,*,/,||,->,->>,?,!~}'::text[] LOOP
      EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = '
        'public.shadow)', op, l, r);
    END LOOP;
  END LOOP; END LOOP;
  FOREACH f IN ARRAY ARRAY['concat_ws(text,text,text,text) RETURNS text',
    'obj_description(oid,text) RETURNS text', 'unnest(text[]) RETURNS SETOF text',
    'jsonb_build_object(text,jsonb) RETURNS jsonb', 'jsonb_build_array(bigint,bigint) RETURNS jsonb',
    'jsonb_object_agg(text,jsonb) RETURNS jsonb', 'date_part(name,timestamptz) RETURNS float8',
    'to_regclass(name) RETURNS regclass', 'current_setting(name) RETURNS text',
    'set_config(name,name,boolean) RETURNS text', 'starts_with(text,name) RETURNS boolean']
  LOOP
    EXECUTE 'CREATE FUNCTION public.' || f || ' LANGUAGE plpgsql AS '
      '$f$ BEGIN RAISE EXCEPTION ''shadow''; END $f$';
    EXECUTE 'REVOKE ALL ON FUNCTION public.' || split_part(f, ' RETURNS', 1) || ' FROM PUBLIC';
  END LOOP;
END $do$)";

}  // namespace

TEST_CASE("functions and operators of other schemas do not run, whatever fits them better") {
    auto own = lab::PostgresServer::start();
    hold(open(own.url()), "N").release();
    own.sql("GRANT SELECT ON holdfast_lease TO PUBLIC");  // so that the table is looked at closely
    own.sql(shadows);
    {
        // The shadows do come before the server's own.
        const auto of_us = [&](const std::string& sql) {
            Direct direct(own.url());
            return direct.connection->run_text(sql, boot_clock::now() + 5s).failed.detail;
        };
        CHECK_THAT(of_us("SELECT 1.0::float8 * 1"), ContainsSubstring("shadow"));
        CHECK_THAT(of_us("SELECT concat_ws(', ', 'a', 'b', 'c')"), ContainsSubstring("concat_ws"));
    }
    const auto client = open(own.url(), "ttl=60s&request_timeout=5s");
    hf::Diagnostics words;
    CHECK(client.probe(&words).has_value());
    INFO(words.text());
    auto lease = hold(client, "N");
    CHECK(lease.renew().has_value());
    const auto other = open(own.url(), "ttl=60s&request_timeout=5s");
    auto waiting =
        std::async(std::launch::async, [&] { return lock_of(other, "N")->acquire({.wait = 30s}); });
    lab::wait_until([&] { return own.value("SELECT line IS NOT NULL FROM holdfast_lease") == "t"; },
                    cap(10s), "it stands in line");
    CHECK(holders_of(client, "N") == 1);
    CHECK(client.list("").value().size() == 1);
    CHECK(lease.release() == ReleaseResult::released);
    auto next = waiting.get();
    REQUIRE(next.has_value());
    CHECK(client.break_lock("N", {.now = true}).has_value());
    // Every statement, also those that need company or a chance.
    Direct direct(own.url());
    const std::string now = "1700000000000000", names = "{N}", owner = "WWWWWWWWWWWWWWWWWWWWWW.h.1";
    const std::vector<std::vector<std::string>> parameters{
        {"N", owner, "1000", now, "me", "-1"},
        {"N", owner, "1", "1"},
        {"N", owner, "1", "1", "me"},
        {names, names, "{1}", "{1}", "me", "{1}"},
        {names, names, "{1}", "{1}"},
        {"{new}"},
        {names, "{1}", "me", "{true}"},
        {names, "me", "false"},
        {names, names, "{1}", "{1}"},
        {names, "{\"{\\\"" + owner + "\\\": 1}\"}", "{" + now + "}"},
        {names, "me"},
        {names, "{1}", names, "{1}", "{1}", "{1}", "{1}", "{1}", "{t}", names, "{" + now + "}",
         "on", "20ms", "{t}", "me"},
        {names, "{1}", names, "{1}", "{1}", "{1}", "{1}", "{1}", "{t}", names, "{" + now + "}",
         "on", "20ms", "{t}", "me"},
        {"N", owner, "1000000", "9000000000000000", "1", "4294967295", "t"},
        {"N", owner, "1", "1", "4294967295", "t", "me"},
        {names, "me"},
        {"holdfast_me"},
        {"N", "9"},
        {"N", "hf 1\nbroken 1"},
        {"N"},
        {""}};
    REQUIRE(parameters.size() == static_cast<std::size_t>(pg::Sql::count_));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const auto said =
            direct.connection->run(static_cast<pg::Sql>(i), parameters[i], boot_clock::now() + 5s);
        INFO("statement " << i << ": " << said.failed.detail);
        CHECK_FALSE(said.failed);
    }
}

TEST_CASE("a table that is put before ours in search_path is not used by who has ours") {
    auto own = lab::PostgresServer::start();
    hold(open(own.url()), "N").release();  // makes the table
    own.sql("CREATE SCHEMA first; ALTER ROLE holdfast SET search_path = first, public");
    own.sql("GRANT USAGE ON SCHEMA first TO PUBLIC");
    const auto client = open(own.url());
    {
        auto first = hold(client, "N");
        REQUIRE(first.renew().has_value());  // both its connections have seen the table
    }
    REQUIRE(own.value("SELECT count(*) FROM public.holdfast_lease") == "1");
    Direct direct(own.url());  // the connection of the engine
    REQUIRE_FALSE(direct.connection->open(boot_clock::now() + 5s));
    own.sql(
        "CREATE TABLE first.holdfast_lease (LIKE public.holdfast_lease INCLUDING ALL); "
        "GRANT ALL ON first.holdfast_lease TO PUBLIC; CREATE FUNCTION first.take() RETURNS trigger "
        "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'taken'; END $$; CREATE TRIGGER take BEFORE "
        "INSERT OR UPDATE ON first.holdfast_lease FOR EACH ROW EXECUTE FUNCTION first.take()");
    auto lease = hold(client, "N");
    CHECK(lease.renew().has_value());
    CHECK(lease.release() == ReleaseResult::released);
    const auto said = direct.connection->run(pg::Sql::ensure, {"{new}"}, boot_clock::now() + 5s);
    INFO(said.failed.detail);
    CHECK_FALSE(said.failed);
    CHECK(own.value("SELECT count(*) FROM first.holdfast_lease") == "0");
    CHECK(own.value("SELECT count(*) FROM public.holdfast_lease") == "2");
    // Who comes new is led there, and refuses it.
    CHECK_THAT(refused(open(own.url()), "N", errc::bad_config), ContainsSubstring("trigger take"));
}

TEST_CASE("two schemas are two locks to acquire_all, and a schema and none may be either") {
    server().sql(
        "CREATE SCHEMA one AUTHORIZATION holdfast; CREATE SCHEMA two AUTHORIZATION holdfast");
    const auto at = [](const char* query) { return lock_of(open_here(query), "both"); };
    const auto one = at("schema=one"), two = at("schema=two"), none = at("");
    // Another client holds the second lock, so the call must not pass for a holder of both.
    auto other = two->acquire({.wait = 10s}).value();
    CHECK(hf::acquire_all({*one, *two}, {.wait = 0ms}).error() == errc::contended);
    other.release();
    CHECK(hf::acquire_all({*one, *two, *at("schema=one")}, {.wait = 10s}).value().valid());
    hf::Diagnostics words;
    CHECK(hf::acquire_all({*one, *none}, {.diagnostics = &words}).error() == errc::bad_config);
    CHECK_THAT(words.text(), ContainsSubstring("differ in schema"));
}
