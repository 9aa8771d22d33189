/* The suite's basics through the C interface, in C99: basics URL. Other tests of the library prove
 * what a lock promises; these prove that each function of holdfast.h does what it says. */
#include "support.h"

static void grants(void) {
    hf_lock* lock = lock_of(one, "c/grant", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    const hf_facts first = facts_of(lease);
    CHECK(first.state == HF_STATE_HELD && first.left > 0 && first.reason == 0 && !first.shared);
    CHECK(first.token > 0 && first.owner[0] != '\0' && first.permits == 1);
    OK(hf_lease_renew(lease, &why));
    release(lease);
    lease = acquire(lock);
    CHECK(facts_of(lease).token > first.token);
    CHECK(facts_of(lease).previous == HF_PREVIOUS_RELEASED);
    OK(hf_lease_release(lease, 1, &why));
    hf_lease_free(lease);
    lease = acquire(lock);
    CHECK(facts_of(lease).previous == HF_PREVIOUS_ABANDONED);
    hf_lease_free(lease); /* not released: given up in the background */
    lease = acquire(lock);
    CHECK(facts_of(lease).previous == HF_PREVIOUS_ABANDONED);
    release(lease);
    hf_lock_free(lock);
}

static void waits(void) {
    hf_lock* lock = lock_of(one, "c/wait", HF_MUTEX, 1);
    hf_lock* theirs = lock_of(other, "c/wait", HF_MUTEX, 1);
    hf_queue* queue = NULL;
    hf_lease* lease = acquire(lock);
    hf_lease* refused = NULL;
    hf_event e;
    uint64_t call;
    long long began;
    CHECK(try_it(theirs, 0, 1, 0, &refused) == HF_CONTENDED && why.code == HF_CONTENDED);
    began = now_ms();
    CHECK(try_it(theirs, 0, 1, 100, &refused) == HF_TIMED_OUT);
    CHECK(now_ms() - began >= 99 && refused == NULL);
    OK(hf_queue_new(&queue, &why));
    nothing_waits(queue);
    call = start(theirs, queue, 50);
    e = answer(queue, call);
    CHECK(e.error.code == HF_TIMED_OUT && e.lease == NULL);
    call = start(theirs, queue, HF_FOREVER);
    if (queues) says_soon(one, HF_INSPECT, "c/wait", "\"waiters\":[{");
    hf_cancel(queue, call);
    e = answer(queue, call);
    CHECK(e.error.code == HF_CANCELLED);
    says_soon(one, HF_INSPECT, "c/wait", "\"waiters\":[]");
    call = start(theirs, queue, HF_FOREVER);
    hf_lock_free(theirs); /* the call goes on */
    nothing_waits(queue);
    release(lease);
    e = answer(queue, call);
    CHECK(e.error.code == 0 && hf_lease_valid(e.lease));
    hf_cancel(queue, call); /* too late: without effect */
    OK(hf_lease_start(e.lease, HF_RENEW, queue, &call, &why));
    CHECK(answer(queue, call).error.code == 0);
    OK(hf_lease_start(e.lease, HF_ABANDON, queue, &call, &why));
    CHECK(answer(queue, call).error.code == 0);
    CHECK(hf_lease_start(e.lease, 77, queue, &call, &why) == HF_BAD_CONFIG);
    hf_lease_free(e.lease);
    nothing_waits(queue);
    hf_queue_free(queue);
    hf_lock_free(lock);
}

/* What a queue that is freed has acquired or waits for is given up. */
static void freed_queues(void) {
    hf_lock* lock = lock_of(one, "c/freed", HF_MUTEX, 1);
    hf_queue* queue = NULL;
    struct pollfd p;
    hf_lease* lease;
    OK(hf_queue_new(&queue, &why));
    start(lock, queue, HF_FOREVER);
    p.fd = hf_queue_fd(queue);
    p.events = POLLIN;
    CHECK(poll(&p, 1, cap_ms) == 1);
    start(lock, queue, HF_FOREVER);
    hf_queue_free(queue);
    lease = acquire(lock);
    says_soon(one, HF_INSPECT, "c/freed", "\"waiters\":[]");
    release(lease);
    hf_lock_free(lock);
}

/* A call that was cancelled gives no lease, though it was granted, and though nobody takes its
 * answer. */
static void cancelled_grants(void) {
    hf_lock* lock = lock_of(one, "c/cancelled", HF_MUTEX, 1);
    hf_queue* queue = NULL;
    struct pollfd p;
    uint64_t call;
    hf_event e;
    int i;
    OK(hf_queue_new(&queue, &why));
    p.fd = hf_queue_fd(queue);
    p.events = POLLIN;
    call = start(lock, queue, HF_FOREVER);
    CHECK(poll(&p, 1, cap_ms) == 1);
    hf_cancel(queue, call);
    says_soon(one, HF_INSPECT, "c/cancelled", "\"held\":false");
    e = answer(queue, call);
    CHECK(e.error.code == HF_CANCELLED && e.lease == NULL && strlen(e.error.message) > 0);
    for (i = 0; i < 20; ++i)
        hf_cancel(queue, start(lock, queue, HF_FOREVER));
    release(acquire(lock));
    hf_queue_free(queue);
    hf_lock_free(lock);
}

static void losses(void) {
    hf_lock* lock = lock_of(one, "c/lost", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    hf_queue* queue = NULL;
    hf_question q = HF_QUESTION;
    const hf_facts held = facts_of(lease);
    char* json = NULL;
    uint64_t first, second;
    long long end;
    OK(hf_queue_new(&queue, &why));
    OK(hf_lease_start(lease, HF_WATCH, queue, &first, &why));
    hf_cancel(queue, first);
    CHECK(answer(queue, first).error.code == HF_CANCELLED);
    OK(hf_lease_start(lease, HF_WATCH, queue, &first, &why));
    says(other, HF_ASK, "c/lost", "holdfast.ask/1");
    OK(hf_lease_renew(lease, &why));
    end = now_ms() + cap_ms;
    while (facts_of(lease).asked != 1) {
        CHECK(now_ms() < end);
        poll(NULL, 0, 5);
    }
    q.what = HF_BREAK;
    q.name = "c/lost";
    q.token = held.token + 1;
    CHECK(hf_ask(other, &q, &json, &why) == HF_NOT_HELD);
    q.token = 0;
    q.owner = held.owner;
    q.note = "the test";
    q.now = 1;
    OK(hf_ask(other, &q, &json, &why));
    CHECK(strstr(json, "\"broken\":true") != NULL);
    hf_string_free(json);
    CHECK(hf_lease_renew(lease, &why) != HF_OK);
    CHECK(answer(queue, first).error.code == HF_REVOKED);
    CHECK(!hf_lease_valid(lease));
    CHECK(facts_of(lease).state == HF_STATE_LOST && facts_of(lease).reason == HF_REVOKED);
    CHECK(hf_lease_release(lease, 0, &why) == HF_LOST);
    hf_lease_free(lease);
    lease = acquire(lock);
    OK(hf_lease_start(lease, HF_WATCH, queue, &first, &why));
    OK(hf_lease_start(lease, HF_RELEASE, queue, &second, &why));
    {
        hf_event a = HF_EVENT, b = HF_EVENT;
        struct pollfd p;
        p.fd = hf_queue_fd(queue);
        p.events = POLLIN;
        CHECK(poll(&p, 1, cap_ms) == 1 && hf_queue_next(queue, &a) == 1);
        CHECK(poll(&p, 1, cap_ms) == 1 && hf_queue_next(queue, &b) == 1);
        CHECK((a.call == first ? a : b).error.code == HF_NOT_HELD);
        CHECK((a.call == second ? a : b).error.code == HF_OK);
    }
    hf_lease_free(lease);
    hf_queue_free(queue);
    hf_lock_free(lock);
}

static void kinds(void) {
    hf_lock* book = lock_of(one, "c/book", HF_SHARED_MUTEX, 1);
    hf_lock* gate = lock_of(one, "c/gate", HF_SEMAPHORE, 3);
    hf_lease *a = NULL, *b = NULL, *none = NULL;
    OK(try_it(book, 1, 1, cap_ms, &a));
    OK(try_it(book, 1, 1, 0, &b));
    CHECK(facts_of(a).shared == 1);
    CHECK(try_it(book, 0, 1, 0, &none) == HF_CONTENDED);
    release(a);
    release(b);
    a = acquire(book);
    CHECK(try_it(book, 1, 1, 0, &none) == HF_CONTENDED);
    OK(hf_lease_downgrade(a, &why));
    OK(try_it(book, 1, 1, cap_ms, &b));
    release(a);
    release(b);
    OK(try_it(gate, 0, 2, cap_ms, &a));
    CHECK(facts_of(a).permits == 2);
    CHECK(try_it(gate, 0, 2, 0, &none) == HF_CONTENDED);
    OK(try_it(gate, 0, 1, 0, &b));
    release(a);
    release(b);
    CHECK(try_it(gate, 0, 4, 0, &none) == HF_BAD_CONFIG);
    hf_lock_free(book);
    hf_lock_free(gate);
}

static void several(void) {
    hf_lock* a = lock_of(one, "c/several/a", HF_MUTEX, 1);
    hf_lock* b = lock_of(other, "c/several/b", HF_SHARED_MUTEX, 1);
    hf_part parts[2] = {HF_PART, HF_PART};
    hf_lock *both = NULL, *nested = NULL;
    hf_lease *held, *lease = NULL;
    hf_facts f = HF_FACTS;
    parts[0].lock = a;
    parts[1].lock = b;
    parts[1].shared = 1;
    OK(hf_lock_all(parts, 2, &both, &why));
    parts[0].lock = both;
    CHECK(hf_lock_all(parts, 2, &nested, &why) == HF_BAD_CONFIG);
    held = acquire(b);
    CHECK(try_it(both, 0, 1, 100, &lease) == HF_TIMED_OUT);
    says_soon(one, HF_INSPECT, "c/several/a", "\"held\":false");
    release(held);
    lease = acquire(both);
    OK(hf_lease_look(lease, 1, &f, &why));
    CHECK(f.shared == 1);
    CHECK(hf_lease_look(lease, 2, &f, &why) == HF_BAD_CONFIG);
    CHECK(hf_lease_renew(lease, &why) == HF_NOT_SUPPORTED);
    says(other, HF_LIST, "c/several/",
         "{\"schema\":\"holdfast.list/1\",\"name\":\"c/several/a\"}\n{");
    release(lease);
    hf_lock_free(both);
    hf_lock_free(a);
    hf_lock_free(b);
}

static void elections(void) {
    hf_lock* mine = lock_of(one, "c/leader", HF_ELECTION, 1);
    hf_acquire_options o = HF_ACQUIRE_OPTIONS;
    hf_question q = HF_QUESTION;
    hf_lease *term = NULL, *second = NULL;
    char* json = NULL;
    hf_facts f;
    says(other, HF_LEADER, "c/leader", "\"led\":false");
    o.note = "10.0.0.1:80";
    OK(hf_acquire(mine, &o, &term, &why));
    CHECK(hf_acquire(mine, &o, &second, &why) == HF_WOULD_DEADLOCK);
    says(other, HF_LEADER, "c/leader", "\"value\":\"10.0.0.1:80\"");
    f = facts_of(term);
    q.what = HF_LEADER;
    q.name = "c/leader";
    q.owner = f.owner;
    q.wait = 60;
    CHECK(hf_ask(other, &q, &json, &why) == HF_TIMED_OUT && json == NULL);
    release(term);
    q.wait = cap_ms;
    OK(hf_ask(other, &q, &json, &why));
    CHECK(strstr(json, "\"led\":false") != NULL);
    hf_string_free(json);
    hf_lock_free(mine);
}

/* Each question without blocking. */
static void questions(void) {
    hf_lock* lock = lock_of(one, "c/asked", HF_ELECTION, 1);
    hf_question q = HF_QUESTION;
    hf_queue* queue = NULL;
    hf_lease* lease;
    hf_event e;
    hf_facts f;
    uint64_t call;
    int what;
    static const char* const said[] = {"holdfast.inspect/1", "holdfast.list/1",
                                       "holdfast.break/1",   "holdfast.ask/1",
                                       "holdfast.doctor/1",  "holdfast.leader/1"};
    OK(hf_queue_new(&queue, &why));
    lease = acquire(lock);
    f = facts_of(lease);
    q.name = "c/asked";
    for (what = HF_INSPECT; what <= HF_LEADER; ++what) {
        if (what == HF_BREAK) continue;
        q.what = what;
        OK(hf_ask_start(other, &q, queue, &call, &why));
        e = answer(queue, call);
        CHECK(e.error.code == HF_OK && e.lease == NULL && strstr(e.json, said[what - 1]) != NULL);
        hf_string_free(e.json);
    }
    /* The wait for another leader ends when it is cancelled, and with the term. */
    q.what = HF_LEADER;
    q.owner = f.owner;
    q.wait = HF_FOREVER;
    OK(hf_ask_start(other, &q, queue, &call, &why));
    nothing_waits(queue);
    hf_cancel(queue, call);
    e = answer(queue, call);
    CHECK(e.error.code == HF_CANCELLED && e.json == NULL);
    OK(hf_ask_start(other, &q, queue, &call, &why));
    release(lease);
    e = answer(queue, call);
    CHECK(e.error.code == HF_OK && strstr(e.json, "\"led\":false") != NULL);
    hf_string_free(e.json);
    q.what = HF_BREAK;
    OK(hf_ask_start(other, &q, queue, &call, &why));
    e = answer(queue, call);
    CHECK(e.error.code == HF_NOT_HELD && e.error.message[0] != '\0');
    lease = acquire(lock);
    q.owner = NULL;
    OK(hf_ask_start(other, &q, queue, &call, &why));
    e = answer(queue, call);
    CHECK(e.error.code == HF_OK && strstr(e.json, said[HF_BREAK - 1]) != NULL);
    hf_string_free(e.json);
    hf_lease_free(lease);
    q.what = 9;
    CHECK(hf_ask_start(other, &q, queue, &call, &why) == HF_BAD_CONFIG);
    /* What nobody takes is freed with the queue. */
    q.what = HF_INSPECT;
    OK(hf_ask_start(other, &q, queue, &call, &why));
    hf_queue_free(queue);
    hf_lock_free(lock);
}

static void mistakes(void) {
    hf_client* client = NULL;
    hf_lock* lock = NULL;
    hf_lock_options unset = HF_LOCK_OPTIONS;
    hf_question q = HF_QUESTION;
    char* json = NULL;
    CHECK(hf_open("redis://127.0.0.1:1/?tttl=3s", NULL, &client, &why) == HF_BAD_CONFIG);
    CHECK(strstr(why.message, "tttl") != NULL && client == NULL);
    CHECK(hf_open("redis://127.0.0.1:1/?tttl=3s", NULL, &client, NULL) == HF_BAD_CONFIG);
    CHECK(hf_lock_new(one, "", NULL, &lock, &why) == HF_BAD_NAME);
    CHECK(hf_lock_new(one, NULL, NULL, &lock, &why) == HF_BAD_NAME);
    unset.kind = 9;
    CHECK(hf_lock_new(one, "c", &unset, &lock, &why) == HF_BAD_CONFIG);
    unset.kind = HF_MUTEX;
    unset.ttl = -1;
    CHECK(hf_lock_new(one, "c", &unset, &lock, &why) == HF_BAD_CONFIG);
    memset(&unset, 0, sizeof unset);
    CHECK(hf_lock_new(one, "c", &unset, &lock, &why) == HF_BAD_CONFIG);
    CHECK(strstr(why.message, "size") != NULL && lock == NULL);
    CHECK(hf_ask(one, &q, &json, &why) == HF_BAD_CONFIG);
    q.what = HF_BREAK;
    q.name = "c/nobody";
    CHECK(hf_ask(one, &q, &json, &why) == HF_NOT_HELD);
    says(one, HF_EXAMINE, NULL, "holdfast.doctor/1");
    hf_client_free(NULL);
    hf_lock_free(NULL);
    hf_lease_free(NULL);
    hf_queue_free(NULL);
    hf_string_free(NULL);
}

int main(int argc, char** argv) {
    if (argc != 2) return 64;
    queues = strncmp(argv[1], "sqlite:", 7) != 0;
    OK(hf_open(argv[1], NULL, &one, &why));
    OK(hf_open(argv[1], NULL, &other, &why));
    grants();
    waits();
    freed_queues();
    cancelled_grants();
    losses();
    kinds();
    several();
    elections();
    questions();
    mistakes();
    older_callers();
    in_threads();
    if (getenv("HOLDFAST_TEST_NO_FORK") == NULL) forks(argv[1]);
    reports(argv[1]);
    closing();
    printf("ok: %s\n", argv[1]);
    return 0;
}
