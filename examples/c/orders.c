/* orders URL NAME COUNT: does a job COUNT times, each time under the lock, for example
 * orders redis://127.0.0.1:6379 orders 10 */
#define _POSIX_C_SOURCE 200809L
#include <holdfast.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static hf_error why = HF_ERROR;

static int failed(int status) {
    fprintf(stderr, "%s\n", why.message);
    return status;
}

/* Stands for the work. Looks now and then whether the lock is still held; the token goes to the
 * store that it writes to. Returns 1 if it was held to the end. */
static int work(const hf_lease* lease) {
    hf_facts facts = HF_FACTS;
    int step;
    if (hf_lease_look(lease, 0, &facts, &why)) return 0;
    if (facts.previous == HF_PREVIOUS_CRASHED || facts.previous == HF_PREVIOUS_ABANDONED)
        fputs("the holder before did not finish: check its work first\n", stderr);
    printf("%ld begins with token %llu\n", (long)getpid(), (unsigned long long)facts.token);
    for (step = 0; step < 5 && hf_lease_valid(lease); ++step)
        poll(NULL, 0, 1);
    printf("%ld ends %s\n", (long)getpid(), hf_lease_valid(lease) ? "in time" : "too late");
    return hf_lease_valid(lease);
}

static int job(const hf_lock* lock) {
    hf_acquire_options options = HF_ACQUIRE_OPTIONS;
    hf_lease* lease = NULL;
    int done;
    options.wait = 30000;
    options.note = "example";
    switch (hf_acquire(lock, &options, &lease, &why)) {
        case HF_OK:
            break;
        case HF_TIMED_OUT:
            return failed(75); /* another client holds it */
        default:
            return failed(69); /* something is broken */
    }
    done = work(lease);
    /* An error: the lock was lost, and the work may have collided; or the server does not answer,
     * and Holdfast repeats the release in the background. */
    if (hf_lease_release(lease, !done, &why)) failed(0);
    hf_lease_free(lease);
    return done ? 0 : 76;
}

/* What another client gets while the lock is held. */
static int busy(const hf_lock* lock) {
    hf_acquire_options options = HF_ACQUIRE_OPTIONS;
    hf_lease *lease = NULL, *other = NULL;
    if (hf_acquire(lock, &options, &lease, &why)) return failed(69);
    options.wait = 1000;
    if (hf_acquire(lock, &options, &other, &why)) printf("TimedOut, code %d\n", (int)why.code);
    hf_lease_free(other);
    if (hf_lease_release(lease, 0, &why)) failed(0);
    hf_lease_free(lease);
    return 0;
}

int main(int argc, char** argv) {
    hf_client* client = NULL;
    hf_lock* lock = NULL;
    int status = 0, count;
    if (argc != 4) return fputs("orders URL NAME COUNT\n", stderr), 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (hf_open(argv[1], NULL, &client, &why) || hf_lock_new(client, argv[2], NULL, &lock, &why))
        status = failed(78);
    for (count = atoi(argv[3]); count > 0 && status == 0; --count)
        status = job(lock);
    if (status == 0) status = busy(lock);
    hf_lock_free(lock);
    hf_client_free(client);
    return status;
}
