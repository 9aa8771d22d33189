#include "support.h"

#include <time.h>

int queues;
hf_client* one;
hf_client* other;
hf_error why = HF_ERROR;

long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

hf_lock* lock_of(hf_client* client, const char* name, int kind, unsigned limit) {
    hf_lock_options o = HF_LOCK_OPTIONS;
    hf_lock* lock = NULL;
    o.kind = kind;
    o.limit = limit;
    OK(hf_lock_new(client, name, &o, &lock, &why));
    return lock;
}

int try_it(const hf_lock* lock, int shared, unsigned permits, int64_t wait, hf_lease** lease) {
    hf_acquire_options o = HF_ACQUIRE_OPTIONS;
    o.shared = shared;
    o.permits = permits;
    o.wait = wait;
    return hf_acquire(lock, &o, lease, &why);
}

hf_lease* acquire(const hf_lock* lock) {
    hf_lease* lease = NULL;
    OK(try_it(lock, 0, 1, cap_ms, &lease));
    CHECK(lease != NULL && hf_lease_valid(lease));
    return lease;
}

void release(hf_lease* lease) {
    OK(hf_lease_release(lease, 0, &why));
    CHECK(!hf_lease_valid(lease));
    hf_lease_free(lease);
}

hf_facts facts_of(const hf_lease* lease) {
    hf_facts f = HF_FACTS;
    OK(hf_lease_look(lease, 0, &f, &why));
    return f;
}

uint64_t start(const hf_lock* lock, hf_queue* queue, int64_t wait) {
    hf_acquire_options o = HF_ACQUIRE_OPTIONS;
    uint64_t call = 0;
    o.wait = wait;
    OK(hf_acquire_start(lock, &o, queue, &call, &why));
    CHECK(call != 0);
    return call;
}

hf_event answer(hf_queue* queue, uint64_t call) {
    hf_event e = HF_EVENT;
    struct pollfd p;
    p.fd = hf_queue_fd(queue);
    p.events = POLLIN;
    CHECK(poll(&p, 1, cap_ms) == 1);
    CHECK(hf_queue_next(queue, &e) == 1);
    CHECK(e.call == call);
    why = e.error;
    return e;
}

void nothing_waits(hf_queue* queue) {
    hf_event e = HF_EVENT;
    struct pollfd p;
    p.fd = hf_queue_fd(queue);
    p.events = POLLIN;
    CHECK(poll(&p, 1, 0) == 0);
    CHECK(hf_queue_next(queue, &e) == 0);
}

char* ask(hf_client* client, int what, const char* name) {
    hf_question q = HF_QUESTION;
    char* json = NULL;
    q.what = what;
    q.name = name;
    OK(hf_ask(client, &q, &json, &why));
    CHECK(json != NULL);
    return json;
}

void says(hf_client* client, int what, const char* name, const char* text) {
    char* json = ask(client, what, name);
    if (strstr(json, text) == NULL) fprintf(stderr, "%s\n", json);
    CHECK(strstr(json, text) != NULL);
    hf_string_free(json);
}

void says_soon(hf_client* client, int what, const char* name, const char* text) {
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
