/* Older programs, threads, forks, and the end of a client. */
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <sys/wait.h>

/* A program that was built with an older header: its structs end earlier, and what follows is its
 * own. */
void older_callers(void) {
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
    OK(hf_lease_look(lease, 0, &f, &why));
    CHECK(f.left > 0 && f.token == 7);
    release(lease);
    hf_lock_free(lock);
}

/* The next report of this kind. */
static hf_report report(hf_queue* queue, int kind) {
    hf_report r = HF_REPORT;
    struct pollfd p;
    p.fd = hf_queue_fd(queue);
    p.events = POLLIN;
    do {
        CHECK(poll(&p, 1, cap_ms) == 1);
    } while (hf_queue_report(queue, &r) == 0 || r.kind != kind);
    CHECK(r.size == sizeof r);
    return r;
}

/* Two reports each, more than the queue and what feeds it keep, which is 4096 each: losses stay. */
static void floods(hf_lock* lock, hf_queue* queue) {
    hf_report r = HF_REPORT;
    struct pollfd p;
    int n;
    for (n = 0; n < 4600; ++n)
        release(acquire(lock));
    p.fd = hf_queue_fd(queue);
    p.events = POLLIN;
    /* They come later than the calls that they are about. */
    for (n = 0; n == 0 || r.dropped == 0;) {
        CHECK(poll(&p, 1, cap_ms) == 1);
        if (hf_queue_report(queue, &r) == 1 && n++ == 0) CHECK(r.kind == HF_REPORT_LOST);
    }
}

/* What a client reports comes to the queue that it was opened with. */
void reports(const char* url) {
    hf_client_options o = HF_CLIENT_OPTIONS;
    hf_question q = HF_QUESTION;
    hf_queue* queue = NULL;
    hf_client* client = NULL;
    hf_lock* lock;
    hf_lease* lease;
    hf_report r;
    hf_facts f;
    char* json = NULL;
    int n;
    OK(hf_queue_new(&queue, &why));
    o.reports = queue;
    OK(hf_open(url, &o, &client, &why));
    lock = lock_of(client, "c/reports", HF_MUTEX, 1);
    lease = acquire(lock);
    f = facts_of(lease);
    r = report(queue, HF_REPORT_ACQUIRED);
    CHECK(strcmp(r.name, "c/reports") == 0 && strcmp(r.owner, f.owner) == 0);
    CHECK(r.token == f.token && r.reason == 0 && r.text[0] == '\0' && r.dropped == 0);
    release(lease);
    report(queue, HF_REPORT_RELEASED);
    for (n = 0; n < 2; ++n) {
        lease = acquire(lock);
        q.what = HF_BREAK;
        q.name = "c/reports";
        q.now = 1;
        OK(hf_ask(other, &q, &json, &why));
        hf_string_free(json);
        CHECK(hf_lease_renew(lease, &why) != HF_OK);
        if (n == 0) {
            r = report(queue, HF_REPORT_LOST);
            CHECK(r.reason == HF_REVOKED && r.text[0] != '\0');
        }
        hf_lease_free(lease);
    }
    /* The second loss is left there. An older program's report ends earlier. */
    do {
        r.size = offsetof(hf_report, token);
        r.token = 7;
    } while (hf_queue_report(queue, &r) == 0 || r.kind != HF_REPORT_ACQUIRED);
    CHECK(r.token == 7);
    if (strncmp(url, "memory:", 7) == 0) floods(lock, queue);
    hf_queue_free(queue);
    release(acquire(lock)); /* the client goes on */
    hf_lock_free(lock);
    hf_client_free(client);
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

void in_threads(void) {
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
    if (hf_lock_new(one, "c/child", NULL, &made, &why) != HF_FORKED) return 1;
    if (hf_acquire(lock, NULL, &none, &why) != HF_FORKED) return 2;
    if (hf_acquire_start(lock, NULL, queue, &call, &why) != HF_FORKED) return 3;
    if (hf_ask(one, &q, &json, &why) != HF_FORKED) return 4;
    if (hf_lease_renew(lease, &why) != HF_FORKED) return 5;
    if (hf_lease_start(lease, HF_WATCH, queue, &call, &why) != HF_FORKED) return 6;
    if (hf_lease_release(lease, 0, &why) != HF_FORKED) return 7;
    if (hf_queue_fd(queue) != -1 || hf_queue_next(queue, &e) != 0) return 8;
    hf_cancel(queue, 1);
    hf_queue_free(queue);
    hf_lease_free(lease);
    hf_lock_free(lock);
    hf_close(one);
    hf_client_free(one);
    return 0;
}

void forks(const char* url) {
    hf_lock* lock = lock_of(one, "c/fork", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    hf_queue* queue = NULL;
    const int refused = 99;
    int status = 0, tries;
    uint64_t call;
    hf_event e;
    pid_t child;
    OK(hf_queue_new(&queue, &why));
    call = start(lock, queue, HF_FOREVER);
    /* A child of SQLite is refused if the waiter's thread was inside it: then another one is made.
     */
    for (tries = 0; tries < 20; ++tries) {
        child = fork();
        if (child == 0) {
            int failed = in_child(lock, lease, queue);
            /* A client of its own works. */
            if (!failed && strncmp(url, "memory:", 7) != 0) {
                hf_client* mine = NULL;
                hf_lease* held = NULL;
                if (hf_open(url, NULL, &mine, &why) != HF_OK) _exit(10);
                lock = lock_of(mine, "c/fork/child", HF_MUTEX, 1);
                if (hf_acquire(lock, NULL, &held, &why) != HF_OK)
                    _exit(strstr(why.message, "inside SQLite at the fork") ? refused : 11);
                release(held);
                hf_lock_free(lock);
                hf_client_free(mine);
            }
            _exit(failed);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != refused) break;
    }
    if (status != 0) fprintf(stderr, "the child ended with %d\n", status);
    CHECK(status == 0);
    CHECK(hf_lease_valid(lease));
    OK(hf_lease_renew(lease, &why));
    release(lease);
    e = answer(queue, call);
    CHECK(e.error.code == 0);
    release(e.lease);
    hf_queue_free(queue);
    hf_lock_free(lock);
}

void closing(void) {
    hf_lock* lock = lock_of(one, "c/close", HF_MUTEX, 1);
    hf_lease* lease = acquire(lock);
    hf_queue* queue = NULL;
    hf_lock* other_lock = NULL;
    uint64_t watch, waiting;
    hf_event a = HF_EVENT;
    OK(hf_queue_new(&queue, &why));
    OK(hf_lease_start(lease, HF_WATCH, queue, &watch, &why));
    waiting = start(lock, queue, HF_FOREVER);
    hf_close(one);
    hf_close(one);
    CHECK(hf_lock_new(one, "c/closed", NULL, &other_lock, &why) == HF_CLOSED);
    hf_client_free(one);
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
    hf_client_free(other);
}
