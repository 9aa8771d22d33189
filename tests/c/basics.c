/* The suite's basics through the C interface, in C99: basics URL. Other tests of the library prove
 * what a lock promises; these prove that each function of holdfast.h does what it says. */
#define _POSIX_C_SOURCE 200809L
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int cap_ms = 20000; /* of what must come */
static int queues;         /* the backend shows who waits */
static hf_client* one;
static hf_client* other;
static hf_error error = HF_ERROR;

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s\n  last error: %d %s\n", __FILE__, __LINE__, #condition, \
                    (int)error.code, error.message);                                            \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)
#define OK(call) CHECK((call) == HF_OK)

static long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static hf_lock* lock_of(hf_client* client, const char* name, int kind, unsigned limit) {
    hf_lock_options o = HF_LOCK_OPTIONS;
    hf_lock* lock = NULL;
    o.kind = kind;
    o.limit = limit;
    OK(hf_lock_new(client, name, &o, &lock, &error));
    return lock;
}

static int try_it(const hf_lock* lock, int shared, unsigned permits, int64_t wait,
                  hf_lease** lease) {
    hf_acquire_options o = HF_ACQUIRE_OPTIONS;
    o.shared = shared;
    o.permits = permits;
    o.wait = wait;
    return hf_acquire(lock, &o, lease, &error);
}

static hf_lease* acquire(const hf_lock* lock) {
    hf_lease* lease = NULL;
    OK(try_it(lock, 0, 1, cap_ms, &lease));
    CHECK(lease != NULL && hf_lease_valid(lease));
    return lease;
}

static void release(hf_lease* lease) {
    OK(hf_lease_release(lease, 0, &error));
    CHECK(!hf_lease_valid(lease));
    hf_lease_free(lease);
}

static hf_facts facts_of(const hf_lease* lease) {
    hf_facts f = HF_FACTS;
    OK(hf_lease_look(lease, 0, &f, &error));
    return f;
}

static uint64_t start(const hf_lock* lock, hf_queue* queue, int64_t wait) {
    hf_acquire_options o = HF_ACQUIRE_OPTIONS;
    uint64_t call = 0;
    o.wait = wait;
    OK(hf_acquire_start(lock, &o, queue, &call, &error));
    CHECK(call != 0);
    return call;
}

/* The answer of this call, which has to be the next. */
static hf_event answer(hf_queue* queue, uint64_t call) {
    hf_event e = HF_EVENT;
    struct pollfd p;
    p.fd = hf_queue_fd(queue);
    p.events = POLLIN;
    CHECK(poll(&p, 1, cap_ms) == 1);
    CHECK(hf_queue_next(queue, &e) == 1);
    CHECK(e.call == call);
    error = e.error;
    return e;
}

static void nothing_waits(hf_queue* queue) {
    hf_event e = HF_EVENT;
    struct pollfd p;
    p.fd = hf_queue_fd(queue);
    p.events = POLLIN;
    CHECK(poll(&p, 1, 0) == 0);
    CHECK(hf_queue_next(queue, &e) == 0);
}

static char* ask(hf_client* client, int what, const char* name) {
    hf_question q = HF_QUESTION;
    char* json = NULL;
    q.what = what;
    q.name = name;
    OK(hf_ask(client, &q, &json, &error));
    CHECK(json != NULL);
    return json;
}

static void says(hf_client* client, int what, const char* name, const char* text) {
    char* json = ask(client, what, name);
    if (strstr(json, text) == NULL) fprintf(stderr, "%s\n", json);
    CHECK(strstr(json, text) != NULL);
    hf_string_free(json);
}

/* Until it is said, since a waiter needs a moment to be seen. */
static void says_soon(hf_client* client, int what, const char* name, const char* text) {
    const long long end = now_ms() + cap_ms;
    for (;;) {
        char* json = ask(client, what, name);
        const int found = strstr(json, text) != NULL;
        hf_string_free(json);
        if (found) return;
        CHECK(now_ms() < end);
        poll(NULL, 0, 5);
    }
}

static void grants(void) {
    hf_lock* lock = lock_of(one, "c/grant", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    const hf_facts first = facts_of(lease);
    CHECK(first.state == HF_STATE_HELD && first.left > 0 && first.reason == 0 && !first.shared);
    CHECK(first.token > 0 && first.owner[0] != '\0' && first.permits == 1);
    OK(hf_lease_renew(lease, &error));
    release(lease);
    lease = acquire(lock);
    CHECK(facts_of(lease).token > first.token);
    CHECK(facts_of(lease).previous == HF_PREVIOUS_RELEASED);
    OK(hf_lease_release(lease, 1, &error));
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
    CHECK(try_it(theirs, 0, 1, 0, &refused) == HF_CONTENDED && error.code == HF_CONTENDED);
    began = now_ms();
    CHECK(try_it(theirs, 0, 1, 100, &refused) == HF_TIMED_OUT);
    CHECK(now_ms() - began >= 99 && refused == NULL);
    OK(hf_queue_new(&queue, &error));
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
    OK(hf_lease_start(e.lease, HF_RENEW, queue, &call, &error));
    CHECK(answer(queue, call).error.code == 0);
    OK(hf_lease_start(e.lease, HF_ABANDON, queue, &call, &error));
    CHECK(answer(queue, call).error.code == 0);
    CHECK(hf_lease_start(e.lease, 77, queue, &call, &error) == HF_BAD_CONFIG);
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
    OK(hf_queue_new(&queue, &error));
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

static void losses(void) {
    hf_lock* lock = lock_of(one, "c/lost", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    hf_queue* queue = NULL;
    hf_question q = HF_QUESTION;
    const hf_facts held = facts_of(lease);
    char* json = NULL;
    uint64_t first, second;
    long long end;
    OK(hf_queue_new(&queue, &error));
    OK(hf_lease_start(lease, HF_WATCH, queue, &first, &error));
    hf_cancel(queue, first);
    CHECK(answer(queue, first).error.code == HF_CANCELLED);
    OK(hf_lease_start(lease, HF_WATCH, queue, &first, &error));
    says(other, HF_ASK, "c/lost", "holdfast.ask/1");
    OK(hf_lease_renew(lease, &error));
    end = now_ms() + cap_ms;
    while (facts_of(lease).asked != 1) {
        CHECK(now_ms() < end);
        poll(NULL, 0, 5);
    }
    q.what = HF_BREAK;
    q.name = "c/lost";
    q.token = held.token + 1;
    CHECK(hf_ask(other, &q, &json, &error) == HF_NOT_HELD);
    q.token = 0;
    q.owner = held.owner;
    q.note = "the test";
    q.now = 1;
    OK(hf_ask(other, &q, &json, &error));
    CHECK(strstr(json, "\"broken\":true") != NULL);
    hf_string_free(json);
    CHECK(hf_lease_renew(lease, &error) != HF_OK);
    CHECK(answer(queue, first).error.code == HF_REVOKED);
    CHECK(!hf_lease_valid(lease));
    CHECK(facts_of(lease).state == HF_STATE_LOST && facts_of(lease).reason == HF_REVOKED);
    CHECK(hf_lease_release(lease, 0, &error) == HF_LOST);
    hf_lease_free(lease);
    lease = acquire(lock);
    OK(hf_lease_start(lease, HF_WATCH, queue, &first, &error));
    OK(hf_lease_start(lease, HF_RELEASE, queue, &second, &error));
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
    OK(hf_lease_downgrade(a, &error));
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
    OK(hf_lock_all(parts, 2, &both, &error));
    parts[0].lock = both;
    CHECK(hf_lock_all(parts, 2, &nested, &error) == HF_BAD_CONFIG);
    held = acquire(b);
    CHECK(try_it(both, 0, 1, 100, &lease) == HF_TIMED_OUT);
    says_soon(one, HF_INSPECT, "c/several/a", "\"held\":false");
    release(held);
    lease = acquire(both);
    OK(hf_lease_look(lease, 1, &f, &error));
    CHECK(f.shared == 1);
    CHECK(hf_lease_look(lease, 2, &f, &error) == HF_BAD_CONFIG);
    CHECK(hf_lease_renew(lease, &error) == HF_NOT_SUPPORTED);
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
    OK(hf_acquire(mine, &o, &term, &error));
    CHECK(hf_acquire(mine, &o, &second, &error) == HF_WOULD_DEADLOCK);
    says(other, HF_LEADER, "c/leader", "\"value\":\"10.0.0.1:80\"");
    f = facts_of(term);
    q.what = HF_LEADER;
    q.name = "c/leader";
    q.owner = f.owner;
    q.wait = 60;
    CHECK(hf_ask(other, &q, &json, &error) == HF_TIMED_OUT && json == NULL);
    release(term);
    q.wait = cap_ms;
    OK(hf_ask(other, &q, &json, &error));
    CHECK(strstr(json, "\"led\":false") != NULL);
    hf_string_free(json);
    hf_lock_free(mine);
}

static void mistakes(void) {
    hf_client* client = NULL;
    hf_lock* lock = NULL;
    hf_lock_options unset = HF_LOCK_OPTIONS;
    hf_question q = HF_QUESTION;
    char* json = NULL;
    CHECK(hf_open("redis://127.0.0.1:1/?tttl=3s", NULL, &client, &error) == HF_BAD_CONFIG);
    CHECK(strstr(error.message, "tttl") != NULL && client == NULL);
    CHECK(hf_open("redis://127.0.0.1:1/?tttl=3s", NULL, &client, NULL) == HF_BAD_CONFIG);
    CHECK(hf_lock_new(one, "", NULL, &lock, &error) == HF_BAD_NAME);
    CHECK(hf_lock_new(one, NULL, NULL, &lock, &error) == HF_BAD_NAME);
    unset.kind = 9;
    CHECK(hf_lock_new(one, "c", &unset, &lock, &error) == HF_BAD_CONFIG);
    memset(&unset, 0, sizeof unset);
    CHECK(hf_lock_new(one, "c", &unset, &lock, &error) == HF_BAD_CONFIG);
    CHECK(strstr(error.message, "size") != NULL && lock == NULL);
    CHECK(hf_ask(one, &q, &json, &error) == HF_BAD_CONFIG);
    q.what = HF_BREAK;
    q.name = "c/nobody";
    CHECK(hf_ask(one, &q, &json, &error) == HF_NOT_HELD);
    says(one, HF_EXAMINE, NULL, "holdfast.doctor/1");
    hf_close(NULL);
    hf_lock_free(NULL);
    hf_lease_free(NULL);
    hf_queue_free(NULL);
    hf_string_free(NULL);
}

/* A program that was built with an older header: its structs end earlier, and what follows is its
 * own. */
static void older_callers(void) {
    struct {
        hf_error e;
        char own[4];
    } small;
    hf_lock* lock = lock_of(one, "c/older", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    hf_facts f = HF_FACTS;
    memset(&small, 'x', sizeof small);
    small.e.size = 12;
    CHECK(hf_lock_new(one, "", NULL, &lock, &small.e) == HF_BAD_NAME);
    CHECK(small.e.size == 12 && small.e.code == HF_BAD_NAME && small.e.message[0] == 'x');
    f.size = offsetof(hf_facts, token);
    f.token = 7;
    OK(hf_lease_look(lease, 0, &f, &error));
    CHECK(f.left > 0 && f.token == 7);
    release(lease);
    hf_lock_free(lock);
}

enum { threads = 8, rounds = 25 };
static int counter;

/* A blocking call of its own in each thread, all through one lock. */
static void* count(void* lock) {
    int n;
    for (n = 0; n < rounds; ++n) {
        hf_acquire_options o = HF_ACQUIRE_OPTIONS;
        hf_error mine = HF_ERROR;
        hf_lease* lease = NULL;
        int before;
        o.wait = 4 * cap_ms;
        if (hf_acquire(lock, &o, &lease, &mine) != HF_OK) return "not granted";
        before = counter;
        sched_yield();
        counter = before + 1;
        if (hf_lease_release(lease, 0, &mine) != HF_OK) return "not released";
        hf_lease_free(lease);
    }
    return NULL;
}

static void in_threads(void) {
    hf_lock* lock = lock_of(one, "c/threads", HF_MUTEX, 1);
    pthread_t all[threads];
    int n;
    for (n = 0; n < threads; ++n)
        CHECK(pthread_create(&all[n], NULL, count, lock) == 0);
    for (n = 0; n < threads; ++n) {
        void* failed = NULL;
        CHECK(pthread_join(all[n], &failed) == 0 && failed == NULL);
    }
    CHECK(counter == threads * rounds);
    hf_lock_free(lock);
}

/* What the child finds; each exit code is a place. */
static int in_child(hf_lock* lock, hf_lease* lease, hf_queue* queue) {
    hf_question q = HF_QUESTION;
    hf_event e = HF_EVENT;
    hf_lease* none = NULL;
    hf_lock* made = NULL;
    char* json = NULL;
    uint64_t call = 0;
    q.what = HF_LIST;
    if (hf_lock_new(one, "c/child", NULL, &made, &error) != HF_FORKED) return 1;
    if (hf_acquire(lock, NULL, &none, &error) != HF_FORKED) return 2;
    if (hf_acquire_start(lock, NULL, queue, &call, &error) != HF_FORKED) return 3;
    if (hf_ask(one, &q, &json, &error) != HF_FORKED) return 4;
    if (hf_lease_renew(lease, &error) != HF_FORKED) return 5;
    if (hf_lease_start(lease, HF_WATCH, queue, &call, &error) != HF_FORKED) return 6;
    if (hf_lease_release(lease, 0, &error) != HF_FORKED) return 7;
    if (hf_queue_fd(queue) != -1 || hf_queue_next(queue, &e) != 0) return 8;
    hf_cancel(queue, 1);
    hf_queue_free(queue);
    hf_lease_free(lease);
    hf_lock_free(lock);
    hf_close(one);
    return 0;
}

static void forks(const char* url) {
    hf_lock* lock = lock_of(one, "c/fork", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    hf_queue* queue = NULL;
    int status = 0;
    uint64_t call;
    hf_event e;
    pid_t child;
    OK(hf_queue_new(&queue, &error));
    call = start(lock, queue, HF_FOREVER);
    child = fork();
    if (child == 0) {
        int failed = in_child(lock, lease, queue);
        /* A client of its own works. */
        if (!failed && strncmp(url, "memory:", 7) != 0) {
            hf_client* mine = NULL;
            if (hf_open(url, NULL, &mine, &error) != HF_OK) _exit(10);
            lock = lock_of(mine, "c/fork/child", HF_MUTEX, 1);
            release(acquire(lock));
            hf_lock_free(lock);
            hf_close(mine);
        }
        _exit(failed);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status != 0) fprintf(stderr, "the child ended with %d\n", status);
    CHECK(status == 0);
    CHECK(hf_lease_valid(lease));
    OK(hf_lease_renew(lease, &error));
    release(lease);
    e = answer(queue, call);
    CHECK(e.error.code == 0);
    release(e.lease);
    hf_queue_free(queue);
    hf_lock_free(lock);
}

static void closing(void) {
    hf_lock* lock = lock_of(one, "c/close", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    hf_queue* queue = NULL;
    uint64_t watch, waiting;
    hf_event a = HF_EVENT;
    OK(hf_queue_new(&queue, &error));
    OK(hf_lease_start(lease, HF_WATCH, queue, &watch, &error));
    waiting = start(lock, queue, HF_FOREVER);
    hf_close(one);
    one = NULL;
    CHECK(!hf_lease_valid(lease) && facts_of(lease).reason == HF_CLOSED);
    while (watch != 0 || waiting != 0) {
        struct pollfd p;
        p.fd = hf_queue_fd(queue);
        p.events = POLLIN;
        CHECK(poll(&p, 1, cap_ms) == 1 && hf_queue_next(queue, &a) == 1);
        CHECK(a.error.code == HF_CLOSED);
        if (a.call == watch) watch = 0;
        if (a.call == waiting) waiting = 0;
    }
    CHECK(try_it(lock, 0, 1, 0, &lease) == HF_CLOSED);
    hf_lease_free(lease);
    hf_queue_free(queue);
    hf_lock_free(lock);
    says_soon(other, HF_INSPECT, "c/close", "\"held\":false");
    hf_close(other);
}

int main(int argc, char** argv) {
    if (argc != 2) return 64;
    queues = strncmp(argv[1], "sqlite:", 7) != 0;
    OK(hf_open(argv[1], NULL, &one, &error));
    OK(hf_open(argv[1], NULL, &other, &error));
    grants();
    waits();
    freed_queues();
    losses();
    kinds();
    several();
    elections();
    mistakes();
    older_callers();
    in_threads();
    if (getenv("HOLDFAST_TEST_NO_FORK") == NULL) forks(argv[1]);
    closing();
    printf("ok: %s\n", argv[1]);
    return 0;
}
